/* Compares two recorded sessions. */
#include "harness/web/serve/compare.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/jget.h"
#include "harness/web/serve/answer.h"

enum measured { COUNT, BYTES, NS };

enum { MEASURES = 8, ROWS_MOST = 2000 };

/* The first column of the query is the key, followed by the measures. Rows are sorted by the
 * measure 'by'. */
static const struct table {
	const char *title, *key, *sql;
	int by;
	struct {
		const char *name;
		enum measured unit;
		bool main; /* shown in text */
	} measures[MEASURES];
} tables[] = {
	{"All calls", "",
		"select 'all', calls, errors, bytes, total_ns, p50_ns, p99_ns, max_ns from totals",
		0,
		{{"calls", COUNT, true}, {"errors", COUNT, true}, {"bytes", BYTES, true},
			{"time", NS, true}, {"p50", NS, true}, {"p99", NS, true},
			{"max", NS, true}}},
	{"Calls by type", "call",
		"select call, calls, errors, bytes, total_ns, p50_ns, p99_ns, max_ns from totals",
		0,
		{{"calls", COUNT, true}, {"errors", COUNT}, {"bytes", BYTES, true}, {"time", NS},
			{"p50", NS}, {"p99", NS, true}, {"max", NS}}},
	{"Errors", "call, error",
		"select call || ' ' || errno, sum(calls) from totals where errno is not null "
		"group by call, errno",
		0, {{"calls", COUNT, true}}},
	{"Files", "path",
		"select path, calls, bytes, total_ns, p99_ns, max_ns from totals where path is not "
		"null",
		1,
		{{"calls", COUNT, true}, {"bytes", BYTES, true}, {"time", NS}, {"p99", NS, true},
			{"max", NS}}},
	{"Threads", "thread",
		"select thread, calls, bytes, total_ns, p99_ns, max_ns from totals where thread is "
		"not null",
		0,
		{{"calls", COUNT, true}, {"bytes", BYTES, true}, {"time", NS}, {"p99", NS, true},
			{"max", NS}}},
	{NULL},
};

static int n_measures(const struct table *t)
{
	int n = 0;

	while (n < MEASURES && t->measures[n].name)
		n++;
	return n;
}

struct taking {
	const struct table *table;
	double divide; /* divisor of counts and bytes */
	int side;
	json_t *rows; /* {key: [a, b]} */
};

static double measure_of(const struct taking *t, const struct query_cell *c, int i)
{
	const double v = c->type == CELL_INT ? (double)c->number
		: c->type == CELL_REAL       ? c->real
					     : 0;

	return t->table->measures[i].unit == NS ? v / 1e9 : v / t->divide;
}

static int compare_take(void *ctx, int n, const struct query_cell *cells, struct err *e)
{
	struct taking *t = ctx;
	json_t *key = answer_text(cells[0].type == CELL_TEXT ? cells[0].text : "?"), *row, *values;

	(void)e;
	row = json_object_get(t->rows, json_string_value(key));
	if (!row && json_object_size(t->rows) < ROWS_MOST) {
		row = json_pack("[n, n]");
		json_object_set_new(t->rows, json_string_value(key), row);
	}
	values = json_array();
	for (int i = 1; i < n; i++)
		json_array_append_new(values, json_real(measure_of(t, &cells[i], i - 1)));
	if (row)
		json_array_set(row, (size_t)t->side, values);
	json_decref(values);
	json_decref(key);
	return 0;
}

/* The larger side of a row's measure. */
static double weight(const json_t *row, int by)
{
	const double a = json_number_value(json_array_get(json_array_get(row, 1), (size_t)by)),
		     b = json_number_value(json_array_get(json_array_get(row, 2), (size_t)by));

	return a > b ? a : b;
}

struct sorted {
	double weight;
	json_t *row;
};

