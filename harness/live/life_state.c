/* Saves and restores open findings. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"
#include "harness/base/jget.h"
#include "harness/live/life_impl.h"

enum { STATE_VERSION = 1 };

/* JSON has no infinity. */
static double finite_of(double v)
{
	return isfinite(v) ? v : isnan(v) ? 0 : copysign(1e300, v);
}

static json_t *view_json(const struct life_view *v)
{
	return v->metric ? json_pack("{s:s, s:s, s:f, s:f, s:f, s:f, s:f}", "kind",
				   finding_kind_names[v->kind], "metric", v->metric, "held_until",
				   finite_of(v->held_until_s), "severity", finite_of(v->severity),
				   "effect", finite_of(v->effect), "share", finite_of(v->share),
				   "until", finite_of(v->until_s))
			 : json_null();
}

static json_t *life_json(const struct life *life)
{
	json_t *views = json_array();

	for (size_t i = 0; i < HORIZONS_MAX; i++)
		json_array_append_new(views, view_json(&life->view[i]));
	return json_pack("{s:s, s:s, s:s, s:s?, s:I, s:f, s:f, s:o}", "key", life->key, "member",
		life->member, "group", life->group, "of_class", life->of_class, "count",
		(json_int_t)life->count, "began", finite_of(life->began_s), "since",
		finite_of(life->since_s), "views", views);
}

json_t *lives_json(const struct lives *l)
{
	json_t *list = json_array();

	for (size_t i = 0; i < l->n; i++)
		json_array_append_new(list, life_json(l->v[i]));
	return json_pack("{s:i, s:o}", "version", STATE_VERSION, "lives", list);
}

static int restore_view(struct life_view *v, const json_t *from)
{
	const char *metric = jget_text(from, "metric"), *kind = jget_text(from, "kind");

	if (!metric || !kind || strlen(metric) > IMPORT_NAME_MAX)
		return from && !json_is_null(from) ? -EINVAL : 0;
	for (v->kind = 0; strcmp(finding_kind_names[v->kind], kind);)
		if (++v->kind == FINDING_KINDS)
			return -EINVAL;
	v->metric = alloc_copy(metric);
	v->held_until_s = jget_real(from, "held_until");
	v->severity = jget_real(from, "severity");
	v->effect = jget_real(from, "effect");
	v->share = jget_real(from, "share");
	v->until_s = jget_real(from, "until");
	return 0;
}

static int restore_life(struct lives *l, const json_t *from)
{
	const char *key = jget_text(from, "key"), *member = jget_text(from, "member"),
		   *group = jget_text(from, "group"), *of_class = jget_text(from, "of_class");
	const json_t *views = jget(from, "views");
	struct life *life;
	int rc = 0;

	if (!key || !strchr(key, '\n') || !member || !group || !json_array_size(views) ||
		lives_find(l, key))
		return -EINVAL;
	life = lives_add(l, alloc_copy(key));
	life->id = UINT32_MAX;
	life->member = alloc_copy(member);
	life->group = alloc_copy(group);
	life->of_class = of_class ? alloc_copy(of_class) : NULL;
	life->count = (uint32_t)jget_int(from, "count");
	life->began_s = jget_real(from, "began");
	life->since_s = jget_real(from, "since");
	for (size_t i = 0; i < HORIZONS_MAX && !rc; i++)
		rc = restore_view(&life->view[i], json_array_get(views, i));
	for (unsigned i = 1; i < HORIZONS_MAX; i++)
		if (life->view[i].severity > life->view[life->shown].severity)
			life->shown = i;
	return rc ? rc : life->view[life->shown].metric ? 0 : -EINVAL;
}

int lives_restore(struct lives *l, const json_t *state, struct err *e)
{
	const json_t *list = jget(state, "lives"), *one;
	size_t i;
	int rc = jget_int(state, "version") == STATE_VERSION && json_is_array(list) ? 0 : -EINVAL;

	json_array_foreach((json_t *)list, i, one) {
		rc = rc ?: restore_life(l, one);
	}
	if (rc) {
		lives_clear(l);
		return err_set(e, rc, "not a state file of this version of 'culprit watch'");
	}
	return 0;
}
