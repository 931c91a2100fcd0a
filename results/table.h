/*
 * Tables of scores, for people (text of at most 80 columns, Markdown) and for programs (CSV, JSON).
 * Text and Markdown begin with a summary over all cells: detection, localisation, wrong servers,
 * false alarms of the controls, and which detectors can be told apart at all. Below it, each
 * detector by fault and workload; they show a metric only where some TP or FP is not zero, as 001's
 * Table 1 does; 'any' is always shown. Null detectors stand in the summary, and with 'details'
 * below it, too; 'details' adds classification, abstentions and delays. CSV and JSON hold
 * everything.
 */
#ifndef CULPRIT_RESULTS_TABLE_H
#define CULPRIT_RESULTS_TABLE_H

#include <stdio.h>

#include "diag/judge/score.h"
#include "results/grid.h"

/* "text", "markdown", "csv", "json"; -EINVAL with the list. */
int table_format_parse(const char *name, enum table_format *format, struct err *e);

/* What stands below the table (CSV has no place for it). All may be NULL or 0. */
struct table_notes {
	const char *run_id;
	unsigned planned, confirmed; /* cells */
	unsigned invalid, error;     /* attempts that were not scored */
	const char *const *missing;  /* cells without a confirmed attempt: "12 disk-hog ddw" */
	size_t n_missing;
	const char *const *remarks; /* lines */
	size_t n_remarks;
	const char *const
		*environment; /* lines: what it was run on and with; only paper_render shows them */
	size_t n_environment;
	bool details;
	const char *const *nulls; /* names of the null detectors, ended by NULL */
};

/* 0, or -EIO when 'f' could not be written. */
int table_render(const struct score_table *t, enum table_format format,
	const struct table_notes *notes, FILE *f);

#endif
