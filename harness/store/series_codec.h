/*
 * Squeeze: the samples of one metric of one server as a few bytes, for the store.
 *
 * Their number, then the columns second, count, sum, max, bytes, each with its way of being written
 * before it:
 *   0 .. 9    decimal fractions of so many places, as whole numbers, each the difference to the one
 *     before
 *   DOUBLES   eight bytes each, where there are no such fractions
 *   SAME      as the column before (of one device the maximum is the sum)
 *   COUNTING  each is one more than the one before: the first only
 *   + ALIKE   they are all the same: the first only
 * Whole numbers are varints (seven bits a byte, the least first), signed ones zigzag. Nothing is
 * rounded.
 */
#ifndef CULPRIT_HARNESS_SERIES_CODEC_H
#define CULPRIT_HARNESS_SERIES_CODEC_H

#include <stddef.h>

#include "diag/derive/metrics.h"
#include "harness/base/err.h"

/* 'n' samples, one at least, in the order of their seconds; their metric and server are not
 * written. '*out' is malloced. -ENOMEM. */
int series_encode(
	const struct sample *samples, size_t n, unsigned char **out, size_t *size, struct err *e);

/* The other way; metric and server are 0. '*out' is malloced. -EBADMSG: this was not written by
 * series_encode. */
int series_decode(const void *data, size_t size, struct sample **out, size_t *n, struct err *e);

#endif
