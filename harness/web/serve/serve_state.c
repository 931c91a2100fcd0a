/* The page's initial state, which it also polls. */
#include <string.h>

#include "harness/base/jget.h"
#include "harness/web/serve/answer.h"
#include "harness/web/serve/serve_impl.h"

static json_t *view_json(const struct view *v)
{
	return json_pack("{s:o, s:o, s:s, s:o, s:o, s:b, s:b, s:o, s:o}", "name",
		answer_text(v->name), "title", answer_text(v->title), "chart",
		view_charts[v->chart], "unit", v->unit ? answer_text(v->unit) : json_null(),
		"about", v->about ? answer_text(v->about) : json_null(), "log", v->logarithmic,
		"own", v->own, "sql", v->sql ? json_string(v->sql) ?: json_null() : json_null(),
		"wrong", v->wrong ? answer_text(v->wrong) : json_null());
}

/* Rereads the views, so that the user can edit them and reload the page. */
static void read_views(struct serve *s, const struct snapshot *snap, const struct query_spec *spec)
{
	struct query_spec with = *spec;
	struct views views;
	struct query *q = NULL;

	with.params = view_params;
	if (views_read(s->spec.views, &views, NULL))
		return;
	if (!page_subject_ask(snap, 0, &with, &q, NULL)) {
		for (size_t i = 0; i < views.n; i++)
			if (!views.v[i].of_runs || page_subject_is_run(s->spec.session))
				view_check(&views.v[i], q);
		query_free(q);
	}
	pthread_mutex_lock(&s->lock);
	views_clear(&s->views);
	s->views = views;
	pthread_mutex_unlock(&s->lock);
}

static json_t *views_json(struct serve *s)
{
	const bool run = page_subject_is_run(s->spec.session);
	json_t *all = json_array();

	pthread_mutex_lock(&s->lock);
	for (size_t i = 0; i < s->views.n; i++)
		if (run || !s->views.v[i].of_runs)
			json_array_append_new(all, view_json(&s->views.v[i]));
	pthread_mutex_unlock(&s->lock);
	return all;
}

static json_t *extent_json(const struct query_extent *x)
{
	return json_pack("{s:I, s:I, s:I}", "from", (json_int_t)x->first_ns, "to",
		(json_int_t)x->last_ns, "records", (json_int_t)x->records);
}

static bool serve_state_is_among(const json_t *all, const json_t *one)
{
	const json_t *v;
	size_t i;

	json_array_foreach(all, i, v)
		if (json_equal(v, one))
			return true;
	return false;
}

static json_t *nodes_json(const struct snapshot *snap, int64_t attempt)
{
	json_t *all = json_array(), *one;

	for (size_t i = 0; i < snap->n_logs; i++) {
		const struct query_log *log = &snap->logs[i];

		if (!log->node || (attempt && log->attempt != attempt))
			continue;
		one = answer_text(log->node);
		if (!serve_state_is_among(all, one))
			json_array_append(all, one);
		json_decref(one);
	}
	return all;
}

static json_t *other_json(struct serve *s)
{
	struct snapshot *snap;
	json_t *out;

	if (!s->spec.other)
		return json_null();
	snap = page_subject_get(s->spec.other);
	out = json_pack("{s:o, s:O, s:I}", "name", answer_text(page_subject_name(s->spec.other)),
		"attempts", snap->attempts, "attempt",
		(json_int_t)page_subject_first_choice(s->spec.other, snap));
	page_subject_put(s->spec.other, snap);
	return out;
}

json_t *serve_state(struct serve *s, const struct page_request *a)
{
	struct snapshot *snap = page_subject_get(s->spec.session);
	const int64_t attempt = a->attempt ?: page_subject_first_choice(s->spec.session, snap);
	struct watching w;
	const struct query_spec spec = serve_limits(s, a, &w);
	struct query_extent x;
	struct err e;
	json_t *out;

	if (loopback_argument(a->request, "views"))
		read_views(s, snap, &spec);
	if (serve_extent(s, s->spec.session, snap, attempt, &spec, &x, &e))
		out = answer_error(e.text);
	else
		out = json_pack("{s:o, s:b, s:b, s:I, s:O, s:O, s:I, s:o, s:o, s:o, s:o}", "title",
			answer_text(page_subject_name(s->spec.session)), "run",
			page_subject_is_run(s->spec.session), "goes_on",
			page_subject_goes_on(s->spec.session), "generation",
			(json_int_t)snap->generation, "attempts", snap->attempts, "beside",
			snap->beside, "attempt", (json_int_t)attempt, "extent", extent_json(&x),
			"nodes", nodes_json(snap, attempt), "other", other_json(s), "views",
			views_json(s));
	page_subject_put(s->spec.session, snap);
	return out;
}
