#include "harness/judging/scoring.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diag/judge/detector.h"
#include "harness/judging/judge.h"

struct scoring {
	struct score_table *table;
	struct table_notes notes;
	char **missing, **remarks;
	json_t *cells;
};

json_t *scoring_fact(struct store *s, const char *key)
{
	char *text = store_get(s, key);
	json_t *v = text ? json_loads(text, 0, NULL) : NULL;

	free(text);
	return v;
}

json_t *scoring_fault_params(struct store *s)
{
	json_t *inputs = scoring_fact(s, "makings"), *all = json_object(), *v;
	const char *name;

	json_object_foreach(
		inputs, name, v) if (!strncmp(name, "fault ", 6) && json_object_get(v, "params"))
		json_object_set(all, name + 6, json_object_get(v, "params"));
	json_decref(inputs);
	return all;
}

/* Detectors in the scenario's order, the control first, then faults and workloads in the plan's
 * order. */
static int declare_axes(struct store *s, struct score_table *t, const json_t *cells,
	const json_t *verdicts, struct err *e)
{
	json_t *detectors = scoring_fact(s, "detectors"), *row;
	size_t i, k;
	int rc = 0;

	json_array_foreach(detectors, i, row)
	{
		const char *name = json_string_value(json_object_get(row, "name"));

		for (k = 0; k < json_array_size(verdicts); k++)
			if (!strcmp(name,
				    json_string_value(json_object_get(
					    json_array_get(verdicts, k), "detector"))))
				break;
		if (!rc && k < json_array_size(verdicts))
			rc = score_declare(t, SCORE_DETECTOR, name, e);
	}
	json_array_foreach((json_t *)cells, i, row)
	{
		const char *fault = json_string_value(json_object_get(row, "fault"));

		if (!rc && !json_integer_value(json_object_get(row, "training")) &&
			!strcmp(fault, "none"))
			rc = score_declare(t, SCORE_FAULT, "none", e);
	}
	json_array_foreach((json_t *)cells, i, row)
	{
		if (json_integer_value(json_object_get(row, "training")))
			continue;
		if (!rc)
			rc = score_declare(t, SCORE_FAULT,
				json_string_value(json_object_get(row, "fault")), e);
		if (!rc)
			rc = score_declare(t, SCORE_WORKLOAD,
				json_string_value(json_object_get(row, "workload")), e);
	}
	json_decref(detectors);
	return rc;
}

static json_t *by_attempt(const json_t *rows)
{
	json_t *index = json_object(), *row;
	char key[32];
	size_t i;

	json_array_foreach(rows, i, row)
	{
		snprintf(key, sizeof(key), "%lld",
			(long long)json_integer_value(json_object_get(row, "attempt")));
		json_object_set(index, key, row);
	}
	return index;
}

/* Seconds from the start of the run to the verified onset; -1: a control. */
static double onset_of(const json_t *cell)
{
	json_int_t start = json_integer_value(json_object_get(cell, "start_ns"));
	json_int_t onset = json_integer_value(json_object_get(cell, "onset_ns"));

	if (!onset)
		return -1;
	/* A fault that was there from the start is older than what was measured. */
	return onset > start ? (double)(onset - start) / 1e9 : 0;
}

/* One line of scoring_cells. */
static void add_cell(
	struct scoring *c, const json_t *row, const json_t *cell, const json_t *victims)
{
	const char *detector = json_string_value(json_object_get(row, "detector"));
	const json_t *verdict = json_object_get(row, "verdict");
	bool right, wrong;

	if (strcmp(json_string_value(json_object_get(verdict, "metric")), "any") ||
		detector_is_null(detector))
		return;
	score_compare(victims, verdict, &right, &wrong);
	json_array_append_new(c->cells,
		json_pack("{s:O, s:O, s:O, s:O?, s:s, s:O, s:b, s:b}", "cell",
			json_object_get(cell, "cell"), "workload",
			json_object_get(cell, "workload"), "fault", json_object_get(cell, "fault"),
			"victims", victims, "detector", detector, "verdict", verdict, "right",
			(right || !victims) && !wrong, "wrong", wrong));
}

