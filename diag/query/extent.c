/* From when to when the logs reach. */
#include <errno.h>

#include "diag/query/query_impl.h"

enum { TYPES = 1u << RECORD_CALL | 1u << RECORD_SUM | 1u << RECORD_READING };

static bool extent_stop(void *ctx, struct err *e)
{
	if (!query_stopped(ctx))
		return false;
	err_set(e, -EINTR, "stopped");
	return true;
}

static void include(struct query_extent *x, int64_t first_ns, int64_t last_ns, uint64_t records)
{
	if (!x->records || first_ns < x->first_ns)
		x->first_ns = first_ns;
	if (!x->records || last_ns > x->last_ns)
		x->last_ns = last_ns;
	x->records += records;
}

/* Of a log that grows: what is behind its index. */
static int behind_index(struct query *q, const struct query_log *log, const struct zones *z,
	int64_t start_ns, struct query_extent *x, struct err *e)
{
	const uint64_t n = z->head.n_zones;
	const struct zone *last = n ? &z->zone[n - 1] : NULL;
	const struct record *rec;
	struct log_reader *r;
	int64_t at_ns;
	int rc = log_reader_new(log->path, &r, e);

	if (rc)
		return rc;
	log_reader_detail(r, LOG_BRIEF);
	rc = log_reader_seek(r, z->head.end, last ? last->before + last->records : 0, e);
	while (!rc && !query_stopped(q) && (rc = log_next(r, &rec, e)) == 1) {
		at_ns = record_start_ns(rec) - start_ns;
		if (1u << rec->type & TYPES)
			include(x, at_ns, at_ns, 1);
		rc = 0;
	}
	log_reader_free(r);
	return rc;
}

/* The whole log is asked for: its index tells. 1; 0: there is none. */
static int by_index(struct query *q, const struct query_log *log, const struct zones *z,
	int64_t start_ns, struct query_extent *x, struct err *e)
{
	int rc;

	if (!z)
		return 0;
	for (uint64_t i = 0; i < z->head.n_zones; i++)
		if (z->zone[i].types & TYPES)
			include(x, z->zone[i].first_ns - start_ns, z->zone[i].last_ns - start_ns,
				z->zone[i].records);
	rc = z->head.whole ? 0 : behind_index(q, log, z, start_ns, x, e);
	return rc ? rc : 1;
}

static int by_reading(struct query *q, struct scan *s, const struct scan_filter *filter,
	int64_t start_ns, struct query_extent *x, struct err *e)
{
	const struct scan_spec spec = {.filter = *filter,
		.no_index = q->spec.no_index,
		.stop = {.fn = extent_stop, .ctx = q}};
	struct stream_item *item;
	int64_t at_ns;
	int rc = scan_begin(s, &spec, e);

	while (!rc && (rc = scan_next(s, &item, e)) == 1) {
		at_ns = record_start_ns(item->record) - start_ns;
		include(x, at_ns, at_ns, 1);
		rc = 0;
	}
	return rc;
}

static int of_log(
	struct query *q, const struct query_log *log, struct query_extent *x, struct err *e)
{
	const struct query_focus *focus = &q->spec.focus;
	const struct zones_stop stopper = {.fn = extent_stop, .ctx = q};
	const uint64_t least = q->spec.index_least ? q->spec.index_least : ZONES_LEAST;
	const struct log_head *head;
	struct scan_filter filter;
	struct scan *s = NULL;
	struct zones *z = NULL;
	int64_t start_ns;
	int rc;

	scan_filter_all(&filter, TYPES);
	if (!focus_apply(focus, RECORD_READING, log, NULL, &filter))
		return 0;
	rc = scan_open(log->path, &log->spec, &s, e);
	if (rc)
		return rc;
	head = stream_head(scan_stream(s));
	start_ns = query_start_ns(log, head);
	if (!focus_apply(focus, RECORD_READING, log, head, &filter)) {
		scan_close(s);
		return 0;
	}
	if (!focus->in_time && !q->spec.no_index)
		rc = zones_get(log->path, least, &stopper, &z, e);
	rc = rc ?: by_index(q, log, z, start_ns, x, e);
	if (!rc)
		rc = by_reading(q, s, &filter, start_ns, x, e);
	rc = rc < 0 ? rc : 0;
	zones_free(z);
	scan_close(s);
	return rc;
}

int query_extent(struct query *q, struct query_extent *out, struct err *e)
{
	struct query_extent x = {.records = 0};
	struct err why;
	int rc;

	query_watch(q);
	for (size_t i = 0; i < q->spec.n_logs; i++) {
		rc = of_log(q, &q->spec.logs[i], &x, &why);
		if (rc && q->why)
			return query_was_stopped(q, e);
		if (rc)
			query_note(q, i, why.text);
	}
	*out = x;
	return 0;
}
