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

/* The middles of fours in which nothing is missing; as middle() has them. */
static void middles(const float *restrict v, float *restrict out, size_t n)
{
	for (size_t i = 0; i < n; i++, v += 4) {
		float a = v[0] < v[1] ? v[0] : v[1], b = v[0] < v[1] ? v[1] : v[0];
		float c = v[2] < v[3] ? v[2] : v[3], d = v[2] < v[3] ? v[3] : v[2];
		float low = a > c ? a : c, high = b < d ? b : d;

		out[i] = (low + high) / 2;
	}
}

static void push(struct ladder *l, unsigned level, int64_t index, float value);

static void close_rung(struct ladder *l, unsigned level)
{
	struct rung *r = &l->rungs[level];

	if (r->begun) {
		/* Half of what the peers have. */
		float value = 2 * r->n >= r->possible ? middle(r->v, r->n) : NAN;

		l->emit(l->ctx, level, r->index, &value, 1);
		push(l, level + 1, r->index, value);
	}
	r->begun = false;
	r->n = r->possible = 0;
}

/* 'index' counts windows of the level below. */
static void push(struct ladder *l, unsigned level, int64_t index, float value)
{
	struct rung *r;

	if (level >= l->levels)
		return;
	r = &l->rungs[level];
	if (r->begun && r->index != index >> 2)
		close_rung(l, level);
	r->begun = true;
	r->index = index >> 2;
	r->possible++;
	if (!isnan(value))
		r->v[r->n++] = value;
}

/* The next larger windows, where something is missing. 'possible': the peers have something. */
static void fold(
	const float *v, const uint8_t *possible, float *out, uint8_t *out_possible, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		float there[4];
		unsigned have = 0, could = 0;

		for (size_t k = 4 * i; k < 4 * i + 4; k++) {
			could += possible[k];
			if (!isnan(v[k]))
				there[have++] = v[k];
		}
		out[i] = have && 2 * have >= could ? middle(there, have) : NAN;
		out_possible[i] = could > 0;
	}
}

/* The windows that lie within a block of cells, which are those of the first four levels. */
static void climb(struct ladder *l, int64_t block, const float *d, const uint16_t *location)
{
	float v[2][PANEL_BLOCK / 4];
	uint8_t possible[2][PANEL_BLOCK];
	unsigned missing = 0;
	size_t n = PANEL_BLOCK;

	for (size_t c = 0; c < PANEL_BLOCK; c++)
		missing += d[c] != d[c];
	for (size_t c = 0; missing && c < PANEL_BLOCK; c++)
		possible[0][c] = location[c] != PANEL_MISSING;
	for (unsigned level = 0; level < l->levels; level++, n /= 4) {
		float *above = v[level & 1];

		l->emit(l->ctx, level, block * (int64_t)n, d, n);
		if (n == 1) {
			if (!missing || possible[level & 1][0])
				push(l, level + 1, block, *d);
			return;
		}
		if (missing)
			fold(d, possible[level & 1], above, possible[~level & 1], n / 4);
		else
			middles(d, above, n / 4);
		d = above;
	}
}

static void ladder_end(struct ladder *l)
{
	for (unsigned level = 1; level < l->levels; level++)
		close_rung(l, level);
}

/* Peers count within the time that is judged alone. */
static void clip(const struct survey *s, int64_t begin, const uint16_t *location, uint16_t *clipped)
{
	for (int64_t c = 0; c < PANEL_BLOCK; c++)
		clipped[c] = begin + c >= s->from && begin + c < s->to ? location[c]
								       : PANEL_MISSING;
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
		int64_t block = s->panel->when[place];
		uint16_t clipped[PANEL_BLOCK];

		peers_deviations(s, set, row, place, d);
		if (block * PANEL_BLOCK < s->from || (block + 1) * PANEL_BLOCK > s->to) {
			clip(s, block * PANEL_BLOCK, location, clipped);
			location = clipped;
		}
		climb(l, block, d, location);
	}
	ladder_end(l);
}