static int score_all(
	struct scoring *c, const json_t *confirmed, const json_t *verdicts, struct err *e)
{
	json_t *index = by_attempt(confirmed), *row;
	size_t i;
	int rc = 0;

	json_array_foreach((json_t *)verdicts, i, row)
	{
		const json_t *cell, *victims;
		struct score_cell truth;
		char key[32];

		snprintf(key, sizeof(key), "%lld",
			(long long)json_integer_value(json_object_get(row, "attempt")));
		cell = json_object_get(index, key);
		if (rc || !cell)
			continue;
		victims = json_object_get(cell, "victims");
		victims = json_is_null(victims) ? NULL : victims;
		truth = (struct score_cell){
			.fault = json_string_value(json_object_get(cell, "fault")),
			.workload = json_string_value(json_object_get(cell, "workload")),
			.victims = victims,
			.resource = json_string_value(json_object_get(cell, "resource")),
			.onset_s = onset_of(cell)};
		rc = score_add(c->table, json_string_value(json_object_get(row, "detector")),
			&truth, json_object_get(row, "verdict"), e);
		if (!rc)
			add_cell(c, row, cell, victims);
	}
	json_decref(index);
	return rc;
}

/* Verdicts of the null detectors that are not among 'rows', appended to a copy of it. */
static int add_nulls(struct store *s, const json_t *rows, json_t **all, struct err *e)
{
	char *measure = store_get(s, "measure");
	json_t *servers = measure && !strcmp(measure, "runtime") ? NULL
								 : scoring_fact(s, "servers"),
	       *none = json_array(), *judged = NULL, *row;
	struct judge *j = NULL;
	bool there[8] = {false};
	size_t i;
	int rc = 0;

	json_array_foreach((json_t *)rows, i,
		row) for (size_t k = 0; detector_nulls()[k];
			  k++) if (!strcmp(detector_nulls()[k],
					   json_string_value(json_object_get(row, "detector"))))
		there[k] = true;
	*all = json_copy((json_t *)rows);
	for (i = 0; detector_nulls()[i] && there[i]; i++)
		;
	if (!servers || !detector_nulls()[i])
		goto out;
	rc = judge_new(none, servers, s, &j, e);
	if (!rc)
		rc = judge_all(j, 0, &judged, e);
	json_array_foreach(judged, i, row) for (size_t k = 0; detector_nulls()[k];
						k++) if (!there[k] &&
		!strcmp(detector_nulls()[k], json_string_value(json_object_get(row, "detector"))))
		json_array_append(*all, row);
out:
	judge_free(j);
	json_decref(judged);
	json_decref(none);
	json_decref(servers);
	free(measure);
	return rc;
}

static unsigned count(const json_t *object, const char *key)
{
	return (unsigned)json_integer_value(json_object_get(object, key));
}

/* Takes a line if there is memory for it. */
static void add_line(char **lines, size_t *n, char *line)
{
	if (line)
		lines[(*n)++] = line;
}

