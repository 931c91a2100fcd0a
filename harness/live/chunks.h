/*
 * CSV that comes in pieces: each piece is read like a file, behind the file's head (its
 * comments and the line of column names). So a line counts as soon as it is there, whatever the
 * reader buffers.
 *
 * A line that the reader refuses is told and skipped.
 */
#ifndef CULPRIT_HARNESS_LIVE_CHUNKS_H
#define CULPRIT_HARNESS_LIVE_CHUNKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "diag/import/import.h"
#include "harness/base/err.h"

struct chunks {
	const char *source; /* as messages call it */
	const struct import_format *format;
	struct import_options how;
	struct import_sink sink;
	void (*tell)(void *ctx, const char *sentence);
	void *ctx;
	/* Private; zero at first. */
	char *head;
	size_t head_size, head_lines, head_kept; /* head_kept: of the file before */
	bool head_done;
	char *member, *group[IMPORT_GROUPS_MAX]; /* of 'how', as the first piece decided */
	uint64_t line;                           /* lines of this file before the piece */
	uint64_t samples, skipped, told;
};
void chunks_clear(struct chunks *p);

/* Another file begins. It may lack a head: then the last one's continues. */
void chunks_new_file(struct chunks *p);

/* Whole lines. -EINVAL: the head is wrong, or nothing could be read from the first piece; or what
 * the sink returned, if 'sink_failed'. */
int chunks_feed(
	struct chunks *p, const char *text, size_t size, const bool *sink_failed, struct err *e);

#endif
