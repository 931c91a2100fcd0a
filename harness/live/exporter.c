/* Serves metrics to Prometheus on a loopback address. */
#include "harness/live/exporter.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "harness/base/alloc.h"
#include "harness/web/loopback.h"

enum { BACKLOG = 16 };

struct exporter {
	int fd;
	char *address, *path;
	struct stat own; /* identity of our socket file */
	struct loopback *server;
	pthread_mutex_t lock;
	char *text;
};

static int parse_unix(const char *path, struct sockaddr_storage *to, socklen_t *size, struct err *e)
{
	struct sockaddr_un *un = (struct sockaddr_un *)(void *)to;

	if (*path != '/')
		return err_set(
			e, -EINVAL, "needs unix:/PATH with an absolute path, not 'unix:%s'", path);
	if (strlen(path) >= sizeof(un->sun_path))
		return err_set(e, -EINVAL, "needs a socket path of at most %zu bytes",
			sizeof(un->sun_path) - 1);
	un->sun_family = AF_UNIX;
	memcpy(un->sun_path, path, strlen(path) + 1);
	*size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path) + 1);
	return 0;
}

/* The port after the last ':', or -1. */
static long parse_port(const char *text)
{
	char *end;
	long port;

	if (*text < '0' || *text > '9')
		return -1;
	port = strtol(text, &end, 10);
	return *end || port > 65535 ? -1 : port;
}

int exporter_parse(const char *text, struct sockaddr_storage *to, socklen_t *size, struct err *e)
{
	struct sockaddr_in *in = (struct sockaddr_in *)(void *)to;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)(void *)to;
	const char *colon = strrchr(text, ':');
	long port = colon ? parse_port(colon + 1) : -1;
	char host[INET6_ADDRSTRLEN + 2] = "";
	size_t n = colon ? (size_t)(colon - text) : 0;

	memset(to, 0, sizeof(*to));
	if (!strncmp(text, "unix:", 5))
		return parse_unix(text + 5, to, size, e);
	if (port < 0 || !n || n >= sizeof(host))
		return err_set(e, -EINVAL,
			"needs unix:/PATH, 127.0.0.1:PORT or [::1]:PORT, not '%s'", text);
	memcpy(host, text, n);
	if (*host == '[' && host[n - 1] == ']') {
		host[n - 1] = '\0';
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons((uint16_t)port);
		*size = sizeof(*in6);
		if (inet_pton(AF_INET6, host + 1, &in6->sin6_addr) == 1 &&
			IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr))
			return 0;
	} else {
		in->sin_family = AF_INET;
		in->sin_port = htons((uint16_t)port);
		*size = sizeof(*in);
		if (inet_pton(AF_INET, host, &in->sin_addr) == 1 &&
			ntohl(in->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET)
			return 0;
	}
	return err_set(e, -EINVAL,
		"needs a loopback address (127.0.0.1:PORT, [::1]:PORT) or unix:/PATH, not '%s': "
		"for other hosts, use a proxy with authentication",
		text);
}

/* Removes a socket file without a listener, to make room for ours. */
static int remove_stale(const struct sockaddr_un *un, socklen_t size, struct err *e)
{
	const char *path = un->sun_path;
	struct stat st;
	int fd, rc;

	if (lstat(path, &st) < 0)
		return 0; /* bind reports the error */
	if (!S_ISSOCK(st.st_mode))
		return err_set(e, -EEXIST, "'%s' is not a socket: choose another path", path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return err_errno(e, -errno, "cannot make a socket");
	rc = connect(fd, (const struct sockaddr *)un, size) < 0 ? -errno : 0;
	close(fd);
	if (!rc || rc == -EAGAIN || rc == -EPROTOTYPE)
		return err_set(e, -EADDRINUSE, "another process serves '%s'", path);
	if (rc != -ECONNREFUSED)
		return err_errno(e, rc, "cannot check whether another process serves '%s'", path);
	return unlink(path) < 0 ? err_errno(e, -errno, "cannot remove '%s'", path) : 0;
}

static int bind_unix(
	struct exporter *x, const struct sockaddr_storage *to, socklen_t size, struct err *e)
{
	const struct sockaddr_un *un = (const struct sockaddr_un *)(const void *)to;
	int rc = remove_stale(un, size, e);
	mode_t old;

	if (rc)
		return rc;
	/* The umask ensures that nobody else can ever connect. */
	old = umask(0177);
	rc = bind(x->fd, (const struct sockaddr *)to, size) < 0 ? -errno : 0;
	umask(old);
	if (rc)
		return err_errno(e, rc, "cannot make the socket '%s'", un->sun_path);
	x->path = alloc_copy(un->sun_path);
	x->address = alloc_format("unix:%s", un->sun_path);
	if (lstat(x->path, &x->own) < 0)
		return err_errno(e, -errno, "cannot examine '%s'", x->path);
	return 0;
}

static int bind_port(struct exporter *x, const char *address, const struct sockaddr_storage *to,
	socklen_t size, struct err *e)
{
	struct sockaddr_storage got;
	unsigned port;
	int one = 1;

	setsockopt(x->fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(x->fd, (const struct sockaddr *)to, size) < 0 ||
		getsockname(x->fd, (struct sockaddr *)&got, &size) < 0)
		return err_errno(e, -errno, "cannot listen on '%s'", address);
	port = ntohs(got.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)(void *)&got)->sin6_port
					       : ((struct sockaddr_in *)(void *)&got)->sin_port);
	x->address = alloc_format("%.*s:%u", (int)(strrchr(address, ':') - address), address, port);
	return 0;
}

