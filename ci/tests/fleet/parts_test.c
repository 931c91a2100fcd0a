/* Parts of the fleet detector that were made fast give what the plain way gives. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants those four first */
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diag/fleet/judge_impl.h"
#include "harness/base/alloc.h"

static uint64_t state = 7;

static uint32_t draw(uint32_t below)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(state >> 33) % below;
}

static void logarithms_are_exact(void **unused)
{
	(void)unused;
	for (int e = -1030; e < 1024; e++)
		for (int i = 0; i < 20; i++) {
			double x = ldexp(1 + draw(1 << 20) / 1048576.0, e);

			assert_true(fabs(panel_log2(x) - log2(x)) < 2e-9);
		}
	assert_true(panel_log2(1) == 0);
	assert_true(isinf(panel_log2(INFINITY)));
	assert_int_equal(panel_code(panel_log2(INFINITY)), UINT16_MAX);
	assert_int_equal(panel_code(panel_log2(5e-324)), 1);
}

static void names_are_found_again(void **unused)
{
	struct fleet *f = fleet_new(&fleet_defaults);

	(void)unused;
	for (int round = 0; round < 2; round++)
		for (uint32_t i = 0; i < 20000; i++) {
			char text[16];

			/* The same texts below other parents, and of another kind, are others. */
			snprintf(text, sizeof(text), "disk%u", i % 100);
			assert_int_equal(names_find(f, 'm', i / 100, text, round ? 77 : i), i);
			assert_int_equal(
				names_find(f, 's', i / 100, text, round ? 77 : 2 * i), 2 * i);
		}
	fleet_free(f);
}

static int by_code(const void *a, const void *b)
{
	return *(const uint16_t *)a - *(const uint16_t *)b;
}

static uint16_t plain_median(const uint16_t *const *rows, size_t n, size_t column)
{
	uint16_t v[200];
	size_t there = 0;

	for (size_t i = 0; i < n; i++)
		if (rows[i][column])
			v[there++] = rows[i][column];
	if (there < SET_PEERS_MIN)
		return PANEL_MISSING;
	qsort(v, there, sizeof(*v), by_code);
	return n > 64 || there & 1 ? v[there / 2]
				   : (uint16_t)((v[there / 2 - 1] + v[there / 2] + 1) / 2);
}

static void medians_are_right(void **unused)
{
	static uint16_t codes[200][PANEL_BLOCK];
	const uint16_t *rows[200];

	(void)unused;
	for (size_t n = SET_PEERS_MIN; n <= 200; n++)
		for (uint32_t missing = 0; missing < 3; missing++) {
			uint16_t out[PANEL_BLOCK];
			uint32_t range = draw(2) ? 65535 : 5;

			for (size_t i = 0; i < n; i++) {
				rows[i] = codes[i];
				for (size_t c = 0; c < PANEL_BLOCK; c++)
					codes[i][c] = (uint16_t)(missing && draw(3) < missing
							? PANEL_MISSING
							: 1 + draw(range));
			}
			peers_medians(rows, n, out);
			for (size_t c = 0; c < PANEL_BLOCK; c++)
				assert_int_equal(out[c], plain_median(rows, n, c));
		}
}

enum { ROWS = 5, BLOCKS = 9, CELLS = BLOCKS * PANEL_BLOCK, LEVELS = 6 };

/* Windows as they come. */
struct seen {
	float v[LEVELS][CELLS];
};

static void see(void *ctx, unsigned level, int64_t index, const float *v, size_t n)
{
	struct seen *s = ctx;

	for (size_t i = 0; i < n; i++)
		s->v[level][index + (int64_t)i] = v[i];
}

static int by_value(const void *a, const void *b)
{
	return *(const float *)a < *(const float *)b ? -1 : *(const float *)a > *(const float *)b;
}

/* The windows of a level from those of the one below; 'possible': there could be one. */
static void plain_windows(const float *below, const bool *could, float *v, bool *possible, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		float there[4];
		size_t have = 0, expected = 0;

		for (size_t k = 4 * i; k < 4 * i + 4 && k < CELLS; k++) {
			expected += could[k];
			if (could[k] && !isnan(below[k]))
				there[have++] = below[k];
		}
		qsort(there, have, sizeof(*there), by_value);
		possible[i] = expected > 0;
		v[i] = !have || 2 * have < expected ? NAN
			: have & 1                  ? there[have / 2]
						    : (there[have / 2 - 1] + there[have / 2]) / 2;
	}
}

