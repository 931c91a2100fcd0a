/*
 * Columns: one run's measurements in the form that detectors read: four columns for each metric of
 * each server, with one number a second. A thousand servers, 600 s and all metrics make some 150
 * million numbers; most are zero, small integers, or missing. So each column has the narrowest form
 * that holds it exactly: nothing, one value for all seconds, 16 bits, float, double.
 */
#ifndef CULPRIT_DIAG_JUDGE_COLUMNS_H
#define CULPRIT_DIAG_JUDGE_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "diag/derive/metrics.h"

/* As in struct sample. A count of 0 means no sample; the others are then 0. */
enum column {
	COLUMN_MEAN = -1, /* computed, not stored */
	COLUMN_SUM,
	COLUMN_COUNT,
	COLUMN_MAX,
	COLUMN_BYTES,
	COLUMNS
};

struct columns;

struct columns *columns_new(size_t n_metrics, size_t n_servers, int32_t seconds);
void columns_free(struct columns *c);

/* Sets one metric of one server: copies COLUMNS consecutive arrays of 'seconds' numbers. */
void columns_put(struct columns *c, size_t metric, size_t server, const double *values);

/* Likewise from samples in any order; ignores their metric and server. Adds up samples of one
 * second (maximum: the largest). Ignores samples of seconds outside the run, or with count 0. */
void columns_put_samples(
	struct columns *c, size_t metric, size_t server, const struct sample *samples, size_t n);

/* Makes all columns from samples, as above; ignores unknown metrics and servers. While it runs, it
 * needs memory for a copy of the samples. */
struct columns *columns_from_samples(const struct sample *samples, size_t n, size_t n_metrics,
	size_t n_servers, int32_t seconds);

int32_t columns_seconds(const struct columns *c);
bool columns_has(const struct columns *c, size_t metric, size_t server); /* any sample? */

/* Both write 'seconds' numbers; columns_series as detectors see them: a mean, sum or maximum
 * without a sample is NaN. */
void columns_read(
	const struct columns *c, size_t metric, size_t server, enum column which, double *out);
void columns_series(
	const struct columns *c, size_t metric, size_t server, enum column which, double *out);

#endif
