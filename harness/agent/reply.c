/* The session's output: answers, refusals and events, one JSON object a line. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "harness/agent/agent.h"
#include "harness/base/auto.h"

#define OUT_MAX (16u << 20)
#define READ_SIZE 65536

/* Makes room for 'more' bytes after the 'size' that are there. -ENOMEM. */
static int bytes_reserve(struct bytes *b, size_t more)
{
	size_t room = (b->size + more) * 2;
	char *data;

	if (b->room - b->size >= more)
		return 0;
	data = realloc(b->data, room);
	if (!data)
		return -ENOMEM;
	b->data = data;
	b->room = room;
	return 0;
}

int bytes_add(struct bytes *b, const char *data, size_t size)
{
	int rc = bytes_reserve(b, size);

	if (rc)
		return rc;
	memcpy(b->data + b->size, data, size);
	b->size += size;
	return 0;
}

ssize_t bytes_read(struct bytes *b, int fd)
{
	ssize_t n = bytes_reserve(b, READ_SIZE);

	if (n)
		return n;
	n = read(fd, b->data + b->size, READ_SIZE);
	if (n < 0)
		return -errno;
	b->size += (size_t)n;
	return n;
}

void agent_event(struct agent *a, json_t *message)
{
	auto_free char *text = json_dumps(message, JSON_COMPACT);
	size_t n = text ? strlen(text) : 0;

	json_decref(message);
	if (a->out.size + n + 1 > OUT_MAX) {
		agent_end(a, 2, "answers are not being read");
	} else if (text) {
		text[n] = '\n';
		if (bytes_add(&a->out, text, n + 1))
			agent_end(a, 3, "out of memory");
	}
}

void agent_answer(struct agent *a, json_t *id, json_t *result)
{
	struct err e;

	if (result)
		agent_event(a, json_pack("{s:O, s:o}", "id", id, "result", result));
	else
		agent_refuse(a, id, err_set(&e, -ENOMEM, "out of memory"), &e);
}

void agent_refuse(struct agent *a, json_t *id, int code, const struct err *e)
{
	agent_event(a,
		json_pack("{s:o, s:o, s:i}", "id", id ? json_incref(id) : json_null(), "error",
			text_json(e->text, strlen(e->text)), "code", code));
}

void agent_end(struct agent *a, int exit_code, const char *why)
{
	if (a->end)
		return;
	a->end = why;
	a->exit_code = exit_code;
}

/* A pipe that is writable takes PIPE_BUF bytes, and a socket can be told not to wait. O_NONBLOCK
 * would also apply to a terminal that we share. */
void agent_write(struct agent *a)
{
	struct bytes *out = &a->out;
	ssize_t n = send(1, out->data, out->size, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (n < 0 && errno == ENOTSOCK) {
		struct pollfd p = {.fd = 1, .events = POLLOUT};

		n = poll(&p, 1, 0) == 1 ? write(1, out->data, out->size < 4096 ? out->size : 4096)
					: 0;
	}
	if (n < 0 && errno != EAGAIN && errno != EINTR) {
		out->size = 0;
		agent_end(a, 0, "end of output");
	}
	if (n > 0) {
		out->size -= (size_t)n;
		memmove(out->data, out->data + n, out->size);
	}
}

char *agent_path(const struct agent *a, const char *path)
{
	char *text;

	if (*path == '/')
		return strdup(path);
	return asprintf(&text, "%s/%s", a->dir, path) < 0 ? NULL : text;
}

/* Length of the valid UTF-8 sequence at 'p', or 0; jansson knows which are. */
static size_t sequence(const char *p, size_t left)
{
	for (size_t n = 1; *p && n <= 4 && n <= left; n++) {
		json_t *valid = json_stringn(p, n);

		json_decref(valid);
		if (valid)
			return n;
	}
	return 0;
}

json_t *text_json(const char *text, size_t size)
{
	json_t *value = memchr(text, '\0', size) ? NULL : json_stringn(text, size);
	auto_free char *copy = value ? NULL : malloc(size + 1);

	if (!copy)
		return value;
	memcpy(copy, text, size);
	for (size_t i = 0, n; i < size; i += n ? n : 1) {
		n = sequence(copy + i, size - i);
		if (!n)
			copy[i] = '?';
	}
	return json_stringn(copy, size);
}
