/* GET and POST over HTTP or HTTPS (libcurl). The answer is a stream that is received as it is read,
 * so its size is unlimited and takes no memory. No redirects, no other schemes. */
#ifndef CULPRIT_DIAG_IMPORT_HTTP_H
#define CULPRIT_DIAG_IMPORT_HTTP_H

#include <signal.h>
#include <stdio.h>

#include "harness/base/err.h"

struct http_options {
	const char *base;   /* "https://host:9090/path"; without credentials */
	double timeout_s;   /* of one request with its answer */
	const char *secret; /* USER:PASSWORD, or NULL */
	const char *token_file, *password_file, *ca_file, *cert_file, *key_file; /* may be NULL */
	const volatile sig_atomic_t *stop;                                       /* may be NULL */
};

struct http;

/* Checks the options and reads the files. -EINVAL, or for a file -ENOENT, -EACCES ... */
int http_new(const struct http_options *o, struct http **h, struct err *e);
void http_free(struct http *h);

/* Scheme, host and port: "https://host:9090". */
const char *http_site(const struct http *h);

/* Requests base + path?form ('form' is encoded; long ones are posted). Until http_end, '*answer'
 * gives the body and '*status' its HTTP status. http_end lists the errors. */
int http_begin(struct http *h, const char *path, const char *form, FILE **answer, long *status,
	struct err *e);

/* Posts 'size' bytes to base + path?form; 'body' is borrowed until http_end. Otherwise like
 * http_begin. */
int http_post(struct http *h, const char *path, const char *form, const void *body, size_t size,
	FILE **answer, long *status, struct err *e);

/* Ends the request and closes the answer. 'rc' is the result of reading the answer; if the
 * connection failed, that is the error instead: -ECONNREFUSED, -EHOSTUNREACH, -ETIMEDOUT, -EPROTO,
 * -EINTR. */
int http_end(struct http *h, int rc, struct err *e);

/* "a%20b"; the caller frees. */
char *http_encode(const char *text);

#endif
