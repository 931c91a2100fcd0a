/*
 * Answers to a page as JSON: a query's rows, a page of events. All text is made safe (text_clean);
 * it is data, never markup.
 *
 *     {"columns": ["t", "call", "calls/s"], "rows": [[0, "read", 12.5], ...], "more": false,
 *      "problems": ["..."], "seconds": 0.02}
 *
 * On an error: {"error": "..."}.
 */
#ifndef CULPRIT_HARNESS_WEB_SERVE_ANSWER_H
#define CULPRIT_HARNESS_WEB_SERVE_ANSWER_H

#include "harness/web/serve/views.h"

enum {
	ANSWER_ROWS = 30000, /* of a chart: more would not be visible */
	ANSWER_TABLE_ROWS = 1000,
	ANSWER_DOTS = 5000,
	ANSWER_EVENTS = 500, /* of a page of events */
};

/* Runs the query and writes the answer. If there are more than ANSWER_DOTS dots, they are merged:
 * their columns are then t, value, series and count; 'dt' and 'dy' are the width and height of a
 * dot. New reference; never NULL. */
json_t *answer_query(struct query *q, const char *sql, enum view_chart chart, double span_s);

/* A page of events sorted by time: events from 'from_ns' on (as in struct query_focus), without
 * the first 'skip'. "next": {"from", "skip"}, or null at the end. 'extent': the range of the
 * data. 'spec' is queried for one period after another, so that a page in the middle of ten
 * million events is read at once. */
struct answer_events {
	int64_t from_ns, to_ns;
	uint64_t skip, limit;
	double per_s; /* approximate events per second; determines the first period's length */
};
/* Opens a query with this focus; answer_events' caller closes it with 'close'. */
struct answer_source {
	int (*open)(void *ctx, int64_t from_ns, int64_t to_ns, struct query **q, struct err *e);
	void (*close)(void *ctx);
	void *ctx;
};
json_t *answer_events(const struct answer_source *source, const struct answer_events *page);

json_t *answer_error(const char *text);
json_t *answer_text(const char *s); /* cleaned */

#endif
