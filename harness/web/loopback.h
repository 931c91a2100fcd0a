/*
 * Pages that a running program serves to a browser on the same machine: HTTP on 127.0.0.1 alone,
 * and nothing without the token that is drawn at random and stands in the address. A request must
 * name the server as the address does, so that no other name which leads here (DNS rebinding) is
 * served. Answers may not be framed, cached or guessed at.
 */
#ifndef CULPRIT_HARNESS_WEB_LOOPBACK_H
#define CULPRIT_HARNESS_WEB_LOOPBACK_H

#include <stdbool.h>
#include <stddef.h>

#include "harness/base/err.h"

struct loopback;
struct loopback_request;

/* The argument of the address, decoded; NULL: it is not there. Valid during the request. */
const char *loopback_argument(const struct loopback_request *r, const char *name);
/* What was sent with POST, with a NUL behind it; "" of a GET. */
const char *loopback_body(const struct loopback_request *r);
/* Has the browser closed the connection since it asked? */
bool loopback_is_gone(const struct loopback_request *r);

struct loopback_answer {
	unsigned code; /* 200 */
	const char *type;
	char *text; /* the function's, malloced; the server frees it. NULL: nothing */
	size_t size;
};

struct loopback_spec {
	unsigned short port; /* 0: any that is free */
	int socket;          /* a socket that listens, taken if all goes well; 0: one on 'port' */
	bool open;           /* whoever can connect is answered, without a token, also to HEAD */
	unsigned connections_max, timeout_s;
	size_t body_max; /* bytes of a POST; 0: only GET is answered */
	bool threads;    /* each connection has its own, so that one may compute for long */
	/* 'path' begins with '/'. '*out' has the code 404 before. */
	void (*answer)(void *ctx, const char *path, const struct loopback_request *r,
		struct loopback_answer *out);
	void *ctx;
};

/* -EADDRINUSE: another program has the port. */
int loopback_open(const struct loopback_spec *spec, struct loopback **out, struct err *e);
/* Waits for the requests that are being answered. NULL is fine. */
void loopback_close(struct loopback *l);

/* "http://127.0.0.1:PORT/?token=..." : whoever knows it can look. Valid until close; NULL of a
 * socket that was given. */
const char *loopback_url(const struct loopback *l);

#endif
