/* Writes a trace log: encodes records, fills blocks, and reports failures. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "diag/record/bound.h"
#include "diag/record/growing.h"
#include "diag/record/layout.h"
#include "diag/record/ring.h"
#include "harness/base/auto.h"
#include "harness/base/clock.h"
#include "harness/base/file.h"

struct log_writer {
	int fd;
	int failed; /* the first error; later writes do nothing */
	char *path;
	uint8_t *pos; /* place of the next record in 'block' */
	uint32_t block_records;
	uint64_t records;
	int64_t block_ns; /* start of the block's first record */
	struct log_head head;
	uint64_t unseen[UNSEEN_COUNT]; /* totals up to the last RECORD_UNSEEN of each kind */
	bool head_written;
	struct layout_state state;
	struct log_ring *ring; /* holds the blocks of a flight recorder; else NULL */
	struct log_bound bound;
	uint8_t block[LAYOUT_BLOCK_HEAD + LAYOUT_PAYLOAD];
};

static void block_begin(struct log_writer *w)
{
	w->pos = w->block + LAYOUT_BLOCK_HEAD;
	w->block_records = 0;
	memset(&w->state, 0, sizeof(w->state));
}

static void read_boot_id(char out[37])
{
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t n;

	out[0] = '\0';
	if (fd < 0)
		return;
	n = read(fd, out, 36);
	out[n > 0 ? n : 0] = '\0';
	close(fd);
}

int log_writer_new(const char *path, const char *tracer, struct log_writer **out, struct err *e)
{
	struct log_writer *w = calloc(1, sizeof(*w));
	struct utsname u;
	int rc;

	if (!w || !(w->path = strdup(path))) {
		free(w);
		return err_set(e, -ENOMEM, "out of memory");
	}
	w->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (w->fd < 0) {
		rc = err_errno(e, -errno, "cannot make the log '%s'", path);
		log_writer_free(w);
		return rc;
	}
	log_hold(w->fd);
	uname(&u);
	w->head.version = LAYOUT_VERSION;
	snprintf(w->head.arch, sizeof(w->head.arch), "%.15s", u.machine);
	snprintf(w->head.tracer, sizeof(w->head.tracer), "%s", tracer);
	snprintf(w->head.host, sizeof(w->head.host), "%.64s", u.nodename);
	read_boot_id(w->head.boot_id);
	w->head.start_ns = clock_real_ns();
	w->block_ns = w->head.start_ns;
	block_begin(w);
	*out = w;
	return 0;
}

void log_writer_bias(struct log_writer *w, int64_t ns)
{
	w->head.bias_ns = ns;
}

void log_writer_how(struct log_writer *w, uint32_t how)
{
	w->head.how = how;
}

static int writer_put(struct log_writer *w, const void *data, size_t size, struct err *e)
{
	if (!w->failed)
		w->failed = fd_write_all(w->fd, data, size);
	if (w->failed)
		return err_errno(e, w->failed, "cannot write the log '%s'", w->path);
	return 0;
}

/* The ring has run out of memory: the log fails permanently, as on a full disk. */
static int ring_fails(struct log_writer *w, int rc, struct err *e)
{
	w->failed = rc;
	return err_errno(e, rc, "cannot keep the log '%s' in memory", w->path);
}

static int record_writer_put_head(struct log_writer *w, struct err *e)
{
	uint8_t p[LAYOUT_HEAD] = {0};

	memcpy(p, LAYOUT_MAGIC, 8);
	bytes_put32(p + 8, w->head.version);
	bytes_put64(p + 16, (uint64_t)w->head.start_ns);
	bytes_put64(p + 24, (uint64_t)w->head.bias_ns);
	memcpy(p + 32, w->head.arch, 16);
	memcpy(p + 48, w->head.tracer, 16);
	memcpy(p + 64, w->head.host, 65);
	memcpy(p + 129, w->head.boot_id, 37);
	bytes_put32(p + LAYOUT_HOW, w->head.how);
	bytes_put32(p + 12, (uint32_t)crc32(0, p + 16, LAYOUT_HEAD - 16));
	w->head_written = true;
	return writer_put(w, p, sizeof(p), e);
}

