/* Reads the records of one log that a query asks for. */
#include "diag/query/scan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "diag/record/describe.h"
#include "harness/base/alloc.h"

/* Records that change what descriptors and names mean. */
#define STATE (1u << RECORD_FD | 1u << RECORD_PROCESS)

struct scan {
	char *path;
	struct log_reader *log, *held; /* 'held': a checkpoint's records, while they are read */
	struct stream *stream;
	struct scan_filter filter;
	struct zones_stop stop;
	bool state, jumped, any_call; /* any_call: nothing is asked of calls */
	unsigned returned;            /* types of records that the stream gets */
	struct zones *zones;
	uint64_t zone;    /* the next one */
	uint64_t applied; /* zones before this one are in the stream's tables */
	uint64_t held_left;
	bool of_held;    /* the record at hand is a checkpoint's */
	bool only_state; /* in the block at hand there is nothing else */
	uint32_t left;   /* records of the block at hand that are still to come */
	struct scan_counts counts;
	struct stream_item plain;
	const struct call_info *calls[ZONE_CALLS]; /* by number */
};

void scan_filter_all(struct scan_filter *f, unsigned types)
{
	memset(f, 0, sizeof(*f)); /* its padding as well: filters are compared */
	f->types = types;
	f->from_ns = f->least_service_ns = f->least_result = INT64_MIN;
	f->to_ns = f->most_service_ns = f->most_result = INT64_MAX;
}

bool scan_filter_selects(const struct scan_filter *f)
{
	return f->from_ns != INT64_MIN || f->to_ns != INT64_MAX || f->pids.n || f->tids.n ||
		f->either || f->some_calls || f->failed || f->most_result < 0 ||
		!(f->types & (1u << RECORD_CALL | 1u << RECORD_SUM | 1u << RECORD_READING));
}

static bool has_id(const struct scan_ids *ids, uint32_t id)
{
	for (size_t i = 0; i < ids->n; i++)
		if (ids->id[i] == id)
			return true;
	return !ids->n;
}

static bool threads_pass(const struct scan_filter *f, uint32_t pid, uint32_t tid)
{
	return has_id(&f->pids, pid) && has_id(&f->tids, tid) &&
		(!f->either || f->either == pid || f->either == tid);
}

static bool call_passes(const struct scan_filter *f, const struct record_call *c)
{
	if (f->some_calls && !zone_bit(f->calls, zone_call(c->nr & ~RECORD_ASYNC_NR)))
		return false;
	if (c->start_ns < f->from_ns || c->start_ns > f->to_ns)
		return false;
	if (f->failed && !call_failed(c))
		return false;
	return c->service_ns >= f->least_service_ns && c->service_ns <= f->most_service_ns &&
		c->result >= f->least_result && c->result <= f->most_result &&
		threads_pass(f, c->pid, c->tid);
}

static bool wants(const struct scan *s, const struct record *rec)
{
	const struct scan_filter *f = &s->filter;
	int64_t start_ns;

	if (f->always >> rec->type & 1)
		return true;
	if (!(f->types >> rec->type & 1))
		return false;
	if (rec->type == RECORD_CALL)
		return s->any_call || call_passes(f, &rec->call);
	start_ns = record_start_ns(rec);
	return start_ns >= f->from_ns && start_ns <= f->to_ns &&
		threads_pass(f, record_pid(rec), record_tid(rec));
}

/* May one of the ids be among the threads of the zone? */
static bool ids_meet(const struct scan_ids *ids, const struct zone *z)
{
	for (size_t i = 0; i < ids->n; i++)
		if (zone_bit(z->threads, zone_thread(ids->id[i])))
			return true;
	return !ids->n;
}

static bool calls_meet(const struct scan_filter *f, const struct zone *z)
{
	if ((f->failed || f->most_result < 0) && !z->failed)
		return false;
	for (size_t i = 0; f->some_calls && i < ZONE_CALLS / 64; i++)
		if (f->calls[i] & z->calls[i])
			return true;
	return !f->some_calls;
}

/* May a record of the zone be asked for? */
static bool zone_meets(const struct scan_filter *f, const struct zone *z)
{
	unsigned types = f->types & z->types;

	if (f->always & z->types)
		return true;
	if (types & 1u << RECORD_CALL && !calls_meet(f, z))
		types &= ~(1u << RECORD_CALL);
	return types && z->first_ns <= f->to_ns && z->last_ns >= f->from_ns &&
		ids_meet(&f->pids, z) && ids_meet(&f->tids, z) &&
		(!f->either || zone_bit(z->threads, zone_thread(f->either)));
}