static void check_row(struct survey *s, uint32_t row)
{
	static struct seen seen;
	static float v[2][CELLS + 4];
	static bool possible[2][CELLS + 4];
	struct ladder l = {.emit = see, .ctx = &seen, .levels = LEVELS};
	size_t n = CELLS;

	for (size_t level = 0; level < LEVELS; level++)
		for (size_t i = 0; i < CELLS; i++)
			seen.v[level][i] = NAN;
	ladder_run(s, row, &l);
	for (size_t place = 0; place < BLOCKS; place++)
		peers_deviations(s, s->sets, row, place, v[0] + place * PANEL_BLOCK);
	for (size_t c = 0; c < CELLS; c++)
		possible[0][c] = (int64_t)c >= s->from && (int64_t)c < s->to &&
			s->sets->location[c] != PANEL_MISSING;
	for (unsigned level = 0; level < LEVELS; level++, n = (n + 3) / 4) {
		unsigned at = level & 1;

		for (size_t i = 0; i < n; i++)
			assert_true(isnan(v[at][i]) ? isnan(seen.v[level][i])
						    : v[at][i] == seen.v[level][i]);
		memset(possible[!at], 0, sizeof(possible[0]));
		plain_windows(v[at], possible[at], v[!at], possible[!at], (n + 3) / 4);
	}
}

static void windows_are_right(void **unused)
{
	(void)unused;
	for (uint32_t gaps = 0; gaps < 4; gaps++) {
		struct fleet *f = fleet_new(&fleet_defaults);
		struct panel p;
		struct survey s = {.fleet = f, .panel = &p, .sign = 1, .n_rows = ROWS};
		uint32_t groups[ROWS] = {0}, set_of[ROWS];
		uint8_t suspect[ROWS] = {0};

		panel_init(&p, f->pool, 1);
		for (uint32_t row = 0; row < ROWS; row++) {
			panel_add_row(&p);
			for (int64_t c = 0; c < CELLS; c++)
				if (!gaps || draw(4) >= gaps)
					panel_put(&p, row, c, (uint16_t)(20000 + draw(2000)));
		}
		s.end = BLOCKS;
		s.from = gaps == 2 ? 70 : 0;
		s.to = gaps == 2 ? CELLS - 100 : CELLS;
		s.set_of = set_of;
		s.suspect = suspect;
		assert_int_equal(survey_sets(&s, groups), 0);
		for (uint32_t row = 0; row < ROWS; row++)
			check_row(&s, row);
		s.set_of = NULL;
		s.suspect = NULL;
		survey_clear(&s);
		panel_clear(&p);
		fleet_free(f);
	}
}

/* Eight samples share a cell in the end; the last of them is the largest. */
static void samples_of_a_cell_weigh_alike(void **unused)
{
	struct fleet_options o = fleet_defaults;
	struct series_key key = {"latency_ms", "sda", {NULL}, 0};
	struct import_sink sink;
	struct fleet *f;
	struct err e;
	uint32_t id;
	const struct panel *p;

	(void)unused;
	o.memory_bytes = 140000;
	f = fleet_new(&o);
	sink = fleet_sink(f);
	assert_int_equal(sink.series(sink.ctx, &key, &id, &e), 0);
	for (int i = 0; i < 1 << 19; i++)
		assert_int_equal(sink.sample(sink.ctx, id, 60. * i, i % 8 == 7 ? 256 : 1, &e), 0);
	level_finish(f);
	p = &f->metrics[0].panel;
	assert_int_equal(p->shift, 3);
	for (size_t place = 0; place < p->n_blocks; place++)
		for (size_t c = 0; c < PANEL_BLOCK; c++)
			assert_true(
				fabs(log2(panel_level(panel_cells(p, 0, place)[c])) - 1) < 0.01);
	fleet_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(logarithms_are_exact),
		cmocka_unit_test(names_are_found_again),
		cmocka_unit_test(medians_are_right),
		cmocka_unit_test(windows_are_right),
		cmocka_unit_test(samples_of_a_cell_weigh_alike),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
