/*
 * Follows a growing file like 'tail -F', or a stream such as a pipe, line by line.
 *
 * A line counts once its newline has arrived, or once the file has been replaced. A file that was
 * renamed, removed, truncated or rewritten from the start is reopened, after the rest of the old
 * file has been returned. A file that was truncated and grew beyond its old size between two
 * checks is recognised by its first bytes.
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
	FOLLOW_LINES, /* '*text' holds complete lines */
	FOLLOW_NONE,  /* nothing new, as yet */
	FOLLOW_NEW,   /* a new file begins; 'why' says what happened to the previous one */
	FOLLOW_ENDED, /* the end of a stream */
};
struct follow_piece {
	enum follow_state state;
	const char *text; /* valid until the next call; ends with a newline, not with a NUL */
	size_t size;
	const char *why; /* "was replaced by another file" */
};
/* Never waits. Returns at most 'most' bytes, but at least one line. -EFBIG: a line is longer than
 * FOLLOW_LINE_MAX. */
enum { FOLLOW_LINE_MAX = 64 << 20 };
int follow_next(struct follow *f, size_t most, struct follow_piece *piece, struct err *e);

/* The descriptor to poll for input: a stream's; -1 for a file. */
int follow_fd(const struct follow *f);

#endif