/* The last checkpoint that lies behind the zones whose records are in the tables, and not behind
 * 'zone'; or NULL. */
static const struct zone_checkpoint *checkpoint_before(const struct scan *s, uint64_t zone)
{
	const struct zone_checkpoint *all = s->zones->checkpoint, *found = NULL;
	uint64_t low = 0, high = s->zones->head.n_checkpoints;

	while (low < high) {
		uint64_t middle = low + (high - low) / 2;

		if (all[middle].zone <= zone)
			low = middle + 1;
		else
			high = middle;
	}
	if (low && all[low - 1].zone > s->applied)
		found = &all[low - 1];
	return found;
}

static int blame_index(const struct scan *s, int rc, struct err *e)
{
	return err_prefix(e, rc, "by the index '%s', which can be removed", s->zones->path);
}

static int open_checkpoint(struct scan *s, const struct zone_checkpoint *c, struct err *e)
{
	int rc = log_reader_inside(s->zones->path, s->zones->state, &s->held, e);

	if (!rc)
		rc = log_reader_seek(s->held, c->offset, c->before, e);
	if (rc)
		return blame_index(s, rc, e);
	stream_forget(s->stream);
	s->held_left = c->records;
	s->applied = s->zone = c->zone;
	return 0;
}

static int go_to(struct scan *s, uint64_t offset, uint64_t before, uint32_t records, struct err *e)
{
	int rc = 0;

	if (s->jumped)
		rc = log_reader_seek(s->log, offset, before, e);
	s->jumped = false;
	s->left = records;
	return rc;
}

/* Behind the last zone: what is not indexed, or the damage that is there. */
static int go_behind(struct scan *s, struct err *e)
{
	const struct zones_head *h = &s->zones->head;
	const struct zone *last = h->n_zones ? &s->zones->zone[h->n_zones - 1] : NULL;
	int rc;

	if (h->whole)
		return 0;
	rc = go_to(s, h->end, last ? last->before + last->records : 0, 0, e);
	zones_free(s->zones);
	s->zones = NULL;
	s->only_state = false;
	return rc ? rc : 1;
}

/* Goes to the next block of which something is needed. 1; 0: there is none. */
static int next_block(struct scan *s, struct err *e)
{
	uint64_t wanted = s->zone, next;
	const struct zone_checkpoint *c;
	const struct zone *z;
	int rc;

	if (!s->zones)
		return 1;
	while (wanted < s->zones->head.n_zones && !zone_meets(&s->filter, &s->zones->zone[wanted]))
		wanted++;
	/* Nothing more is asked for. What is left is read only for damage behind it. */
	if (wanted == s->zones->head.n_zones && s->zones->head.whole) {
		s->counts.passed += wanted - s->zone;
		s->zone = wanted;
		return 0;
	}
	if (s->state && (c = checkpoint_before(s, wanted))) {
		s->counts.passed += c->zone - s->zone;
		s->jumped = true;
		return (rc = open_checkpoint(s, c, e)) ? rc : 1;
	}
	for (next = s->zone; next < wanted; next++)
		if (s->state && s->zones->zone[next].types & STATE)
			break;
	s->counts.passed += next - s->zone;
	s->jumped = s->jumped || next != s->zone;
	s->zone = next;
	if (next == s->zones->head.n_zones)
		return go_behind(s, e);
	z = &s->zones->zone[next];
	s->only_state = next < wanted;
	rc = go_to(s, z->offset, z->before, z->records, e);
	s->applied = ++s->zone;
	s->counts.read++;
	return rc ? rc : 1;
}

/* A record of a checkpoint. 0: that was the last one. */
static int next_held(struct scan *s, const struct record **rec, struct err *e)
{
	int rc = s->held_left ? log_next(s->held, rec, e) : 0;

	if (rc == 1 && !(1u << (*rec)->type & STATE))
		rc = err_set(e, -EBADMSG, "a record that is no state");
	if (rc == 1) {
		s->held_left--;
		return 1;
	}
	if (s->held_left)
		return blame_index(s, rc ? rc : err_set(e, -EBADMSG, "it is cut short"), e);
	log_reader_free(s->held);
	s->held = NULL;
	return 0;
}

