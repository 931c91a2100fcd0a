/* Where the peers of a row are, cell by cell, and how far the row is from them. */
#include <gsl/gsl_statistics_float.h>
#include <gsl/gsl_statistics_ushort.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diag/fleet/judge_impl.h"
#include "harness/base/alloc.h"

enum { COLUMNS_MAX = 64, PAIRS_MAX = 1 << 15, PAIRS_LEAST = 200, ROWS_LEAST = 5 };

/* Sorts each column, odd with even neighbours by turns: the compiler makes vector instructions of
 * it. Codes are shifted to signed numbers, of which every x86-64 has the minimum. */
static void sort_columns(int16_t (*v)[PANEL_BLOCK], size_t n)
{
	for (size_t round = 0; round < n; round++)
		for (size_t k = round & 1; k + 1 < n; k += 2) {
			int16_t *low = v[k], *high = v[k + 1];

			for (size_t c = 0; c < PANEL_BLOCK; c++) {
				int16_t a = low[c], b = high[c];

				low[c] = a < b ? a : b;
				high[c] = a < b ? b : a;
			}
		}
}

/* Where the peers are in one block of time: the median of all; and that of the others for a row
 * below the median, above it, and at it. */
struct middle {
	uint16_t *all, *below, *above, *same;
};

static uint16_t mean(uint16_t a, uint16_t b)
{
	return (uint16_t)(((uint32_t)a + b + 1) / 2);
}

/* Of a few rows. Without one that is below the median of an odd number, the median of the
 * others is the mean of that median and the next one, and so on. */
static void middle_of_few(const uint16_t *const *rows, size_t n, size_t least, struct middle out)
{
	static _Thread_local int16_t v[COLUMNS_MAX][PANEL_BLOCK];
	uint8_t missing[PANEL_BLOCK] = {0};

	for (size_t i = 0; i < n; i++)
		for (size_t c = 0; c < PANEL_BLOCK; c++) {
			v[i][c] = (int16_t)(rows[i][c] ^ 0x8000);
			missing[c] = (uint8_t)(missing[c] + (rows[i][c] == PANEL_MISSING));
		}
	sort_columns(v, n);
	for (size_t c = 0; c < PANEL_BLOCK; c++) {
		size_t there = n - missing[c], at = missing[c] + there / 2;
		uint16_t high, low;

		out.all[c] = out.below[c] = out.above[c] = out.same[c] = PANEL_MISSING;
		if (there < least || there < 2)
			continue;
		high = (uint16_t)((uint16_t)v[at][c] ^ 0x8000);
		low = (uint16_t)((uint16_t)v[at - 1][c] ^ 0x8000);
		if (there & 1) {
			uint16_t next = (uint16_t)((uint16_t)v[at + 1][c] ^ 0x8000);

			out.all[c] = high;
			out.below[c] = mean(high, next);
			out.above[c] = mean(low, high);
			out.same[c] = mean(low, next);
		} else {
			out.all[c] = out.same[c] = mean(low, high);
			out.below[c] = high;
			out.above[c] = low;
		}
	}
}

/* Of many, where one more or less makes no difference. */
static void middle_of_many(const uint16_t *const *rows, size_t n, size_t least, struct middle out)
{
	uint16_t *v = alloc_zero(n, sizeof(*v));

	for (size_t c = 0; c < PANEL_BLOCK; c++) {
		size_t there = 0;

		for (size_t i = 0; i < n; i++) {
			v[there] = rows[i][c];
			there += rows[i][c] != PANEL_MISSING;
		}
		out.all[c] = there < least ? PANEL_MISSING
					   : gsl_stats_ushort_select(v, 1, there, there / 2);
		out.below[c] = out.above[c] = out.same[c] = out.all[c];
	}
	free(v);
}

static void middle_of(const uint16_t *const *rows, size_t n, size_t least, struct middle out)
{
	(n <= COLUMNS_MAX ? middle_of_few : middle_of_many)(rows, n, least, out);
}