static int by_weight(const void *a, const void *b)
{
	const struct sorted *x = a, *y = b;

	if (x->weight != y->weight)
		return x->weight > y->weight ? -1 : 1;
	return strcmp(json_string_value(json_array_get(x->row, 0)),
		json_string_value(json_array_get(y->row, 0)));
}

/* {key: [a, b]} -> [[key, a, b], ...] */
static json_t *sort_rows(json_t *rows, int by)
{
	const size_t n = json_object_size(rows);
	struct sorted *all = alloc_zero(n, sizeof(*all));
	json_t *out = json_array(), *row;
	const char *key;
	size_t i = 0;

	json_object_foreach(rows, key, row) {
		all[i].row = json_pack(
			"[s, O, O]", key, json_array_get(row, 0), json_array_get(row, 1));
		all[i].weight = weight(all[i].row, by);
		i++;
	}
	qsort(all, n, sizeof(*all), by_weight);
	for (i = 0; i < n; i++)
		json_array_append_new(out, all[i].row);
	free(all);
	return out;
}

static json_t *compare_describe(const struct table *t, json_t *rows, bool per_second)
{
	static const char *const units[2][3] = {{"", "B", "s"}, {"/s", "B/s", "s"}};
	json_t *measures = json_array();

	for (int i = 0; i < n_measures(t); i++)
		json_array_append_new(measures,
			json_pack("{s:s, s:s, s:b}", "name", t->measures[i].name, "unit",
				units[per_second][t->measures[i].unit], "main",
				t->measures[i].main));
	return json_pack("{s:s, s:s, s:o, s:o}", "title", t->title, "key", t->key, "measures",
		measures, "rows", sort_rows(rows, t->by));
}

struct side {
	const struct compare_side *of;
	double seconds;
};

static int compare_table(const struct table *t, const struct side sides[2], bool per_second,
	json_t *out, struct err *e)
{
	auto_json json_t *rows = json_object();
	int rc = 0;

	for (int i = 0; !rc && i < 2; i++) {
		struct taking taking = {.table = t, .side = i, .rows = rows, .divide = 1};
		const struct query_sink sink = {.row = compare_take, .ctx = &taking};

		if (per_second && sides[i].seconds > 0)
			taking.divide = sides[i].seconds;
		rc = query_run(sides[i].of->q, t->sql, &sink, e);
	}
	if (!rc)
		json_array_append_new(out, compare_describe(t, rows, per_second));
	return rc;
}

static int measure_side(const struct compare_side *of, struct side *out, struct err *e)
{
	struct query_extent x;
	int rc = query_extent(of->q, &x, e);

	*out = (struct side){.of = of};
	if (!rc && x.records)
		out->seconds = (double)(x.last_ns - x.first_ns) / 1e9;
	return rc;
}

static json_t *side_json(const struct side *s)
{
	return json_pack("{s:o, s:f}", "name", answer_text(s->of->name), "seconds", s->seconds);
}

static void add_problems(const struct side *s, json_t *to)
{
	const char *why;

	for (size_t i = 0; (why = query_problem(s->of->q, i)); i++)
		json_array_append_new(to, answer_text(why));
}

int compare_sessions(const struct compare_side *a, const struct compare_side *b, bool per_second,
	json_t **out, struct err *e)
{
	auto_json json_t *done = json_array();
	json_t *problems;
	struct side sides[2];
	int rc = measure_side(a, &sides[0], e) ?: measure_side(b, &sides[1], e);

	for (const struct table *t = tables; !rc && t->title; t++)
		rc = compare_table(t, sides, per_second, done, e);
	if (rc)
		return rc;
	problems = json_array();
	add_problems(&sides[0], problems);
	add_problems(&sides[1], problems);
	*out = json_pack("{s:o, s:o, s:b, s:O, s:o}", "a", side_json(&sides[0]), "b",
		side_json(&sides[1]), "per_second", per_second, "tables", done, "problems",
		problems);
	return 0;
}
