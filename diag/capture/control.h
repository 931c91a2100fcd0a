/* Control of a running capture by lines from a descriptor. */
#ifndef CULPRIT_DIAG_CAPTURE_CONTROL_H
#define CULPRIT_DIAG_CAPTURE_CONTROL_H

#include <stdbool.h>
#include <stddef.h>

enum { CONTROL_LINE = 4096 };

struct control {
	int fd; /* 0: none, or closed at the other end */
	size_t n;
	bool too_long; /* of the current line */
	char text[CONTROL_LINE];
};

/* The next complete line, without its end; "" if it was too long. NULL: none yet. Never waits. The
 * text is valid until the next call. */
const char *control_line(struct control *c);

/* Sends back a line in two parts if the descriptor is a socket; does not wait. */
void control_answer(const struct control *c, const char *first, const char *rest);

#endif
