/*
 * Columns: one run's measurements in the form that detectors read: for each metric of each server
 * four columns, one number a second. A thousand servers, 600 s and all metrics make some 150
 * million numbers; most are zero, small integers, or missing. So a column takes the narrowest form
 * that holds it exactly: nothing, one value for all seconds, 16 bits, float, double.
 */
#ifndef CULPRIT_DIAG_JUDGE_COLUMNS_H
#define CULPRIT_DIAG_JUDGE_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "diag/derive/metrics.h"

/* As in struct sample. A count of 0 means that there is no sample; the others are then 0. */
enum column {
	COLUMN_MEAN = -1, /* not kept, but computed */
	COLUMN_SUM,
	COLUMN_COUNT,
	COLUMN_MAX,
	COLUMN_BYTES,
	COLUMNS
};

struct columns;

/* Empty ones. */
struct columns *columns_new(size_t n_metrics, size_t n_servers, int32_t seconds);
void columns_free(struct columns *c);

/* Sets one metric of one server: COLUMNS arrays of 'seconds' numbers, one after the other;
 * copied. */
void columns_put(struct columns *c, size_t metric, size_t server, const double *values);

/* The same from samples in any order; their own metric and server are ignored. Samples of one
 * second are added up (maximum: the largest). Samples of seconds outside the run, or with count
 * 0, are ignored. */
void columns_put_samples(
	struct columns *c, size_t metric, size_t server, const struct sample *samples, size_t n);

/* All columns from samples, as above; unknown metrics and servers are ignored. Needs memory for a
 * copy of the samples while it runs. */
struct columns *columns_from_samples(const struct sample *samples, size_t n, size_t n_metrics,
	size_t n_servers, int32_t seconds);

int32_t columns_seconds(const struct columns *c);
bool columns_has(const struct columns *c, size_t metric, size_t server); /* any sample? */

/* Both write 'seconds' numbers; columns_series those that detectors see: NaN for a mean, sum or
 * maximum where there is no sample. */
void columns_read(
	const struct columns *c, size_t metric, size_t server, enum column which, double *out);
void columns_series(
	const struct columns *c, size_t metric, size_t server, enum column which, double *out);

#endif
