/*
 * The content of a modelled disk, in memory: its speed must not depend on this machine's own disk.
 * A map of the blocks that were written saves the memory for zeros written to fresh blocks (mkfs,
 * dd from /dev/zero).
 */
#ifndef CULPRIT_HARNESS_LAB_DISK_MEMORY_H
#define CULPRIT_HARNESS_LAB_DISK_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include "harness/base/err.h"

struct disk_memory;

/* Makes 'size' bytes of zeros; /proc shows the name. */
int disk_memory_new(const char *name, uint64_t size, struct disk_memory **out, struct err *e);
void disk_memory_free(struct disk_memory *s);

/* The bytes of memory in use, or -errno. */
int64_t disk_memory_room(const struct disk_memory *s);

/* 0 or -errno; the range must lie within the disk. */
int disk_memory_read(const struct disk_memory *s, void *data, size_t size, uint64_t position);
int disk_memory_write(struct disk_memory *s, const void *data, size_t size, uint64_t position);
int disk_memory_zero(struct disk_memory *s, uint64_t size, uint64_t position);

#endif
