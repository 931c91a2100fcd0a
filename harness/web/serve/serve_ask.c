/* Answers a page's requests: panels, the user's queries, events, comparisons. */
#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/jget.h"
#include "harness/web/serve/answer.h"
#include "harness/web/serve/compare.h"
#include "harness/web/serve/serve_impl.h"

/* A query with all settings of the request. */
struct question {
	struct watching watching;
	struct query_param params[6];
	struct query_spec spec;
	double span_s;
};

static struct query_param real_param(const char *name, double v)
{
	return (struct query_param){.name = name, .type = PARAM_REAL, .real = v};
}

static struct query_param whole_param(const char *name, int64_t v)
{
	return (struct query_param){.name = name, .type = v ? PARAM_INT : PARAM_NULL, .number = v};
}

static int64_t serve_ask_cell_of(const struct snapshot *snap, int64_t attempt)
{
	const json_t *row;
	size_t i;

	json_array_foreach(snap->attempts, i, row)
		if (jget_int(row, "attempt") == attempt)
			return jget_int(row, "cell");
	return 0;
}

static int question_new(struct serve *s, const struct page_request *a, const struct snapshot *snap,
	struct question *out, struct err *e)
{
	struct query_spec plain = serve_limits(s, a, &out->watching);
	int64_t from = a->focus.from_ns, to = a->focus.to_ns, slot;
	struct query_extent x;
	int rc;

	if (!a->focus.in_time) {
		rc = serve_extent(s, s->spec.session, snap, a->attempt, &plain, &x, e);
		if (rc)
			return rc;
		from = x.first_ns;
		to = x.last_ns + 1;
	}
	slot = serve_slot(to - from, a->points);
	out->span_s = (double)(to - from) / 1e9;
	out->params[0] = real_param(":slot_s", (double)slot / 1e9);
	out->params[1] = real_param(":from_s", (double)from / 1e9);
	out->params[2] = real_param(":to_s", (double)to / 1e9);
	out->params[3] = whole_param(":attempt", a->attempt);
	out->params[4] = whole_param(":cell", serve_ask_cell_of(snap, a->attempt));
	out->params[5] = (struct query_param){.name = NULL};
	out->spec = plain;
	out->spec.focus = a->focus;
	out->spec.slot_ns = slot;
	out->spec.params = out->params;
	return 0;
}

static json_t *serve_ask(
	struct serve *s, const struct page_request *a, const char *sql, enum view_chart chart)
{
	struct snapshot *snap = page_subject_get(s->spec.session);
	struct query *q = NULL;
	struct question of;
	struct err e;
	json_t *out;
	int rc = question_new(s, a, snap, &of, &e)
		?: page_subject_ask(snap, a->attempt, &of.spec, &q, &e);

	if (rc) {
		out = answer_error(e.text);
	} else {
		out = answer_query(q, sql, chart, of.span_s);
		json_object_set_new(out, "slot", json_real((double)of.spec.slot_ns / 1e9));
		query_free(q);
	}
	page_subject_put(s->spec.session, snap);
	return out;
}

json_t *serve_find_view(
	struct serve *s, const struct page_request *a, char **sql, enum view_chart *chart)
{
	const struct view *v;
	json_t *wrong = NULL;

	pthread_mutex_lock(&s->lock);
	v = views_find(&s->views, loopback_argument(a->request, "view"));
	if (!v)
		wrong = answer_error("no such view");
	else if (v->wrong || !v->sql)
		wrong = answer_error(v->wrong ? v->wrong : "it has no query");
	if (!wrong) {
		*chart = v->chart;
		*sql = alloc_copy(v->sql);
	}
	pthread_mutex_unlock(&s->lock);
	return wrong;
}

json_t *serve_panel(struct serve *s, const struct page_request *a)
{
	auto_free char *sql = NULL;
	enum view_chart chart;
	json_t *wrong = serve_find_view(s, a, &sql, &chart);

	return wrong ? wrong : serve_ask(s, a, sql, chart);
}

