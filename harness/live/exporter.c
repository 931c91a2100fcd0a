/* Serves metrics to Prometheus on a loopback address. */
#include "harness/live/exporter.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "harness/base/alloc.h"

enum { PAGE_MEMORY = 16 << 10, BACKLOG = 16 };

struct exporter {
	int fd;
	char *address, *path;
	struct stat own; /* of the socket file */
	struct MHD_Daemon *daemon;
	pthread_mutex_t lock;
	char *text;
};

static int parse_unix(const char *path, struct sockaddr_storage *to, socklen_t *size, struct err *e)
{
	struct sockaddr_un *un = (struct sockaddr_un *)(void *)to;

	if (*path != '/')
		return err_set(
			e, -EINVAL, "takes unix:/PATH with an absolute path, not 'unix:%s'", path);
	if (strlen(path) >= sizeof(un->sun_path))
		return err_set(e, -EINVAL, "takes a path of at most %zu bytes for a socket",
			sizeof(un->sun_path) - 1);
	un->sun_family = AF_UNIX;
	memcpy(un->sun_path, path, strlen(path) + 1);
	*size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path) + 1);
	return 0;
}

/* The port behind the last ':', or -1. */
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
			"takes unix:/PATH, 127.0.0.1:PORT or [::1]:PORT, not '%s'", text);
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
		"takes a loopback address (127.0.0.1:PORT, [::1]:PORT) or unix:/PATH, not '%s': "
		"other hosts shall not reach it; put a proxy with authentication in front",
		text);
}

/* Makes room for the socket file: removes one that nobody listens at. */
static int remove_stale(const struct sockaddr_un *un, socklen_t size, struct err *e)
{
	const char *path = un->sun_path;
	struct stat st;
	int fd, rc;

	if (lstat(path, &st) < 0)
		return 0; /* bind says what is wrong */
	if (!S_ISSOCK(st.st_mode))
		return err_set(e, -EEXIST, "'%s' exists and is no socket; it is left alone", path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return err_errno(e, -errno, "cannot make a socket");
	rc = connect(fd, (const struct sockaddr *)un, size) < 0 ? -errno : 0;
	close(fd);
	if (!rc || rc == -EAGAIN || rc == -EPROTOTYPE)
		return err_set(e, -EADDRINUSE, "another process serves '%s'", path);
	if (rc != -ECONNREFUSED)
		return err_errno(e, rc, "cannot tell whether another process serves '%s'", path);
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
	/* So that at no time anyone else can connect. */
	old = umask(0177);
	rc = bind(x->fd, (const struct sockaddr *)to, size) < 0 ? -errno : 0;
	umask(old);
	if (rc)
		return err_errno(e, rc, "cannot make the socket '%s'", un->sun_path);
	x->path = alloc_copy(un->sun_path);
	x->address = alloc_format("unix:%s", un->sun_path);
	if (lstat(x->path, &x->own) < 0)
		return err_errno(e, -errno, "cannot look at '%s'", x->path);
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

static enum MHD_Result answer(struct MHD_Connection *c, unsigned code, const char *type,
	const char *text, enum MHD_ResponseMemoryMode mode)
{
	struct MHD_Response *r = MHD_create_response_from_buffer(
		strlen(text), (void *)(uintptr_t)text, mode);
	enum MHD_Result rc;

	if (!r)
		return MHD_NO;
	MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	MHD_add_response_header(r, "X-Content-Type-Options", "nosniff");
	if (code == MHD_HTTP_METHOD_NOT_ALLOWED)
		MHD_add_response_header(r, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
	rc = MHD_queue_response(c, code, r);
	MHD_destroy_response(r);
	return rc;
}

static enum MHD_Result serve(void *ctx, struct MHD_Connection *c, const char *url,
	const char *method, const char *version, const char *upload, size_t *upload_size,
	void **seen)
{
	static const char plain[] = "text/plain; charset=utf-8";
	struct exporter *x = ctx;
	enum MHD_Result rc;
	static int mark;

	(void)version;
	(void)upload;
	/* The first call comes after the headers; an answer then closes what uploads. */
	if (!*seen) {
		*seen = &mark;
		if (!strcmp(method, "GET") || !strcmp(method, "HEAD"))
			return MHD_YES;
	}
	if (strcmp(method, "GET") && strcmp(method, "HEAD"))
		return answer(c, MHD_HTTP_METHOD_NOT_ALLOWED, plain, "only GET and HEAD\n",
			MHD_RESPMEM_PERSISTENT);
	*upload_size = 0;
	if (!strcmp(url, "/"))
		return answer(c, MHD_HTTP_OK, plain, "culprit watch: see /metrics\n",
			MHD_RESPMEM_PERSISTENT);
	if (strcmp(url, "/metrics"))
		return answer(c, MHD_HTTP_NOT_FOUND, plain, "there is only /metrics\n",
			MHD_RESPMEM_PERSISTENT);
	pthread_mutex_lock(&x->lock);
	rc = answer(c, MHD_HTTP_OK, "text/plain; version=0.0.4; charset=utf-8", x->text,
		MHD_RESPMEM_MUST_COPY);
	pthread_mutex_unlock(&x->lock);
	return rc;
}

static int start(struct exporter *x, struct err *e)
{
	if (listen(x->fd, BACKLOG) < 0)
		return err_errno(e, -errno, "cannot listen on '%s'", x->address);
	x->daemon = MHD_start_daemon(MHD_USE_AUTO | MHD_USE_INTERNAL_POLLING_THREAD, 0, NULL, NULL,
		serve, x, MHD_OPTION_LISTEN_SOCKET, x->fd, MHD_OPTION_CONNECTION_LIMIT,
		(unsigned)EXPORTER_CONNECTIONS_MAX, MHD_OPTION_CONNECTION_TIMEOUT,
		(unsigned)EXPORTER_TIMEOUT_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
		(size_t)PAGE_MEMORY, MHD_OPTION_END);
	if (!x->daemon)
		return err_set(
			e, -EIO, "cannot serve '%s': libmicrohttpd does not start", x->address);
	x->fd = -1; /* the daemon's own now */
	return 0;
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
	rc = rc ?: start(x, e);
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
	if (x->daemon)
		MHD_stop_daemon(x->daemon);
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
