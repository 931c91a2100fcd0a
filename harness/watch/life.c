#include "harness/watch/life.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/watch/life_impl.h"

void life_free(struct life *life)
{
	for (size_t i = 0; i < HORIZONS_MAX; i++)
		free(life->view[i].metric);
	free(life->key);
	free(life->member);
	free(life->group);
	free(life->of_class);
	free(life);
}

void lives_clear(struct lives *l)
{
	for (size_t i = 0; i < l->n; i++)
		life_free(l->v[i]);
	free(l->v);
	*l = (struct lives){0};
}

/* Where 'key' is, or would be. */
static size_t place_of(const struct lives *l, const char *key)
{
	size_t low = 0, high = l->n;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (strcmp(l->v[middle]->key, key) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct life *lives_add(struct lives *l, char *key, bool *fresh)
{
	size_t at = place_of(l, key);

	*fresh = at == l->n || strcmp(l->v[at]->key, key) != 0;
	if (!*fresh) {
		free(key);
		return l->v[at];
	}
	l->v = alloc_resize(l->v, l->n + 1, sizeof(*l->v));
	memmove(&l->v[at + 1], &l->v[at], (l->n++ - at) * sizeof(*l->v));
	l->v[at] = alloc_zero(1, sizeof(**l->v));
	l->v[at]->key = key;
	return l->v[at];
}

static const char *metric_of(const struct fleet_result *r, const struct fleet_finding *f)
{
	return r->metrics[f->metric].model->name;
}

static const char *group_of(const struct fleet_result *r, const struct fleet_member *m)
{
	return m->group < r->n_groups ? r->groups[m->group].path : "";
}

/* Names cannot hold a newline (import_name), so that keys are unique. */
static char *key_of(const struct fleet_result *r, const struct fleet_finding *f)
{
	if (f->kind == FINDING_GROUP)
		return alloc_format("group\n%s", r->groups[f->member].path);
	if (f->kind == FINDING_CLASS)
		return alloc_format("class\n%s", metric_of(r, f));
	return alloc_format("member\n%s", r->members[f->member].path);
}

static void name_life(
	struct life *life, const struct fleet_result *r, const struct fleet_finding *f)
{
	const struct fleet_member *m = &r->members[f->member];
	bool group = f->kind == FINDING_GROUP, class = f->kind == FINDING_CLASS;

	life->member = alloc_copy(group || class ? "" : m->name);
	life->group = alloc_copy(group ? r->groups[f->member].path : class ? "" : group_of(r, m));
	life->of_class = class ? alloc_copy(m->path) : NULL;
}

static void choose_shown(struct life *life)
{
	unsigned best = 0;

	for (unsigned i = 1; i < HORIZONS_MAX; i++)
		if (life->view[i].severity > life->view[best].severity)
			best = i;
	/* When the last view lets go, the end still tells what was shown. */
	if (life->view[best].severity > 0)
		life->shown = best;
}

static void see(struct life_view *view, const struct fleet_result *r, const struct fleet_finding *f,
	double held_until_s)
{
	const char *metric = metric_of(r, f);

	if (!view->metric || strcmp(view->metric, metric)) {
		free(view->metric);
		view->metric = alloc_copy(metric);
	}
	view->held_until_s = held_until_s;
	view->kind = f->kind;
	view->severity = f->severity;
	view->effect = f->effect;
	view->share = f->share;
	view->until_s = f->until_s;
}

/* Is it off now? Between two bursts it is. */
static bool is_current(const struct fleet_finding *f, double hold_s, double now_s)
{
	return f->open || (f->kind == FINDING_BURSTS && now_s - f->until_s <= hold_s);
}

static void take_finding(struct lives *l, const struct horizon *h, size_t i,
	const struct fleet_result *r, const struct fleet_finding *f, double now_s, life_told *told,
	void *ctx)
{
	bool fresh;
	struct life *life = lives_add(l, key_of(r, f), &fresh);

	/* Findings come the most severe first: the first one of a life is shown. */
	if (life->seen)
		return;
	if (fresh) {
		name_life(life, r, f);
		life->began_s = now_s;
		life->since_s = f->since_s;
		l->begun++;
	}
	life->id = f->member;
	life->count = f->count;
	life->seen = true;
	life->absent = false;
	life->since_s = fmin(life->since_s, f->since_s);
	see(&life->view[i], r, f, now_s + h->hold_s);
	choose_shown(life);
	if (fresh)
		told(ctx, LIFE_BEGIN, life, now_s);
}

/* The member of a life; NULL if it is of no member, or of one that is not there. */
static const struct fleet_member *member_of(struct life *life, const struct fleet_result *r)
{
	const char *path = strchr(life->key, '\n') + 1;

	if (strncmp(life->key, "member\n", 7))
		return NULL;
	if (life->id < r->n_members && !strcmp(r->members[life->id].path, path))
		return &r->members[life->id];
	for (uint32_t i = 0; i < r->n_members; i++) {
		if (!strcmp(r->members[i].path, path)) {
			life->id = i;
			return &r->members[i];
		}
	}
	return NULL;
}

static void view_let_go(struct life_view *view)
{
	view->held_until_s = 0;
	view->severity = 0;
}

static void look_at_missed(struct life *life, size_t i, const struct fleet_result *r)
{
	const struct fleet_member *m = member_of(life, r);

	life->absent = !strncmp(life->key, "member\n", 7) && (!m || !m->judged);
	if (m && m->judged && m->severity < LIFE_LETS_GO) {
		/* The last view stays to be told at the end. */
		if (life->shown == i)
			life->view[i].held_until_s = 0;
		else
			view_let_go(&life->view[i]);
	}
}

void lives_look(struct lives *l, const struct horizons *h, size_t i, const struct fleet_result *r,
	double now_s, life_told *told, void *ctx)
{
	for (size_t k = 0; k < r->n_findings; k++)
		if (is_current(&r->findings[k], h->v[i].hold_s, now_s))
			take_finding(l, &h->v[i], i, r, &r->findings[k], now_s, told, ctx);
	for (size_t k = 0; k < l->n; k++) {
		if (!l->v[k]->seen)
			look_at_missed(l->v[k], i, r);
		l->v[k]->seen = false;
	}
}

static bool is_held(struct life *life, double now_s)
{
	bool held = false;

	for (size_t i = 0; i < HORIZONS_MAX; i++)
		held |= life->view[i].held_until_s > now_s;
	/* A view that has been let go is shown no longer while another one holds. */
	for (size_t i = 0; held && i < HORIZONS_MAX; i++)
		if (life->view[i].held_until_s <= now_s)
			view_let_go(&life->view[i]);
	if (held)
		choose_shown(life);
	return held;
}

void lives_end(struct lives *l, double now_s, life_told *told, void *ctx)
{
	size_t kept = 0;

	for (size_t i = 0; i < l->n; i++) {
		struct life *life = l->v[i];

		if (is_held(life, now_s)) {
			l->v[kept++] = life;
			continue;
		}
		l->ended++;
		told(ctx, LIFE_END, life, now_s);
		life_free(life);
	}
	l->n = kept;
}
