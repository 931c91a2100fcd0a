/* The table of levels: codes, cells, blocks of time, and memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants those four first */
#include <cmocka.h>
#include <float.h>
#include <math.h>

#include "ci/tests/fleet/fed.h"

static void every_code_stands_for_a_level(void **state)
{
	(void)state;
	for (unsigned code = 1; code <= UINT16_MAX; code++)
		assert_int_equal(panel_code(log2(panel_level(code))), code);
	/* The range that the header states. */
	assert_true(panel_level(1) < 6e-11 && panel_level(UINT16_MAX) > 7e19);
}

static void a_level_is_kept_to_a_twentieth_of_a_percent(void **state)
{
	(void)state;
	for (int i = 0; i < 20000; i++) {
		double level = exp(log(6e-11) + chance(1, 0, (uint64_t)i) * log(7e19 / 6e-11));
		double kept = panel_level(panel_code(panel_log2(level)));

		assert_true(fabs(kept / level - 1) < 0.00054);
	}
}

static void what_is_out_of_range_becomes_the_nearest_level(void **state)
{
	(void)state;
	assert_int_equal(panel_code(-1e9), 1);
	assert_int_equal(panel_code(-INFINITY), 1);
	assert_int_equal(panel_code(1e9), UINT16_MAX);
	assert_int_equal(panel_code(INFINITY), UINT16_MAX);
	assert_int_equal(panel_code(log2(DBL_TRUE_MIN)), 1);
	assert_int_equal(panel_code(log2(DBL_MAX)), UINT16_MAX);
}

static void the_logarithm_is_log2(void **state)
{
	const double hard[] = {1, 2, 0.5, M_SQRT2, M_SQRT1_2, nextafter(1, 0), nextafter(1, 2),
		nextafter(M_SQRT2, 0), nextafter(M_SQRT2, 2), DBL_MIN, DBL_MAX, DBL_TRUE_MIN,
		DBL_MIN / 3, 1e-300, 1e300};

	(void)state;
	for (size_t i = 0; i < sizeof(hard) / sizeof(*hard); i++)
		assert_true(fabs(panel_log2(hard[i]) - log2(hard[i])) < 1e-6);
	for (int i = 0; i < 200000; i++) {
		double x = exp(1400 * (chance(2, 0, (uint64_t)i) - 0.5));

		assert_true(fabs(panel_log2(x) - log2(x)) < 1e-6);
	}
	assert_true(isinf(panel_log2(INFINITY)) && isinf(panel_log2(0)));
	assert_true(isnan(panel_log2(NAN)) && isnan(panel_log2(-1)));
}

static uint16_t cell(const struct panel *p, uint32_t row, int64_t at)
{
	size_t first, end;
	const uint16_t *cells;

	panel_range(p, at, at + 1, &first, &end);
	if (first == end || p->when[first] != at >> 6)
		return PANEL_MISSING;
	cells = panel_cells(p, row, first);
	return cells ? cells[at & (PANEL_BLOCK - 1)] : PANEL_MISSING;
}

static void cells_hold_what_was_put(void **state)
{
	struct panel_pool *pool = panel_pool_new();
	struct panel p;
	const int64_t far[] = {0, 63, 64, -1, -64, -65, 1000000, -1000000, INT64_C(1) << 50};
	enum { N = sizeof(far) / sizeof(*far) };

	(void)state;
	panel_init(&p, pool, 10);
	for (unsigned row = 0; row < 40; row++)
		assert_int_equal(panel_add_row(&p), row);
	for (unsigned i = 0; i < N; i++)
		panel_put(&p, i % 3, far[i], (uint16_t)(100 + i));
	for (unsigned i = 0; i < N; i++)
		for (uint32_t row = 0; row < 40; row++)
			assert_int_equal(
				cell(&p, row, far[i]), row == i % 3 ? 100 + i : PANEL_MISSING);
	for (size_t i = 1; i < p.n_blocks; i++)
		assert_true(p.when[i - 1] < p.when[i]);
	panel_put(&p, 0, 0, 103); /* 100 is there */
	assert_int_equal(cell(&p, 0, 0), 102);
	panel_clear(&p);
	assert_int_equal(panel_pool_bytes(pool), 0);
	panel_pool_free(pool);
	panel_pool_free(NULL);
}

