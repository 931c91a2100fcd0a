/* Serves the live page over a session, or over two. */
#include "harness/web/serve/serve.h"

#include <errno.h>
#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/clock.h"
#include "harness/base/jget.h"
#include "harness/web/serve/answer.h"
#include "harness/web/serve/serve_impl.h"
#include "harness/web/page.h"

#define LOOK_S 0.05 /* between checks whether the browser still waits */

/* ---- limits ---- */

static bool is_unwanted(void *ctx)
{
	struct watching *w = ctx;
	const double now_s = clock_mono_s();

	if (w->serve->ending)
		return true;
	if (now_s < w->looked_s + LOOK_S)
		return false;
	w->looked_s = now_s;
	return loopback_is_gone(w->request);
}

struct query_spec serve_limits(struct serve *s, const struct page_request *a, struct watching *w)
{
	*w = (struct watching){.serve = s, .request = a->request};
	return (struct query_spec){.no_index = s->spec.no_index,
		.timeout_s = s->spec.timeout_s,
		.unwanted = is_unwanted,
		.ctx = w};
}

int serve_begin(struct serve *s, const struct loopback_request *r, struct err *e)
{
	const double until_s = clock_mono_s() + s->spec.timeout_s;
	struct watching w = {.serve = s, .request = r};
	struct timespec soon;
	int rc = 0;

	pthread_mutex_lock(&s->lock);
	while (!rc && !s->queries) {
		clock_gettime(CLOCK_REALTIME, &soon);
		soon.tv_nsec += 100000000;
		soon.tv_sec += soon.tv_nsec / 1000000000;
		soon.tv_nsec %= 1000000000;
		pthread_cond_timedwait(&s->free, &s->lock, &soon);
		if (is_unwanted(&w))
			rc = err_set(e, -EINTR, "the browser no longer waits for the answer");
		else if (clock_mono_s() > until_s)
			rc = err_set(e, -EBUSY, "other queries are running; try again");
	}
	s->queries -= !rc;
	pthread_mutex_unlock(&s->lock);
	return rc;
}

static void serve_end(struct serve *s)
{
	pthread_mutex_lock(&s->lock);
	s->queries++;
	pthread_cond_signal(&s->free);
	pthread_mutex_unlock(&s->lock);
}

/* ---- extents ---- */

static bool known_extent(struct serve *s, const struct page_subject *of, uint64_t generation,
	int64_t attempt, struct query_extent *out)
{
	bool found = false;

	pthread_mutex_lock(&s->lock);
	for (size_t i = 0; i < SERVE_EXTENTS; i++)
		if (s->extents[i].of == of && s->extents[i].generation == generation &&
			s->extents[i].attempt == attempt) {
			*out = s->extents[i].extent;
			found = true;
		}
	pthread_mutex_unlock(&s->lock);
	return found;
}

int serve_extent(struct serve *s, const struct page_subject *of, const struct snapshot *snap,
	int64_t attempt, const struct query_spec *spec, struct query_extent *out, struct err *e)
{
	struct query *q = NULL;
	size_t i;
	int rc;

	if (known_extent(s, of, snap->generation, attempt, out))
		return 0;
	rc = page_subject_ask(snap, attempt, spec, &q, e);
	if (rc)
		return rc;
	rc = query_extent(q, out, e);
	query_free(q);
	if (rc)
		return rc;
	pthread_mutex_lock(&s->lock);
	i = s->n_extents++ % SERVE_EXTENTS;
	s->extents[i].of = of;
	s->extents[i].generation = snap->generation;
	s->extents[i].attempt = attempt;
	s->extents[i].extent = *out;
	pthread_mutex_unlock(&s->lock);
	return 0;
}

/* ---- the server ---- */

static void serve_give(struct loopback_answer *out, const char *type, char *text, size_t size)
{
	out->code = MHD_HTTP_OK;
	out->type = type;
	out->text = text;
	out->size = size;
}

static void give_json(struct loopback_answer *out, json_t *v)
{
	char *text = json_dumps(v, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(12));

	json_decref(v);
	if (!text)
		text = alloc_copy("{\"error\":\"the answer is not JSON\"}");
	serve_give(out, "application/json", text, strlen(text));
}

static const struct route {
	const char *path;
	json_t *(*answer)(struct serve *s, const struct page_request *a);
	bool kept; /* the answer can be cached until there is more data */
} routes[] = {
	{"/state", serve_state},
	{"/panel", serve_panel, true},
	{"/query", serve_own_query, true},
	{"/events", serve_events, true},
	{"/compare", serve_compared, true},
};

static uint64_t generation_of(struct page_subject *of)
{
	struct snapshot *snap = of ? page_subject_get(of) : NULL;
	const uint64_t generation = snap ? snap->generation : 0;

	if (snap)
		page_subject_put(of, snap);
	return generation;
}

/* The cache key: everything that the answer depends on. Strings come last, each after its
 * length. */
