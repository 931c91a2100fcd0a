/*
 * Series from a Prometheus server, or another server with its HTTP API (Thanos, Mimir,
 * VictoriaMetrics): range queries over HTTP or HTTPS.
 *
 *     struct prometheus *p;
 *     rc = prometheus_new(&options, &p, &e);
 *     rc = prometheus_query(p, from_s, to_s, &sink, &said, &e);    as often as needed
 *     prometheus_free(p);
 *
 * A long range is split into several queries. Answers are read as they arrive, so memory depends
 * only on the number of series. 'timeout_s' limits the wait for each query. Redirects are not
 * followed. Messages never contain the token or the password.
 */
#ifndef CULPRIT_DIAG_IMPORT_PROMETHEUS_H
#define CULPRIT_DIAG_IMPORT_PROMETHEUS_H

#include <signal.h>

#include "diag/import/import.h"

/* Texts are borrowed until prometheus_free; all except 'url' and 'queries' may be NULL or 0. */
struct prometheus_options {
	const char
		*url; /* "https://host:9090" or with a path; http or https; without credentials */
	/* PromQL, or "NAME=PROMQL" to name the metric. Otherwise its name is __name__, or
	 * how.only_metric, or "value". */
	const char *const *queries;
	size_t n_queries;
	double step_s;             /* 0: 15 */
	double timeout_s;          /* of one query with its answer; 0: 30 */
	const char *token_file;    /* a bearer token */
	const char *password_file; /* "USER:PASSWORD", for basic authentication */
	const char *ca_file;       /* signers of the server's certificate; NULL: the system's */
	const char *cert_file, *key_file; /* the client's certificate, in PEM */
	/* Only 'member', 'group', 'metrics', 'n_metrics' and 'only_metric' count. Labels that are
	 * not named are guessed from those that differ between series, with a note. */
	struct import_options how;
	const volatile sig_atomic_t *stop; /* not 0: stop soon, -EINTR */
};

struct prometheus;

/* Checks the options and reads the files; sends nothing to the server. -EINVAL: a sentence names
 * the mistake (class ERR_USAGE); -ENOENT, -EACCES ... of a file. */
int prometheus_new(const struct prometheus_options *o, struct prometheus **p, struct err *e);
void prometheus_free(struct prometheus *p);

/* Gives the samples at from_s, from_s + step, ... up to to_s (inclusive) to 'sink', in order of
 * time for each series. Known series are not requested from the sink again, so 'sink' must be the
 * same each time. An answer without series is no error: said->samples is 0.
 *
 * Errors, each with a sentence that names the URL without its path:
 *   -ECONNREFUSED, -EHOSTUNREACH  no connection, no such host
 *   -ETIMEDOUT                    no complete answer in timeout_s
 *   -EACCES                       401 or 403
 *   -EPROTO                       TLS, a redirect, an answer that is not Prometheus's
 *   -EINVAL                       the server refuses the query, with its own text in the sentence;
 *                                 labels do not distinguish series, or do not exist
 *   -EINTR                        *stop
 * or the sink's error. After -ECONNREFUSED, -EHOSTUNREACH, -ETIMEDOUT and -EPROTO a later retry may
 * succeed. The sink has received the samples before the failure; '*done_s' (may be NULL; also set
 * on failure) is the last time up to which it has received all. */
int prometheus_query(struct prometheus *p, double from_s, double to_s,
	const struct import_sink *sink, struct import_said *said, double *done_s, struct err *e);

#endif
