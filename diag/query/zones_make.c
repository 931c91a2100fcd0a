/* Builds a log's zone index, also while the log grows. */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "diag/query/zones_impl.h"
#include "diag/record/describe.h"
#include "diag/record/layout.h"
#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/file.h"

/* Between two checkpoints lie so many times the bytes that the last one took: this bounds the
 * index's size. */
enum { CHECKPOINT_SHARE = 16 };

struct name {
	uint32_t tid, pid;
	int64_t start_ns;
	char name[16]; /* as the stream keeps it */
};

struct maker {
	struct zones z;
	struct log_reader *log;
	struct fdtable *fds;
	void *names;  /* tsearch, by tid */
	bool changed; /* descriptors or names, since the last checkpoint */
	uint64_t spacing, checkpoint_at, checkpoint_size;
	/* The checkpoints' records. */
	struct log_writer *state;
	char *state_path;
	uint64_t state_records;
	/* Where reading is: the zone of the block at hand. */
	struct log_place place;
	struct zone *zone;
	uint64_t lost;
	int failed;
	struct err *e;
};

static int by_tid(const void *a, const void *b)
{
	uint32_t x = ((const struct name *)a)->tid, y = ((const struct name *)b)->tid;

	return x < y ? -1 : x > y;
}

static void zones_make_put(struct maker *m, struct record *rec)
{
	if (!m->failed)
		m->failed = log_write(m->state, rec, m->e);
	m->state_records++;
}

static void put_descriptor(void *ctx, const struct fd_state *s)
{
	struct record rec = {.type = RECORD_FD, .fd = s->now};

	zones_make_put(ctx, &rec);
}

static void put_name(const void *node, VISIT visit, void *ctx)
{
	const struct name *n = *(struct name *const *)node;
	struct record rec = {.type = RECORD_PROCESS,
		.process = {.start_ns = n->start_ns,
			.pid = n->pid,
			.tid = n->tid,
			.what = PROCESS_NAME,
			.name = n->name}};

	if (visit == postorder || visit == leaf)
		zones_make_put(ctx, &rec);
}

static uint64_t state_size(struct maker *m)
{
	struct stat st;

	if (!m->failed)
		m->failed = log_flush(m->state, m->e);
	if (!m->failed && stat(m->state_path, &st))
		m->failed = err_errno(m->e, -errno, "cannot read '%s'", m->state_path);
	return m->failed ? LAYOUT_HEAD : (uint64_t)st.st_size;
}

/* The state before the zone that comes next. Where nothing has changed it is the last one's. */
static void add_checkpoint(struct maker *m, uint64_t offset)
{
	struct zone_checkpoint *c;

	m->z.checkpoint = alloc_room(
		m->z.checkpoint, m->z.head.n_checkpoints, sizeof(*m->z.checkpoint));
	c = &m->z.checkpoint[m->z.head.n_checkpoints];
	if (m->changed || !m->z.head.n_checkpoints) {
		*c = (struct zone_checkpoint){.offset = state_size(m), .before = m->state_records};
		twalk_r(m->names, put_name, m);
		fdtable_all(m->fds, put_descriptor, m);
		c->records = m->state_records - c->before;
		m->checkpoint_size = state_size(m) - c->offset;
	} else {
		*c = c[-1];
	}
	c->zone = m->z.head.n_zones;
	m->z.head.n_checkpoints++;
	m->checkpoint_at = offset;
	m->changed = false;
}

static struct zone *add_zone(struct maker *m, uint64_t offset, uint64_t before)
{
	uint64_t since = offset - m->checkpoint_at;
	struct zone *z;

	if (since >= m->spacing && since / CHECKPOINT_SHARE >= m->checkpoint_size)
		add_checkpoint(m, offset);
	m->z.zone = alloc_room(m->z.zone, m->z.head.n_zones, sizeof(*m->z.zone));
	z = &m->z.zone[m->z.head.n_zones++];
	*z = (struct zone){
		.offset = offset, .before = before, .first_ns = INT64_MAX, .last_ns = INT64_MIN};
	return z;
}

