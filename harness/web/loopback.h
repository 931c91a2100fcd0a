/*
 * Pages that a running program serves to a browser on the same machine, over HTTP on 127.0.0.1
 * only. Every request needs the random token from the printed address. The Host header must match
 * the address, so that requests under another name for 127.0.0.1 (DNS rebinding) are refused.
 * Answers must not be framed, cached or type-sniffed.
 */
#ifndef CULPRIT_HARNESS_WEB_LOOPBACK_H
#define CULPRIT_HARNESS_WEB_LOOPBACK_H

#include <stdbool.h>
#include <stddef.h>

#include "harness/base/err.h"

struct loopback;
struct loopback_request;

/* An argument of the address, decoded; NULL: missing. Valid during the request. */
const char *loopback_argument(const struct loopback_request *r, const char *name);
/* The body of a POST, NUL-terminated; "" for a GET. */
const char *loopback_body(const struct loopback_request *r);
/* Has the browser closed the connection since the request? */
bool loopback_is_gone(const struct loopback_request *r);

struct loopback_answer {
	unsigned code; /* 200 */
	const char *type;
	char *text; /* malloced by the function, freed by the server. NULL: empty */
	size_t size;
};

struct loopback_spec {
	unsigned short port; /* 0: any free port */
	int socket;          /* a listening socket, taken on success; 0: open one on 'port' */
	bool open;           /* answer without a token, also to HEAD */
	unsigned connections_max, timeout_s;
	size_t body_max; /* maximum bytes of a POST; 0: only GET */
	bool threads;    /* one thread per connection, for long computations */
	/* 'path' begins with '/'. '*out' starts with code 404. */
	void (*answer)(void *ctx, const char *path, const struct loopback_request *r,
		struct loopback_answer *out);
	void *ctx;
};

/* -EADDRINUSE: another program has the port. */
int loopback_open(const struct loopback_spec *spec, struct loopback **out, struct err *e);
/* Waits for requests in progress. NULL is fine. */
void loopback_close(struct loopback *l);

/* "http://127.0.0.1:PORT/?token=...": anybody who knows it has access. Valid until close; NULL
 * for a given socket. */
const char *loopback_url(const struct loopback *l);

#endif
