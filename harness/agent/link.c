/* Lines between a program and whoever speaks to the agent (PROTOCOL.md, "link"). */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "harness/agent/child.h"

int link_open(struct handle *h, struct child_spec *s, struct err *e)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return err_errno(e, -errno, "cannot make a socket");
	s->pipe[0] = ends[0];
	s->p.in = ends[1];
	h->linked = true;
	return 0;
}

void link_readable(struct agent *a, struct handle *h)
{
	struct bytes *b = &h->output;
	ssize_t n = bytes_read(b, h->read_fd);
	char *begin = b->data, *newline;

	if (n == -EAGAIN || n == -EINTR)
		return;
	if (n <= 0) {
		handle_close(h);
		return;
	}
	while ((newline = memchr(begin, '\n', b->size - (size_t)(begin - b->data)))) {
		if (newline - begin <= LINK_LINE_MAX)
			agent_event(a,
				json_pack("{s:s, s:s, s:o}", "event", "line", "handle", h->name,
					"line", text_json(begin, (size_t)(newline - begin))));
		begin = newline + 1;
	}
	b->size -= (size_t)(begin - b->data);
	memmove(b->data, begin, b->size);
	/* What is no line of ours ends the link, so that it cannot fill the memory. */
	if (b->size > LINK_LINE_MAX)
		handle_close(h);
}

void link_writable(struct handle *h)
{
	struct bytes *b = &h->told;
	ssize_t n = send(h->read_fd, b->data, b->size, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (n < 0 && errno != EAGAIN && errno != EINTR)
		handle_close(h);
	if (n <= 0)
		return;
	b->size -= (size_t)n;
	memmove(b->data, b->data + n, b->size);
}

int link_tell(struct handle *h, const char *line, struct err *e)
{
	char text[LINK_LINE_MAX + 2];
	size_t n = strlen(line);

	if (!h->linked)
		return err_set(
			e, -EINVAL, "'%s' hears nothing: it was started without link", h->name);
	if (n > LINK_LINE_MAX || strpbrk(line, "\n\r"))
		return err_set(
			e, -EINVAL, "what is told is one line of at most %d bytes", LINK_LINE_MAX);
	if (h->ended || h->read_fd < 0)
		return err_set(e, -ESRCH, "'%s' has ended", h->name);
	memcpy(text, line, n);
	text[n] = '\n';
	/* A program whose thread that reads gets no processor leaves some unread; one that never
	 * reads is lost. */
	if (h->told.size + n + 1 > LINK_TOLD_MAX) {
		handle_close(h);
		return err_set(e, -EPIPE, "'%s' does not read what it is told", h->name);
	}
	if (bytes_add(&h->told, text, n + 1))
		return err_errno(e, -ENOMEM, "cannot tell '%s' anything", h->name);
	link_writable(h);
	return h->read_fd < 0 ? err_set(e, -EPIPE, "'%s' has closed its input", h->name) : 0;
}
