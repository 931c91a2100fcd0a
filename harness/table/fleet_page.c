/* The HTML report of a fleet: the data of fleet_json, and the curves that the page draws. */
#include "harness/table/fleet.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "harness/base/alloc.h"
#include "harness/base/jget.h"
#include "harness/web/page.h"

enum { TRACES = 30, POINTS = 360, FINDINGS_MAX = 2000, CURVE = 400, RANKS_LEAST = 50 };

/* Four digits suffice for a plot. */
static json_t *rounded(double x)
{
	double unit;

	if (!isfinite(x))
		return json_null();
	if (x == 0)
		return json_integer(0);
	unit = pow(10, floor(log10(fabs(x))) - 3);
	return json_real(round(x / unit) * unit);
}

/* Numbers of the shown entries that accuse this member by this metric. */
static json_t *findings_of(const struct fleet_view *v, const struct fleet_rank *r, size_t shown)
{
	json_t *list = json_array();

	for (size_t i = 0; i < shown; i++) {
		const struct fleet_finding *f = &v->entries[i].f;

		if (fleet_accuses(f) && f->member == r->member)
			json_array_append_new(list, json_integer((json_int_t)i));
	}
	return list;
}

/* The trace of a member or group, with the numbers of its findings. */
static json_t *trace_json(const struct fleet_view *v, const char *what, const char *name,
	const struct fleet_rank *r, json_t *findings, const float *ratio, const float *peak)
{
	const struct fleet_metric *m = &v->whole->metrics[r->metric];
	json_t *values = json_array(), *peaks = json_array();

	for (size_t i = 0; i < POINTS; i++) {
		json_array_append_new(values, rounded((double)ratio[i]));
		json_array_append_new(peaks, rounded((double)peak[i]));
	}
	return json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o}", what, name, "metric",
		m->model->name, "severity", rounded(r->severity), "effect", rounded(r->effect),
		"limit", rounded(m->limit > 1 ? m->limit : 1), "findings", findings, "values",
		values, "peaks", peaks);
}

static void add_trace(json_t *traces, json_t *trace, json_t *findings)
{
	json_t *index;
	size_t k;

	json_array_foreach(jget(trace, "findings"), k, index)
		json_object_set_new(json_array_get(findings, (size_t)json_integer_value(index)),
			"trace", json_integer((json_int_t)json_array_size(traces)));
	json_array_append_new(traces, trace);
}

/* The worst members, then the worst accused groups. A finding gets the number of its trace. The
 * limit line for lasting differences is drawn for members only; groups have none. */
static json_t *traces_json(const struct fleet_view *v, struct fleet *f, json_t *findings)
{
	json_t *list = json_array();
	float ratio[POINTS], peak[POINTS];
	size_t shown = json_array_size(findings), groups = 0;

	for (size_t i = 0; i < v->n_ranking && i < TRACES && v->ranking[i].severity > 0; i++) {
		const struct fleet_rank *r = &v->ranking[i];

		fleet_trace(f, v->whole, r->member, r->metric, POINTS, ratio, peak);
		add_trace(list,
			trace_json(v, "member", v->whole->members[r->member].path, r,
				findings_of(v, r, shown), ratio, peak),
			findings);
	}
	for (size_t i = 0; i < shown && groups < TRACES; i++) {
		const struct fleet_finding *g = &v->entries[i].f;
		const struct fleet_rank r = {g->member, g->metric, g->severity, g->effect};
		json_t *trace;

		if (g->kind != FINDING_GROUP)
			continue;
		fleet_trace_group(f, v->whole, g->member, g->metric, POINTS, ratio, peak);
		trace = trace_json(v, "group", v->whole->groups[g->member].path, &r,
			json_pack("[I]", (json_int_t)i), ratio, peak);
		json_object_del(trace, "limit");
		add_trace(list, trace, findings);
		groups++;
	}
	return list;
}

/* [rank, severity] of all members, or at evenly spaced ranks if there are many. */
static json_t *curve_json(const struct fleet_view *v)
{
	double ratio = pow(fmax(1, (double)v->n_ranking), 1.0 / CURVE);
	json_t *list = json_array();

	for (size_t rank = 1; rank <= v->n_ranking;) {
		size_t next = (size_t)fmax((double)rank + 1, floor((double)rank * ratio));

		json_array_append_new(list,
			json_pack("[I, o]", (json_int_t)rank,
				rounded(v->ranking[rank - 1].severity)));
		/* include the last one */
		rank = rank < v->n_ranking && next > v->n_ranking ? v->n_ranking : next;
	}
	return list;
}

static json_t *index_json(const struct fleet_view *v, struct fleet *f)
{
	struct fleet_view ranked = *v;
	json_t *index, *findings;

	if (ranked.rank < RANKS_LEAST)
		ranked.rank = RANKS_LEAST;
	index = fleet_json(&ranked);
	findings = jget(index, "findings");
	while (json_array_size(findings) > FINDINGS_MAX)
		json_array_remove(findings, json_array_size(findings) - 1);
	json_object_set_new(index, "traces", traces_json(v, f, findings));
	json_object_set_new(index, "curve", curve_json(v));
	json_object_set_new(index, "report",
		json_pack("{s:I, s:s}", "made_s", (json_int_t)time(NULL), "culprit_version",
			CULPRIT_VERSION));
	return index;
}

int fleet_page(const struct fleet_view *v, struct fleet *f, FILE *out, struct err *e)
{
	struct page *p = NULL;
	json_t *index;
	char *title;
	int rc = page_new(&page_of_fleet, &p, e);

	if (rc)
		return rc;
	title = alloc_format("%s - culprit fleet report", v->source);
	index = index_json(v, f);
	rc = page_begin(p, title, index, out, e);
	if (!rc)
		rc = page_end(p, out, e);
	json_decref(index);
	free(title);
	page_free(p);
	return rc;
}
