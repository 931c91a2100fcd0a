#include "harness/cli/table_notes.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "diag/judge/detector.h"
#include "harness/base/json_get.h"

/* Adds a line, which is left out without memory. */
static void add_line(char **lines, size_t *n, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static void add_line(char **lines, size_t *n, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&lines[*n], fmt, ap) >= 0)
		++*n;
	va_end(ap);
}

int table_notes_make(
	struct store *s, struct cell_range range, struct table_notes *out, struct err *e)
{
	const json_t *missing, *skipped, *attempts;
	char **lines[2] = {NULL, NULL};
	json_t *tally, *row;
	size_t i;
	int rc = store_tally(s, &tally, e);

	if (rc)
		return rc;
	missing = json_object_get(tally, "missing");
	skipped = json_object_get(tally, "skipped");
	attempts = json_object_get(tally, "attempts");
	*out = (struct table_notes){.run_id = store_run_id(s),
		.planned = (unsigned)json_get_int(tally, "planned"),
		.confirmed = (unsigned)json_get_int(tally, "confirmed"),
		.invalid = (unsigned)json_get_int(attempts, "invalid"),
		.error = (unsigned)json_get_int(attempts, "error"),
		.nulls = detector_nulls()};
	lines[0] = calloc(json_array_size(missing) + 1, sizeof(**lines));
	lines[1] = calloc(json_array_size(skipped) + 2, sizeof(**lines));
	out->missing = (const char *const *)lines[0];
	out->remarks = (const char *const *)lines[1];
	if (!lines[0] || !lines[1]) {
		table_notes_clear(out);
		json_decref(tally);
		return err_errno(e, -ENOMEM, "cannot make a table");
	}
	json_array_foreach((json_t *)missing, i, row) add_line(lines[0], &out->n_missing,
		"%lld %s %s", (long long)json_get_int(row, "number"), json_get_text(row, "fault"),
		json_get_text(row, "workload"));
	json_array_foreach((json_t *)skipped, i, row) add_line(lines[1], &out->n_remarks,
		"skipped: %s: %s", json_get_text(row, "fault"), json_get_text(row, "reason"));
	if (range.to)
		add_line(lines[1], &out->n_remarks, "scored here: cells %ld to %ld alone",
			range.from, range.to);
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
