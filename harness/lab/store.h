/*
 * What a modelled disk holds: a sparse file, and a map of the blocks ever written, so that zeros
 * written to fresh blocks (mkfs, dd from /dev/zero) take neither space nor time of the host's disk.
 */
#ifndef CULPRIT_HARNESS_LAB_STORE_H
#define CULPRIT_HARNESS_LAB_STORE_H

#include <stddef.h>
#include <stdint.h>

#include "harness/base/err.h"

struct store;

/* Makes 'path' new, of 'size' bytes. */
int store_new(const char *path, uint64_t size, struct store **out, struct err *e);
void store_free(struct store *s);

/* 0 or -errno; the range must lie within the store. */
int store_read(const struct store *s, void *data, size_t size, uint64_t position);
int store_write(struct store *s, const void *data, size_t size, uint64_t position);
int store_zero(struct store *s, uint64_t size, uint64_t position);

#endif