void peers_locate(struct survey *s, struct set *set)
{
	const uint16_t **rows = alloc_zero(set->n, sizeof(*rows));
	size_t cells = (s->end - s->first) * PANEL_BLOCK, trusted = 0, least;

	for (size_t i = 0; i < set->n; i++)
		trusted += !s->suspect[set->rows[i]];
	/* Two are enough where others of the set are suspects: they agreed on who differs. */
	least = trusted < set->n ? 2 : SET_PEERS_MIN;
	if (!set->location)
		set->location = alloc_zero(cells, sizeof(*set->location));
	for (int i = 0; i < 3; i++)
		if (!s->without[i])
			s->without[i] = alloc_zero(cells, sizeof(**s->without));
	for (size_t place = s->first; place < s->end; place++) {
		size_t at = (place - s->first) * PANEL_BLOCK, n = 0;
		struct middle out = {set->location + at, s->without[0] + at, s->without[1] + at,
			s->without[2] + at};

		for (size_t i = 0; i < set->n; i++) {
			rows[n] = s->suspect[set->rows[i]]
				? NULL
				: panel_cells(s->panel, set->rows[i], place);
			n += rows[n] != NULL;
		}
		if (n >= least)
			middle_of(rows, n, least, out);
		else
			memset(out.all, 0, PANEL_BLOCK * sizeof(*out.all));
	}
	free(rows);
	s->located = set;
}

/* The level that a load makes usual, relative to the set's: linear between the points. */
static double usual_at(const struct excuse *x, double octaves)
{
	double at = (octaves + EXCUSE_OCTAVES_MAX) / EXCUSE_OCTAVES;
	int i = (int)at;

	if (!(at > 0))
		return x->usual[0];
	if (i >= EXCUSE_POINTS - 1)
		return x->usual[EXCUSE_POINTS - 1];
	return x->usual[i] + (at - i) * (x->usual[i + 1] - x->usual[i]);
}

static double octaves(double code, double center)
{
	return (code - center) / PANEL_STEPS_PER_OCTAVE;
}

/* The cells of the row's load in this block of time, or NULL. */
static const uint16_t *load_cells(
	const struct survey *s, const struct metric *load, uint32_t member, size_t place)
{
	size_t first, end;
	int64_t cell = s->panel->when[place] * PANEL_BLOCK;

	if (member >= load->members_room || load->row_of[member] == NOBODY)
		return NULL;
	panel_range(&load->panel, cell, cell + 1, &first, &end);
	if (first == end)
		return NULL;
	return panel_cells(&load->panel, load->row_of[member], first);
}

static void raw_deviations(const struct survey *s, const struct set *set, uint32_t row,
	size_t place, float d[PANEL_BLOCK])
{
	const uint16_t *cells = panel_cells(s->panel, row, place);
	size_t at = (place - s->first) * PANEL_BLOCK;
	const uint16_t *all = set->location + at, *below = s->without[0] + at,
		       *above = s->without[1] + at, *same = s->without[2] + at;
	const float unit = (float)(s->sign * PANEL_LOG_STEP);
	int64_t begin = s->panel->when[place] * PANEL_BLOCK;
	bool apart = s->suspect[row] || !survey_with(s, FLEET_OTHERS);

	for (size_t c = 0; c < PANEL_BLOCK; c++) {
		int x = cells ? cells[c] : PANEL_MISSING, peers = all[c];

		if (!apart)
			peers = x < peers ? below[c] : x > peers ? above[c] : same[c];
		d[c] = x && all[c] ? unit * (float)(x - peers) : NAN;
	}
	for (int64_t c = begin; c < begin + PANEL_BLOCK; c++)
		if (c < s->from || c >= s->to)
			d[c - begin] = NAN;
}

void peers_deviations(const struct survey *s, const struct set *set, uint32_t row, size_t place,
	float d[PANEL_BLOCK])
{
	const uint16_t *load;
	const float *usual;

	raw_deviations(s, set, row, place, d);
	if (!s->excuse || !set->load)
		return;
	load = load_cells(s, s->excuse->load, s->members[row], place);
	usual = set->load + (place - s->first) * PANEL_BLOCK;
	for (size_t c = 0; load && c < PANEL_BLOCK; c++)
		if (load[c] && (float)load[c] > usual[c])
			d[c] -= (float)(usual_at(s->excuse, octaves(load[c], set->load_center)) -
				usual_at(s->excuse, octaves(usual[c], set->load_center)));
}

