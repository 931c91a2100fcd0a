/* Control of a running capture: lines from a descriptor. */
#ifndef CULPRIT_DIAG_CAPTURE_CONTROL_H
#define CULPRIT_DIAG_CAPTURE_CONTROL_H

#include <stdbool.h>
#include <stddef.h>

enum { CONTROL_LINE = 4096 };

struct control {
	int fd; /* 0: none, or it was closed at the other end */
	size_t n;
	bool too_long; /* the line that is coming */
	char text[CONTROL_LINE];
};

/* The next line that has come, without its end; "" if it was too long. NULL: none. Never waits.
 * The text is valid until the next call. */
const char *control_line(struct control *c);

/* Sends a line of two parts back, if the descriptor is a socket; nobody waits for it. */
void control_answer(const struct control *c, const char *first, const char *rest);

#endif
