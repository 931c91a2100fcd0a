/*
 * Packs the samples of one metric of one server into a few bytes, for the store: the columns
 * second, count, sum, max, bytes, in the encoding of harness/base/pack.h. (For one device the
 * maximum is the sum.)
 */
#ifndef CULPRIT_HARNESS_STORE_SERIES_CODEC_H
#define CULPRIT_HARNESS_STORE_SERIES_CODEC_H

#include <stddef.h>

#include "diag/derive/metrics.h"
#include "harness/base/err.h"

/* Packs 'n' samples, at least one, sorted by second; their metric and server are not written.
 * '*out' is malloced. */
void series_encode(const struct sample *samples, size_t n, unsigned char **out, size_t *size);

/* Unpacks; metric and server are 0. '*out' is malloced. -EBADMSG: not written by series_encode. */
int series_decode(const void *data, size_t size, struct sample **out, size_t *n, struct err *e);

#endif
