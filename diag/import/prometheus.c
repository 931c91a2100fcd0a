/* Asks a Prometheus server for a range, in pieces. */
#include "diag/import/prometheus.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diag/import/http.h"
#include "diag/import/prometheus_answer.h"
#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/text.h"

enum {
	POINTS_MAX = 10000, /* of one series in one query; Prometheus refuses more than 11,000 */
	PROBE_POINTS = 60,  /* of the query that examines labels */
	POINTS_ALL = 100000000,
	HTTP_PARTIAL = 206
};

struct query {
	char *metric; /* or NULL */
	const char *promql;
};

struct prometheus {
	struct http *http;
	struct import_options how;
	struct labels *labels;
	struct query *queries;
	size_t n;
	double step_s;
	bool secret;                   /* sends a token or a password */
	const struct query **given_by; /* query that gave each series; used by the probe */
	size_t given_room;
};

/* One query whose answer is being read. */
struct page_request {
	struct prometheus *p;
	const struct query *q;
	const struct import_sink *sink;
	struct import_said *said;
};

/* Splits "NAME=PROMQL": no expression begins with a name and a single equals sign. */
static void split_query(const char *text, struct query *q)
{
	size_t blank = strspn(text, " \t\n"), n = 0;
	const char *name = text + blank, *p;

	while (isalnum((unsigned char)name[n]) || name[n] == '_' || name[n] == ':')
		n++;
	p = name + n + strspn(name + n, " \t\n");
	q->promql = text;
	if (!n || isdigit((unsigned char)*name) || p[0] != '=' || p[1] == '=' || p[1] == '~')
		return;
	q->metric = alloc_format("%.*s", (int)n, name);
	q->promql = p + 1;
}

static int prometheus_check(const struct prometheus_options *o, struct err *e)
{
	if (!o->url || !*o->url || !o->n_queries)
		return err_set(e, -EINVAL, "a URL and a query are needed");
	if (o->step_s < 0 || o->timeout_s < 0 || !isfinite(o->step_s) || !isfinite(o->timeout_s) ||
		(o->step_s > 0 && o->step_s < 0.001))
		return err_set(e, -EINVAL, "the step must be at least 1 ms");
	for (size_t i = 0; i < o->n_queries; i++)
		if (!o->queries[i][strspn(o->queries[i], " \t\n")])
			return err_set(e, -EINVAL, "a query is empty");
	return 0;
}

int prometheus_new(const struct prometheus_options *o, struct prometheus **out, struct err *e)
{
	struct http_options h = {.base = o->url,
		.timeout_s = o->timeout_s > 0 ? o->timeout_s : 30,
		.token_file = o->token_file,
		.password_file = o->password_file,
		.ca_file = o->ca_file,
		.cert_file = o->cert_file,
		.key_file = o->key_file,
		.stop = o->stop};
	struct prometheus *p;
	struct http *http = NULL;
	int rc = prometheus_check(o, e) ?: http_new(&h, &http, e);

	if (rc)
		return err_blame(e, ERR_USAGE, rc);
	p = alloc_zero(1, sizeof(*p));
	p->http = http;
	p->how = o->how;
	p->labels = labels_new(&p->how);
	p->step_s = o->step_s > 0 ? o->step_s : 15;
	p->secret = o->token_file || o->password_file;
	p->n = o->n_queries;
	p->queries = alloc_zero(p->n, sizeof(*p->queries));
	for (size_t i = 0; i < p->n; i++)
		split_query(o->queries[i], &p->queries[i]);
	*out = p;
	return 0;
}

void prometheus_free(struct prometheus *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->n; i++)
		free(p->queries[i].metric);
	free(p->queries);
	free(p->given_by);
	labels_free(p->labels);
	http_free(p->http);
	free(p);
}

