/* Compares a run's verdicts with the injected faults. */
#include "harness/judging/scoring.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diag/judge/detector.h"
#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/jget.h"
#include "harness/judging/axes.h"
#include "harness/judging/judge.h"

struct scoring {
	struct score_table *table;
	struct cell_range range;
	json_t *cells;
	/* The run being added. */
	const char *column; /* replaces its workloads, or NULL */
	int64_t first_id;   /* added to its cells' numbers */
};

enum { IDS_A_RUN = 100000000 };

int scoring_fault_params(struct store *s, json_t **params, struct err *e)
{
	json_auto_t *inputs = NULL;
	json_t *v;
	const char *name;
	int rc = store_get_json(s, "inputs", &inputs, e);

	if (rc < 0)
		return rc;
	*params = json_object();
	json_object_foreach(inputs, name, v) {
		if (!strncmp(name, "fault ", 6) && jget(v, "params"))
			json_object_set(*params, name + 6, jget(v, "params"));
	}
	return 0;
}

/* The row with the string 'value' at 'key', or NULL. */
static const json_t *find_row(const json_t *rows, const char *key, const char *value)
{
	json_t *row;
	size_t i;

	json_array_foreach((json_t *)rows, i, row) {
		if (!strcmp(jget_text(row, key), value))
			return row;
	}
	return NULL;
}

/* Detectors in the scenario's order. */
static int declare_detectors(
	struct store *s, struct score_table *t, const json_t *verdicts, struct err *e)
{
	json_auto_t *detectors = NULL;
	json_t *row;
	size_t i;
	int rc = store_get_json(s, "detectors", &detectors, e);

	json_array_foreach(detectors, i, row) {
		const char *name = jget_text(row, "name");

		if (find_row(verdicts, "detector", name))
			score_declare(t, SCORE_DETECTOR, name);
	}
	return rc < 0 ? rc : 0;
}

/* Seconds from the start of the run to the verified onset; -1: a control. */
static double onset_of(const json_t *cell)
{
	json_int_t start = jget_int(cell, "start_ns"), onset = jget_int(cell, "onset_ns");

	if (!onset)
		return -1;
	/* A fault active from the start is older than the measurement. */
	return onset > start ? (double)(onset - start) / 1e9 : 0;
}

/* Does a verdict name exactly the faulty servers ('victims' NULL: a control)? */
static bool is_right(const json_t *victims, const json_t *verdict, bool *wrong)
{
	bool right;

	score_compare(victims, verdict, &right, wrong);
	return (right || !victims) && !*wrong;
}

/* Adds an element of scoring_cells. */
static void add_cell(
	struct scoring *c, const json_t *row, const json_t *cell, const json_t *victims)
{
	const char *detector = jget_text(row, "detector");
	const json_t *verdict = jget(row, "verdict");
	bool right, wrong;

	if (strcmp(jget_text(verdict, "metric"), "any") || detector_is_null(detector))
		return;
	right = is_right(victims, verdict, &wrong);
	json_array_append_new(c->cells,
		json_pack("{s:O, s:O, s:O, s:O, s:O?, s:s, s:O, s:b, s:b}", "cell",
			jget(cell, "cell"), "repeat", jget(cell, "repeat"), "workload",
			jget(cell, "workload"), "fault", jget(cell, "fault"), "victims", victims,
			"detector", detector, "verdict", verdict, "right", right, "wrong", wrong));
}

static int score_row(struct scoring *c, const json_t *row, const json_t *cell, struct err *e)
{
	const json_t *victims = jget(cell, "victims");
	struct score_cell truth = {.fault = jget_text(cell, "fault"),
		.workload = c->column ? c->column : jget_text(cell, "workload"),
		.victims = json_is_null(victims) ? NULL : victims,
		.resource = jget_text(cell, "resource"),
		.onset_s = onset_of(cell),
		.id = c->first_id + jget_int(cell, "cell")};
	int rc = score_add(c->table, jget_text(row, "detector"), &truth, jget(row, "verdict"), e);

	if (!rc)
		add_cell(c, row, cell, truth.victims);
	return rc;
}

static const char *attempt_key(const json_t *row, char key[32])
{
	snprintf(key, 32, "%lld", (long long)jget_int(row, "attempt"));
	return key;
}

