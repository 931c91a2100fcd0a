/* Windows of 1, 4, 16, 64 ... cells, each from the four below it (the remedian, Rousseeuw and
 * Bassett 1990, with the mean of the middle two of four): what disturbs one window of four is
 * gone in the next larger one, what lasts is in all. One pass, constant memory. */
#include <math.h>
#include <string.h>

#include "diag/fleet/judge_impl.h"

static float middle(float *v, unsigned n)
{
	/* Insertion sort of at most four. */
	for (unsigned i = 1; i < n; i++)
		for (unsigned k = i; k && v[k] < v[k - 1]; k--) {
			float t = v[k];

			v[k] = v[k - 1];
			v[k - 1] = t;
		}
	return n & 1 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

static void push(struct ladder *l, unsigned level, int64_t index, float value, bool possible);

static void close_rung(struct ladder *l, unsigned level)
{
	struct rung *r = &l->rungs[level];
	/* Half of what the peers have. */
	bool enough = r->n && 2 * r->n >= r->possible;

	if (r->begun && (enough || r->possible)) {
		float value = enough ? middle(r->v, r->n) : NAN;

		if (enough)
			l->emit(l->ctx, level, r->index, value);
		push(l, level + 1, r->index, value, true);
	}
	r->begun = false;
	r->n = r->possible = 0;
}

/* 'index' counts windows of the level below. */
static void push(struct ladder *l, unsigned level, int64_t index, float value, bool possible)
{
	struct rung *r;

	if (level >= l->levels)
		return;
	r = &l->rungs[level];
	if (r->begun && r->index != index >> 2)
		close_rung(l, level);
	r->begun = true;
	r->index = index >> 2;
	r->possible = (unsigned char)(r->possible + possible);
	if (!isnan(value))
		r->v[r->n++] = value;
}

void ladder_push(struct ladder *l, int64_t cell, float value, bool possible)
{
	if (!possible)
		return;
	if (!isnan(value))
		l->emit(l->ctx, 0, cell, value);
	push(l, 1, cell, value, true);
}

void ladder_end(struct ladder *l)
{
	for (unsigned level = 1; level < l->levels; level++)
		close_rung(l, level);
}

void ladder_run(struct survey *s, uint32_t row, struct ladder *l)
{
	struct set *set = &s->sets[s->set_of[row]];
	float d[PANEL_BLOCK];

	if (s->located != set)
		peers_locate(s, set);
	memset(l->rungs, 0, sizeof(l->rungs));
	for (size_t place = s->first; place < s->end; place++) {
		const uint16_t *location = set->location + (place - s->first) * PANEL_BLOCK;
		int64_t begin = s->panel->when[place] * PANEL_BLOCK;

		peers_deviations(s, set, row, place, d);
		for (size_t c = 0; c < PANEL_BLOCK; c++)
			if (location[c] && begin + (int64_t)c >= s->from &&
				begin + (int64_t)c < s->to)
				ladder_push(l, begin + (int64_t)c, d[c], true);
	}
	ladder_end(l);
}