static void note_state(struct maker *m, const struct record *rec)
{
	struct name want = {.tid = rec->process.tid}, *n, **at;

	m->changed = true;
	if (fdtable_feed(m->fds, rec))
		alloc_end();
	if (rec->type != RECORD_PROCESS || rec->process.what == PROCESS_EXIT)
		return;
	at = tfind(&want, &m->names, by_tid);
	n = at ? *at : alloc_zero(1, sizeof(*n));
	n->tid = rec->process.tid;
	n->pid = rec->process.pid;
	n->start_ns = rec->process.start_ns;
	snprintf(n->name, sizeof(n->name), "%s", rec->process.name);
	if (!at && !tsearch(n, &m->names, by_tid))
		alloc_end();
}

static void zones_make_note(struct maker *m, struct zone *z, const struct record *rec)
{
	const int64_t start_ns = record_start_ns(rec);
	uint32_t pid, tid;

	z->records++;
	z->types |= 1u << rec->type;
	if (start_ns < z->first_ns)
		z->first_ns = start_ns;
	if (start_ns > z->last_ns)
		z->last_ns = start_ns;
	if (rec->type == RECORD_CALL) {
		zone_set_bit(z->calls, zone_call(rec->call.nr & ~RECORD_ASYNC_NR));
		zone_set_bit(z->threads, zone_thread(rec->call.pid));
		zone_set_bit(z->threads, zone_thread(rec->call.tid));
		z->failed += call_failed(&rec->call);
		return;
	}
	pid = record_pid(rec);
	tid = record_tid(rec);
	zone_set_bit(z->threads, zone_thread(pid));
	zone_set_bit(z->threads, zone_thread(tid ? tid : pid));
	if (rec->type == RECORD_FD || rec->type == RECORD_PROCESS)
		note_state(m, rec);
	else if (rec->type == RECORD_LOST)
		m->lost += rec->lost.count;
}

/* Reads the log to its end, to where it is damaged, or, while it is being written, to its last
 * whole block; from there on it can be called again. */
static int read_log(struct maker *m, const struct zones_stop *stop)
{
	struct zones_head *h = &m->z.head;
	const struct record *rec;
	bool partly;
	int rc = 1;

	while (!m->failed) {
		if (!m->place.left) {
			if (stop && stop->fn && stop->fn(stop->ctx, m->e))
				return -EINTR;
			m->zone = NULL;
		}
		rc = log_next(m->log, &rec, m->e);
		if (rc != 1)
			break;
		if (!m->zone)
			m->zone = add_zone(m, m->place.next, m->place.records);
		m->place = log_reader_place(m->log);
		zones_make_note(m, m->zone, rec);
	}
	if (m->failed)
		return m->failed;
	/* A block of which a part cannot be read is no zone. */
	partly = rc < 0 && m->zone && m->place.left;
	if (partly)
		h->n_zones--;
	while (h->n_checkpoints && m->z.checkpoint[h->n_checkpoints - 1].zone >= h->n_zones)
		h->n_checkpoints--;
	h->end = partly ? m->place.block : m->place.next;
	h->whole = rc == 0 && log_reader_ended(m->log);
	return rc == -EBADMSG ? 0 : rc;
}

/* Zones, checkpoints and their records as one file, which is there only once it is whole. */
static int save(struct maker *m, const char *path)
{
	struct file_text t;
	auto_free char *state = NULL;
	size_t size;
	int rc = file_read(m->state_path, &state, &size, m->e) ?: file_text_open(&t, m->e);

	if (rc)
		return rc;
	memcpy(m->z.head.magic, ZONES_MAGIC, sizeof(m->z.head.magic));
	m->z.head.version = ZONES_VERSION;
	m->z.head.crc = zones_crc(&m->z);
	fwrite(&m->z.head, sizeof(m->z.head), 1, t.f);
	if (m->z.head.n_zones)
		fwrite(m->z.zone, sizeof(*m->z.zone), m->z.head.n_zones, t.f);
	if (m->z.head.n_checkpoints)
		fwrite(m->z.checkpoint, sizeof(*m->z.checkpoint), m->z.head.n_checkpoints, t.f);
	fwrite(state, size, 1, t.f);
	return file_text_save(&t, path, 0600, m->e);
}

