/* Takes orders for a running capture over a Unix socket. */
#include "harness/live/orders.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/file.h"

enum { CLIENTS = 8 };

static const char name[] = "control";

struct client {
	int fd; /* -1: not connected */
	size_t n;
	char line[ORDER_LINE];
};

struct orders {
	int folder, fd;
	struct client clients[CLIENTS];
};

/* The folder's path may be longer than a socket address holds, so it is used through its
 * descriptor. */
static struct sockaddr_un address_in(int folder)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};

	snprintf(a.sun_path, sizeof(a.sun_path), "/proc/self/fd/%d/%s", folder, name);
	return a;
}

static int open_folder(const char *path, struct err *e)
{
	int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? err_errno(e, -errno, "cannot open the folder '%s'", path) : fd;
}

int orders_open(const char *folder, struct orders **out, struct err *e)
{
	auto_free char *path = alloc_format("%s/%s", folder, name);
	struct orders *o = alloc_zero(1, sizeof(*o));
	struct sockaddr_un at;
	int rc = 0;

	for (int i = 0; i < CLIENTS; i++)
		o->clients[i].fd = -1;
	o->fd = -1;
	o->folder = open_folder(folder, e);
	if (o->folder < 0) {
		rc = o->folder;
		free(o);
		return rc;
	}
	at = address_in(o->folder);
	o->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	/* Nobody can connect before listen, which follows chmod. */
	if (o->fd < 0 || bind(o->fd, (struct sockaddr *)&at, sizeof(at)) < 0)
		rc = err_errno(e, -errno, "cannot make the socket '%s'", path);
	else if (fchmodat(o->folder, name, 0600, 0) < 0 || listen(o->fd, CLIENTS) < 0)
		rc = err_errno(e, -errno, "cannot open the socket '%s'", path);
	if (rc) {
		if (rc == -EADDRINUSE && o->fd >= 0) {
			close(o->fd);
			o->fd = -1; /* the socket belongs to another process: keep it */
		}
		orders_close(o);
		return rc;
	}
	file_give_to_sudo_user(path);
	*out = o;
	return 0;
}

static void orders_drop(struct client *c)
{
	close(c->fd);
	*c = (struct client){.fd = -1};
}

void orders_close(struct orders *o)
{
	if (!o)
		return;
	for (int i = 0; i < CLIENTS; i++)
		if (o->clients[i].fd >= 0)
			orders_drop(&o->clients[i]);
	if (o->fd >= 0) {
		close(o->fd);
		unlinkat(o->folder, name, 0);
	}
	close(o->folder);
	free(o);
}

/* A connection beyond the limit is closed at once. */
static void take_client(struct orders *o)
{
	int fd = accept4(o->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	for (int i = 0; i < CLIENTS && fd >= 0; i++)
		if (o->clients[i].fd < 0) {
			o->clients[i].fd = fd;
			return;
		}
	if (fd >= 0)
		close(fd);
}

static void answer_line(struct client *c, order_fn fn, void *ctx)
{
	char answer[ORDER_ANSWER + 1] = "";
	size_t n;

	fn(ctx, c->line, answer);
	n = strcspn(answer, "\n");
	answer[n++] = '\n';
	/* A client that does not wait loses its answer. */
	send(c->fd, answer, n, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* Executes all complete lines received. A line that is too long ends the connection. */
static void take_lines(struct client *c, order_fn fn, void *ctx)
{
	ssize_t n = recv(c->fd, c->line + c->n, sizeof(c->line) - c->n, MSG_DONTWAIT);
	bool over = n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
	char *end;

	c->n += n > 0 ? (size_t)n : 0;
	while ((end = memchr(c->line, '\n', c->n))) {
		size_t size = (size_t)(end + 1 - c->line);

		*end = '\0';
		answer_line(c, fn, ctx);
		c->n -= size;
		memmove(c->line, c->line + size, c->n);
	}
	if (over || c->n == sizeof(c->line))
		orders_drop(c);
}

void orders_take(struct orders *o, double timeout_s, int wake_fd, order_fn fn, void *ctx)
{
	struct pollfd p[CLIENTS + 2];
	const nfds_t n = CLIENTS + 2;

	for (int i = 0; i < CLIENTS; i++)
		p[i] = (struct pollfd){.fd = o->clients[i].fd, .events = POLLIN};
	p[CLIENTS] = (struct pollfd){.fd = o->fd, .events = POLLIN};
	p[CLIENTS + 1] = (struct pollfd){.fd = wake_fd ? wake_fd : -1, .events = POLLIN};
	if (poll(p, n, (int)(timeout_s * 1e3)) <= 0)
		return;
	for (int i = 0; i < CLIENTS; i++)
		if (p[i].revents)
			take_lines(&o->clients[i], fn, ctx);
	if (p[CLIENTS].revents)
		take_client(o);
}

/* ---- the client's side ---- */

static int dial(const char *folder, double timeout_s, struct err *e)
{
	struct timeval limit = {.tv_sec = (time_t)timeout_s,
		.tv_usec = (suseconds_t)((timeout_s - (double)(time_t)timeout_s) * 1e6)};
	int dir = open_folder(folder, e), fd, rc;
	struct sockaddr_un at;

	if (dir < 0)
		return dir;
	at = address_in(dir);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	rc = fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) < 0 ||
			setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) < 0 ||
			connect(fd, (struct sockaddr *)&at, sizeof(at)) < 0
		? -errno
		: fd;
	close(dir);
	if (rc >= 0)
		return rc;
	if (fd >= 0)
		close(fd);
	if (rc == -ENOENT || rc == -ECONNREFUSED)
		return err_set(e, -ENOENT,
			"no capture runs in the folder '%s': 'culprit trace --inventory' starts "
			"one",
			folder);
	return err_errno(e, rc, "cannot reach the capture of '%s'", folder);
}

static int take_answer(int fd, const char *folder, char answer[ORDER_ANSWER], struct err *e)
{
	size_t n = 0;
	ssize_t got;

	while (n < ORDER_ANSWER - 1) {
		got = recv(fd, answer + n, ORDER_ANSWER - 1 - n, 0);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_set(e, errno == EAGAIN ? -ETIMEDOUT : -errno,
				"the capture of '%s' does not answer", folder);
		if (!got)
			return err_set(e, -ECONNRESET, "the capture of '%s' has ended", folder);
		n += (size_t)got;
		if (answer[n - 1] == '\n')
			break;
	}
	answer[n - 1] = '\0';
	return 0;
}

int order_send(const char *folder, const char *line, double timeout_s, char answer[ORDER_ANSWER],
	struct err *e)
{
	auto_free char *text = alloc_format("%s\n", line);
	const size_t n = strlen(text);
	int fd, rc = 0;

	if (strchr(line, '\n') || n >= ORDER_LINE)
		return err_set(
			e, -EINVAL, "an order is one line of at most %d bytes", ORDER_LINE - 2);
	fd = dial(folder, timeout_s, e);
	if (fd < 0)
		return fd;
	if (send(fd, text, n, MSG_NOSIGNAL) != (ssize_t)n)
		rc = err_errno(
			e, errno ? -errno : -EIO, "cannot reach the capture of '%s'", folder);
	else if (answer)
		rc = take_answer(fd, folder, answer, e);
	close(fd);
	return rc;
}
