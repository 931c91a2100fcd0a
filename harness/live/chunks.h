/*
 * CSV that arrives in pieces: each piece is read like a file, after the file's head (its comments
 * and the line of column names). So a line counts as soon as it has arrived, whatever the reader
 * buffers.
 *
 * A line that the reader refuses is reported and skipped.
 */
#ifndef CULPRIT_HARNESS_LIVE_CHUNKS_H
#define CULPRIT_HARNESS_LIVE_CHUNKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "diag/import/import.h"
#include "harness/base/err.h"

struct chunks {
	const char *source; /* name in messages */
	const struct import_format *format;
	struct import_options how;
	struct import_sink sink;
	void (*tell)(void *ctx, const char *sentence);
	void *ctx;
	/* Private; initialise with zeros. */
	char *head;
	size_t head_size, head_lines, head_kept; /* head_kept: lines kept from the previous file */
	bool head_done;
	char *member, *group[IMPORT_GROUPS_MAX]; /* of 'how', determined by the first piece */
	uint64_t line;                           /* lines of this file before the piece */
	uint64_t samples, skipped, told;
};
void chunks_clear(struct chunks *p);

/* Starts another file. If it lacks a head, the previous one remains valid. */
void chunks_new_file(struct chunks *p);

/* Reads complete lines. -EINVAL: the head is invalid, or the first piece has no readable line; or
 * the error of the sink, if 'sink_failed'. */
int chunks_feed(
	struct chunks *p, const char *text, size_t size, const bool *sink_failed, struct err *e);

#endif
