/*
 * A flight recorder: the last blocks of a log in memory, with the state that they need from the
 * dropped ones: processes, threads and descriptors, and the last mark. Tracers use it through
 * log.h.
 */
#ifndef CULPRIT_DIAG_RECORD_RING_H
#define CULPRIT_DIAG_RECORD_RING_H

#include <stddef.h>

#include "diag/record/record.h"

struct log_ring;

/* Keeps the blocks of the last 'keep_ns' up to the newest record, but at most 'most_bytes'. NULL:
 * out of memory. */
struct log_ring *log_ring_new(int64_t keep_ns, size_t most_bytes);
void log_ring_free(struct log_ring *r); /* NULL is fine */

/* Notes a record of the block being filled. 0 or -ENOMEM: then the kept blocks are no complete log
 * any more. */
int log_ring_note(struct log_ring *r, const struct record *rec);

/* Takes that block, now full; copies its payload. 0 or -ENOMEM, as log_ring_note. */
int log_ring_take(struct log_ring *r, const uint8_t *payload, size_t size, uint32_t records);

/* Writes the log again: first the state from the dropped blocks, as records; then the blocks. If a
 * function returns a negative errno, this ends and returns it. */
struct log_ring_sink {
	int (*record)(void *ctx, struct record *rec);
	int (*block)(void *ctx, const uint8_t *payload, size_t size, uint32_t records);
	void *ctx;
};
int log_ring_replay(const struct log_ring *r, const struct log_ring_sink *sink);

/* Lost records, from the LOST records of the kept blocks. */
uint64_t log_ring_lost(const struct log_ring *r);

/* Bytes that it holds now, without the state from dropped blocks. */
size_t log_ring_bytes(const struct log_ring *r);

#endif
