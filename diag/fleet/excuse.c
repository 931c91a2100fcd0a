/*
 * How the work that was asked of a member excuses its level.
 *
 * One curve is learnt from the fleet: the level that usually goes with a load. A member with
 * more load than its peers may exceed them by as much as the curve does between the two loads,
 * and one with less is expected to stay below them; what the curve says of other loads is
 * trusted to a part only. Who does not exceed its peers as they are is never accused. The curve
 * never falls: a disk that has little to do because it is slow would excuse itself and others.
 *
 * Loads are compared either as they are, which is right where all members can do the same, or
 * relative to what is typical of the set, which is right where groups are of different
 * strength. The one that leaves less unexplained is used.
 */
#include <gsl/gsl_statistics_float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diag/fleet/judge_impl.h"
#include "harness/base/alloc.h"

enum { PAIRS_MAX = 1 << 18, PAIRS_LEAST = 200, ROWS_LEAST = 5, FITS = 3 };
/* Loads as they are must explain so much more, because groups are rarely of the same strength. */
#define BETTER 0.9
/* What a curve says of other loads is uncertain by so much of it. */
#define DOUBT 0.25

struct pair {
	float load, level; /* codes; the level's sign makes more worse */
	uint32_t set, row;
	uint8_t class; /* of the load: the nearest point of the curve */
};

struct pairs {
	struct pair *v;
	size_t n;
	double *load_center; /* by set */
	double *level_center;
	float *work; /* room for n */
};

/* The level that a load makes usual: linear between the points. */
static double usual_at(const double usual[EXCUSE_POINTS], double octaves)
{
	double at = (octaves + EXCUSE_OCTAVES_MAX) / EXCUSE_OCTAVES;
	int i = (int)at;

	if (!(at > 0))
		return usual[0];
	if (i >= EXCUSE_POINTS - 1)
		return usual[EXCUSE_POINTS - 1];
	return usual[i] + (at - i) * (usual[i + 1] - usual[i]);
}

static double octaves(double code, double center)
{
	return (code - center) / PANEL_STEPS_PER_OCTAVE;
}

/* The cells of the row's load in this block of time, or NULL. */
static const uint16_t *load_cells(
	const struct survey *s, const struct metric *load, uint32_t row, size_t place)
{
	uint32_t member = s->members[row];
	size_t first, end;
	int64_t cell = s->panel->when[place] * PANEL_BLOCK;

	if (member >= load->members_room || load->row_of[member] == NOBODY)
		return NULL;
	panel_range(&load->panel, cell, cell + 1, &first, &end);
	return first == end ? NULL : panel_cells(&load->panel, load->row_of[member], first);
}

void excuse_apply(const struct survey *s, const struct set *set, uint32_t row, size_t place,
	float d[PANEL_BLOCK])
{
	const struct excuse *x = s->excuse;
	const uint16_t *load = load_cells(s, x->load, row, place);
	const uint16_t *usual = set->load + (place - s->first) * PANEL_BLOCK;
	double center = x->as_they_are ? x->center : set->load_center;

	for (size_t c = 0; load && c < PANEL_BLOCK; c++) {
		double by, left;

		if (!usual[c] || !load[c] || isnan(d[c]))
			continue;
		by = usual_at(x->usual, octaves(load[c], center)) -
			usual_at(x->usual, octaves(usual[c], center));
		left = (double)d[c] - by;
		d[c] = (float)copysign(fmax(0, fabs(left) - DOUBT * fabs(by)), left);
	}
}

/* The median of the codes that are there; 0: none is. */
static double center_of(const uint16_t *codes, size_t n)
{
	float *v = alloc_zero(n, sizeof(*v));
	size_t k = 0;
	double median = 0;

	for (size_t i = 0; i < n; i++) {
		v[k] = codes[i];
		k += codes[i] != PANEL_MISSING;
	}
	if (k)
		median = (double)gsl_stats_float_select(v, 1, k, k / 2);
	free(v);
	return median;
}

/* The median load of a set's members, cell by cell, and typical ones of load and level. */
static void locate_load(const struct survey *s, struct set *set, const struct metric *load)
{
	const uint16_t **rows = alloc_zero(set->n, sizeof(*rows));
	size_t cells = (s->end - s->first) * PANEL_BLOCK;

	free(set->load);
	set->load = alloc_zero(cells, sizeof(*set->load));
	for (size_t place = s->first; place < s->end; place++) {
		size_t n = 0;

		for (size_t i = 0; i < set->n; i++) {
			rows[n] = load_cells(s, load, set->rows[i], place);
			n += rows[n] != NULL;
		}
		peers_medians(rows, n, set->load + (place - s->first) * PANEL_BLOCK);
	}
	set->load_center = center_of(set->load, cells);
	free(rows);
}

static void add_pairs(const struct survey *s, uint32_t row, const struct metric *load,
	size_t stride, struct pairs *p)
{
	for (size_t place = s->first; place < s->end; place += stride) {
		const uint16_t *cells = load_cells(s, load, row, place);
		const uint16_t *levels = panel_cells(s->panel, row, place);

		for (size_t c = 0; cells && levels && c < PANEL_BLOCK && p->n < PAIRS_MAX; c++)
			if (cells[c] && levels[c])
				p->v[p->n++] = (struct pair){(float)cells[c],
					(float)(s->sign * (double)levels[c]), s->set_of[row], row};
	}
}

static double load_of(
	const struct pairs *p, const struct pair *pair, bool as_they_are, double center)
{
	return octaves((double)pair->load, as_they_are ? center : p->load_center[pair->set]);
}

