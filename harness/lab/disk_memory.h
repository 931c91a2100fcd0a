/*
 * The content of a modelled disk, in memory: its speed must not depend on this machine's own disk.
 * It is a sparse file without a name; zeros written to fresh blocks (mkfs, dd from /dev/zero) take
 * no memory.
 */
#ifndef CULPRIT_HARNESS_LAB_DISK_MEMORY_H
#define CULPRIT_HARNESS_LAB_DISK_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include "harness/base/err.h"

/* Makes 'size' bytes of zeros; /proc shows the name. Returns a descriptor; the caller closes it. */
int disk_memory_new(const char *name, uint64_t size, struct err *e);

/* The bytes of memory in use, or -errno. */
int64_t disk_memory_room(int fd);

/* 0 or -errno; the range must lie within the disk. */
int disk_memory_read(int fd, void *data, size_t size, uint64_t position);
int disk_memory_write(int fd, const void *data, size_t size, uint64_t position);
int disk_memory_zero(int fd, uint64_t size, uint64_t position);

#endif
