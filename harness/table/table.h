/*
 * Tables of scores: text of at most 80 columns and Markdown for people, CSV and JSON for
 * programs.
 *
 * A page begins with a summary over all cells: cells in which any server was indicted, the right
 * server, a wrong server, false alarms in controls; and which detectors' rates differ by more
 * than their intervals. Each detector then has a table by fault, metric and workload. A metric is
 * shown if TP or FP is not zero, as in Table 1 of Kasick et al. 2009; "any", the verdict over all
 * metrics, is always shown. Null detectors have such a table only with 'details', which also adds
 * resources, causes, delays and abstentions. CSV and JSON have every score.
 */
#ifndef CULPRIT_HARNESS_TABLE_TABLE_H
#define CULPRIT_HARNESS_TABLE_TABLE_H

#include <stdio.h>

#include "diag/judge/score.h"
#include "harness/table/grid.h"

/* Printed below the table, except in CSV. All members may be NULL or 0. */
struct table_notes {
	const char *run_id;
	unsigned planned, confirmed; /* cells */
	unsigned invalid, error;     /* attempts that were not scored */
	const char *const *missing;  /* cells without a confirmed attempt: "12 disk-hog ddw" */
	size_t n_missing;
	const char *const *remarks; /* lines */
	size_t n_remarks;
	const char *const *environment; /* lines on hosts and load; only paper_render prints them */
	size_t n_environment;
	bool details;
	const char *const *nulls; /* names of the null detectors, NULL-terminated */
	unsigned aborted;         /* attempts, not scored either */
};

/* Returns 0; the result of outfile_flush if 'f' could not be written; -EINVAL for TABLE_SVG,
 * which only paper_render draws. */
int table_render(const struct score_table *t, enum table_format format,
	const struct table_notes *notes, FILE *f);

/* Runs side by side: 't' has runs instead of workloads; one 'notes' per run. Text, Markdown or
 * JSON. */
int table_runs_render(const struct score_table *t, enum table_format format,
	const struct table_notes *notes, size_t n, FILE *f);

#endif
