/*
 * A growing file, as 'tail -F' follows it, or a stream such as a pipe: lines as they come.
 *
 * A line counts once its newline is there, or once the file has been replaced by another. A file
 * that was renamed away, removed, made shorter or written anew from the start is opened again; what
 * the old one still held is given first. A copy that is truncated and grows beyond its old size
 * between two looks is recognised by its first bytes.
 */
#ifndef CULPRIT_HARNESS_LIVE_FOLLOW_H
#define CULPRIT_HARNESS_LIVE_FOLLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "harness/base/err.h"

struct follow;

/* 'path': a file, or "-" for standard input. -ENOENT ... */
int follow_open(const char *path, struct follow **f, struct err *e);
void follow_close(struct follow *f);

enum follow_state {
	FOLLOW_LINES, /* '*text' holds whole lines */
	FOLLOW_NONE,  /* nothing new, as yet */
	FOLLOW_NEW,   /* another file begins; 'why' says what happened to the last one */
	FOLLOW_ENDED, /* a stream's end */
};
struct follow_piece {
	enum follow_state state;
	const char *text; /* until the next call; without a NUL, ends with a newline */
	size_t size;
	const char *why; /* "was replaced by another file" */
};
/* Never waits. Gives at most 'most' bytes, but one line at least. -EFBIG: a line is longer than
 * FOLLOW_LINE_MAX. */
enum { FOLLOW_LINE_MAX = 64 << 20 };
int follow_next(struct follow *f, size_t most, struct follow_piece *piece, struct err *e);

/* What to poll for input: a stream's descriptor; -1 for a file. */
int follow_fd(const struct follow *f);

#endif