/* At the beginning of each block. */
static int query_scan_begin(struct scan *s, struct err *e)
{
	if (s->stop.fn && s->stop.fn(s->stop.ctx, e))
		return -EINTR;
	return next_block(s, e);
}

/* The stream's source: what passes, and what its tables need. */
static int query_scan_next(void *ctx, const struct record **rec, struct err *e)
{
	struct scan *s = ctx;
	int rc;

	for (;;) {
		if (s->held) {
			rc = next_held(s, rec, e);
			s->of_held = rc == 1;
			if (rc)
				return rc;
		}
		if (!s->left) {
			rc = query_scan_begin(s, e);
			if (rc != 1)
				return rc;
			if (s->held)
				continue;
		}
		rc = log_next(s->log, rec, e);
		if (rc != 1)
			return rc;
		s->left = s->zones ? s->left - 1 : log_reader_place(s->log).left;
		if (!(s->returned >> (*rec)->type & 1))
			continue;
		if (s->state && 1u << (*rec)->type & STATE)
			return 1;
		if (!s->only_state && wants(s, *rec))
			return 1;
	}
}

static int keep_names(void *ctx, struct stream_item *item, struct err *e)
{
	(void)ctx, (void)item, (void)e;
	return 0;
}

int scan_open(const char *path, const struct stream_spec *stream, struct scan **out, struct err *e)
{
	struct scan *s = alloc_zero(1, sizeof(*s));
	const struct stream_source source = {.next = query_scan_next, .ctx = s};
	int rc;

	s->path = alloc_copy(path);
	rc = log_reader_new(path, &s->log, e);
	if (!rc)
		rc = stream_over(&source, log_reader_head(s->log), stream, &s->stream, e);
	if (rc) {
		scan_close(s);
		return rc;
	}
	for (uint32_t nr = 0; nr < ZONE_CALLS; nr++)
		s->calls[nr] = call_info(stream_arch(s->stream), nr);
	*out = s;
	return 0;
}

int scan_begin(struct scan *s, const struct scan_spec *spec, struct err *e)
{
	const struct stream_consumer names = {.feed = keep_names, .names = true};
	struct scan_filter all;

	s->filter = spec->filter;
	s->stop = spec->stop;
	scan_filter_all(&all, spec->filter.types);
	memcpy(all.calls, spec->filter.calls, sizeof(all.calls));
	all.always = spec->filter.always;
	s->any_call = !memcmp(&all, &spec->filter, sizeof(all));
	s->state = spec->state;
	s->returned = spec->filter.types | spec->filter.always | (spec->state ? STATE : 0);
	if (spec->state)
		stream_add(s->stream, &names, NULL);
	log_reader_detail(s->log, spec->details ? LOG_WHOLE : spec->moved ? LOG_MOVED : LOG_BRIEF);
	if (spec->no_index || !strcmp(s->path, "-") || !scan_filter_selects(&s->filter))
		return 0;
	return zones_get(s->path, spec->index_least ? spec->index_least : ZONES_LEAST, &s->stop,
		&s->zones, e);
}

void scan_close(struct scan *s)
{
	if (!s)
		return;
	stream_free(s->stream);
	log_reader_free(s->log);
	log_reader_free(s->held);
	zones_free(s->zones);
	free(s->path);
	free(s);
}

struct stream *scan_stream(const struct scan *s)
{
	return s->stream;
}

struct scan_counts scan_counts(const struct scan *s)
{
	return s->counts;
}

/* Where nobody asks for descriptors or names, a record needs no stream. */
static int next_plain(struct scan *s, struct stream_item **item, struct err *e)
{
	struct stream_item *i = &s->plain;
	const struct record *rec;
	uint32_t nr;
	int rc = query_scan_next(s, &rec, e);

	if (rc != 1)
		return rc;
	*i = (struct stream_item){.record = rec, .stream = s->stream, .fd_found = true};
	if (rec->type == RECORD_CALL) {
		nr = rec->call.nr & ~RECORD_ASYNC_NR;
		i->async = nr != rec->call.nr;
		i->call = nr < ZONE_CALLS ? s->calls[nr] : NULL;
	}
	*item = i;
	return 1;
}

int scan_next(struct scan *s, struct stream_item **item, struct err *e)
{
	int rc;

	if (!s->state)
		return next_plain(s, item, e);
	do
		rc = stream_next(s->stream, item, e);
	while (rc == 1 && (s->of_held || !wants(s, (*item)->record)));
	return rc;
}