int log_unseen(struct log_writer *w, const uint64_t totals[UNSEEN_COUNT], struct err *e)
{
	int rc = 0;

	for (uint32_t i = 0; i < UNSEEN_COUNT && rc == 0; i++) {
		struct record rec = {.type = RECORD_UNSEEN,
			.unseen = {.start_ns = clock_real_ns(),
				.what = i,
				.count = totals[i] - w->unseen[i]}};

		if (rec.unseen.count)
			rc = log_write(w, &rec, e);
		w->unseen[i] = totals[i];
	}
	return rc;
}

int log_flush(struct log_writer *w, struct err *e)
{
	uint32_t payload = (uint32_t)(w->pos - w->block) - LAYOUT_BLOCK_HEAD;
	int rc;

	if (!w->head_written && (rc = record_writer_put_head(w, e)) < 0)
		return rc;
	if (!w->failed)
		w->failed = log_bound_look(&w->bound, w->fd, payload);
	if (!payload)
		return writer_put(w, NULL, 0, e);
	if (w->ring) {
		rc = log_ring_take(
			w->ring, w->block + LAYOUT_BLOCK_HEAD, payload, w->block_records);
		block_begin(w);
		return rc ? ring_fails(w, rc, e) : 0;
	}
	bytes_put32(w->block, LAYOUT_BLOCK_MAGIC);
	bytes_put32(w->block + 4, payload);
	bytes_put32(w->block + 8, w->block_records);
	bytes_put64(w->block + 16, w->records - w->block_records + 1);
	bytes_put32(w->block + 12, layout_crc(w->block, payload));
	rc = writer_put(w, w->block, LAYOUT_BLOCK_HEAD + payload, e);
	block_begin(w);
	return rc;
}

static uint8_t *put_zigzag(uint8_t *p, int64_t v)
{
	return bytes_put_varint(p, bytes_zigzag(v));
}

static size_t text_length(const char *s)
{
	return s ? strnlen(s, LAYOUT_PATH - 1) : 0;
}

static uint8_t *put_string(uint8_t *p, const char *s)
{
	size_t n = text_length(s);

	p = bytes_put_varint(p, n + 1);
	if (n)
		memcpy(p, s, n);
	p[n] = '\0';
	return p + n + 1;
}

static uint8_t *put_address(uint8_t *p, const struct sockaddr_storage *a)
{
	const uint8_t *bytes = (const uint8_t *)a;
	unsigned n = sizeof(*a);

	while (n && !bytes[n - 1])
		n--;
	*p++ = (uint8_t)n;
	memcpy(p, bytes, n);
	return p + n;
}

static uint8_t *put_start(struct layout_state *st, uint8_t *p, int64_t start_ns)
{
	p = put_zigzag(p, (int64_t)((uint64_t)start_ns - (uint64_t)st->start_ns));
	st->start_ns = start_ns;
	return p;
}

static uint8_t *put_seq(struct layout_state *st, uint8_t *p, uint64_t seq)
{
	p = put_zigzag(p, (int64_t)(seq - st->seq - 1));
	st->seq = seq;
	return p;
}

/* Writes a path or, for NULL, a length of 0. */
static uint8_t *put_path(uint8_t *p, const char *s)
{
	if (s)
		return put_string(p, s);
	*p = 0;
	return p + 1;
}

static uint8_t *put_offset(uint8_t *p, int64_t *next, const struct record_call *c)
{
	uint64_t difference = (uint64_t)c->offset - (uint64_t)*next;

	if (!difference) {
		*p++ = OFFSET_NEXT;
	} else if (c->offset == c->result) {
		*p++ = OFFSET_RESULT;
	} else if ((uint64_t)c->offset == c->args[3]) {
		*p++ = OFFSET_ARG;
	} else {
		*p++ = OFFSET_OTHER;
		p = put_zigzag(p, (int64_t)difference);
	}
	*next = layout_next(c->offset, c->result);
	return p;
}