json_t *serve_own_query(struct serve *s, const struct page_request *a)
{
	const char *chart = loopback_argument(a->request, "chart");

	for (int i = 0; i < VIEW_CHARTS; i++)
		if (chart && !strcmp(chart, view_charts[i]))
			return serve_ask(s, a, loopback_body(a->request), (enum view_chart)i);
	return answer_error("'chart' must be line, area, bars, heat, dots or table");
}

/* ---- events ---- */

struct source {
	const struct page_request *asked;
	const struct snapshot *snap;
	struct query_spec spec;
	struct query *q;
};

static int source_open(void *ctx, int64_t from_ns, int64_t to_ns, struct query **q, struct err *e)
{
	struct source *s = ctx;
	struct query_spec spec = s->spec;
	int rc;

	spec.focus = s->asked->focus;
	spec.focus.in_time = true;
	spec.focus.from_ns = from_ns;
	spec.focus.to_ns = to_ns;
	rc = page_subject_ask(s->snap, s->asked->attempt, &spec, &s->q, e);
	*q = s->q;
	return rc;
}

static void source_close(void *ctx)
{
	struct source *s = ctx;

	query_free(s->q);
	s->q = NULL;
}

json_t *serve_events(struct serve *s, const struct page_request *a)
{
	struct snapshot *snap = page_subject_get(s->spec.session);
	struct watching w;
	struct source source = {.asked = a, .snap = snap, .spec = serve_limits(s, a, &w)};
	const struct answer_source of = {source_open, source_close, &source};
	struct query_extent x;
	struct err e;
	json_t *out;

	if (serve_extent(s, s->spec.session, snap, a->attempt, &source.spec, &x, &e)) {
		out = answer_error(e.text);
	} else {
		const double span_s = (double)(x.last_ns - x.first_ns) / 1e9;
		const struct answer_events page = {
			.from_ns = a->focus.in_time ? a->focus.from_ns : x.first_ns,
			.to_ns = a->focus.in_time ? a->focus.to_ns : x.last_ns + 1,
			.skip = a->skip,
			.limit = a->limit,
			.per_s = span_s > 0 ? (double)x.records / span_s : 0};

		out = answer_events(&of, &page);
	}
	page_subject_put(s->spec.session, snap);
	return out;
}

/* ---- comparing ---- */

static char *side_name(struct page_subject *of, const struct snapshot *snap, int64_t attempt)
{
	const json_t *row;
	size_t i;

	json_array_foreach(snap->attempts, i, row)
		if (jget_int(row, "attempt") == attempt)
			return alloc_format("%s: cell %lld, %s", page_subject_name(of),
				(long long)jget_int(row, "cell"), jget_text(row, "text"));
	return alloc_copy(page_subject_name(of));
}

/* Both sides use the same filters, except the period. */
json_t *serve_compared(struct serve *s, const struct page_request *a)
{
	struct page_subject *other = s->spec.other ? s->spec.other : s->spec.session;
	struct snapshot *one = page_subject_get(s->spec.session), *two = page_subject_get(other);
	auto_free char *one_name = side_name(s->spec.session, one, a->attempt);
	auto_free char *two_name = side_name(other, two, a->other);
	struct query *p = NULL, *q = NULL;
	struct watching w;
	struct query_spec spec = serve_limits(s, a, &w);
	json_t *out = NULL;
	struct err e;
	int rc;

	spec.focus = a->focus;
	spec.focus.in_time = false;
	rc = page_subject_ask(one, a->attempt, &spec, &p, &e)
		?: page_subject_ask(two, a->other, &spec, &q, &e);
	if (!rc) {
		const struct compare_side x = {one_name, p}, y = {two_name, q};

		rc = compare_sessions(&x, &y, a->per_second, &out, &e);
	}
	query_free(p);
	query_free(q);
	page_subject_put(s->spec.session, one);
	page_subject_put(other, two);
	return rc ? answer_error(e.text) : out;
}
