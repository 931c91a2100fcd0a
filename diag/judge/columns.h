/*
 * Columns: what was measured in one run, in the form that detectors read: of each metric of each
 * server four columns, one number a second. A thousand servers, 600 s and all metrics make some 150
 * million numbers; most are zero, whole and small, or not there. So a column takes the narrowest
 * form that holds it exactly: nothing, one value for all seconds, 16 bits, a float, a double.
 * Nothing is rounded.
 */
#ifndef CULPRIT_DIAG_COLUMNS_H
#define CULPRIT_DIAG_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "diag/derive/metrics.h"
#include "harness/base/err.h"

/* As in struct sample; where count is 0, there is no sample, and the others are 0. */
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

/* The same from samples, whose own metric and server do not matter. In any order; several of one
 * second are added up (the largest maximum), and seconds that there are not are left out, as are
 * samples of nothing (count 0). */
int columns_put_samples(struct columns *c, size_t metric, size_t server,
	const struct sample *samples, size_t n, struct err *e);

/* All from samples, as above; metrics and servers that there are not are left out, too. Takes the
 * room of the samples once more, while it lasts. */
int columns_from_samples(const struct sample *samples, size_t n, size_t n_metrics, size_t n_servers,
	int32_t seconds, struct columns **out, struct err *e);

int32_t columns_seconds(const struct columns *c);
bool columns_has(const struct columns *c, size_t metric, size_t server); /* any sample? */

/* All write 'seconds' numbers. The second and third have NaN where there is no sample: sum over
 * count, and the sum or the maximum. */
void columns_read(
	const struct columns *c, size_t metric, size_t server, enum column which, double *out);
void columns_mean(const struct columns *c, size_t metric, size_t server, double *out);
void columns_sampled(
	const struct columns *c, size_t metric, size_t server, enum column which, double *out);

#endif
