/*
 * A flight recorder: the last blocks of a log, in memory, and what they need of the ones that were
 * dropped: which processes, threads and descriptors there were, and the last mark. log.h offers it
 * to tracers.
 */
#ifndef CULPRIT_DIAG_RECORD_RING_H
#define CULPRIT_DIAG_RECORD_RING_H

#include <stddef.h>

#include "diag/record/record.h"

struct log_ring;

/* Keeps the blocks of the last 'keep_ns' up to the newest record, but no more than 'most_bytes'.
 * NULL: out of memory. */
struct log_ring *log_ring_new(int64_t keep_ns, size_t most_bytes);
void log_ring_free(struct log_ring *r); /* NULL is fine */

/* Tells of a record of the block that is being filled. 0 or -ENOMEM: then what is kept is no whole
 * log any more. */
int log_ring_note(struct log_ring *r, const struct record *rec);

/* Takes that block, now full; its payload is copied. 0 or -ENOMEM, as log_ring_note. */
int log_ring_take(struct log_ring *r, const uint8_t *payload, size_t size, uint32_t records);

/* How to write it again: what was dropped but still holds, as records; then the blocks. Both
 * functions return 0 or a negative errno, which ends it and is returned. */
struct log_ring_sink {
	int (*record)(void *ctx, struct record *rec);
	int (*block)(void *ctx, const uint8_t *payload, size_t size, uint32_t records);
	void *ctx;
};
int log_ring_replay(const struct log_ring *r, const struct log_ring_sink *sink);

/* Records that were lost, by the LOST records of the blocks that are kept. */
uint64_t log_ring_lost(const struct log_ring *r);

/* Bytes that it holds now, the dropped ones' descriptors not counted. */
size_t log_ring_bytes(const struct log_ring *r);

#endif
