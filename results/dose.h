/*
 * Scores by strength: how TP grows with the dose, and the smallest one that is found.
 *
 * A sweep is a fault that a run has in several strengths: labels of one name, "disk-hog(share=10%)"
 * and "disk-hog", that differ in one parameter. The larger it is, the stronger the fault is taken
 * to be. The smallest dose found is the weakest strength from which on, up to the strongest, TP is
 * at least a level; said of TP itself, and of the lower end of its exact interval. Only what
 * detectors say on 'any' is looked at.
 */
#ifndef CULPRIT_RESULTS_DOSE_H
#define CULPRIT_RESULTS_DOSE_H

#include "results/table.h"

/* 'params': {label of a fault: {parameter: number}}. 'level': above 0, at most 1. Null detectors
 * are left out unless notes->details. -ENOENT: no fault comes in several strengths; -EIO: 'f' could
 * not be written. */
int dose_render(const struct score_table *t, const json_t *params, double level,
	enum table_format format, const struct table_notes *notes, FILE *f, struct err *e);

#endif
