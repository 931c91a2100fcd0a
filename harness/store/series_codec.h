/*
 * Packs the samples of one metric of one server into a few bytes, for the store.
 *
 * Their number, then the columns second, count, sum, max, bytes. Each column begins with a byte
 * that says how it is written: 0 .. 9    decimal fractions of so many places, as whole numbers,
 * each minus the one before DOUBLES   eight bytes each, if they are no such fractions SAME
 * equal to the previous column (of one device the maximum is the sum) COUNTING  each is one more
 * than the one before: only the first is written + ALIKE   all are equal: only the first is written
 * Whole numbers are varints (seven bits a byte, lowest first), signed ones zigzag. Nothing is
 * rounded.
 */
#ifndef CULPRIT_HARNESS_STORE_SERIES_CODEC_H
#define CULPRIT_HARNESS_STORE_SERIES_CODEC_H

#include <stddef.h>

#include "diag/derive/metrics.h"
#include "harness/base/err.h"

/* Packs 'n' samples, at least one, in the order of their seconds; their metric and server are not
 * written. '*out' is malloced. */
void series_encode(const struct sample *samples, size_t n, unsigned char **out, size_t *size);

/* Unpacks; metric and server are 0. '*out' is malloced. -EBADMSG: not written by series_encode. */
int series_decode(const void *data, size_t size, struct sample **out, size_t *n, struct err *e);

#endif
