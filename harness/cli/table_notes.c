/* Prints the notes below the tables of a run. */
#include "harness/cli/tables.h"

#include <stdlib.h>

#include "diag/judge/detector.h"
#include "harness/base/alloc.h"
#include "harness/base/jget.h"
#include "harness/cli/shards.h"

enum { REASONS_SHOWN = 5 };

/* Why the last attempt of a cell failed: {number, outcome, reason}; NULL: there was none. */
static const json_t *last_failed(const json_t *failed, json_int_t cell)
{
	for (size_t i = json_array_size(failed); i > 0; i--)
		if (jget_int(json_array_get(failed, i - 1), "cell") == cell)
			return json_array_get(failed, i - 1);
	return NULL;
}

/* For a missing cell, why its last attempt failed; it says where the programs' output is. */
static void add_reason(struct table_notes *out, char **lines, const json_t *failed, json_int_t cell)
{
	const json_t *last = last_failed(failed, cell);
	const char *reason = jget_text(last, "reason");

	if (reason)
		lines[out->n_remarks++] = alloc_format("cell %lld, attempt %lld %s: %s",
			(long long)cell, (long long)jget_int(last, "number"),
			jget_text(last, "outcome"), reason);
}

/* What of the plan is here, where that is not all of it. NULL: its own run, or all shards. */
static char *shard_line(struct store *s, size_t scored)
{
	json_auto_t *shard = NULL, *shards = NULL;
	json_int_t all;
	char *missing, *line = NULL;
	struct err e;

	if (store_get_json(s, "shard", &shard, &e) == 1)
		return alloc_format("shard %lld/%lld: %zu of the plan's %lld scored cells",
			(long long)jget_int(shard, "index"), (long long)jget_int(shard, "of"),
			scored,
			(long long)(jget_int(shard, "cells") - jget_int(shard, "training")));
	if (store_get_json(s, "shards", &shards, &e) != 1)
		return NULL;
	shard = json_incref(json_array_get(shards, 0));
	all = jget_int(shard, "cells") - jget_int(shard, "training");
	missing = shards_missing(shards);
	if (missing)
		line = alloc_format("missing: %s: %lld of the plan's %lld scored cells", missing,
			(long long)(all - (json_int_t)scored), (long long)all);
	free(missing);
	return line;
}

static size_t scored_cells(const json_t *tally)
{
	json_t *row;
	size_t i, n = 0;

	json_array_foreach(jget(tally, "cells"), i, row)
		n += !jget_int(row, "training");
	json_array_foreach(jget(tally, "skipped"), i, row)
		n += (size_t)jget_int(row, "cells");
	return n;
}

int table_notes_make(
	struct store *s, struct cell_range range, struct table_notes *out, struct err *e)
{
	const json_t *missing, *skipped, *attempts;
	char *shard, *replaced = NULL;
	char **lines[2];
	json_t *tally, *row;
	size_t i;
	int rc = store_tally(s, &tally, e);

	if (rc)
		return rc;
	rc = store_get(s, STORE_TRACER_REPLACED, &replaced, e);
	if (rc < 0) {
		json_decref(tally);
		return rc;
	}
	missing = json_object_get(tally, "missing");
	skipped = json_object_get(tally, "skipped");
	attempts = json_object_get(tally, "attempts");
	*out = (struct table_notes){.run_id = store_run_id(s),
		.planned = (unsigned)jget_int(tally, "planned"),
		.confirmed = (unsigned)jget_int(tally, "confirmed"),
		.invalid = (unsigned)jget_int(attempts, "invalid"),
		.aborted = (unsigned)jget_int(attempts, "aborted"),
		.error = (unsigned)jget_int(attempts, "error"),
		.nulls = detector_nulls()};
	lines[0] = alloc_zero(json_array_size(missing), sizeof(**lines));
	lines[1] = alloc_zero(json_array_size(skipped) + REASONS_SHOWN + 3, sizeof(**lines));
	out->missing = (const char *const *)lines[0];
	out->remarks = (const char *const *)lines[1];
	if (replaced)
		lines[1][out->n_remarks++] = replaced;
	json_array_foreach((json_t *)missing, i, row)
		lines[0][out->n_missing++] = alloc_format("%lld %s %s",
			(long long)jget_int(row, "number"), jget_text(row, "fault"),
			jget_text(row, "workload"));
	for (i = 0; i < out->n_missing && i < REASONS_SHOWN; i++)
		add_reason(out, lines[1], json_object_get(tally, "failed"),
			jget_int(json_array_get(missing, i), "number"));
	json_array_foreach((json_t *)skipped, i, row)
		lines[1][out->n_remarks++] = alloc_format(
			"skipped: %s: %s", jget_text(row, "fault"), jget_text(row, "reason"));
	if (range.to)
		lines[1][out->n_remarks++] = alloc_format(
			"scored here: cells %ld to %ld alone", range.from, range.to);
	shard = shard_line(s, scored_cells(tally));
	if (shard)
		lines[1][out->n_remarks++] = shard;
	json_decref(tally);
	return 0;
}

static void free_lines(const char *const *lines, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free((char *)lines[i]);
	free((char **)lines);
}

void table_notes_clear(struct table_notes *n)
{
	free_lines(n->missing, n->n_missing);
	free_lines(n->remarks, n->n_remarks);
	*n = (struct table_notes){0};
}