static uint8_t *put_position(uint8_t *p, uint32_t *last, const struct record_call *c, uint8_t *how)
{
	int32_t difference = (int32_t)(c->position - (*last + (uint32_t)c->result));

	*how |= MORE_POSITION;
	*last = c->position;
	if (!difference)
		return p;
	*how |= MORE_MOVED;
	return put_zigzag(p, difference);
}

static uint8_t *put_cpu(uint8_t *p, uint64_t *last, const struct record_call *c, uint8_t *how)
{
	*how |= MORE_CPU;
	p = put_zigzag(p, (int64_t)(c->cpu_ns - *last));
	*last = c->cpu_ns + c->cpu_call_ns;
	return bytes_put_varint(p, c->cpu_call_ns);
}

/* Writes the offset or the asked length; position, head and processor time. */
static uint8_t *put_more(
	struct layout_state *st, unsigned slot, uint8_t *p, const struct record_call *c)
{
	uint8_t size = c->head_size < RECORD_HEAD ? c->head_size : RECORD_HEAD, *how = p;

	if (c->offset != -1) {
		p = put_offset(p, &st->next[slot], c);
	} else {
		*p++ = c->asked ? OFFSET_ASKED : OFFSET_NONE;
		if (c->asked)
			p = bytes_put_varint(p, c->asked);
	}
	if (c->positioned)
		p = put_position(p, &st->positions[layout_connection(c)], c, how);
	if (size) {
		*how |= MORE_HEAD;
		*p++ = size;
		memcpy(p, c->head, size);
		p += size;
	}
	return c->timed ? put_cpu(p, &st->cpu_ns[layout_thread(c->tid)], c, how) : p;
}

static uint8_t *put_call(struct layout_state *st, uint8_t *p, const struct record_call *c)
{
	unsigned slot = layout_slot(c->nr, c->tid);
	uint64_t *last = st->args[slot];
	uint64_t field[LAYOUT_FIELDS] = {
		bytes_zigzag((int64_t)((uint64_t)c->start_ns - (uint64_t)st->start_ns)),
		bytes_zigzag(c->service_ns),
		c->pid ^ st->pid,
		c->tid ^ st->tid,
		bytes_zigzag(c->result),
		bytes_zigzag((int64_t)(c->seq - st->seq - 1)),
	};
	uint64_t control = RECORD_CALL | (uint64_t)c->unfinished << 3;
	uint8_t *at = p;

	for (int i = 0; i < 6; i++) {
		field[6 + i] = c->args[i] ^ last[i];
		last[i] = c->args[i];
	}
	p += 8;
	control |= (uint64_t)(c->nr < LAYOUT_BIG_NR ? c->nr : LAYOUT_BIG_NR) << 54;
	if (c->nr >= LAYOUT_BIG_NR) {
		bytes_put32(p, c->nr);
		p += 4;
	}
	for (int i = 0; i < LAYOUT_FIELDS; i++) {
		unsigned n = field[i] ? (71 - (unsigned)__builtin_clzll(field[i])) / 8 : 0;

		bytes_put64(p, field[i]);
		p += n;
		control |= (uint64_t)n << (4 + 4 * i);
	}
	if (c->offset != -1 || c->asked || c->positioned || c->head_size || c->timed) {
		control |= CONTROL_OFFSET;
		p = put_more(st, slot, p, c);
	}
	if (c->path || c->path2) {
		control |= CONTROL_PATHS;
		p = put_path(p, c->path);
		p = put_path(p, c->path2);
	}
	bytes_put64(at, control);
	st->start_ns = c->start_ns;
	st->pid = c->pid;
	st->tid = c->tid;
	st->seq = c->seq;
	return p;
}

static uint8_t *put_signal(struct layout_state *st, uint8_t *p, const struct record_signal *s)
{
	*p++ = (uint8_t)(RECORD_SIGNAL | s->fatal << 3);
	p = put_start(st, p, s->start_ns);
	p = put_seq(st, p, s->seq);
	p = bytes_put_varint(p, s->pid);
	p = bytes_put_varint(p, s->tid);
	return bytes_put_varint(p, s->signo);
}