static int make_folder(const char *path, struct err *e)
{
	auto_free char *copy = alloc_copy(path);
	const char *folder = dirname(copy);
	int rc = file_mkdirs(folder, 0700, e);

	if (!rc)
		file_give_to_sudo_user(folder);
	return rc;
}

static void zones_make_clear(struct maker *m)
{
	if (m->state_path)
		unlink(m->state_path);
	free(m->state_path);
	log_writer_free(m->state);
	log_reader_free(m->log);
	fdtable_free(m->fds);
	if (m->names)
		tdestroy(m->names, free);
	free(m->z.zone);
	free(m->z.checkpoint);
}

/* Opens what is read and written; clear() afterwards, after errors as well. */
static int zones_make_start(struct maker *m, const char *path, const char *log, uint64_t spacing)
{
	int rc;

	m->fds = fdtable_new();
	if (!m->fds)
		alloc_end();
	m->spacing = spacing ? spacing : ZONES_SPACING;
	m->checkpoint_at = m->place.next = LAYOUT_HEAD;
	m->state_path = alloc_format("%s.%d", path, gettid());
	rc = make_folder(path, m->e) ?: log_reader_new(log, &m->log, m->e);
	if (rc)
		return rc;
	log_reader_detail(m->log, LOG_BRIEF);
	unlink(m->state_path);
	return log_writer_new(m->state_path, "index", &m->state, m->e);
}

/* What of the log is there now, and so read at least. */
static int look_at(struct maker *m, const char *log)
{
	struct stat st;

	if (stat(log, &st))
		return err_errno(m->e, -errno, "cannot read the log '%s'", log);
	m->z.head.file = zones_file_of(&st);
	return 0;
}

int zones_make(const char *path, const char *log, uint64_t spacing, const struct zones_stop *stop,
	struct err *e)
{
	struct maker m = {.e = e};
	int rc = zones_make_start(&m, path, log, spacing) ?: look_at(&m, log) ?: read_log(&m, stop);

	if (!rc) {
		rc = log_writer_end(m.state, 0, e);
		m.state = NULL;
	}
	rc = rc ?: save(&m, path);
	if (!rc)
		file_give_to_sudo_user(path);
	zones_make_clear(&m);
	return rc;
}

/* ---- of a log that grows ---- */

struct zones_follow {
	struct maker m;
	char *path, *log;
	uint64_t saved; /* bytes of the log that the index on the disk knows */
};

int zones_follow_new(const char *path, const char *log, struct zones_follow **out, struct err *e)
{
	struct zones_follow *f = alloc_zero(1, sizeof(*f));
	int rc;

	f->path = alloc_copy(path);
	f->log = alloc_copy(log);
	f->m.e = e;
	rc = zones_make_start(&f->m, path, log, 0);
	if (rc)
		zones_follow_free(f);
	else
		*out = f;
	return rc;
}

/* An index is written whole, so it waits until the log is larger by a quarter. */
static bool is_due(const struct zones_follow *f)
{
	const uint64_t more = f->m.z.head.end - f->saved;

	return f->m.z.head.whole || (more >= ZONES_LEAST && more >= f->saved / 4);
}

int zones_follow_step(struct zones_follow *f, struct err *e)
{
	const bool was_whole = f->m.z.head.whole;
	int rc;

	f->m.e = e;
	if (was_whole)
		return 0;
	rc = look_at(&f->m, f->log) ?: read_log(&f->m, NULL);
	if (rc || !is_due(f))
		return rc;
	rc = log_flush(f->m.state, e) ?: save(&f->m, f->path);
	if (!rc) {
		f->saved = f->m.z.head.end;
		file_give_to_sudo_user(f->path);
	}
	return rc;
}

uint64_t zones_follow_lost(const struct zones_follow *f)
{
	return f->m.lost;
}

void zones_follow_free(struct zones_follow *f)
{
	if (!f)
		return;
	zones_make_clear(&f->m);
	free(f->path);
	free(f->log);
	free(f);
}