static void ranges_cover_their_cells(void **state)
{
	struct panel_pool *pool = panel_pool_new();
	struct panel p;
	size_t first, end;

	(void)state;
	panel_init(&p, pool, 1);
	panel_add_row(&p);
	panel_range(&p, -1000, 1000, &first, &end);
	assert_int_equal(first, end);
	panel_put(&p, 0, 10, 1);      /* block 0 */
	panel_put(&p, 0, 64 * 5, 1);  /* 5 */
	panel_put(&p, 0, -64 * 3, 1); /* -3 */
	panel_range(&p, 0, 64, &first, &end);
	assert_int_equal(first, 1);
	assert_int_equal(end, 2);
	panel_range(&p, 0, 65, &first, &end);
	assert_int_equal(end, 2);
	panel_range(&p, 63, 64 * 5 + 1, &first, &end);
	assert_int_equal(first, 1);
	assert_int_equal(end, 3);
	panel_range(&p, 64, 64 * 5, &first, &end);
	assert_int_equal(first, end);
	panel_range(&p, -64 * 3, -64 * 3 + 1, &first, &end);
	assert_int_equal(first, 0);
	assert_int_equal(end, 1);
	panel_clear(&p);
	panel_pool_free(pool);
}

static void halving_keeps_means(void **state)
{
	struct panel_pool *pool = panel_pool_new();
	struct panel p;

	(void)state;
	panel_init(&p, pool, 1);
	for (int i = 0; i < 3; i++)
		panel_add_row(&p);
	for (int64_t at = -500; at < 500; at++) {
		panel_put(&p, 0, at, (uint16_t)(1000 + at));
		if (at % 7 == 0)
			panel_put(&p, 2, at, 5000); /* alone in its pair */
	}
	panel_halve(&p);
	assert_int_equal(p.shift, 1);
	for (int64_t at = -250; at < 250; at++) {
		bool even = (2 * at) % 7 == 0, odd = (2 * at + 1) % 7 == 0;

		assert_int_equal(cell(&p, 0, at), 1000 + 2 * at + 1);
		assert_int_equal(cell(&p, 1, at), PANEL_MISSING);
		assert_int_equal(cell(&p, 2, at), even || odd ? 5000 : PANEL_MISSING);
	}
	assert_int_equal(cell(&p, 0, 250), PANEL_MISSING);
	for (int i = 0; i < 12; i++)
		panel_halve(&p);
	assert_in_range(cell(&p, 0, 0), 1200, 1300);
	assert_int_equal(cell(&p, 2, -1), 5000);
	assert_int_equal(panel_pool_bytes(pool), 2 * 2 * PANEL_BLOCK * sizeof(uint16_t));
	panel_clear(&p);
	assert_int_equal(panel_pool_bytes(pool), 0);
	panel_pool_free(pool);
}

static void what_is_forgotten_gives_its_memory_back(void **state)
{
	struct panel_pool *pool = panel_pool_new();
	struct panel p;
	size_t before;

	(void)state;
	panel_init(&p, pool, 1);
	for (int i = 0; i < 4; i++)
		panel_add_row(&p);
	/* Rows of different extent, with a gap for all. */
	for (uint32_t row = 0; row < 4; row++)
		for (int64_t b = row; b < 20; b++)
			if (b < 8 || b >= 12)
				panel_put(&p, row, b * 64 + 3, (uint16_t)(b + 1));
	before = panel_pool_bytes(pool);
	assert_int_equal(before, (16 + 15 + 14 + 13) * 128);
	panel_forget(&p, 0);
	assert_int_equal(panel_pool_bytes(pool), before);
	panel_forget(&p, 5 * 64 + 63); /* block 5 is not past yet */
	assert_int_equal(panel_pool_bytes(pool), 4 * (3 + 8) * 128);
	for (uint32_t row = 0; row < 4; row++)
		for (int64_t b = 0; b < 20; b++)
			assert_int_equal(cell(&p, row, b * 64 + 3),
				b >= 5 && (b < 8 || b >= 12) ? b + 1 : PANEL_MISSING);
	/* Slots are used again: a year of forgetting needs no more of them. */
	for (int64_t b = 20; b < 2000; b++) {
		for (uint32_t row = 0; row < 4; row++)
			panel_put(&p, row, b * 64, (uint16_t)b);
		panel_forget(&p, (b - 8) * 64);
	}
	assert_int_equal(p.n_blocks, 9);
	assert_true(p.n_slots <= 16);
	assert_int_equal(panel_pool_bytes(pool), 4 * 9 * 128);
	assert_int_equal(cell(&p, 3, 1995 * 64), 1995);
	panel_forget(&p, INT64_MAX - 64);
	assert_int_equal(p.n_blocks, 0);
	assert_int_equal(panel_pool_bytes(pool), 0);
	panel_put(&p, 1, 5, 9);
	assert_int_equal(cell(&p, 1, 5), 9);
	panel_clear(&p);
	panel_pool_free(pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_code_stands_for_a_level),
		cmocka_unit_test(a_level_is_kept_to_a_twentieth_of_a_percent),
		cmocka_unit_test(what_is_out_of_range_becomes_the_nearest_level),
		cmocka_unit_test(the_logarithm_is_log2),
		cmocka_unit_test(cells_hold_what_was_put),
		cmocka_unit_test(ranges_cover_their_cells),
		cmocka_unit_test(halving_keeps_means),
		cmocka_unit_test(what_is_forgotten_gives_its_memory_back),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
