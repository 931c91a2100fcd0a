/* Findings as JSON for programs. The schema is in diag/detectors/README.md; an incompatible
 * change raises FLEET_JSON_VERSION. */
#include "harness/table/fleet.h"

#include <math.h>

#include "harness/base/text.h"

enum { FLEET_JSON_VERSION = 1 };

/* A number; null if it is not finite. */
static json_t *real(double x)
{
	return isfinite(x) ? json_real(x) : json_null();
}

static json_t *text_or_null(const char *text)
{
	return text ? json_string(text) : json_null();
}

static void put_time(const struct fleet_view *v, json_t *to, const char *name, double time_s)
{
	char key[32], text[FLEET_WORD];

	snprintf(key, sizeof(key), "%s_s", name);
	json_object_set_new(to, key, real(time_s));
	if (v->unix_times)
		json_object_set_new(to, name, json_string(fleet_say_iso(time_s, text)));
}

static json_t *metric_json(const struct fleet_view *v, const struct fleet_metric *m)
{
	json_t *o;

	static const char *const worse[] = {[WORSE_GUESS] = "none",
		[WORSE_MORE] = "more",
		[WORSE_LESS] = "less",
		[WORSE_LOAD] = "load",
		[WORSE_NONE] = "none"};
	static const char *const kinds[] = {[KIND_GUESS] = "gauge",
		[KIND_GAUGE] = "gauge",
		[KIND_COUNTER] = "counter",
		[KIND_AMOUNT] = "amount",
		[KIND_BUCKET] = "bucket"};

	o = json_pack("{s:s, s:o, s:o, s:s, s:s, s:b, s:b, s:o, s:o, s:o, s:o, s:I}", "name",
		m->model->name, "unit", text_or_null(m->model->unit), "per",
		text_or_null(m->model->per), "worse", worse[m->model->worse], "kind",
		kinds[m->model->kind], "guessed", m->model->guessed, "judged", m->judged, "step_s",
		real(m->step_s), "median", real(m->median), "dispersion", real(m->dispersion),
		"limit", real(m->limit), "samples", (json_int_t)m->samples);
	if (v->paid)
		json_object_set_new(o, "windows_pay", real(v->paid[m - v->whole->metrics]));
	return o;
}

static json_t *entry_json(const struct fleet_view *v, const struct fleet_entry *e)
{
	const struct fleet_finding *f = &e->f;
	json_t *o = json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:b, s:o, s:o, s:i}", "kind",
		finding_kind_names[f->kind], f->kind == FINDING_GROUP ? "group" : "member",
		fleet_whom(v->whole, f), "metric", v->whole->metrics[f->metric].model->name,
		"severity", real(f->severity), "effect", real(f->effect), "over_s", real(f->over_s),
		"over_share", real(f->over_share), "open", f->open, "share", real(f->share),
		"share_of_all", real(f->share_of_all), "other_metrics", (int)f->others);

	put_time(v, o, "since", f->since_s);
	put_time(v, o, "until", f->until_s);
	if (f->kind == FINDING_CLASS)
		json_object_set_new(o, "members", json_integer(f->count));
	if (f->waits)
		json_object_set_new(o, "waits", json_true());
	if (fleet_partial(v))
		json_object_set_new(o, "partial", json_true());
	if (v->n_windows) {
		json_object_set_new(o, "windows", json_integer(e->windows));
		json_object_set_new(o, "first_window", json_integer((json_int_t)e->first));
		json_object_set_new(o, "last_window", json_integer((json_int_t)e->last));
	}
	return o;
}

static json_t *windows_json(const struct fleet_view *v)
{
	json_t *list = json_array();

	for (size_t i = 0; i < v->n_windows; i++) {
		const struct fleet_window *w = &v->windows[i];
		json_t *o = json_pack(
			"{s:I, s:b}", "findings", (json_int_t)w->findings, "judged", !w->why_not);

		put_time(v, o, "from", w->from_s);
		put_time(v, o, "to", w->to_s);
		if (w->why_not)
			json_object_set_new(o, "reason", json_string(w->why_not));
		json_array_append_new(list, o);
	}
	return list;
}