static void exporter_answer(
	void *ctx, const char *path, const struct loopback_request *r, struct loopback_answer *out)
{
	struct exporter *x = ctx;

	(void)r;
	if (!strcmp(path, "/")) {
		out->text = alloc_copy("culprit watch: see /metrics\n");
	} else if (!strcmp(path, "/metrics")) {
		out->type = "text/plain; version=0.0.4; charset=utf-8";
		pthread_mutex_lock(&x->lock);
		out->text = alloc_copy(x->text);
		pthread_mutex_unlock(&x->lock);
	} else {
		return;
	}
	out->code = 200;
	out->size = strlen(out->text);
}

static int exporter_start(struct exporter *x, struct err *e)
{
	const struct loopback_spec spec = {.socket = x->fd,
		.open = true,
		.connections_max = EXPORTER_CONNECTIONS_MAX,
		.timeout_s = EXPORTER_TIMEOUT_S,
		.answer = exporter_answer,
		.ctx = x};
	int rc;

	if (listen(x->fd, BACKLOG) < 0)
		return err_errno(e, -errno, "cannot listen on '%s'", x->address);
	rc = loopback_open(&spec, &x->server, e);
	if (!rc)
		x->fd = -1; /* owned by the server now */
	return rc;
}

int exporter_open(const char *address, struct exporter **out, struct err *e)
{
	struct sockaddr_storage to;
	struct exporter *x;
	socklen_t size;
	int rc = exporter_parse(address, &to, &size, e);

	if (rc)
		return err_blame(e, ERR_USAGE, rc);
	x = alloc_zero(1, sizeof(*x));
	pthread_mutex_init(&x->lock, NULL);
	x->text = alloc_copy("");
	x->fd = socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (x->fd < 0)
		rc = err_errno(e, -errno, "cannot make a socket");
	else if (to.ss_family == AF_UNIX)
		rc = bind_unix(x, &to, size, e);
	else
		rc = bind_port(x, address, &to, size, e);
	rc = rc ?: exporter_start(x, e);
	if (rc) {
		exporter_close(x);
		return err_blame(e, ERR_USAGE, rc);
	}
	*out = x;
	return 0;
}

void exporter_close(struct exporter *x)
{
	struct stat st;

	if (!x)
		return;
	if (x->path && !lstat(x->path, &st) && st.st_ino == x->own.st_ino &&
		st.st_dev == x->own.st_dev)
		unlink(x->path);
	loopback_close(x->server);
	if (x->fd >= 0)
		close(x->fd);
	pthread_mutex_destroy(&x->lock);
	free(x->text);
	free(x->path);
	free(x->address);
	free(x);
}

const char *exporter_address(const struct exporter *x)
{
	return x->address;
}

const char *exporter_path(const struct exporter *x)
{
	return x->path;
}

void exporter_publish(struct exporter *x, char *text)
{
	char *old;

	pthread_mutex_lock(&x->lock);
	old = x->text;
	x->text = text;
	pthread_mutex_unlock(&x->lock);
	free(old);
}
