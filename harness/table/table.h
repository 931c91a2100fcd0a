/*
 * Tables of scores: text of at most 80 columns and Markdown for people, CSV and JSON for programs.
 *
 * A page begins with a summary over all cells: cells in which any server was indicted, the right
 * server, a wrong server, false alarms in controls; and which detectors' rates differ by more than
 * their intervals. Below it each detector has a table by fault, metric and workload. A metric is
 * shown where TP or FP is not zero, as in Table 1 of Kasick et al. 2009; "any", the verdict over
 * all metrics, is always shown. Null detectors have such a table only with 'details', which also
 * add resources, causes, delays and abstentions. CSV and JSON hold every score.
 */
#ifndef CULPRIT_HARNESS_TABLE_TABLE_H
#define CULPRIT_HARNESS_TABLE_TABLE_H

#include <stdio.h>

#include "diag/judge/score.h"
#include "harness/table/grid.h"

/* What is printed below the table, except in CSV. All may be NULL or 0. */
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
	const char *const *nulls; /* names of the null detectors, ended by NULL */
};

/* 0; what outfile_flush returns when 'f' could not be written; -EINVAL for TABLE_SVG, which
 * paper_render draws. */
int table_render(const struct score_table *t, enum table_format format,
	const struct table_notes *notes, FILE *f);

/* Runs side by side: 't' has runs in place of workloads; 'notes' of each. Text, Markdown or
 * JSON. */
int table_runs_render(const struct score_table *t, enum table_format format,
	const struct table_notes *notes, size_t n, FILE *f);

#endif
