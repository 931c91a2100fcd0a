/* When a row was off: since when, until when, for what share of the time, and how much. */
#include <gsl/gsl_statistics_float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diag/fleet/judge_impl.h"
#include "harness/base/alloc.h"

/* A shift: so much of the time between its begin and its end is off, and so much of all that is off
 * lies between them. Else there are bursts. */
#define SHIFT_DENSITY 0.6
#define SHIFT_SHARE 0.8
#define OFF 0.5 /* of the effect: where off begins */

struct windows {
	unsigned level;
	int64_t *index;
	float *value;
	size_t n, room;
};

static void keep(void *ctx, unsigned level, int64_t index, float value)
{
	struct windows *w = ctx;

	if (level != w->level)
		return;
	if (w->n == w->room) {
		w->room = w->room ? w->room * 2 : 256;
		w->index = alloc_resize(w->index, w->room, sizeof(*w->index));
		w->value = alloc_resize(w->value, w->room, sizeof(*w->value));
	}
	w->index[w->n] = index;
	w->value[w->n++] = value;
}

/* Windows of the smallest level that has at most so many. */
static struct windows windows_of(struct survey *s, uint32_t row, unsigned level)
{
	struct windows w = {.level = level};
	struct ladder l = {.emit = keep, .ctx = &w, .levels = level + 1};

	ladder_run(s, row, &l);
	return w;
}

/* The stretch [*a, *b) whose sum of (value - off) is largest; single windows count at most as
 * much as the effect itself. */
static void densest(const struct windows *w, double off, size_t *a, size_t *b)
{
	double sum = 0, best = -1;
	size_t from = 0;

	*a = *b = 0;
	for (size_t i = 0; i < w->n; i++) {
		if (sum <= 0) {
			sum = 0;
			from = i;
		}
		sum += fmax(-off, fmin(off, (double)w->value[i] - off));
		if (sum > best) {
			best = sum;
			*a = from;
			*b = i + 1;
		}
	}
}

static size_t count_off(const struct windows *w, size_t a, size_t b, double off)
{
	size_t n = 0;

	for (size_t i = a; i < b; i++)
		n += (double)w->value[i] > off;
	return n;
}

/* The median of the windows that are off. */
static double effect_of(const struct windows *w, size_t a, size_t b, double off)
{
	float *v = alloc_zero(b - a, sizeof(*v));
	size_t n = 0;
	double median;

	for (size_t i = a; i < b; i++)
		if ((double)w->value[i] > off)
			v[n++] = w->value[i];
	median = n ? (double)gsl_stats_float_select(v, 1, n, n / 2) : off;
	free(v);
	return median;
}

void shape_find(struct survey *s, uint32_t row, const struct metric *m, struct fleet_finding *f)
{
	const struct stat *t = &s->stats[s->worst[row]];
	double level = (double)s->values[(size_t)row * s->n_stats + s->worst[row]];
	double off = OFF * level, effect;
	struct windows w;
	size_t a, b, all, within;
	unsigned width;

	/* A lasting shift is dated by windows that are long enough to be off as a whole. */
	for (width = t->level; width == 0 && t->share == 0.5 && width + 1 < LEVELS_MAX &&
		s->seen[row] >> (2 * (width + 1)) >= 64;)
		width++;
	w = windows_of(s, row, width);
	densest(&w, off, &a, &b);
	all = count_off(&w, 0, w.n, off);
	within = count_off(&w, a, b, off);
	f->kind = (double)within >= SHIFT_DENSITY * (double)(b - a) &&
			(double)within >= SHIFT_SHARE * (double)all
		? FINDING_SHIFT
		: FINDING_BURSTS;
	if (f->kind == FINDING_BURSTS) {
		for (a = 0; a < w.n && (double)w.value[a] <= off;)
			a++;
		for (b = w.n; b > a && (double)w.value[b - 1] <= off;)
			b--;
		within = all;
	}
	effect = b > a ? effect_of(&w, a, b, off) : level;
	f->effect = exp(s->sign * effect);
	f->share = b > a ? (double)within / (double)(b - a) : 0;
	f->share_of_all = w.n ? (double)all / (double)w.n : 0;
	f->since_s = a < w.n ? level_time(s->fleet, m, w.index[a] << (2 * width)) : 0;
	f->until_s = b ? level_time(s->fleet, m, (w.index[b - 1] + 1) << (2 * width)) : 0;
	f->open = b + 1 >= w.n;
	free(w.index);
	free(w.value);
}
