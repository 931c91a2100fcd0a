#include "harness/cli/table_notes.h"

#include <stdlib.h>

#include "diag/judge/detector.h"
#include "harness/base/alloc.h"
#include "harness/base/jget.h"

int table_notes_make(
	struct store *s, struct cell_range range, struct table_notes *out, struct err *e)
{
	const json_t *missing, *skipped, *attempts;
	char **lines[2];
	json_t *tally, *row;
	size_t i;
	int rc = store_tally(s, &tally, e);

	if (rc)
		return rc;
	missing = json_object_get(tally, "missing");
	skipped = json_object_get(tally, "skipped");
	attempts = json_object_get(tally, "attempts");
	*out = (struct table_notes){.run_id = store_run_id(s),
		.planned = (unsigned)jget_int(tally, "planned"),
		.confirmed = (unsigned)jget_int(tally, "confirmed"),
		.invalid = (unsigned)jget_int(attempts, "invalid"),
		.error = (unsigned)jget_int(attempts, "error"),
		.nulls = detector_nulls()};
	lines[0] = alloc_zero(json_array_size(missing), sizeof(**lines));
	lines[1] = alloc_zero(json_array_size(skipped) + 1, sizeof(**lines));
	out->missing = (const char *const *)lines[0];
	out->remarks = (const char *const *)lines[1];
	json_array_foreach((json_t *)missing, i, row)
		lines[0][out->n_missing++] = alloc_format("%lld %s %s",
			(long long)jget_int(row, "number"), jget_text(row, "fault"),
			jget_text(row, "workload"));
	json_array_foreach((json_t *)skipped, i, row)
		lines[1][out->n_remarks++] = alloc_format(
			"skipped: %s: %s", jget_text(row, "fault"), jget_text(row, "reason"));
	if (range.to)
		lines[1][out->n_remarks++] = alloc_format(
			"scored here: cells %ld to %ld alone", range.from, range.to);
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
