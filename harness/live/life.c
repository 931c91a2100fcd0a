/* Begins and ends findings as members come and go. */
#include "harness/live/life.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/live/life_impl.h"

/* A horizon holds a finding for this part of its judged length, and releases it after this many
 * low severities: limits are relearnt at every look, so a single look is weak evidence. */
enum { HOLD_PART = 4, LOW_LOOKS = 2 };

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

/* The position of 'key', or where to insert it. */
static size_t life_place_of(const struct lives *l, const char *key)
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

struct life *lives_find(const struct lives *l, const char *key)
{
	size_t at = life_place_of(l, key);

	return at < l->n && !strcmp(l->v[at]->key, key) ? l->v[at] : NULL;
}

struct life *lives_add(struct lives *l, char *key)
{
	size_t at = life_place_of(l, key);

	l->v = alloc_room(l->v, l->n, sizeof(*l->v));
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

/* Names cannot contain a newline (import_name), so keys are unique. */
static char *life_key_of(const struct fleet_result *r, const struct fleet_finding *f)
{
	if (f->kind == FINDING_GROUP)
		return alloc_format("group\n%s", r->groups[f->member].path);
	if (f->kind == FINDING_CLASS)
		return alloc_format("class\n%s", metric_of(r, f));
	return alloc_format("member\n%s", r->members[f->member].path);
}

static void choose_shown(struct life *life)
{
	unsigned best = 0;

	for (unsigned i = 1; i < HORIZONS_MAX; i++)
		if (life->view[i].severity > life->view[best].severity)
			best = i;
	/* When the last view releases the finding, its end line still shows that view. */
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
	view->low = 0;
	view->kind = f->kind;
	view->severity = f->severity;
	view->effect = f->effect;
	view->share = f->share;
	view->until_s = f->until_s;
}

enum now_is { NOW_OFF, NOW_UNCLEAR, NOW_OVER };

/* Is the member off now? Between two bursts it counts as off. A shift has ended if its last time
 * off is before the newest sixteenth. 'length_s': judged length. */
static enum now_is now_of(const struct fleet_finding *f, double length_s, double now_s)
{
	double ago_s = now_s - f->until_s;

	if (f->open || (f->kind == FINDING_BURSTS && ago_s <= length_s / HOLD_PART))
		return NOW_OFF;
	return f->kind == FINDING_BURSTS || ago_s <= length_s / HORIZON_LOOKS ? NOW_UNCLEAR
									      : NOW_OVER;
}

/* One look: the receiver of events, and the source. */
struct look {
	struct lives *lives;
	size_t horizon;
	const struct fleet_result *r;
	double length_s, now_s; /* length: judged period */
	life_told *told;
	void *ctx;
};

static void name_life(
	struct life *life, const struct fleet_result *r, const struct fleet_finding *f)
{
	const struct fleet_member *m = &r->members[f->member];
	bool group = f->kind == FINDING_GROUP, class = f->kind == FINDING_CLASS;

	life->member = alloc_copy(group || class ? "" : m->name);
	life->group = alloc_copy(group ? r->groups[f->member].path : class ? "" : group_of(r, m));
	life->of_class = class ? alloc_copy(m->path) : NULL;
}

/* Begins a life; takes 'key'. */
static struct life *life_add(const struct look *look, const struct fleet_finding *f, char *key)
{
	struct life *life = lives_add(look->lives, key);

	name_life(life, look->r, f);
	life->began_s = look->now_s;
	life->since_s = f->since_s;
	look->lives->begun++;
	return life;
}

static void view_let_go(struct life *life, size_t i)
{
	life->view[i].held_until_s = 0;
	/* Keeps the last view, to be shown when the finding ends. */
	if (life->shown != i)
		life->view[i].severity = 0;
}

static void take_finding(const struct look *look, const struct fleet_finding *f)
{
	enum now_is now = now_of(f, look->length_s, look->now_s);
	char *key = life_key_of(look->r, f);
	struct life *life = lives_find(look->lives, key);
	bool fresh = !life && now == NOW_OFF;

	if (fresh)
		life = life_add(look, f, key);
	else
		free(key);
	/* Findings are sorted by severity, so the first one of a life is shown. */
	if (!life || life->seen)
		return;
	life->seen = true;
	life->absent = false;
	life->id = f->member;
	if (now == NOW_OVER)
		view_let_go(life, look->horizon);
	if (now != NOW_OFF)
		return;
	life->count = f->count;
	life->since_s = fmin(life->since_s, f->since_s);
	see(&life->view[look->horizon], look->r, f, look->now_s + look->length_s / HOLD_PART);
	choose_shown(life);
	if (fresh)
		look->told(look->ctx, LIFE_BEGIN, life, look->now_s);
}

/* The member of a life; NULL if it has none, or if the member no longer exists. */
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

/* Handles lives that this look did not find. */
static void look_at_missed(const struct look *look, struct life *life)
{
	const struct fleet_member *m = member_of(life, look->r);
	struct life_view *view = &life->view[look->horizon];

	life->absent = !strncmp(life->key, "member\n", 7) && (!m || !m->judged);
	if (!m || !m->judged)
		return;
	view->low = m->severity < LIFE_LETS_GO ? view->low + 1 : 0;
	if (view->low >= LOW_LOOKS)
		view_let_go(life, look->horizon);
}

void lives_look(struct lives *l, size_t horizon, const struct fleet_result *r, double now_s,
	life_told *told, void *ctx)
{
	const struct look look = {l, horizon, r, r->to_s - r->from_s, now_s, told, ctx};

	for (size_t k = 0; k < r->n_findings; k++)
		take_finding(&look, &r->findings[k]);
	for (size_t k = 0; k < l->n; k++) {
		if (!l->v[k]->seen)
			look_at_missed(&look, l->v[k]);
		l->v[k]->seen = false;
	}
}

static bool is_held(struct life *life, double now_s)
{
	bool held = false;

	for (size_t i = 0; i < HORIZONS_MAX; i++)
		held |= life->view[i].held_until_s > now_s;
	/* A released view is no longer shown while another view holds. */
	for (size_t i = 0; held && i < HORIZONS_MAX; i++)
		if (life->view[i].held_until_s <= now_s)
			life->view[i].held_until_s = life->view[i].severity = 0;
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
