/*
 * The measurements of a run as a table that 'culprit diagnose --csv' reads: a row for each second
 * and server, a column for each metric, and in the head what each metric is ("# metric ...").
 */
#ifndef CULPRIT_HARNESS_STORE_SAMPLES_WIDE_H
#define CULPRIT_HARNESS_STORE_SAMPLES_WIDE_H

#include <stdbool.h>

#include "diag/derive/metrics.h"
#include "harness/base/err.h"
#include "harness/store/store.h"

/* Prints the confirmed cells of a run to standard output: only 'cell', unless 0; only the metrics
 * of 'taken', and the counts by which their times are divided. */
int samples_wide(
	struct store *s, const bool taken[static METRIC_COUNT], long long cell, struct err *e);

#endif
