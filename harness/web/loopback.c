/* Serves pages to browsers on this machine only. */
#include "harness/web/loopback.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "harness/base/alloc.h"
#include "harness/base/text.h"

enum { TOKEN_BYTES = 16, HEAD_MAX = 32 << 10 /* limit of a request's address and headers */ };

struct loopback {
	struct loopback_spec spec;
	struct MHD_Daemon *daemon;
	char token[2 * TOKEN_BYTES + 1];
	char host[32], local[32]; /* the accepted values of Host */
	char *url;
};

struct loopback_request {
	struct MHD_Connection *connection;
	char *body;
	size_t size;
	bool too_large;
};

const char *loopback_argument(const struct loopback_request *r, const char *name)
{
	return MHD_lookup_connection_value(r->connection, MHD_GET_ARGUMENT_KIND, name);
}

const char *loopback_body(const struct loopback_request *r)
{
	return r->body ? r->body : "";
}

bool loopback_is_gone(const struct loopback_request *r)
{
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(
		r->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	char byte;

	return info && recv(info->connect_fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

static enum MHD_Result answer(
	struct MHD_Connection *c, unsigned code, const char *type, char *text, size_t size)
{
	struct MHD_Response *r = MHD_create_response_from_buffer(size, text ? text : (char *)"",
		text ? MHD_RESPMEM_MUST_FREE : MHD_RESPMEM_PERSISTENT);
	enum MHD_Result rc;

	if (!r) {
		free(text);
		return MHD_NO;
	}
	MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	MHD_add_response_header(r, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
	MHD_add_response_header(r, "Content-Security-Policy", "frame-ancestors 'none'");
	MHD_add_response_header(r, "X-Content-Type-Options", "nosniff");
	MHD_add_response_header(r, "X-Frame-Options", "DENY");
	MHD_add_response_header(r, "Referrer-Policy", "no-referrer");
	MHD_add_response_header(r, "Cross-Origin-Opener-Policy", "same-origin");
	MHD_add_response_header(r, "Cross-Origin-Resource-Policy", "same-origin");
	rc = MHD_queue_response(c, code, r);
	MHD_destroy_response(r);
	return rc;
}

static enum MHD_Result refuse(struct MHD_Connection *c, unsigned code, const char *why)
{
	return answer(c, code, "text/plain; charset=utf-8", alloc_copy(why), strlen(why));
}

/* Compares in constant time, whether or not the token is right. */
static bool is_token(const struct loopback *l, const char *given)
{
	size_t length = sizeof(l->token) - 1;
	unsigned char differs = 0;

	if (!given || strlen(given) != length)
		return false;
	for (size_t i = 0; i < length; i++)
		differs |= (unsigned char)(given[i] ^ l->token[i]);
	return !differs;
}

static bool is_host(const struct loopback *l, const char *host)
{
	return host && (!strcmp(host, l->host) || !strcmp(host, l->local));
}

static bool may_ask(const struct loopback *l, struct MHD_Connection *c)
{
	if (l->spec.open)
		return true;
	return is_host(l, MHD_lookup_connection_value(c, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST)) &&
		is_token(l, MHD_lookup_connection_value(c, MHD_GET_ARGUMENT_KIND, "token"));
}

static bool may_post(const struct loopback *l, const char *method)
{
	return l->spec.body_max && !strcmp(method, MHD_HTTP_METHOD_POST);
}

/* Appends received data of the body, up to the limit. */
static void loopback_keep(
	const struct loopback *l, struct loopback_request *r, const char *upload, size_t size)
{
	if (size > l->spec.body_max - r->size) {
		r->too_large = true;
		return;
	}
	r->body = alloc_resize(r->body, r->size + size + 1, 1);
	memcpy(r->body + r->size, upload, size);
	r->size += size;
	r->body[r->size] = '\0';
}

static enum MHD_Result serve(void *ctx, struct MHD_Connection *c, const char *url,
	const char *method, const char *version, const char *upload, size_t *upload_size,
	void **state)
{
	struct loopback *l = ctx;
	struct loopback_request *r = *state;
	struct loopback_answer out = {.code = MHD_HTTP_NOT_FOUND};

	(void)version;
	if (!r) {
		r = *state = alloc_zero(1, sizeof(*r));
		r->connection = c;
		return MHD_YES;
	}
	if (*upload_size) {
		if (may_post(l, method) && may_ask(l, c) && !r->too_large)
			loopback_keep(l, r, upload, *upload_size);
		*upload_size = 0;
		return MHD_YES;
	}
	if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && !may_post(l, method) &&
		!(l->spec.open && !strcmp(method, MHD_HTTP_METHOD_HEAD)))
		return refuse(c, MHD_HTTP_METHOD_NOT_ALLOWED, "method not supported\n");
	if (!may_ask(l, c))
		return refuse(c, MHD_HTTP_FORBIDDEN, "use the address that culprit printed\n");
	if (r->too_large)
		return refuse(c, MHD_HTTP_CONTENT_TOO_LARGE, "request too long\n");
	l->spec.answer(l->spec.ctx, url, r, &out);
	if (out.code == MHD_HTTP_NOT_FOUND && !out.text)
		return refuse(c, out.code, "not found\n");
	return answer(
		c, out.code, out.type ? out.type : "text/plain; charset=utf-8", out.text, out.size);
}

static void completed(
	void *ctx, struct MHD_Connection *c, void **state, enum MHD_RequestTerminationCode how)
{
	struct loopback_request *r = *state;

	(void)ctx, (void)c, (void)how;
	if (r)
		free(r->body);
	free(r);
	*state = NULL;
}

static int make_token(struct loopback *l, struct err *e)
{
	unsigned char bytes[TOKEN_BYTES];

	if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
		return err_errno(e, -errno, "cannot make a random token");
	text_hex(bytes, sizeof(bytes), l->token);
	return 0;
}

/* Opens a listening socket. Its port determines the host's name, before the first request. */
static int listen_on(struct loopback *l, int *out, struct err *e)
{
	struct sockaddr_in to = {.sin_family = AF_INET,
		.sin_port = htons(l->spec.port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(to);
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), one = 1;
	int rc;

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) ||
		bind(fd, (struct sockaddr *)&to, sizeof(to)) || listen(fd, SOMAXCONN) ||
		getsockname(fd, (struct sockaddr *)&to, &size)) {
		rc = err_errno(e, -errno, "cannot serve a page on 127.0.0.1:%u", l->spec.port);
		if (fd >= 0)
			close(fd);
		return rc;
	}
	snprintf(l->host, sizeof(l->host), "127.0.0.1:%u", ntohs(to.sin_port));
	snprintf(l->local, sizeof(l->local), "localhost:%u", ntohs(to.sin_port));
	l->url = alloc_format("http://%s/?token=%s", l->host, l->token);
	*out = fd;
	return 0;
}

static int loopback_start(struct loopback *l, struct err *e)
{
	const struct loopback_spec *s = &l->spec;
	const unsigned flags = MHD_USE_INTERNAL_POLLING_THREAD |
		(s->threads ? MHD_USE_THREAD_PER_CONNECTION | MHD_USE_POLL : MHD_USE_AUTO);
	int fd = s->socket, rc = fd ? 0 : listen_on(l, &fd, e);

	if (rc)
		return rc;
	l->daemon = MHD_start_daemon(flags, 0, NULL, NULL, serve, l, MHD_OPTION_LISTEN_SOCKET, fd,
		MHD_OPTION_CONNECTION_LIMIT, s->connections_max, MHD_OPTION_CONNECTION_TIMEOUT,
		s->timeout_s, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HEAD_MAX,
		MHD_OPTION_NOTIFY_COMPLETED, completed, NULL, MHD_OPTION_END);
	if (l->daemon)
		return 0;
	if (!s->socket)
		close(fd);
	return err_set(e, -EIO, "cannot serve: libmicrohttpd does not start");
}

int loopback_open(const struct loopback_spec *spec, struct loopback **out, struct err *e)
{
	struct loopback *l = alloc_zero(1, sizeof(*l));
	int rc;

	l->spec = *spec;
	rc = make_token(l, e);
	if (!rc)
		rc = loopback_start(l, e);
	if (rc)
		loopback_close(l);
	else
		*out = l;
	return rc;
}

void loopback_close(struct loopback *l)
{
	if (!l)
		return;
	if (l->daemon)
		MHD_stop_daemon(l->daemon);
	free(l->url);
	free(l);
}

const char *loopback_url(const struct loopback *l)
{
	return l->url;
}
