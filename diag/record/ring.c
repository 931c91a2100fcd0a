/* Keeps the last blocks of a log in memory, with the state that they need from earlier blocks. */
#include "diag/record/ring.h"

#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "diag/record/fdtable.h"

/* A copy of a record of a descriptor, a process, a thread or a mark. */
struct note {
	struct note *next;
	struct record rec;
	char text[]; /* its path or name */
};

struct answer_cache {
	struct answer_cache *next;
	struct note *notes;
	uint64_t lost;
	int64_t end_ns; /* of its newest record */
	uint32_t records;
	size_t size, bytes; /* size: of the payload; bytes: with the notes */
	uint8_t payload[];
};

/* State at the end of the dropped blocks. */
struct thread {
	uint32_t tid;
	struct record_process now;
	char name[64];
};

struct log_ring {
	int64_t keep_ns, newest_ns;
	size_t most_bytes, bytes;
	struct answer_cache *first, *last;
	/* Of the block being filled. */
	struct note *notes, **next_note;
	size_t note_bytes;
	uint64_t lost;
	int64_t end_ns;
	struct fdtable *fds;
	void *threads;     /* tsearch, by tid */
	struct note *mark; /* the last mark; or NULL */
};

struct log_ring *log_ring_new(int64_t keep_ns, size_t most_bytes)
{
	struct log_ring *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->keep_ns = keep_ns;
	r->most_bytes = most_bytes;
	r->newest_ns = r->end_ns = INT64_MIN;
	r->next_note = &r->notes;
	r->fds = fdtable_new();
	if (!r->fds) {
		free(r);
		return NULL;
	}
	return r;
}

static void free_notes(struct note *n)
{
	while (n) {
		struct note *next = n->next;

		free(n);
		n = next;
	}
}

void log_ring_free(struct log_ring *r)
{
	if (!r)
		return;
	while (r->first) {
		struct answer_cache *next = r->first->next;

		free_notes(r->first->notes);
		free(r->first);
		r->first = next;
	}
	free_notes(r->notes);
	free(r->mark);
	tdestroy(r->threads, free);
	fdtable_free(r->fds);
	free(r);
}

static int by_tid(const void *a, const void *b)
{
	uint32_t x = ((const struct thread *)a)->tid, y = ((const struct thread *)b)->tid;

	return x < y ? -1 : x > y;
}

static const char *ring_text_of(const struct record *rec)
{
	const char *text = rec->type == RECORD_FD ? rec->fd.path
		: rec->type == RECORD_MARK        ? rec->mark.text
						  : rec->process.name;

	return text ? text : "";
}

/* Copies a record with its text; NULL: out of memory. */
static struct note *note_new(const struct record *rec)
{
	const size_t size = strlen(ring_text_of(rec)) + 1;
	struct note *n = calloc(1, sizeof(*n) + size);

	if (!n)
		return NULL;
	n->rec = *rec;
	memcpy(n->text, ring_text_of(rec), size);
	if (rec->type == RECORD_FD)
		n->rec.fd.path = n->text;
	else if (rec->type == RECORD_MARK)
		n->rec.mark.text = n->text;
	else
		n->rec.process.name = n->text;
	return n;
}

int log_ring_note(struct log_ring *r, const struct record *rec)
{
	int64_t end_ns = record_end_ns(rec);
	struct note *n;

	if (end_ns > r->end_ns)
		r->end_ns = end_ns;
	if (rec->type == RECORD_LOST)
		r->lost += rec->lost.count;
	if (rec->type != RECORD_FD && rec->type != RECORD_PROCESS && rec->type != RECORD_MARK)
		return 0;
	n = note_new(rec);
	if (!n)
		return -ENOMEM;
	*r->next_note = n;
	r->next_note = &n->next;
	r->note_bytes += sizeof(*n) + strlen(n->text) + 1;
	return 0;
}

static int apply_process(struct log_ring *r, const struct record_process *p)
{
	struct thread key = {.tid = p->tid}, *t;
	void *at = tfind(&key, &r->threads, by_tid);

	t = at ? *(struct thread **)at : NULL;
	if (p->what == PROCESS_EXIT) {
		if (t)
			tdelete(&key, &r->threads, by_tid);
		free(t);
		return 0;
	}
	if (!t) {
		t = calloc(1, sizeof(*t));
		if (!t)
			return -ENOMEM;
		t->tid = p->tid;
		if (!tsearch(t, &r->threads, by_tid)) {
			free(t);
			return -ENOMEM;
		}
	}
	if (p->what == PROCESS_START || !t->now.tid)
		t->now = *p;
	strncpy(t->name, p->name, sizeof(t->name) - 1);
	t->now.what = PROCESS_START;
	return 0;
}

