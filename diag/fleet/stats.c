/* What is asked of each row: by how much, for which share of the time, over windows of which
 * length. */
#include <math.h>
#include <string.h>

#include "diag/fleet/judge_impl.h"

/* Deviations are counted in classes. */
enum { CLASSES = 2048 };
static const double class_width = 2 * DEVIATION_MOST / CLASSES;

static const double shares[SHARES] = {
	1. / 2, 1. / 4, 1. / 8, 1. / 16, 1. / 32, 1. / 64, 1. / 128, 1. / 256, 1. / 512, 1. / 1024};

/* What is asked of a lasting effect, over 1, if no more is asked of all. */
#define LEAST 0.15

/* How many windows a statistic needs: some that exceed it, and enough for a share. */
enum { EXCEEDING_LEAST = 2, WINDOWS_LEAST = 8, CELLS_LEAST = 8 };

/* An effect for about half of the time is in a row's middle, too, and so dilutes what is compared
 * with it. Its lower quartile is the row's while it is well. */
static void add_from_low(struct survey *s)
{
	unsigned n = s->n_stats;

	for (unsigned k = 1; k < n && survey_with(s, FLEET_OWN); k++)
		if (s->stats[k].share == shares[1] && s->stats[k].level >= 1) {
			s->stats[s->n_stats] = s->stats[k];
			s->stats[s->n_stats++].from_low = true;
		}
}

void stats_choose(struct survey *s, double cells)
{
	const struct fleet_options *o = &s->fleet->options;
	unsigned counted;

	s->n_stats = 0;
	for (unsigned level = 0; level < LEVELS_MAX; level++) {
		double windows = cells / pow(4, level);

		if (level && windows < WINDOWS_LEAST)
			break;
		for (unsigned k = level ? 1 : 0; k < (survey_with(s, FLEET_SHORT) ? SHARES : 1);
			k++) {
			/* A short effect must be larger to matter: by the cube root of its
			 * share. */
			double over = fmin(o->least - 1, LEAST) * cbrt(0.5 / shares[k]);
			double least = fmax(o->least, 1 + over);

			if (k && (shares[k] * windows < EXCEEDING_LEAST || shares[k] < o->shortest))
				break;
			s->stats[s->n_stats++] = (struct stat){.level = level,
				.share = shares[k],
				.exceeding = shares[k] * windows,
				.least = log(least)};
		}
	}
	counted = s->n_stats;
	add_from_low(s);
	/* Half of the alarms for the lasting shift, the other half for all that is shorter. What
	 * is compared with the low quartile must exceed all but one of its peers, too, and is not
	 * counted. */
	for (unsigned k = 0; k < s->n_stats; k++) {
		double p = k ? s->alarms / 2 / (counted - 1) : s->alarms / 2;

		s->stats[k].p = fmin(p, 0.01);
	}
}

struct counts {
	uint32_t n[LEVELS_MAX], in[LEVELS_MAX][CLASSES + 1]; /* the last: missing */
	int lowest[LEVELS_MAX], highest[LEVELS_MAX];
};

/* The class of each value. On its own, so that the compiler makes vector instructions of it. */
static __attribute__((noinline)) void classify(const float *restrict v, int *restrict at, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		float x = v[i] * (float)(1 / class_width) + CLASSES / 2;

		x = x < 0 ? 0 : x;
		x = x > CLASSES - 1 ? CLASSES - 1 : x;
		at[i] = (int)(x == x ? x : (float)CLASSES);
	}
}

static void stats_count(void *ctx, unsigned level, int64_t index, const float *v, size_t n)
{
	struct counts *c = ctx;
	uint32_t *in = c->in[level];
	int at[PANEL_BLOCK], lowest = c->lowest[level], highest = c->highest[level];
	uint32_t missing = in[CLASSES];

	(void)index;
	classify(v, at, n);
	for (size_t i = 0; i < n; i++) {
		in[at[i]]++;
		lowest = at[i] < lowest ? at[i] : lowest;
		highest = at[i] > highest && at[i] < CLASSES ? at[i] : highest;
	}
	c->n[level] += (uint32_t)n - (in[CLASSES] - missing);
	c->lowest[level] = lowest;
	c->highest[level] = highest;
}

/* The value that this share of the windows exceeds. */
static double exceeded(const struct counts *c, unsigned level, double share)
{
	double above = share * c->n[level];

	for (int at = c->highest[level]; at >= c->lowest[level]; at--) {
		double here = c->in[level][at];

		if (here >= above && here > 0)
			return (at + 1 - above / here - CLASSES / 2) * class_width;
		above -= here;
	}
	return (c->lowest[level] - CLASSES / 2) * class_width;
}

/* The mean of the middle half: as robust as it must be for a lasting shift, and finer than the
 * median where values have few digits. */
static double midmean(const struct counts *c)
{
	double before = 0, low = c->n[0] / 4.0, high = 3 * low, sum = 0;

	for (int at = c->lowest[0]; at <= c->highest[0]; at++) {
		double after = before + c->in[0][at];
		double from = fmax(before, low), to = fmin(after, high);

		if (to > from)
			sum += (to - from) * (at + 0.5 - CLASSES / 2) * class_width;
		before = after;
	}
	return sum / (high - low);
}

static unsigned highest_level(const struct survey *s)
{
	unsigned level = 0;

	for (unsigned k = 0; k < s->n_stats; k++)
		level = s->stats[k].level > level ? s->stats[k].level : level;
	return level;
}

static void stats_look(struct survey *s, uint32_t row, float *values, float *base)
{
	static _Thread_local struct counts c;
	struct ladder l = {.emit = stats_count, .ctx = &c, .levels = highest_level(s) + 1};

	for (unsigned level = 0; level < l.levels; level++) {
		c.lowest[level] = CLASSES;
		c.highest[level] = -1;
		c.n[level] = 0;
	}
	ladder_run(s, row, &l);
	s->seen[row] = c.n[0];
	for (unsigned k = 0; k < s->n_stats; k++) {
		const struct stat *t = &s->stats[k];
		bool enough = k ? c.n[t->level] * t->share >= EXCEEDING_LEAST
				: c.n[0] >= CELLS_LEAST;

		values[k] = !enough ? NAN
				    : (float)(k ? exceeded(&c, t->level, t->share) : midmean(&c));
		if (base && k)
			base[k] = enough && t->from_low
				? (float)exceeded(&c, t->level, 1 - t->share)
				: values[0];
	}
	for (unsigned level = 0; level < l.levels; level++)
		if (c.highest[level] >= 0)
			memset(c.in[level] + c.lowest[level], 0,
				(size_t)(c.highest[level] - c.lowest[level] + 1) *
					sizeof(uint32_t));
}

void stats_of_row(struct survey *s, uint32_t row)
{
	const struct excuse *excuse = s->excuse;

	stats_look(
		s, row, s->values + (size_t)row * s->n_stats, s->base + (size_t)row * s->n_stats);
	if (!excuse)
		return;
	s->excuse = NULL;
	stats_look(s, row, s->plain + (size_t)row * s->n_stats, NULL);
	s->excuse = excuse;
}