static json_t *ranking_json(const struct fleet_view *v)
{
	json_t *list = json_array();

	for (size_t i = 0; i < v->n_ranking && i < v->rank; i++) {
		const struct fleet_rank *r = &v->ranking[i];

		json_array_append_new(list,
			json_pack("{s:I, s:s, s:s, s:o, s:o}", "rank", (json_int_t)i + 1, "member",
				v->whole->members[r->member].path, "metric",
				v->whole->metrics[r->metric].model->name, "severity",
				real(r->severity), "effect", real(r->effect)));
	}
	return list;
}

static json_t *texts(char *const *v, size_t n)
{
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(list, json_string(v[i]));
	return list;
}

static json_t *input_json(const struct fleet_view *v)
{
	const struct import_said *said = v->said;
	char source[1024]; /* a file's name may not be UTF-8 */
	json_t *o;

	text_clean(v->source, source, sizeof(source));
	o = json_pack("{s:s}", "source", source);

	if (said)
		json_object_update_new(o,
			json_pack("{s:o, s:I, s:I, s:o, s:o}", "form", text_or_null(said->form),
				"samples", (json_int_t)said->samples, "missing",
				(json_int_t)said->missing, "partial", text_or_null(said->partial),
				"notes", texts(said->notes, said->n_notes)));
	return o;
}

static json_t *summary_json(const struct fleet_view *v)
{
	json_int_t n[FINDING_KINDS] = {0}, judged = 0, left_out = 0;
	json_t *o;

	for (size_t i = 0; i < v->n_entries; i++)
		n[v->entries[i].f.kind]++;
	for (size_t i = 0; i < v->whole->n_members; i++) {
		judged += v->whole->members[i].judged;
		left_out += v->whole->members[i].left_out;
	}
	o = json_pack("{s:I, s:I, s:I, s:I, s:b}", "members", (json_int_t)v->whole->n_members,
		"judged", judged, "left_out", left_out, "findings", (json_int_t)v->n_entries,
		"partial", fleet_partial(v) != NULL);
	for (size_t k = 0; k < FINDING_KINDS; k++)
		json_object_set_new(o, finding_kind_names[k], json_integer(n[k]));
	return o;
}

json_t *fleet_json(const struct fleet_view *v)
{
	json_t *metrics = json_array(), *findings = json_array(), *o;

	for (size_t i = 0; i < v->whole->n_metrics; i++)
		json_array_append_new(metrics, metric_json(v, &v->whole->metrics[i]));
	for (size_t i = 0; i < v->n_entries; i++)
		json_array_append_new(findings, entry_json(v, &v->entries[i]));
	o = json_pack("{s:s, s:i, s:s, s:o, s:{s:f, s:f, s:f, s:f}, s:o, s:o, s:o, s:o}",
		"detector", "fleet", "version", FLEET_JSON_VERSION, "clock",
		v->unix_times ? "unix" : "file", "input", input_json(v), "options", "false_alarms",
		v->options->alarms, "least", v->options->least, "shortest", v->options->shortest,
		"window_s", v->window_s, "summary", summary_json(v), "metrics", metrics, "findings",
		findings, "notes", texts(v->whole->notes, v->whole->n_notes));
	put_time(v, o, "from", v->whole->from_s);
	put_time(v, o, "to", v->whole->to_s);
	if (v->n_windows)
		json_object_set_new(o, "windows", windows_json(v));
	if (v->rank)
		json_object_set_new(o, "ranking", ranking_json(v));
	if (v->score)
		json_object_set_new(
			o, "labels", ranking_score_json(v->score, v->ranked, v->whole->n_members));
	return o;
}