/* Reports an HTTP status that is neither 200 nor 206. */
static int refused(const struct prometheus *p, FILE *answer, long status, struct err *e)
{
	const char *site = http_site(p->http);
	char said[700];

	prometheus_answer_error(answer, said, sizeof(said));
	if (status == 401 || status == 403)
		return err_blame(e, ERR_USAGE,
			err_set(e, -EACCES,
				"%s refuses access (HTTP %ld): give a token that it accepts with "
				"--token-file, or --password-file",
				site, status));
	if (status >= 300 && status < 400)
		return err_blame(e, ERR_USAGE,
			err_set(e, -EPROTO,
				"%s answers with a redirect (HTTP %ld), which is not followed: "
				"give the URL of the server itself",
				site, status));
	if (status == 404)
		return err_blame(e, ERR_USAGE,
			err_set(e, -EPROTO,
				"%s has no /api/v1/query_range below the path of the URL (HTTP "
				"404): %s",
				site, said));
	if (status >= 500)
		return err_blame(e, ERR_CLUSTER,
			err_set(e, status == 503 || status == 504 ? -ETIMEDOUT : -EPROTO,
				"%s (HTTP %ld): %s", site, status, said));
	return err_blame(
		e, ERR_USAGE, err_set(e, -EINVAL, "%s (HTTP %ld): %s", site, status, said));
}

static int prometheus_give(void *ctx, uint32_t series, double time_s, double value, struct err *e)
{
	const struct page_request *a = ctx;

	return labels_sample(a->p->labels, series, time_s, value, a->sink, a->said, e);
}

/* Used by the probe: two queries whose results have no name may give the same series. */
static int see(void *ctx, uint32_t series, double time_s, double value, struct err *e)
{
	const struct page_request *a = ctx;
	struct prometheus *p = a->p;

	(void)value;
	labels_seen(p->labels, series, time_s);
	if (series >= p->given_room) {
		size_t room = 2 * (size_t)series + 64;

		p->given_by = alloc_resize(p->given_by, room, sizeof(*p->given_by));
		while (p->given_room < room)
			p->given_by[p->given_room++] = NULL;
	}
	if (p->given_by[series] && p->given_by[series] != a->q)
		return err_blame(e, ERR_USAGE,
			err_set(e, -EINVAL,
				"the queries '%.100s' and '%.100s' give the same series of '%s': "
				"name their results (--query NAME=PROMQL)",
				p->given_by[series]->promql, a->q->promql,
				labels_metric(p->labels, series)));
	p->given_by[series] = a->q;
	return 0;
}

/* One query of at most POINTS_MAX steps. 'sink' NULL: only finds series. */
static int prometheus_ask(struct prometheus *p, const struct query *q, double from_s, double to_s,
	double step_s, const struct import_sink *sink, struct import_said *said, struct err *e)
{
	auto_free char *promql = http_encode(q->promql), *form = NULL;
	struct page_request asked = {p, q, sink, said};
	FILE *answer = NULL;
	long status = 0;
	int rc;

	form = alloc_format("query=%s&start=%.3f&end=%.3f&step=%.3f", promql, from_s, to_s, step_s);
	rc = http_begin(p->http, "/api/v1/query_range", form, &answer, &status, e);
	if (rc)
		return rc;
	if (status == HTTP_PARTIAL)
		import_note_partial(said, "the server gives only a part of its answer (HTTP 206)");
	if (status == 200 || status == HTTP_PARTIAL)
		rc = prometheus_answer_read(answer, http_site(p->http), q->metric, p->labels,
			sink ? prometheus_give : see, &asked, said, e);
	else
		rc = refused(p, answer, status, e);
	return http_end(p->http, rc, e);
}

/* Examines labels before the first samples are passed on. */
static int probe(
	struct prometheus *p, double from_s, double to_s, struct import_said *said, struct err *e)
{
	double step_s = fmax(p->step_s, ceil((to_s - from_s) / PROBE_POINTS));
	int rc = 0;