static uint8_t *put_fd(struct layout_state *st, uint8_t *p, const struct record_fd *f)
{
	bool tag = f->open && (f->tag.device || f->tag.inode || f->tag.first_ns);

	*p++ = (uint8_t)(RECORD_FD | f->open << 3 | tag << 4 | (f->open && f->peer) << 5);
	p = put_start(st, p, f->start_ns);
	p = bytes_put_varint(p, f->pid);
	p = put_zigzag(p, f->fd);
	if (!f->open)
		return p;
	*p++ = (uint8_t)f->kind;
	p = put_string(p, f->path);
	if (f->kind == FD_SOCKET) {
		p = put_zigzag(p, f->sock_type);
		p = put_address(p, &f->local);
		p = put_address(p, &f->remote);
	}
	if (tag) {
		p = bytes_put_varint(p, f->tag.device);
		p = bytes_put_varint(p, f->tag.inode);
		p = put_zigzag(p, (int64_t)((uint64_t)f->start_ns - (uint64_t)f->tag.first_ns));
	}
	return f->peer ? bytes_put_varint(p, f->peer) : p;
}

static uint8_t *put_process(struct layout_state *st, uint8_t *p, const struct record_process *r)
{
	*p++ = RECORD_PROCESS;
	p = put_start(st, p, r->start_ns);
	p = bytes_put_varint(p, r->pid);
	p = bytes_put_varint(p, r->tid);
	p = bytes_put_varint(p, r->parent);
	*p++ = (uint8_t)r->what;
	p = put_zigzag(p, r->status);
	return put_string(p, r->name);
}

static uint8_t *put_lost(struct layout_state *st, uint8_t *p, const struct record_lost *l)
{
	*p++ = RECORD_LOST;
	p = put_start(st, p, l->start_ns);
	p = bytes_put_varint(p, l->cpu);
	return bytes_put_varint(p, l->count);
}

static uint8_t *put_sum(struct layout_state *st, uint8_t *p, const struct record_sum *s)
{
	const uint64_t figures[] = {
		s->count, s->errors, s->failed, s->failed_ns, s->bytes, s->total_ns, s->max_ns};
	bool addresses = s->local.ss_family || s->remote.ss_family;
	uint64_t set = 0;

	*p++ = (uint8_t)(RECORD_SUM | s->messages << 3 | s->selected << 4 | (s->device != 0) << 5 |
		addresses << 6 | s->bulk << 7);
	p = put_start(st, p, s->start_ns);
	p = bytes_put_varint(p, s->pid);
	*p++ = s->class;
	*p++ = s->fd_class;
	if (s->device)
		p = bytes_put_varint(p, s->device);
	if (addresses) {
		p = put_address(p, &s->local);
		p = put_address(p, &s->remote);
	}
	for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++)
		p = bytes_put_varint(p, figures[i]);
	for (int i = 0; i < SUM_BUCKETS; i++)
		set |= (uint64_t)(s->histogram[i] != 0) << i;
	p = bytes_put_varint(p, set);
	for (int i = 0; i < SUM_BUCKETS; i++)
		if (s->histogram[i])
			p = bytes_put_varint(p, s->histogram[i]);
	return p;
}

static uint8_t *put_double(uint8_t *p, double v)
{
	uint64_t bits;

	memcpy(&bits, &v, sizeof(bits));
	bytes_put64(p, bits);
	return p + sizeof(bits);
}

static uint8_t *put_reading(struct layout_state *st, uint8_t *p, const struct record_reading *r)
{
	bool peer = r->peer.ss_family != AF_UNSPEC, same = r->max == r->sum;

	*p++ = (uint8_t)(peer << 3 | r->accepted << 4 |
		same << 5); /* type 0: RECORD_READING does not fit 3 bits */
	p = put_start(st, p, r->start_ns);
	p = bytes_put_varint(p, r->what);
	if (peer)
		p = put_address(p, &r->peer);
	p = bytes_put_varint(p, r->count);
	p = put_double(p, r->sum);
	return same ? p : put_double(p, r->max);
}

