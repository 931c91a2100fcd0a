/* Where the peers of a row are, cell by cell, and how far the row is from them. */
#include <gsl/gsl_statistics_ushort.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diag/fleet/judge_impl.h"
#include "harness/base/alloc.h"

enum { COLUMNS_MAX = 64 };

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

void peers_medians(const uint16_t *const *rows, size_t n, uint16_t out[PANEL_BLOCK])
{
	uint16_t no[PANEL_BLOCK];

	if (n < SET_PEERS_MIN)
		memset(out, 0, PANEL_BLOCK * sizeof(*out));
	else
		middle_of(rows, n, SET_PEERS_MIN, (struct middle){out, no, no, no});
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
	raw_deviations(s, set, row, place, d);
	if (s->excuse && set->load)
		excuse_apply(s, set, row, place, d);
}
