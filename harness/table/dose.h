/*
 * Scores by strength: how TP grows with the strength of a fault, and the smallest strength found.
 *
 * A sweep is a fault that a run injects in several strengths: labels with the same name, such as
 * "disk-hog(share=10%)" and "disk-hog", that differ in one parameter. A larger value counts as a
 * stronger fault. The smallest strength found is the weakest one from which on TP is at least a
 * given level, up to the strongest. It is given for TP and for the lower end of its exact
 * interval. Only verdicts over all metrics ("any") count.
 *
 * At the side of them is how much the fault slows the application (impact.h), and the smallest
 * strength from which on it suffers: so a reader sees whether a detector sees a fault before or
 * after the application feels it.
 */
#ifndef CULPRIT_HARNESS_TABLE_DOSE_H
#define CULPRIT_HARNESS_TABLE_DOSE_H

#include "diag/judge/impact.h"
#include "harness/table/table.h"

/* 'impacts': of the same cells, or NULL. 'params': {label of a fault: {parameter: number}}.
 * 'level': above 0, at most 1. Null detectors are omitted unless notes->details. -ENOENT: no fault
 * has several strengths; -ENOSPC or another errno: 'f' could not be written. */
int dose_render(const struct score_table *t, const struct impacts *impacts, const json_t *params,
	double level, enum table_format format, const struct table_notes *notes, FILE *f,
	struct err *e);

#endif