static uint8_t *put_fuse(struct layout_state *st, uint8_t *p, const struct record_fuse *f)
{
	*p++ = (uint8_t)(TYPE_FUSE | f->ended << 3);
	p = put_start(st, p, f->start_ns);
	p = bytes_put_varint(p, f->pid);
	p = bytes_put_varint(p, f->tid);
	p = put_zigzag(p, (int64_t)(f->unique - st->unique));
	st->unique = f->unique;
	p = bytes_put_varint(p, f->nodeid);
	p = bytes_put_varint(p, f->device);
	p = bytes_put_varint(p, f->opcode);
	return f->ended ? put_zigzag(p, f->error) : p;
}

static uint8_t *put_mark(struct layout_state *st, uint8_t *p, const struct record_mark *m)
{
	*p++ = TYPE_MARK;
	p = put_start(st, p, m->start_ns);
	return put_string(p, m->text);
}

static uint8_t *put_unseen(struct layout_state *st, uint8_t *p, const struct record_unseen *u)
{
	*p++ = TYPE_UNSEEN;
	p = put_start(st, p, u->start_ns);
	p = bytes_put_varint(p, u->what);
	return bytes_put_varint(p, u->count);
}

/* An upper bound of the record's encoded size. */
static size_t record_room(const struct record *rec)
{
	size_t room = LAYOUT_RECORD;

	if (rec->type == RECORD_CALL)
		room += text_length(rec->call.path) + text_length(rec->call.path2);
	else if (rec->type == RECORD_FD)
		room += text_length(rec->fd.path);
	else if (rec->type == RECORD_PROCESS)
		room += text_length(rec->process.name);
	else if (rec->type == RECORD_MARK)
		room += text_length(rec->mark.text);
	return room;
}

int log_write(struct log_writer *w, struct record *rec, struct err *e)
{
	struct layout_state *st = &w->state;
	int64_t now = record_end_ns(rec);
	struct record lost;

	rec->number = 0;
	if (log_bound_drops(&w->bound, rec))
		return 0;
	if (log_bound_tell(&w->bound, &lost, false)) {
		int rc = log_write(w, &lost, e);

		if (rc < 0)
			return rc;
	}
	/* Flush before adding the record, not after: then buffered records never wait longer than a
	 * second for a next one, and the caller's own timer covers the idle case. */
	if (w->failed || w->pos + record_room(rec) > w->block + sizeof(w->block) ||
		(w->block_records && (uint64_t)now - (uint64_t)w->block_ns > 1000000000)) {
		int rc = log_flush(w, e);

		if (rc < 0)
			return rc;
	}
	if (!w->block_records)
		w->block_ns = now;
	switch (rec->type) {
	case RECORD_CALL: w->pos = put_call(st, w->pos, &rec->call); break;
	case RECORD_SIGNAL: w->pos = put_signal(st, w->pos, &rec->signal); break;
	case RECORD_FD: w->pos = put_fd(st, w->pos, &rec->fd); break;
	case RECORD_PROCESS: w->pos = put_process(st, w->pos, &rec->process); break;
	case RECORD_LOST: w->pos = put_lost(st, w->pos, &rec->lost); break;
	case RECORD_SUM: w->pos = put_sum(st, w->pos, &rec->sum); break;
	case RECORD_READING: w->pos = put_reading(st, w->pos, &rec->reading); break;
	case RECORD_FUSE: w->pos = put_fuse(st, w->pos, &rec->fuse); break;
	case RECORD_MARK: w->pos = put_mark(st, w->pos, &rec->mark); break;
	case RECORD_UNSEEN: w->pos = put_unseen(st, w->pos, &rec->unseen); break;
	case RECORD_END: return err_set(e, -EINVAL, "only log_writer_end writes END records");
	default: return err_set(e, -EINVAL, "unknown record type %d", rec->type);
	}
	w->block_records++;
	rec->number = ++w->records;
	if (w->ring) {
		int rc = log_ring_note(w->ring, rec);

		return rc ? ring_fails(w, rc, e) : 0;
	}
	return 0;
}

int log_writer_keep(struct log_writer *w, int64_t keep_ns, size_t most_bytes, struct err *e)
{
	w->ring = log_ring_new(keep_ns, most_bytes);
	w->head.how |= LOG_RING;
	return w->ring ? 0 : err_set(e, -ENOMEM, "out of memory");
}