static char *line_of(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static char *line_of(const char *fmt, ...)
{
	char *line;
	va_list ap;
	int rc;

	va_start(ap, fmt);
	rc = vasprintf(&line, fmt, ap);
	va_end(ap);
	return rc < 0 ? NULL : line;
}

static int write_notes(struct scoring *c, const json_t *tally, struct err *e)
{
	const json_t *missing = json_object_get(tally, "missing"),
		     *skipped = json_object_get(tally, "skipped");
	const json_t *attempts = json_object_get(tally, "attempts");
	json_t *row;
	size_t i;

	c->missing = calloc(json_array_size(missing) + 1, sizeof(*c->missing));
	c->remarks = calloc(
		json_array_size(skipped) + 2, sizeof(*c->remarks)); /* and keep_range's */
	if (!c->missing || !c->remarks)
		return err_errno(e, -ENOMEM, "cannot make a table");
	json_array_foreach((json_t *)missing, i, row) add_line(c->missing, &c->notes.n_missing,
		line_of("%lld %s %s", (long long)json_integer_value(json_object_get(row, "number")),
			json_string_value(json_object_get(row, "fault")),
			json_string_value(json_object_get(row, "workload"))));
	json_array_foreach((json_t *)skipped, i, row) add_line(c->remarks, &c->notes.n_remarks,
		line_of("skipped: %s: %s", json_string_value(json_object_get(row, "fault")),
			json_string_value(json_object_get(row, "reason"))));
	c->notes.planned = count(tally, "planned");
	c->notes.confirmed = count(tally, "confirmed");
	c->notes.invalid = count(attempts, "invalid");
	c->notes.error = count(attempts, "error");
	c->notes.missing = (const char *const *)c->missing;
	c->notes.remarks = (const char *const *)c->remarks;
	c->notes.nulls = detector_nulls();
	return 0;
}

/* Leaves the cells out that are not asked for, and says so; -ENOENT if nothing is left. */
static int keep_range(struct scoring *c, struct cell_range cells, json_t *confirmed, struct err *e)
{
	unsigned kept = 0;

	if (!cells.to)
		return 0;
	for (size_t i = json_array_size(confirmed); i-- > 0;) {
		const json_t *row = json_array_get(confirmed, i);
		json_int_t number = json_integer_value(json_object_get(row, "cell"));

		if (number < cells.from || number > cells.to)
			json_array_remove(confirmed, i);
		else
			kept += !json_integer_value(json_object_get(row, "training"));
	}
	if (!kept)
		return err_set(e, -ENOENT, "the run has no confirmed scored cell from %ld to %ld",
			cells.from, cells.to);
	add_line(c->remarks, &c->notes.n_remarks,
		line_of("scored here: cells %ld to %ld alone", cells.from, cells.to));
	return 0;
}

int scoring_new(struct store *s, const json_t *rows, struct cell_range cells, struct scoring **out,
	struct err *e)
{
	struct scoring *c = calloc(1, sizeof(*c));
	json_t *tally = NULL, *stored = NULL, *all = NULL, *confirmed = NULL;
	int rc = 0;

	if (!c || !(c->table = score_table_new()) || !(c->cells = json_array()))
		rc = err_errno(e, -ENOMEM, "cannot make a table");
	if (!rc)
		rc = store_tally(s, &tally, e);
	if (!rc)
		rc = store_confirmed(s, &confirmed, e);
	if (!rc && !rows)
		rc = store_verdicts(s, &stored, e);
	if (!rc)
		rc = add_nulls(s, rows ? rows : stored, &all, e);
	if (!rc)
		rc = write_notes(c, tally, e);
	if (!rc)
		rc = keep_range(c, cells, confirmed, e);
	if (!rc)
		rc = declare_axes(s, c->table, json_object_get(tally, "cells"), all, e);
	if (!rc)
		rc = score_all(c, confirmed, all, e);
	if (!rc) {
		c->notes.run_id = store_run_id(s);
		*out = c;
		c = NULL;
	}
	scoring_free(c);
	json_decref(confirmed);
	json_decref(all);
	json_decref(stored);
	json_decref(tally);
	return rc;
}

void scoring_free(struct scoring *c)
{
	if (!c)
		return;
	for (size_t i = 0; c->missing && i < c->notes.n_missing; i++)
		free(c->missing[i]);
	for (size_t i = 0; c->remarks && i < c->notes.n_remarks; i++)
		free(c->remarks[i]);
	free(c->missing);
	free(c->remarks);
	json_decref(c->cells);
	score_table_free(c->table);
	free(c);
}

const struct score_table *scoring_table(const struct scoring *c)
{
	return c->table;
}

struct table_notes *scoring_notes(struct scoring *c)
{
	return &c->notes;
}

const json_t *scoring_cells(const struct scoring *c)
{
	return c->cells;
}
