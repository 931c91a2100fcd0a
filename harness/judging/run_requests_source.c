/* The found requests and failures as a source of rows for queries. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/judging/run_requests_impl.h"

struct asking {
	struct run_requests *r;
	const struct query_ask *ask;
	enum kind kind;
	size_t i;           /* the attempt */
	uint64_t k;         /* its next row */
	size_t asked, with; /* attempts queried, and those with flows */
	union {
		struct request_row request;
		struct failure_row failure;
	} row;
	struct query_row shown;
	struct stream_item item;
	struct record record;
	struct log_head head;
};

static bool run_requests_source_has(void *ctx, const struct query_table *table)
{
	(void)ctx;
	return table->made;
}

static int open_rows(void *ctx, const struct query_ask *ask, void **rows, struct err *e)
{
	struct asking *g = alloc_zero(1, sizeof(*g));

	(void)e;
	g->r = ctx;
	g->ask = ask;
	g->kind = !strcmp(ask->table->name, "failures") ? FAILURES : REQUESTS;
	*rows = g;
	return 0;
}

/* Can the query need a row of this attempt? */
static bool is_asked(const struct asking *g, const struct query_log *log)
{
	struct scan_filter all;

	if (g->ask->focus->attempt && g->ask->focus->attempt != log->attempt)
		return false;
	scan_filter_all(&all, 0);
	for (size_t i = 0; i < g->ask->n_pushes; i++)
		if ((g->ask->pushes[i].key == KEY_CELL || g->ask->pushes[i].key == KEY_ATTEMPT) &&
			!push_apply(&g->ask->pushes[i], log, NULL, &all))
			return false;
	return true;
}

static void run_requests_source_note(
	const struct asking *g, const struct followed *a, const char *why)
{
	auto_free char *text = alloc_format("requests of cell %lld (attempt %lld): %s",
		(long long)a->log.cell, (long long)a->log.attempt, why);

	g->ask->note(g->ask->ctx, text);
}

static int enter(struct asking *g, const struct followed *a, struct err *e)
{
	int rc = run_requests_follow(g->r, g->i, g->ask, e);

	if (rc)
		return rc;
	g->asked++;
	g->with += !a->without;
	for (size_t i = 0; i < a->n_troubles && !a->without; i++)
		run_requests_source_note(g, a, a->troubles[i]);
	return 0;
}

/* Handles the end of the rows. Attempts without flows are reported, unless the whole run has
 * none: then that is the error. Findings query failures in all runs, so no report for those. */
static int leave(const struct asking *g, struct err *e)
{
	const char *why = g->r->n ? NULL : "no attempt is confirmed"; /* NULL: unknown */
	size_t with = g->with;
	int rc = 0;

	for (size_t i = 0; !rc && !with && g->asked && i < g->r->n; i++) {
		if (g->ask->focus->attempt && !is_asked(g, &g->r->v[i].log))
			continue;
		rc = run_requests_follow(g->r, i, g->ask, e);
		with += !rc && !g->r->v[i].without;
		why = why ? why : g->r->v[i].without;
	}
	if (rc)
		return rc;
	if (!with && (g->asked || !g->r->n))
		return err_set(e, -ENODATA, "%s: no attempt was recorded with flows: %.900s",
			g->ask->table->name, why ? why : "no tracer was set");
	for (size_t i = 0; i < g->r->n && g->kind == REQUESTS; i++)
		if (is_asked(g, &g->r->v[i].log) && g->r->v[i].without)
			run_requests_source_note(g, &g->r->v[i], g->r->v[i].without);
	return 0;
}

static bool is_node(const char *wanted, const char *a, const char *b)
{
	return (a && !strcmp(a, wanted)) || (b && !strcmp(b, wanted));
}

/* Passes on the current row if it is in focus. */
static bool run_requests_source_show(struct asking *g, const struct followed *a)
{
	const struct query_focus *focus = g->ask->focus;
	int64_t at_ns;

	g->shown.log = &a->log;
	g->shown.head = &g->head;
	if (g->kind == REQUESTS)
		request_row_show(&g->shown, &g->row.request, &g->item, &g->record);
	else
		failure_row_show(&g->shown, &g->row.failure, &g->item, &g->record);
	at_ns = g->record.call.start_ns - a->log.start_ns;
	if (focus->in_time && (at_ns < focus->from_ns || (focus->to_ns && at_ns >= focus->to_ns)))
		return false;
	if (!focus->node)
		return true;
	return g->kind == REQUESTS
		? is_node(focus->node, g->row.request.client, g->row.request.server)
		: is_node(focus->node, g->row.failure.client, g->row.failure.node);
}

static int run_requests_source_next(void *rows, struct err *e)
{
	struct asking *g = rows;
	int rc = 0;

	for (; g->i < g->r->n; g->i++, g->k = 0) {
		const struct followed *a = &g->r->v[g->i];

		if (!is_asked(g, &a->log))
			continue;
		if (!g->k)
			rc = enter(g, a, e);
		while (!rc && g->k < a->n[g->kind]) {
			rc = run_requests_row(a, g->kind, g->k++, &g->row, e);
			if (!rc && run_requests_source_show(g, a))
				return 1;
		}
		if (rc)
			return rc;
	}
	return leave(g, e);
}

static void run_requests_source_get(void *rows, int column, struct column_value *out)
{
	struct asking *g = rows;

	g->ask->table->columns[column].get(&g->shown, out);
}

static int64_t rowid(void *rows)
{
	const struct asking *g = rows;

	return query_rowid(
		g->i, g->kind == REQUESTS ? g->row.request.number : g->row.failure.number);
}

static void close_rows(void *rows)
{
	free(rows);
}

void run_requests_be_source(struct run_requests *r)
{
	r->source = (struct query_source){.ctx = r,
		.has = run_requests_source_has,
		.open = open_rows,
		.next = run_requests_source_next,
		.get = run_requests_source_get,
		.rowid = rowid,
		.close = close_rows};
}