	for (size_t i = 0; i < p->n && !rc; i++)
		rc = prometheus_ask(p, &p->queries[i], from_s, to_s, step_s, NULL, said, e);
	/* The last samples, to see series that begin late. */
	for (size_t i = 0; i < p->n && !rc && step_s > p->step_s; i++)
		rc = prometheus_ask(p, &p->queries[i], to_s, to_s, p->step_s, NULL, said, e);
	if (!rc)
		rc = err_blame(e, ERR_USAGE, labels_decide(p->labels, said, e));
	return rc;
}

/* A part of the range from all queries. */
static int ask_part(struct prometheus *p, double from_s, size_t points,
	const struct import_sink *sink, struct import_said *said, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; i < p->n && !rc; i++)
		rc = prometheus_ask(p, &p->queries[i], from_s,
			from_s + (double)(points - 1) * p->step_s, p->step_s, sink, said, e);
	return rc;
}

/* The server limits the samples of one query (422) and then gives none; half of the range may
 * work. */
static bool too_much(int rc, const struct err *e)
{
	return rc == -EINVAL && strstr(e->text, "too many samples");
}

static int ask_all(struct prometheus *p, double from_s, size_t points,
	const struct import_sink *sink, struct import_said *said, double *done_s, struct err *e)
{
	size_t part = POINTS_MAX;
	struct err own;

	for (size_t at = 0; at < points;) {
		size_t n = points - at < part ? points - at : part;
		int rc = ask_part(p, from_s + (double)at * p->step_s, n, sink, said, &own);

		if (too_much(rc, &own) && p->n == 1 && n > 1) {
			part = n / 2;
			continue;
		}
		if (rc) {
			if (e)
				*e = own;
			return rc;
		}
		at += n;
		*done_s = from_s + (double)(at - 1) * p->step_s;
	}
	return 0;
}

static void warn_of_plain(const struct prometheus *p, struct import_said *said)
{
	const char *site = http_site(p->http);

	if (p->secret && !strncmp(site, "http://", 7) && strncmp(site + 7, "127.", 4) &&
		strncmp(site + 7, "localhost:", 10) && strncmp(site + 7, "[::1]:", 6))
		import_note(said, "the token or password goes to %s without encryption: use https",
			site);
}

static void say_form(struct prometheus *p, struct import_said *said)
{
	auto_free char *labels = labels_decided(p->labels) ? labels_describe(p->labels) : NULL;

	if (said && !said->form)
		said->form = alloc_format("Prometheus at %s, step %g s: %zu series, %s",
			http_site(p->http), p->step_s, labels_count(p->labels),
			labels ? labels : "none");
}

/* Only series that still have their names can be buckets. */
static int declare_buckets(struct prometheus *p, const struct import_sink *sink, struct err *e)
{
	for (size_t i = 0; i < p->n; i++)
		if (p->queries[i].metric)
			return 0;
	return labels_declare_buckets(p->labels, sink, e);
}

int prometheus_query(struct prometheus *p, double from_s, double to_s,
	const struct import_sink *sink, struct import_said *said, double *done_s, struct err *e)
{
	double points = floor((to_s - from_s) / p->step_s + 1e-6) + 1, done;
	int rc = 0;

	if (!done_s)
		done_s = &done;
	*done_s = from_s - p->step_s;
	if (!isfinite(points) || points < 1 || points > POINTS_ALL)
		return err_set(e, -EINVAL,
			"the range must be from an earlier to a later time, and have at most %d "
			"steps of %g s",
			POINTS_ALL, p->step_s);
	if (!labels_decided(p->labels)) {
		warn_of_plain(p, said);
		rc = probe(p, from_s, to_s, said, e);
		if (!rc)
			rc = declare_buckets(p, sink, e);
	}
	if (rc)
		return rc;
	if (!labels_decided(p->labels)) {
		*done_s = to_s;
		say_form(p, said);
		return 0;
	}
	rc = ask_all(p, from_s, (size_t)points, sink, said, done_s, e);
	if (!rc)
		rc = err_blame(e, ERR_USAGE, labels_finish(p->labels, said, e));
	say_form(p, said);
	return rc;
}