static void classify(struct pairs *p, bool as_they_are, double center)
{
	for (struct pair *pair = p->v; pair < p->v + p->n; pair++) {
		double at = (load_of(p, pair, as_they_are, center) + EXCUSE_OCTAVES_MAX) /
			EXCUSE_OCTAVES;

		pair->class = (uint8_t)fmin(fmax(at + 0.5, 0), EXCUSE_POINTS - 1);
	}
}

/* The curve that goes through the median level of each class of loads. A class with few pairs,
 * or of few rows, says no more than the one before; those below the first that says something
 * have its level. */
static void fit_curve(struct pairs *p, double usual[EXCUSE_POINTS])
{
	double before = -INFINITY;

	for (size_t i = 0; i < EXCUSE_POINTS; i++) {
		size_t n = 0, rows = 0;
		uint32_t last = NOBODY;

		for (const struct pair *pair = p->v; pair < p->v + p->n; pair++) {
			if (pair->class != i)
				continue;
			p->work[n++] = (float)(((double)pair->level - p->level_center[pair->set]) *
				PANEL_LOG_STEP);
			rows += pair->row != last;
			last = pair->row;
		}
		if (n >= PAIRS_LEAST && rows >= ROWS_LEAST)
			before = fmax(before, (double)gsl_stats_float_select(p->work, 1, n, n / 2));
		usual[i] = before;
	}
	for (size_t i = EXCUSE_POINTS; i-- > 0;)
		if (isinf(usual[i]))
			usual[i] = i + 1 < EXCUSE_POINTS ? usual[i + 1] : 0;
}

/* Centers of the sets' levels, once the curve explains a part of them. Pairs of a set are
 * neighbours. */
static void fit_centers(struct pairs *p, bool as_they_are, double center, const double *usual)
{
	for (size_t k = 0; k < p->n;) {
		uint32_t set = p->v[k].set;
		size_t n = 0;

		for (; k < p->n && p->v[k].set == set; k++)
			p->work[n++] = (float)((double)p->v[k].level -
				usual_at(usual, load_of(p, &p->v[k], as_they_are, center)) /
					PANEL_LOG_STEP);
		p->level_center[set] = (double)gsl_stats_float_select(p->work, 1, n, n / 2);
	}
}

/* Returns the typical size of what the curve leaves unexplained. */
static double fit(struct pairs *p, bool as_they_are, double center, double usual[EXCUSE_POINTS])
{
	memset(usual, 0, EXCUSE_POINTS * sizeof(*usual));
	classify(p, as_they_are, center);
	for (int i = 0; i < FITS; i++) {
		fit_centers(p, as_they_are, center, usual);
		fit_curve(p, usual);
	}
	fit_centers(p, as_they_are, center, usual);
	for (size_t k = 0; k < p->n; k++)
		p->work[k] = (float)fabs(
			((double)p->v[k].level - p->level_center[p->v[k].set]) * PANEL_LOG_STEP -
			usual_at(usual, load_of(p, &p->v[k], as_they_are, center)));
	return p->n ? (double)gsl_stats_float_select(p->work, 1, p->n, p->n / 2) : 0;
}

/* Returns the typical size of what this load leaves unexplained. */
static double fleet_excuse_learn(struct survey *s, struct excuse *x)
{
	struct pairs p = {.v = alloc_zero(PAIRS_MAX, sizeof(*p.v)),
		.load_center = alloc_zero(s->n_sets, sizeof(double)),
		.level_center = alloc_zero(s->n_sets, sizeof(double)),
		.work = alloc_zero(PAIRS_MAX > s->n_sets ? PAIRS_MAX : s->n_sets, sizeof(float))};
	size_t blocks = s->end - s->first, stride = 1, skip = 1;
	double usual[EXCUSE_POINTS], relative, plain;

	while (blocks / stride > 16 && blocks / stride * s->n_rows * PANEL_BLOCK > PAIRS_MAX)
		stride++;
	while (blocks / stride * (s->n_rows / skip) * PANEL_BLOCK > PAIRS_MAX)
		skip++;
	for (size_t i = 0; i < s->n_sets; i++) {
		struct set *set = &s->sets[i];

		locate_load(s, set, x->load);
		p.load_center[i] = set->load_center;
		p.work[i] = (float)set->load_center;
		for (size_t k = i % skip; k < set->n_judged; k += skip)
			add_pairs(s, set->judged[k], x->load, stride, &p);
	}
	if (s->n_sets)
		x->center = (double)gsl_stats_float_select(p.work, 1, s->n_sets, s->n_sets / 2);
	relative = fit(&p, false, 0, x->usual);
	plain = fit(&p, true, x->center, usual);
	x->as_they_are = plain < BETTER * relative;
	if (x->as_they_are)
		memcpy(x->usual, usual, sizeof(usual));
	free(p.v);
	free(p.load_center);
	free(p.level_center);
	free(p.work);
	return x->as_they_are ? plain : relative;
}

void excuse_learn(struct survey *s, struct excuse *x)
{
	struct excuse best = *x;
	double least = INFINITY;

	for (size_t i = 0; i < x->n_loads; i++) {
		double left;

		x->load = x->loads[i];
		left = fleet_excuse_learn(s, x);
		if (left < least) {
			least = left;
			best = *x;
		}
	}
	if (x->n_loads > 1) { /* the sets have the last one's load */
		*x = best;
		fleet_excuse_learn(s, x);
	}
}
