/*
 * Series from a Prometheus server, or one that speaks its HTTP API (Thanos, Mimir,
 * VictoriaMetrics): range queries over HTTP or HTTPS.
 *
 *     struct prometheus *p;
 *     rc = prometheus_new(&options, &p, &e);
 *     rc = prometheus_query(p, from_s, to_s, &sink, &said, &e);    as often as wanted
 *     prometheus_free(p);
 *
 * A long range is cut into several queries. Answers are read as they come, so that memory depends
 * on the number of series. Waiting is limited by 'timeout_s' a query. Redirects are not followed.
 * Messages never hold the token or the password.
 */
#ifndef CULPRIT_DIAG_IMPORT_PROMETHEUS_H
#define CULPRIT_DIAG_IMPORT_PROMETHEUS_H

#include <signal.h>

#include "diag/import/import.h"

/* Texts are borrowed until prometheus_free; all but 'url' and 'queries' may be NULL or 0. */
struct prometheus_options {
	const char
		*url; /* "https://host:9090" or with a path; http or https; without credentials */
	/* PromQL, or "NAME=PROMQL" to name the metric. A metric's name is NAME, or __name__, or
	 * how.only_metric, or "value". */
	const char *const *queries;
	size_t n_queries;
	double step_s;             /* 0: 15 */
	double timeout_s;          /* of one query with its answer; 0: 30 */
	const char *token_file;    /* a bearer token */
	const char *password_file; /* "USER:PASSWORD", for basic authentication */
	const char *ca_file;       /* who may sign the server's certificate; NULL: the system's */
	const char *cert_file, *key_file; /* the client's certificate, in PEM */
	/* Of this 'member', 'group', 'metrics', 'n_metrics' and 'only_metric' count. Labels that
	 * are not named are guessed, from those that differ between series; it is said. */
	struct import_options how;
	const volatile sig_atomic_t *stop; /* not 0: give up soon, -EINTR */
};

struct prometheus;

/* Checks the options and reads the files; asks nothing of the server. -EINVAL: a sentence says what
 * is wrong (class ERR_USAGE); -ENOENT, -EACCES ... of a file. */
int prometheus_new(const struct prometheus_options *o, struct prometheus **p, struct err *e);
void prometheus_free(struct prometheus *p);

/* Gives the samples at from_s, from_s + step, ... up to to_s (inclusive) to 'sink': in order of
 * time for each series. Series that are known from the last query are not asked of the sink
 * again, so 'sink' must be the same each time. No series at all is no error: said->samples is 0.
 *
 * Errors, each with a sentence that names the URL without its path:
 *   -ECONNREFUSED, -EHOSTUNREACH  no connection, no such host
 *   -ETIMEDOUT                    no answer, or not to its end, in timeout_s
 *   -EACCES                       401 or 403
 *   -EPROTO                       TLS, a redirect, an answer that is not Prometheus's
 *   -EINVAL                       the server refuses the query: its own text is in the sentence;
 *                                 labels do not tell series apart, or do not exist
 *   -EINTR                        *stop
 * or what the sink returned. -ECONNREFUSED, -EHOSTUNREACH, -ETIMEDOUT and -EPROTO are worth another
 * try later. Samples that came before the failure have been given to the sink; '*done_s' (may be
 * NULL; also set on failure) is the last time up to which all of them have. */
int prometheus_query(struct prometheus *p, double from_s, double to_s,
	const struct import_sink *sink, struct import_said *said, double *done_s, struct err *e);

#endif
