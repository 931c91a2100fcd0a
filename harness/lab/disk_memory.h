/*
 * What a modelled disk holds: memory, and never a file, so that how fast it is has nothing to do
 * with this machine's own disk, and what others do to that. A map of the blocks ever written lets
 * zeros on fresh blocks (mkfs, dd from /dev/zero) take no room.
 */
#ifndef CULPRIT_HARNESS_LAB_STORE_H
#define CULPRIT_HARNESS_LAB_STORE_H

#include <stddef.h>
#include <stdint.h>

#include "harness/base/err.h"

struct store;

/* 'size' bytes of zeros; the name is what /proc shows. */
int store_new(const char *name, uint64_t size, struct store **out, struct err *e);
void store_free(struct store *s);

/* The bytes of memory that it takes, or -errno. */
int64_t store_room(const struct store *s);

/* 0 or -errno; the range must lie within the store. */
int store_read(const struct store *s, void *data, size_t size, uint64_t position);
int store_write(struct store *s, const void *data, size_t size, uint64_t position);
int store_zero(struct store *s, uint64_t size, uint64_t position);

#endif
