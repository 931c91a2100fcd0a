/* When a row was off: since when, until when, for what share of the time, and how much. */
#include <gsl/gsl_statistics_float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diag/fleet/judge_impl.h"
#include "harness/base/alloc.h"
#include "harness/base/stat.h"

/* A shift: so much of the time between its begin and its end is off, and so much of all that is off
 * lies between them. Else there are bursts. */
#define SHIFT_DENSITY 0.6
#define SHIFT_SHARE 0.8
#define OFF 0.5 /* of the effect: where off begins */
enum {
	REFINE = 2,        /* a date is by windows so many levels finer than the rest */
	WINDOWS_LEAST = 32 /* to tell a shift from bursts */
};

struct windows {
	unsigned level;
	int64_t *index;
	float *value;
	size_t n, room;
};

static void shape_keep(void *ctx, unsigned level, int64_t index, const float *v, size_t n)
{
	struct windows *w = ctx;

	if (level != w->level)
		return;
	if (w->n + n > w->room) {
		w->room = w->room ? w->room * 2 : 256;
		w->index = alloc_resize(w->index, w->room, sizeof(*w->index));
		w->value = alloc_resize(w->value, w->room, sizeof(*w->value));
	}
	for (size_t i = 0; i < n; i++)
		if (!isnan(v[i])) {
			w->index[w->n] = index + (int64_t)i;
			w->value[w->n++] = v[i];
		}
}

/* Windows of the smallest level that has at most so many. */
static struct windows windows_of(struct survey *s, uint32_t row, unsigned level)
{
	struct windows w = {.level = level};
	struct ladder l = {.emit = shape_keep, .ctx = &w, .levels = level + 1};

	ladder_run(s, row, &l);
	return w;
}

static double gain(const struct windows *w, size_t i, double off)
{
	return fmax(-off, fmin(off, (double)w->value[i] - off));
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
		sum += gain(w, i, off);
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

/* The mean of the middle half of the windows of [a, b), as the first statistic has it. */
static double midmean_of(const struct windows *w, size_t a, size_t b)
{
	size_t n = b - a, low = n / 4, high = n - low;
	float *v = alloc_zero(n, sizeof(*v));
	double sum = 0;

	memcpy(v, w->value + a, n * sizeof(*v));
	qsort(v, n, sizeof(*v), stat_compare_float);
	for (size_t i = low; i < high; i++)
		sum += (double)v[i];
	free(v);
	return sum / (double)(high - low);
}

/* Within a coarse window and its neighbours, where finer ones begin (or end) to be off: the place
 * from which on (up to which) their sum is largest. Returns the cell. */
static int64_t refine(const struct windows *fine, int64_t from, int64_t to, double off, bool end)
{
	double sum = 0, best = -INFINITY;
	int64_t cell = end ? to : from;

	for (size_t k = 0; k < fine->n; k++) {
		size_t i = end ? k : fine->n - 1 - k;
		int64_t first = fine->index[i] * (INT64_C(1) << (2 * fine->level));
		int64_t after = (fine->index[i] + 1) * (INT64_C(1) << (2 * fine->level));

		if (first < from || after > to)
			continue;
		sum += gain(fine, i, off);
		if (sum > best) {
			best = sum;
			cell = end ? after : first;
		}
	}
	return cell;
}

static void date(struct survey *s, uint32_t row, const struct metric *m, const struct windows *w,
	size_t a, size_t b, double off, struct fleet_finding *f)
{
	unsigned shift = 2 * w->level;
	int64_t width = INT64_C(1) << shift;
	int64_t since = w->index[a] * width, until = (w->index[b - 1] + 1) * width;

	if (w->level) {
		struct windows fine = windows_of(s, row, w->level > REFINE ? w->level - REFINE : 0);

		since = refine(&fine, since - width, since + width, off, false);
		until = refine(&fine, until - width, until + width, off, true);
		free(fine.index);
		free(fine.value);
	}
	f->since_s = level_time(s->fleet, m, since);
	f->until_s = level_time(s->fleet, m, until);
}

struct shape {
	struct windows w;
	double off;
	size_t a, b, all, within; /* the stretch; windows that are off, and of them in it */
	bool shift;
};

/* The value that this share of the windows exceeds. */
static double exceeded(const struct windows *w, double share)
{
	float *v = alloc_zero(w->n, sizeof(*v));
	size_t k = (size_t)((1 - share) * (double)w->n);
	double value = 0;

	memcpy(v, w->value, w->n * sizeof(*v));
	if (w->n)
		value = (double)gsl_stats_float_select(v, 1, w->n, k < w->n ? k : w->n - 1);
	free(v);
	return value;
}

/* 'level' is the statistic's: windows that are longer than its own must keep OFF of it, or what
 * they show is something else. */
static struct shape shape_at(
	struct survey *s, uint32_t row, unsigned width, double share, double level)
{
	struct shape x = {.w = windows_of(s, row, width)};
	double exceeds = exceeded(&x.w, share);

	x.off = OFF * exceeds;
	densest(&x.w, x.off, &x.a, &x.b);
	x.all = count_off(&x.w, 0, x.w.n, x.off);
	x.within = count_off(&x.w, x.a, x.b, x.off);
	x.shift = x.off > 0 && exceeds >= OFF * level &&
		(double)x.within >= SHIFT_DENSITY * (double)(x.b - x.a) &&
		(double)x.within >= SHIFT_SHARE * (double)x.all;
	return x;
}

static void shape_clear(struct shape *x)
{
	free(x->w.index);
	free(x->w.value);
}

/* By the longest windows that show a shift; if none does, by those that the statistic is of. */
static struct shape shape_of(struct survey *s, uint32_t row, const struct stat *t, double level)
{
	unsigned width = t->level;
	struct shape x;

	while (width + 1 < LEVELS_MAX && s->seen[row] >> (2 * (width + 1)) >= WINDOWS_LEAST)
		width++;
	for (;; width--) {
		x = shape_at(s, row, width, t->share, level);
		if (x.shift || width == t->level)
			return x;
		shape_clear(&x);
	}
}

void shape_find(struct survey *s, uint32_t row, const struct metric *m, struct fleet_finding *f)
{
	const struct stat *t = &s->stats[s->worst[row]];
	double level = (double)s->values[(size_t)row * s->n_stats + s->worst[row]];
	struct shape x = shape_of(s, row, t, level);
	int64_t cells = INT64_C(1) << (2 * t->level);
	bool lasting = t == s->stats;

	/* A lasting shift may have begun late: its statistic is that of the time since. */
	if (lasting && x.shift)
		level = fmax(level, midmean_of(&x.w, x.a, x.b));
	if (!x.shift) {
		for (x.a = 0; x.a < x.w.n && (double)x.w.value[x.a] <= x.off;)
			x.a++;
		for (x.b = x.w.n; x.b > x.a && (double)x.w.value[x.b - 1] <= x.off;)
			x.b--;
		x.within = x.all;
	}
	f->kind = x.shift ? FINDING_SHIFT : FINDING_BURSTS;
	f->effect = exp(s->sign * level);
	f->over_s = level_time(s->fleet, m, cells) - level_time(s->fleet, m, 0);
	f->over_share = lasting ? 1 : t->share;
	f->share = x.b > x.a ? (double)x.within / (double)(x.b - x.a) : 0;
	f->share_of_all = x.w.n ? (double)x.all / (double)x.w.n : 0;
	f->since_s = f->until_s = s->fleet->zero_s;
	if (x.b > x.a)
		date(s, row, m, &x.w, x.a, x.b, x.off, f);
	f->open = x.b + 1 >= x.w.n;
	shape_clear(&x);
}