static int score_all(
	struct scoring *c, const json_t *confirmed, const json_t *verdicts, struct err *e)
{
	json_auto_t *index = json_object();
	json_t *row;
	const json_t *cell;
	char key[32];
	size_t i;
	int rc = 0;

	json_array_foreach((json_t *)confirmed, i, row)
		json_object_set(index, attempt_key(row, key), row);
	json_array_foreach((json_t *)verdicts, i, row) {
		cell = jget(index, attempt_key(row, key));
		if (!rc && cell)
			rc = score_row(c, row, cell, e);
	}
	return rc;
}

int scoring_rows(struct store *s, const json_t *rows, json_t **out, struct err *e)
{
	json_auto_t *index = json_object(), *confirmed = NULL, *own = NULL;
	int rc = store_rows(s, ROWS_CONFIRMED, 0, &confirmed, e);
	json_t *row;
	char key[32];
	size_t i;

	if (!rc && !rows)
		rc = store_rows(s, ROWS_VERDICTS, 0, &own, e);
	json_array_foreach(confirmed, i, row)
		json_object_set(index, attempt_key(row, key), row);
	*out = rc ? NULL : json_array();
	json_array_foreach((json_t *)(rows ? rows : own), i, row) {
		const json_t *cell = jget(index, attempt_key(row, key)), *victims;
		bool right, wrong;

		if (rc || !cell || jget_int(cell, "training"))
			continue;
		victims = jget(cell, "victims");
		victims = json_is_null(victims) ? NULL : victims;
		right = is_right(victims, jget(row, "verdict"), &wrong);
		json_array_append_new(*out,
			json_pack("{s:O, s:O, s:O?, s:O, s:O, s:O?, s:O, s:O, s:i, s:i}", "attempt",
				jget(row, "attempt"), "cell", jget(cell, "cell"), "repeat",
				jget(cell, "repeat"), "workload", jget(cell, "workload"), "fault",
				jget(cell, "fault"), "victims", victims, "detector",
				jget(row, "detector"), "metric", jget(row, "metric"), "right",
				right, "wrong", wrong));
	}
	return rc;
}

/* Appends the verdicts of null detectors that 'rows' lacks. */
static int add_nulls(struct store *s, json_t *rows, struct err *e)
{
	json_auto_t *servers = NULL, *none = json_array(), *judged = NULL, *missing = json_object();
	json_t *row;
	struct judge *j = NULL;
	size_t i;
	int rc = store_has_runtimes(s, e);

	for (const char *const *null = detector_nulls(); *null; null++)
		if (!find_row(rows, "detector", *null))
			json_object_set_new(missing, *null, json_true());
	if (rc || !json_object_size(missing))
		return rc < 0 ? rc : 0;
	rc = store_get_json(s, "servers", &servers, e);
	if (rc != 1)
		return rc;
	rc = judge_new(none, servers, s, &j, e);
	if (!rc)
		rc = judge_all(j, 0, &judged, e);
	json_array_foreach(judged, i, row) {
		if (jget(missing, jget_text(row, "detector")))
			json_array_append(rows, row);
	}
	judge_free(j);
	return rc;
}

/* Removes the cells outside the range; -ENOENT if no scored cell is left. */
static int keep_range(struct cell_range range, json_t *confirmed, struct err *e)
{
	unsigned kept = 0;

	if (!range.to)
		return 0;
	for (size_t i = json_array_size(confirmed); i-- > 0;) {
		const json_t *row = json_array_get(confirmed, i);
		json_int_t number = jget_int(row, "cell");

		if (number < range.from || number > range.to)
			json_array_remove(confirmed, i);
		else
			kept += !jget_int(row, "training");
	}
	return kept ? 0
		    : err_set(e, -ENOENT, "the run has no confirmed scored cell from %ld to %ld",
			      range.from, range.to);
}

/* A cell's position in the table, independent of the plan's order. */
static long place(const struct scoring *c, enum score_axis axis, const char *name)
{
	const char *const *names;
	long n = (long)score_names(c->table, axis, &names), i = 0;

	while (i < n && strcmp(names[i], name))
		i++;
	return i;
}

