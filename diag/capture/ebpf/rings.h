/*
 * Merges the per-CPU ring buffers into one stream ordered by event completion.
 */
#ifndef CULPRIT_DIAG_CAPTURE_EBPF_RINGS_H
#define CULPRIT_DIAG_CAPTURE_EBPF_RINGS_H

#include "diag/capture/ebpf/shared.h"
#include "harness/base/err.h"

struct rings;

/* Makes a ring of 'bytes' (a power of two, whole pages) for each of 'cpus' and puts it into the map
 * of maps. */
int rings_new(int outer_fd, int cpus, uint32_t bytes, struct rings **out, struct err *e);
void rings_free(struct rings *r);

/* The next event and its size, or NULL: no event had ended by 'until_ns' (CLOCK_MONOTONIC). Valid
 * until the next call. */
const struct ev *rings_next(struct rings *r, uint64_t until_ns, uint32_t *size);

/* Returns the read part to the kernel; rings_next does so now and then. */
void rings_release(struct rings *r);

/* Waits until a ring is filled up to the wake mark, a signal comes, or 'timeout_ms' (-1: none) has
 * passed. */
void rings_wait(struct rings *r, int timeout_ms);

/* Is a ring filled beyond 'bytes'? */
bool rings_filled(const struct rings *r, uint64_t bytes);

#endif