static char *serve_key_of(struct serve *s, const struct route *route, const struct page_request *a)
{
	const struct query_focus *f = &a->focus;
	const char *chart = loopback_argument(a->request, "chart");
	const char *texts[] = {NULL, route->path, f->node, f->call, f->class, f->thread, f->path,
		chart, loopback_body(a->request)};
	auto_free char *sql = NULL;
	enum view_chart of_view = VIEW_CHARTS;
	char *key;
	size_t size;
	FILE *out;

	if (route->answer == serve_panel)
		json_decref(serve_find_view(s, a, &sql, &of_view));
	texts[0] = sql;
	out = alloc_text(&key, &size);
	fprintf(out, "%llu %llu %lld %lld %lld %lld %d %u %d %llu %llu %llu %d %d",
		(unsigned long long)generation_of(s->spec.session),
		(unsigned long long)generation_of(s->spec.other), (long long)a->attempt,
		(long long)a->other, (long long)f->from_ns, (long long)f->to_ns, f->in_time, f->id,
		f->failed, (unsigned long long)a->skip, (unsigned long long)a->limit,
		(unsigned long long)a->points, a->per_second, (int)of_view);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		fprintf(out, " %zu:%s", texts[i] ? strlen(texts[i]) : 0, texts[i] ? texts[i] : "-");
	fclose(out);
	return key;
}

static void answer_route(struct serve *s, const struct route *route, const struct page_request *a,
	struct loopback_answer *out)
{
	auto_free char *key = route->kept ? serve_key_of(s, route, a) : NULL;
	char *text;
	size_t size;
	struct err e;

	if (key && (text = answer_cache_get(s->kept, key, &size))) {
		serve_give(out, "application/json", text, size);
	} else if (serve_begin(s, a->request, &e)) {
		give_json(out, answer_error(e.text));
		out->code = MHD_HTTP_SERVICE_UNAVAILABLE;
	} else {
		json_t *v = route->answer(s, a);
		const bool keep = key && !jget(v, "error");

		serve_end(s);
		give_json(out, v);
		if (keep)
			answer_cache_put(s->kept, key, out->text, out->size);
	}
}

/* Plain text if there is no page: it has a separate window. */
static void answer_timeline(
	struct serve *s, const struct page_request *a, struct loopback_answer *out)
{
	char *page = NULL;
	size_t size = 0;
	struct err e;
	int rc = serve_begin(s, a->request, &e);

	if (rc) {
		out->code = MHD_HTTP_SERVICE_UNAVAILABLE;
	} else {
		rc = serve_timeline(s, a, &page, &size, &e);
		serve_end(s);
	}
	if (!rc) {
		serve_give(out, "text/html; charset=utf-8", page, size);
	} else {
		const unsigned code = out->code;

		page = alloc_format("culprit serve: %s\n", e.text);
		serve_give(out, "text/plain; charset=utf-8", page, strlen(page));
		out->code = code;
	}
}

static void serve_answer(
	void *ctx, const char *path, const struct loopback_request *r, struct loopback_answer *out)
{
	struct serve *s = ctx;
	struct page_request a;
	struct err e;
	size_t i = 0;

	if (!strcmp(path, "/")) {
		char *copy = alloc_zero(s->page_size, 1);

		memcpy(copy, s->page, s->page_size);
		serve_give(out, "text/html; charset=utf-8", copy, s->page_size);
		return;
	}
	while (i < sizeof(routes) / sizeof(routes[0]) && strcmp(path, routes[i].path) != 0)
		i++;
	if (i == sizeof(routes) / sizeof(routes[0]) && strcmp(path, "/timeline") != 0)
		return;
	if (page_request_read(r, &a, &e)) {
		give_json(out, answer_error(e.text));
		out->code = MHD_HTTP_BAD_REQUEST;
	} else if (i == sizeof(routes) / sizeof(routes[0])) {
		answer_timeline(s, &a, out);
	} else {
		answer_route(s, &routes[i], &a, out);
	}
}

static int make_page(struct serve *s, struct err *e)
{
	FILE *f = alloc_text(&s->page, &s->page_size);
	auto_json json_t *index = json_pack("{s:i}", "version", 1);
	auto_free char *title = alloc_format(
		"%s - culprit serve", page_subject_name(s->spec.session));
	struct page *p = NULL;
	int rc = page_new(&page_of_serve, &p, e);

	rc = rc ?: page_begin(p, title, index, f, e);
	rc = rc ?: page_end(p, f, e);
	page_free(p);
	fclose(f);
	return rc;
}

int serve_open(const struct serve_spec *spec, struct serve **out, struct err *e)
{
	struct serve *s = alloc_zero(1, sizeof(*s));
	const long processors = sysconf(_SC_NPROCESSORS_ONLN);
	const struct loopback_spec how = {.port = spec->port,
		.connections_max = SERVE_CONNECTIONS,
		.timeout_s = (unsigned)(2 * spec->timeout_s) + 30,
		.body_max = SERVE_SQL_MAX,
		.threads = true,
		.answer = serve_answer,
		.ctx = s};
	int rc;

	s->spec = *spec;
	s->queries = processors > 2 ? (int)processors : 2;
	s->kept = answer_cache_new(SERVE_KEPT_BYTES);
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->free, NULL);
	rc = make_page(s, e) ?: views_read(spec->views, &s->views, e);
	rc = rc ?: loopback_open(&how, &s->server, e);
	if (rc)
		serve_close(s);
	else
		*out = s;
	return rc;
}

void serve_close(struct serve *s)
{
	if (!s)
		return;
	s->ending = true;
	loopback_close(s->server);
	pthread_cond_destroy(&s->free);
	pthread_mutex_destroy(&s->lock);
	views_clear(&s->views);
	answer_cache_free(s->kept);
	free(s->page);
	free(s);
}

const char *serve_url(const struct serve *s)
{
	return loopback_url(s->server);
}