/* The median of the codes that are there. */
static double center_of(const float *codes, size_t n)
{
	float *v = alloc_zero(n, sizeof(*v));
	size_t k = 0;
	double median = 0;

	for (size_t i = 0; i < n; i++)
		if (codes[i] > 0)
			v[k++] = codes[i];
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
	float *levels = alloc_zero(cells, sizeof(*levels));

	free(set->load);
	set->load = alloc_zero(cells, sizeof(*set->load));
	for (size_t place = s->first; place < s->end; place++) {
		float *out = set->load + (place - s->first) * PANEL_BLOCK;
		uint16_t codes[PANEL_BLOCK] = {0}, no[PANEL_BLOCK];
		size_t n = 0;

		for (size_t i = 0; i < set->n; i++) {
			rows[n] = load_cells(s, load, s->members[set->rows[i]], place);
			n += rows[n] != NULL;
		}
		if (n >= SET_PEERS_MIN)
			middle_of(rows, n, SET_PEERS_MIN, (struct middle){codes, no, no, no});
		for (size_t c = 0; c < PANEL_BLOCK; c++)
			out[c] = codes[c] ? (float)codes[c] : NAN;
	}
	for (size_t c = 0; c < cells; c++)
		levels[c] = set->location[c];
	set->load_center = center_of(set->load, cells);
	set->level_center = center_of(levels, cells);
	free(levels);
	free(rows);
}

/* Levels by load, of a sample of all cells. */
struct pairs {
	float *level[EXCUSE_POINTS];
	size_t n[EXCUSE_POINTS], rows[EXCUSE_POINTS], room;
};

static void add_pairs(const struct survey *s, const struct set *set, uint32_t row,
	const struct metric *load, size_t stride, struct pairs *p)
{
	size_t before[EXCUSE_POINTS];

	memcpy(before, p->n, sizeof(before));
	for (size_t place = s->first; place < s->end; place += stride) {
		const uint16_t *cells = load_cells(s, load, s->members[row], place);
		const uint16_t *levels = panel_cells(s->panel, row, place);

		for (size_t c = 0; cells && levels && c < PANEL_BLOCK; c++) {
			long i = lround((octaves(cells[c], set->load_center) + EXCUSE_OCTAVES_MAX) /
				EXCUSE_OCTAVES);

			i = i < 0 ? 0 : i >= EXCUSE_POINTS ? EXCUSE_POINTS - 1 : i;
			if (cells[c] && levels[c] && p->n[i] < p->room)
				p->level[i][p->n[i]++] = (float)(s->sign * PANEL_LOG_STEP *
					((double)levels[c] - set->level_center));
		}
	}
	for (size_t i = 0; i < EXCUSE_POINTS; i++)
		p->rows[i] += p->n[i] > before[i];
}

/* A level that never falls with the load; a point with few cells, or of few rows, says no more
 * than the one before. Points below the first that says something have its level. */
static void fit_excuse(struct pairs *p, struct excuse *x)
{
	double before = -INFINITY;

	for (size_t i = 0; i < EXCUSE_POINTS; i++) {
		if (p->n[i] >= PAIRS_LEAST && p->rows[i] >= ROWS_LEAST)
			before = fmax(before,
				(double)gsl_stats_float_select(
					p->level[i], 1, p->n[i], p->n[i] / 2));
		x->usual[i] = before;
	}
	for (size_t i = EXCUSE_POINTS; i-- > 0;)
		if (isinf(x->usual[i]))
			x->usual[i] = i + 1 < EXCUSE_POINTS ? x->usual[i + 1] : 0;
}

void peers_learn_excuse(struct survey *s, struct excuse *x)
{
	struct pairs p = {.room = PAIRS_MAX};
	size_t blocks = s->end - s->first, stride = 1, skip = 1;

	/* Every so many blocks, so that a point has room for what falls on it. */
	while (blocks / stride > 16 && blocks / stride * s->n_rows * PANEL_BLOCK > 16 * PAIRS_MAX)
		stride++;
	while (blocks / stride * (s->n_rows / skip) * PANEL_BLOCK > 32 * PAIRS_MAX)
		skip++;
	for (size_t i = 0; i < EXCUSE_POINTS; i++)
		p.level[i] = alloc_zero(p.room, sizeof(**p.level));
	for (struct set *set = s->sets; set < s->sets + s->n_sets; set++) {
		locate_load(s, set, x->load);
		for (size_t i = 0; i < set->n_judged; i++)
			if (set->judged[i] % skip == 0)
				add_pairs(s, set, set->judged[i], x->load, stride, &p);
	}
	fit_excuse(&p, x);
	for (size_t i = 0; i < EXCUSE_POINTS; i++)
		free(p.level[i]);
}