static int apply_mark(struct log_ring *r, const struct note *n)
{
	struct note *own = note_new(&n->rec);

	if (!own)
		return -ENOMEM;
	free(r->mark);
	r->mark = own;
	return 0;
}

/* Drops the oldest block and applies its notes to the state. -ENOMEM: drops it without them. */
static int drop_first(struct log_ring *r)
{
	struct answer_cache *k = r->first;
	int rc = 0;

	for (struct note *n = k->notes; n && !rc; n = n->next) {
		if (n->rec.type == RECORD_MARK) {
			rc = apply_mark(r, n);
			continue;
		}
		rc = fdtable_feed(r->fds, &n->rec);
		if (!rc && n->rec.type == RECORD_PROCESS)
			rc = apply_process(r, &n->rec.process);
	}
	r->first = k->next;
	if (!r->first)
		r->last = NULL;
	r->bytes -= k->bytes;
	free_notes(k->notes);
	free(k);
	return rc;
}

int log_ring_take(struct log_ring *r, const uint8_t *payload, size_t size, uint32_t records)
{
	struct answer_cache *k = calloc(1, sizeof(*k) + size);
	int rc = 0;

	if (!k)
		return -ENOMEM;
	memcpy(k->payload, payload, size);
	k->size = size;
	k->records = records;
	k->notes = r->notes;
	k->lost = r->lost;
	k->end_ns = r->end_ns;
	k->bytes = sizeof(*k) + size + r->note_bytes;
	if (r->last)
		r->last->next = k;
	else
		r->first = k;
	r->last = k;
	r->bytes += k->bytes;
	if (r->end_ns > r->newest_ns)
		r->newest_ns = r->end_ns;
	r->notes = NULL;
	r->next_note = &r->notes;
	r->note_bytes = 0;
	r->lost = 0;
	r->end_ns = INT64_MIN;
	while (!rc && r->first &&
		((uint64_t)r->newest_ns - (uint64_t)r->first->end_ns > (uint64_t)r->keep_ns ||
			r->bytes > r->most_bytes))
		rc = drop_first(r);
	return rc;
}

struct replay {
	const struct log_ring *r;
	const struct log_ring_sink *sink;
	bool leaders; /* processes first: threads and descriptors need theirs */
	int rc;
};

static void replay_fd(void *ctx, const struct fd_state *f)
{
	struct replay *p = ctx;
	struct record rec = {.type = RECORD_FD, .fd = f->now};

	if (!p->rc)
		p->rc = p->sink->record(p->sink->ctx, &rec);
}

static void replay_thread(const void *node, VISIT which, void *ctx)
{
	const struct thread *t = *(struct thread *const *)node;
	struct record rec = {.type = RECORD_PROCESS, .process = t->now};
	struct replay *p = ctx;

	if ((which != postorder && which != leaf) || p->rc ||
		(t->now.pid == t->now.tid) != p->leaders)
		return;
	rec.process.name = t->name;
	p->rc = p->sink->record(p->sink->ctx, &rec);
	if (p->leaders)
		fdtable_each(p->r->fds, t->now.pid, replay_fd, p);
}

int log_ring_replay(const struct log_ring *r, const struct log_ring_sink *sink)
{
	struct replay p = {.r = r, .sink = sink, .leaders = true};

	if (r->mark) {
		struct record rec = r->mark->rec;

		p.rc = sink->record(sink->ctx, &rec);
	}
	twalk_r(r->threads, replay_thread, &p);
	p.leaders = false;
	twalk_r(r->threads, replay_thread, &p);
	for (const struct answer_cache *k = r->first; k && !p.rc; k = k->next)
		p.rc = sink->block(sink->ctx, k->payload, k->size, k->records);
	return p.rc;
}

uint64_t log_ring_lost(const struct log_ring *r)
{
	uint64_t lost = 0;

	for (const struct answer_cache *k = r->first; k; k = k->next)
		lost += k->lost;
	return lost;
}

size_t log_ring_bytes(const struct log_ring *r)
{
	return r->bytes;
}
