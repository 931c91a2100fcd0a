/* Reads control lines of a running capture and answers them. */
#include "diag/capture/control.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Reads one byte, if there is one: lines are short and rare. */
static bool control_get(struct control *c, char *byte)
{
	struct pollfd p = {.fd = c->fd, .events = POLLIN};
	ssize_t n;

	if (poll(&p, 1, 0) <= 0)
		return false;
	n = read(c->fd, byte, 1);
	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		c->fd = 0;
	return n == 1;
}

const char *control_line(struct control *c)
{
	char byte;

	while (c->fd > 0 && control_get(c, &byte)) {
		if (byte == '\n') {
			c->text[c->too_long ? 0 : c->n] = '\0';
			c->n = 0;
			c->too_long = false;
			return c->text;
		}
		if (c->n < CONTROL_LINE - 1)
			c->text[c->n++] = byte;
		else
			c->too_long = true;
	}
	return NULL;
}

void control_answer(const struct control *c, const char *first, const char *rest)
{
	char text[CONTROL_LINE + 16];
	int n = snprintf(text, sizeof(text), "%s%s\n", first, rest);

	if (n >= (int)sizeof(text))
		n = (int)sizeof(text) - 1;
	text[n - 1] = '\n';
	if (c->fd > 0)
		send(c->fd, text, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL);
}
