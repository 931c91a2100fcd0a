/* Where the peers of a row are, cell by cell, and how far the row is from them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diag/fleet/judge_impl.h"
#include "harness/base/alloc.h"

enum { COLUMNS_MAX = 64, PAIRS_OF_NETWORK = 543 };

/* A sorting network: pairs of places to be put in order. That of odd-even merges (Batcher 1968),
 * without the pairs that no place between 'first' and 'end' depends on. */
struct network {
	size_t n, first, end, n_pairs;
	uint8_t pair[PAIRS_OF_NETWORK][2];
};

static void network_prune(struct network *w)
{
	uint64_t needed = 0;
	size_t kept = w->n_pairs;

	for (size_t i = w->first; i < w->end; i++)
		needed |= 1ull << i;
	for (size_t i = w->n_pairs; i-- > 0;) {
		uint64_t both = 1ull << w->pair[i][0] | 1ull << w->pair[i][1];

		if (!(needed & both))
			continue;
		needed |= both;
		memmove(w->pair[--kept], w->pair[i], sizeof(*w->pair));
	}
	w->n_pairs -= kept;
	memmove(w->pair, w->pair + kept, w->n_pairs * sizeof(*w->pair));
}

static void network_make(struct network *w, size_t n, size_t first, size_t end)
{
	*w = (struct network){.n = n, .first = first, .end = end};
	for (size_t p = 1; p < n; p *= 2)
		for (size_t k = p; k; k /= 2)
			for (size_t j = k % p; j + k < n; j += 2 * k)
				for (size_t i = j; i < j + k && i + k < n; i++)
					if (i / (2 * p) == (i + k) / (2 * p)) {
						w->pair[w->n_pairs][0] = (uint8_t)i;
						w->pair[w->n_pairs++][1] = (uint8_t)(i + k);
					}
	network_prune(w);
}

/* Loops over the cells of a block are their own functions, in which the compiler sees that
 * nothing overlaps, and makes vector instructions of them. */
#define APART static __attribute__((noinline))

APART void order(int16_t *restrict low, int16_t *restrict high)
{
	for (size_t c = 0; c < PANEL_BLOCK; c++) {
		int16_t a = low[c], b = high[c];

		low[c] = a < b ? a : b;
		high[c] = a < b ? b : a;
	}
}

/* Sorts each column as far as the places between 'first' and 'end' are right. Two networks are
 * kept: most blocks of a set need the same one, with or without missing cells. */
