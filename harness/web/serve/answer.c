/* Answers a page's questions as JSON. */
#include "harness/web/serve/answer.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/clock.h"
#include "harness/base/text.h"
#include "harness/web/serve/dots.h"

enum { TEXT_MOST = 2000, DOTS_ACROSS = 400 };

json_t *answer_text(const char *s)
{
	char out[TEXT_MOST];
	json_t *v;

	text_clean(s, out, sizeof(out));
	v = json_string(out);
	return v ? v : json_string("?");
}

json_t *answer_error(const char *text)
{
	return json_pack("{s:o}", "error", answer_text(text));
}

struct taking {
	json_t *columns, *rows;
	size_t most;
	enum view_chart chart;
	struct dots *dots;
};

static json_t *answer_value_of(const struct query_cell *c)
{
	char text[64];

	switch (c->type) {
	case CELL_INT: return json_integer(c->number);
	case CELL_REAL: return isfinite(c->real) ? json_real(c->real) : json_null();
	case CELL_TEXT: return answer_text(c->text);
	case CELL_BLOB:
		snprintf(text, sizeof(text), "%zu bytes", c->size);
		return json_string(text);
	default: return json_null();
	}
}

static double answer_number_of(const struct query_cell *c)
{
	return c->type == CELL_INT ? (double)c->number : c->type == CELL_REAL ? c->real : NAN;
}

static int answer_begin(void *ctx, int n, const char *const names[], struct err *e)
{
	struct taking *t = ctx;

	if (n < 2 && t->chart != VIEW_TABLE)
		return err_set(e, -EINVAL, "a %s needs t and a number, not one column",
			view_charts[t->chart]);
	for (int i = 0; i < n; i++)
		json_array_append_new(t->columns, answer_text(names[i]));
	return 0;
}

static int answer_take(void *ctx, int n, const struct query_cell *cells, struct err *e)
{
	struct taking *t = ctx;
	json_t *row;
	char series[TEXT_MOST];

	if (t->chart != VIEW_TABLE && cells[0].type == CELL_NULL)
		return 0;
	if (t->chart != VIEW_TABLE && isnan(answer_number_of(&cells[0])))
		return err_set(e, -EINVAL, "the first column of a %s is t, a number",
			view_charts[t->chart]);
	if (t->dots) {
		text_clean(n > 2 && cells[2].type == CELL_TEXT ? cells[2].text : "", series,
			sizeof(series));
		dots_add(t->dots, answer_number_of(&cells[0]), answer_number_of(&cells[1]), series);
		return 0;
	}
	if (json_array_size(t->rows) == t->most)
		return 1;
	row = json_array();
	for (int i = 0; i < n; i++)
		json_array_append_new(row, answer_value_of(&cells[i]));
	json_array_append_new(t->rows, row);
	return 0;
}

static void take_dots(struct taking *t, json_t *out)
{
	double dx, dy;

	json_decref(t->rows);
	t->rows = dots_rows(t->dots, &dx, &dy);
	json_object_set_new(out, "dt", json_real(dx));
	json_object_set_new(out, "dy", json_real(dy));
}

static json_t *problems_of(const struct query *q)
{
	json_t *all = json_array();
	const char *why;

	for (size_t i = 0; (why = query_problem(q, i)); i++)
		json_array_append_new(all, answer_text(why));
	return all;
}

json_t *answer_query(struct query *q, const char *sql, enum view_chart chart, double span_s)
{
	const double begun_s = clock_mono_s(), dx = span_s > 0 ? span_s / DOTS_ACROSS : 1;
	struct taking t = {.columns = json_array(),
		.rows = json_array(),
		.most = chart == VIEW_TABLE ? ANSWER_TABLE_ROWS : ANSWER_ROWS,
		.chart = chart,
		.dots = chart == VIEW_DOTS ? dots_new(ANSWER_DOTS, dx) : NULL};
	const struct query_sink sink = {.begin = answer_begin, .row = answer_take, .ctx = &t};
	json_t *out = json_object();
	struct err e = {.text = ""};
	int rc = query_run(q, sql, &sink, &e);

	if (t.dots)
		take_dots(&t, out);
	dots_free(t.dots);
	json_object_set_new(out, "columns", t.columns);
	json_object_set_new(out, "rows", t.rows);
	json_object_set_new(out, "more", json_boolean(rc > 0));
	json_object_set_new(out, "problems", problems_of(q));
	/* The logs lack the data for the table: return no rows, and the reason. */
	if (rc == -ENODATA)
		json_array_append_new(json_object_get(out, "problems"), answer_text(e.text));
	json_object_set_new(out, "seconds", json_real(clock_mono_s() - begun_s));
	if (rc >= 0 || rc == -ENODATA)
		return out;
	json_decref(out);
	return answer_error(e.text);
}

/* ---- events ---- */

static const char events_sql[] =
	"select t, node, pid, tid, thread, call, result, errno, service_ns / 1e9 as s, path, "
	"offset, bytes, peer, log, number from events order by t, log, seq limit ";

static int64_t moment_of(const json_t *row)
{
	return llround(json_number_value(json_array_get(row, 0)) * 1e9);
}

/* The position of the next page. */
static json_t *next_of(const json_t *rows, const struct answer_events *page)
{
	size_t n = json_array_size(rows), same = 0;
	int64_t last;

	if (n < page->limit)
		return json_null();
	last = moment_of(json_array_get(rows, n - 1));
	while (same < n && moment_of(json_array_get(rows, n - 1 - same)) == last)
		same++;
	return json_pack("{s:I, s:I}", "from", (json_int_t)last, "skip",
		(json_int_t)(same == n && last == page->from_ns ? page->skip + same : same));
}

static void drop_first(json_t *rows, uint64_t n)
{
	while (n-- && json_array_size(rows))
		json_array_remove(rows, 0);
}

/* Reads one period of time; it has a page if it has enough events, or if it is the last one. */
static json_t *stretch(const struct answer_source *source, const struct answer_events *page,
	int64_t to_ns, bool last, bool *enough)
{
	auto_free char *sql = alloc_format(
		"%s%llu", events_sql, (unsigned long long)(page->limit + page->skip));
	struct query *q;
	struct err e;
	json_t *out, *rows;

	*enough = true;
	if (source->open(source->ctx, page->from_ns, to_ns, &q, &e))
		return answer_error(e.text);
	out = answer_query(q, sql, VIEW_TABLE, 0);
	source->close(source->ctx);
	rows = json_object_get(out, "rows");
	if (!rows)
		return out;
	*enough = last || json_array_size(rows) >= page->limit + page->skip;
	drop_first(rows, page->skip);
	json_object_set_new(out, "next", next_of(rows, page));
	return out;
}

json_t *answer_events(const struct answer_source *source, const struct answer_events *page)
{
	const double some = 4 * (double)(page->limit + page->skip);
	double span_ns = page->per_s > 0 ? some / page->per_s * 1e9 : 1e9;
	json_t *out = NULL;
	bool enough = false;

	while (!enough) {
		const double left_ns = (double)page->to_ns - (double)page->from_ns;
		const bool last = span_ns >= left_ns;

		json_decref(out);
		out = stretch(source, page,
			last ? page->to_ns : page->from_ns + (int64_t)span_ns + 1, last, &enough);
		span_ns *= 8;
	}
	return out;
}