void log_writer_bound(struct log_writer *w, uint64_t most_bytes)
{
	w->bound.most = most_bytes;
}

struct spill {
	struct log_writer *to;
	struct err *e;
};

static int spill_record(void *ctx, struct record *rec)
{
	struct spill *s = ctx;

	return log_write(s->to, rec, s->e);
}

/* Appends a full block to the file. */
static int spill_block(void *ctx, const uint8_t *payload, size_t size, uint32_t records)
{
	struct spill *s = ctx;
	struct log_writer *w = s->to;
	int rc = log_flush(w, s->e);

	if (rc < 0)
		return rc;
	memcpy(w->pos, payload, size);
	w->pos += size;
	w->block_records = records;
	w->records += records;
	return log_flush(w, s->e);
}

static int spill(const struct log_ring *ring, struct log_writer *to, struct err *e)
{
	struct spill s = {.to = to, .e = e};
	const struct log_ring_sink sink = {.record = spill_record, .block = spill_block, .ctx = &s};

	return log_ring_replay(ring, &sink);
}

int log_writer_dump(struct log_writer *w, const char *path, struct err *e)
{
	auto_free char *part = NULL;
	struct log_writer *to;
	int rc;

	if (asprintf(&part, "%s.part", path) < 0) {
		part = NULL;
		return err_errno(e, -ENOMEM, "cannot make the log '%s'", path);
	}
	rc = log_flush(w, e);
	if (rc == 0 && access(path, F_OK) == 0)
		rc = err_errno(e, -EEXIST, "cannot make the log '%s'", path);
	if (rc == 0)
		rc = log_writer_new(part, w->head.tracer, &to, e);
	if (rc < 0)
		return rc;
	to->head = w->head;
	rc = spill(w->ring, to, e);
	if (rc == 0)
		rc = log_writer_end(to, log_ring_lost(w->ring), e);
	else
		log_writer_free(to);
	if (rc == 0 && rename(part, path) < 0)
		rc = err_errno(e, -errno, "cannot make the log '%s'", path);
	if (rc < 0)
		unlink(part);
	return rc;
}

/* Writes the kept blocks into the log's own file. */
static int end_ring(struct log_writer *w, uint64_t *lost, struct err *e)
{
	struct log_ring *ring = w->ring;
	int rc = log_flush(w, e);

	w->ring = NULL;
	w->records = 0;
	*lost = log_ring_lost(ring);
	if (rc == 0)
		rc = spill(ring, w, e);
	log_ring_free(ring);
	return rc;
}

int log_writer_end(struct log_writer *w, uint64_t lost, struct err *e)
{
	int rc = w->ring ? end_ring(w, &lost, e) : 0;
	struct record unreported;

	if (rc == 0 && log_bound_tell(&w->bound, &unreported, true))
		rc = log_write(w, &unreported, e);
	if (rc == 0)
		rc = log_flush(w, e);
	if (rc == 0) {
		w->pos[0] = RECORD_END;
		bytes_put64(w->pos + 1, (uint64_t)clock_real_ns());
		bytes_put64(w->pos + 9, w->records);
		bytes_put64(w->pos + 17, lost + w->bound.dropped);
		w->pos += LAYOUT_END;
		w->block_records = 1;
		w->records++;
		rc = log_flush(w, e);
	}
	if (rc == 0 && fsync(w->fd) < 0 && errno != EINVAL)
		rc = err_errno(e, -errno, "cannot write the log '%s'", w->path);
	if (close(w->fd) < 0 && rc == 0)
		rc = err_errno(e, -errno, "cannot write the log '%s'", w->path);
	w->fd = -1;
	log_writer_free(w);
	return rc;
}

void log_writer_free(struct log_writer *w)
{
	struct err ignored;

	if (!w)
		return;
	log_ring_free(w->ring);
	w->ring = NULL;
	if (w->fd >= 0) {
		if (w->pos)
			log_flush(w, &ignored);
		close(w->fd);
	}
	free(w->path);
	free(w);
}