static void sort_columns(int16_t (*v)[PANEL_BLOCK], size_t n, size_t first, size_t end)
{
	static _Thread_local struct network kept[2];
	struct network *w = &kept[end - first == n];

	if (w->n != n || w->first != first || w->end != end)
		network_make(w, n, first, end);
	for (size_t i = 0; i < w->n_pairs; i++)
		order(v[w->pair[i][0]], v[w->pair[i][1]]);
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

static uint16_t code_of(int16_t sorted)
{
	return (uint16_t)((uint16_t)sorted ^ 0x8000);
}

/* Of columns in which nothing is missing; 'v' is at the upper one of the middle two, or the
 * middle. */
static void middle_complete(int16_t (*v)[PANEL_BLOCK], size_t n, struct middle out)
{
	uint16_t low[PANEL_BLOCK], high[PANEL_BLOCK], next[PANEL_BLOCK];

	for (size_t c = 0; c < PANEL_BLOCK; c++) {
		low[c] = code_of(v[-1][c]);
		high[c] = code_of(v[0][c]);
		next[c] = n & 1 ? code_of(v[1][c]) : 0;
	}
	if (n & 1) {
		memcpy(out.all, high, sizeof(high));
		for (size_t c = 0; c < PANEL_BLOCK; c++) {
			out.below[c] = mean(high[c], next[c]);
			out.above[c] = mean(low[c], high[c]);
			out.same[c] = mean(low[c], next[c]);
		}
	} else {
		memcpy(out.below, high, sizeof(high));
		memcpy(out.above, low, sizeof(low));
		for (size_t c = 0; c < PANEL_BLOCK; c++)
			out.same[c] = mean(low[c], high[c]);
		memcpy(out.all, out.same, sizeof(low));
	}
}

APART void prepare(int16_t *restrict v, uint16_t *restrict missing, const uint16_t *restrict codes)
{
	for (size_t c = 0; c < PANEL_BLOCK; c++) {
		v[c] = (int16_t)(codes[c] ^ 0x8000);
		missing[c] = (uint16_t)(missing[c] + (codes[c] == PANEL_MISSING));
	}
}

/* Of a few rows. Without one that is below the median of an odd number, the median of the
 * others is the mean of that median and the next one, and so on. */
static void middle_of_few(const uint16_t *const *rows, size_t n, size_t least, struct middle out)
{
	/* Codes are shifted to signed numbers, of which every x86-64 has the minimum. */
	static _Thread_local int16_t v[COLUMNS_MAX][PANEL_BLOCK];
	uint16_t missing[PANEL_BLOCK] = {0};
	bool any = false;

	for (size_t i = 0; i < n; i++)
		prepare(v[i], missing, rows[i]);
	for (size_t c = 0; c < PANEL_BLOCK; c++)
		any |= missing[c] != 0;
	if (!any && n >= least && n >= 2) {
		sort_columns(v, n, n / 2 - 1, n / 2 + 1 + (n & 1));
		middle_complete(v + n / 2, n, out);
		return;
	}
	sort_columns(v, n, 0, n);
	for (size_t c = 0; c < PANEL_BLOCK; c++) {
		size_t there = n - missing[c], at = missing[c] + there / 2;
		uint16_t high, low;

		out.all[c] = out.below[c] = out.above[c] = out.same[c] = PANEL_MISSING;
		if (there < least || there < 2)
			continue;
		high = code_of(v[at][c]);
		low = code_of(v[at - 1][c]);
		if (there & 1) {
			uint16_t next = code_of(v[at + 1][c]);

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

/* Counts in which columns a row has a code below 'than'. Both are shifted to signed numbers. */
APART void count_below(
	const uint16_t *restrict codes, const int16_t *restrict than, uint16_t *restrict count)
{
	for (size_t c = 0; c < PANEL_BLOCK; c++)
		count[c] = (uint16_t)(count[c] + ((int16_t)(codes[c] ^ 0x8000) < than[c]));
}

/* How many codes of each column are below 'than'. */
static void ranks_of(const uint16_t *const *rows, size_t n, const uint16_t than[PANEL_BLOCK],
	uint32_t rank[PANEL_BLOCK])
{
	int16_t shifted[PANEL_BLOCK];

	memset(rank, 0, PANEL_BLOCK * sizeof(*rank));
	for (size_t c = 0; c < PANEL_BLOCK; c++)
		shifted[c] = (int16_t)(than[c] ^ 0x8000);
	for (size_t i = 0; i < n;) {
		uint16_t count[PANEL_BLOCK] = {0};
		size_t stop = n - i > UINT16_MAX ? i + UINT16_MAX : n;

		for (; i < stop; i++)
			count_below(rows[i], shifted, count);
		for (size_t c = 0; c < PANEL_BLOCK; c++)
			rank[c] += count[c];
	}
}

/* Of many, where one more or less makes no difference: the largest code with no more codes below it
 * than the median has, bit by bit. What is missing has the lowest code. */
static void middle_of_many(const uint16_t *const *rows, size_t n, size_t least, struct middle out)
{
	uint16_t found[PANEL_BLOCK] = {0}, trial[PANEL_BLOCK];
	uint32_t missing[PANEL_BLOCK], rank[PANEL_BLOCK];

	for (size_t c = 0; c < PANEL_BLOCK; c++)
		trial[c] = PANEL_MISSING + 1;
	ranks_of(rows, n, trial, missing);
	for (unsigned bit = 0x8000; bit; bit >>= 1) {
		for (size_t c = 0; c < PANEL_BLOCK; c++)
			trial[c] = (uint16_t)(found[c] | bit);
		ranks_of(rows, n, trial, rank);
		for (size_t c = 0; c < PANEL_BLOCK; c++)
			if (rank[c] <= missing[c] + (n - missing[c]) / 2)
				found[c] = trial[c];
	}
	for (size_t c = 0; c < PANEL_BLOCK; c++)
		out.all[c] = n - missing[c] < least ? PANEL_MISSING : found[c];
	for (size_t c = 0; c < PANEL_BLOCK; c++)
		out.below[c] = out.above[c] = out.same[c] = out.all[c];
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

APART void subtract(const uint16_t *restrict x, const uint16_t *restrict all,
	const uint16_t *restrict below, const uint16_t *restrict above,
	const uint16_t *restrict same, float unit, float *restrict d)
{
	uint16_t peers[PANEL_BLOCK];

	for (size_t c = 0; c < PANEL_BLOCK; c++) {
		uint16_t less = (uint16_t) - (x[c] < all[c]), more = (uint16_t) - (x[c] > all[c]);

		peers[c] = (uint16_t)((below[c] & less) | (above[c] & more) |
			(same[c] & ~(less | more)));
	}
	for (size_t c = 0; c < PANEL_BLOCK; c++)
		d[c] = unit * (float)(x[c] - peers[c]);
	for (size_t c = 0; c < PANEL_BLOCK; c++)
		d[c] = x[c] ? d[c] : NAN;
	for (size_t c = 0; c < PANEL_BLOCK; c++)
		d[c] = all[c] ? d[c] : NAN;
}

static void raw_deviations(const struct survey *s, const struct set *set, uint32_t row,
	size_t place, float *restrict d)
{
	const uint16_t *cells = panel_cells(s->panel, row, place);
	size_t at = (place - s->first) * PANEL_BLOCK;
	const uint16_t *all = set->location + at, *below = s->without[0] + at,
		       *above = s->without[1] + at, *same = s->without[2] + at;
	const float unit = (float)(s->sign * PANEL_LOG_STEP);
	int64_t begin = s->panel->when[place] * PANEL_BLOCK;

	if (!cells) {
		for (size_t c = 0; c < PANEL_BLOCK; c++)
			d[c] = NAN;
		return;
	}
	if (s->suspect[row] || !survey_with(s, FLEET_OTHERS))
		below = above = same = all;
	subtract(cells, all, below, above, same, unit, d);
	if (begin >= s->from && begin + PANEL_BLOCK <= s->to)
		return;
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
