/*
 * The measurements of a run as a table for 'culprit diagnose --csv': a row per second and server,
 * a column per metric, and declarations of the metrics in the head ("# metric ...").
 */
#ifndef CULPRIT_HARNESS_STORE_SAMPLES_WIDE_H
#define CULPRIT_HARNESS_STORE_SAMPLES_WIDE_H

#include <stdbool.h>

#include "diag/derive/metrics.h"
#include "harness/base/err.h"
#include "harness/store/store.h"

/* Prints the confirmed cells of a run to standard output: only 'cell', unless 0; only the metrics
 * in 'taken' and the counts that divide their times. */
int samples_wide(
	struct store *s, const bool taken[static METRIC_COUNT], long long cell, struct err *e);

#endif