static void sort_keys(const struct scoring *c, const json_t *cell, long keys[static 5])
{
	keys[0] = place(c, SCORE_FAULT, jget_text(cell, "fault"));
	keys[1] = place(c, SCORE_WORKLOAD, jget_text(cell, "workload"));
	keys[2] = (long)jget_int(cell, "repeat");
	keys[3] = (long)jget_int(cell, "cell");
	keys[4] = place(c, SCORE_DETECTOR, jget_text(cell, "detector"));
}

struct placed {
	json_t *cell;
	long keys[5];
};

static int by_keys(const void *a, const void *b)
{
	const struct placed *x = a, *y = b;
	int k = 0;

	while (k < 4 && x->keys[k] == y->keys[k])
		k++;
	return x->keys[k] < y->keys[k] ? -1 : x->keys[k] > y->keys[k];
}

/* Sorts the cells in table order, and numbers those with the same name in 'again'. */
static void sort_cells(struct scoring *c)
{
	size_t n = json_array_size(c->cells);
	auto_free struct placed *list = alloc_zero(n, sizeof(*list));

	for (size_t i = 0; i < n; i++) {
		list[i].cell = json_incref(json_array_get(c->cells, i));
		sort_keys(c, list[i].cell, list[i].keys);
	}
	qsort(list, n, sizeof(*list), by_keys);
	json_array_clear(c->cells);
	for (size_t i = 0; i < n; i++) {
		json_int_t again = 0;

		for (size_t k = i;
			k-- > 0 && !memcmp(list[k].keys, list[i].keys, 3 * sizeof(long));)
			again += list[k].keys[4] == list[i].keys[4];
		json_object_set_new(list[i].cell, "again", json_integer(again));
		json_array_append_new(c->cells, list[i].cell);
	}
}

static int add_run(struct scoring *c, struct store *s, const json_t *rows, struct err *e)
{
	json_auto_t *all = json_copy((json_t *)rows), *confirmed = NULL;
	int rc = 0;

	if (!rows)
		rc = store_rows(s, ROWS_VERDICTS, 0, &all, e);
	if (!rc)
		rc = store_rows(s, ROWS_CONFIRMED, 0, &confirmed, e);
	if (!rc)
		rc = add_nulls(s, all, e);
	if (!rc)
		rc = keep_range(c->range, confirmed, e);
	if (!rc)
		rc = declare_detectors(s, c->table, all, e);
	if (!rc)
		rc = axes_declare(s, c->column, c->table, e);
	return rc ? rc : score_all(c, confirmed, all, e);
}

static struct scoring *scoring_begin(struct cell_range cells)
{
	struct scoring *c = alloc_zero(1, sizeof(*c));

	c->cells = json_array();
	c->range = cells;
	c->table = score_table_new();
	return c;
}

static int scoring_finish(struct scoring *c, int rc, struct scoring **out)
{
	c->column = NULL;
	sort_cells(c);
	if (rc)
		scoring_free(c);
	else
		*out = c;
	return rc;
}

int scoring_new(struct store *s, const json_t *rows, struct cell_range cells, struct scoring **out,
	struct err *e)
{
	struct scoring *c = scoring_begin(cells);

	return scoring_finish(c, add_run(c, s, rows, e), out);
}

int scoring_runs(
	const struct scored_run *runs, size_t n, bool merge, struct scoring **out, struct err *e)
{
	struct scoring *c = scoring_begin((struct cell_range){0});
	int rc = 0;

	for (size_t i = 0; i < n && !rc; i++) {
		c->column = merge ? NULL : runs[i].name;
		c->first_id = (int64_t)i * IDS_A_RUN;
		rc = add_run(c, runs[i].store, runs[i].rows, e);
	}
	return scoring_finish(c, rc, out);
}

void scoring_free(struct scoring *c)
{
	if (!c)
		return;
	json_decref(c->cells);
	score_table_free(c->table);
	free(c);
}

const struct score_table *scoring_table(const struct scoring *c)
{
	return c->table;
}

struct cell_range scoring_range(const struct scoring *c)
{
	return c->range;
}

const json_t *scoring_cells(const struct scoring *c)
{
	return c->cells;
}
