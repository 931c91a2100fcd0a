/* The order of faults, workloads and metrics in tables. */
#ifndef CULPRIT_HARNESS_JUDGING_AXES_H
#define CULPRIT_HARNESS_JUDGING_AXES_H

#include "diag/judge/score.h"
#include "harness/store/store.h"

/* Declares the axes of a run's scored cells: the control first, then faults and workloads in the
 * scenario's order, which is the same for every run of it. Runs record that order; runs of older
 * versions are sorted by where the scenario's text names the labels, and labels with the same
 * name by their parameters. 'column' (may be NULL) replaces all workloads. */
int axes_declare(struct store *s, const char *column, struct score_table *t, struct err *e);

#endif
