/*
 * Columns: one run's measurements in the form that detectors read: for each metric of each server
 * four columns, one number a second. A thousand servers, 600 s and all metrics make some 150
 * million numbers; most are zero, small integers, or missing. So a column takes the narrowest form
 * that holds it exactly: nothing, one value for all seconds, 16 bits, float, double.
 */
#ifndef CULPRIT_JUDGE_COLUMNS_H
#define CULPRIT_JUDGE_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "diag/derive/metrics.h"
#include "harness/base/err.h"

/* As in struct sample. A count of 0 means that there is no sample; the others are then 0. */
enum column { COLUMN_COUNT, COLUMN_SUM, COLUMN_MAX, COLUMN_BYTES, COLUMNS };

struct columns;

/* Empty ones. -ENOMEM. */
int columns_new(
	size_t n_metrics, size_t n_servers, int32_t seconds, struct columns **out, struct err *e);
void columns_free(struct columns *c);

/* Sets one metric of one server: COLUMNS arrays of 'seconds' numbers, one after the other; copied.
 * -ENOMEM. */
int columns_put(
	struct columns *c, size_t metric, size_t server, const double *values, struct err *e);

/* The same from samples in any order; their own metric and server are ignored. Samples of one
 * second are added up (maximum: the largest). Samples of seconds outside the run, or with count
 * 0, are ignored. */
int columns_put_samples(struct columns *c, size_t metric, size_t server,
	const struct sample *samples, size_t n, struct err *e);

/* All columns from samples, as above; unknown metrics and servers are ignored. Needs memory for a
 * copy of the samples while it runs. */
int columns_from_samples(const struct sample *samples, size_t n, size_t n_metrics, size_t n_servers,
	int32_t seconds, struct columns **out, struct err *e);

int32_t columns_seconds(const struct columns *c);
bool columns_has(const struct columns *c, size_t metric, size_t server); /* any sample? */

/* All write 'seconds' numbers. The last two write NaN where there is no sample: sum / count; and
 * the sum or the maximum. */
void columns_read(
	const struct columns *c, size_t metric, size_t server, enum column which, double *out);
void columns_mean(const struct columns *c, size_t metric, size_t server, double *out);
void columns_sampled(
	const struct columns *c, size_t metric, size_t server, enum column which, double *out);

#endif
