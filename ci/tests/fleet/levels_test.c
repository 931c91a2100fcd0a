/* From samples to the table of levels: counters, amounts, buckets, zeros, steps, order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants those four first */
#include <cmocka.h>

#include "ci/tests/fleet/fed.h"

static struct metric *metric(struct fed *x, const char *name)
{
	for (size_t i = 0; i < x->f->n_metrics; i++)
		if (!strcmp(x->f->metrics[i].model.name, name))
			return &x->f->metrics[i];
	fail_msg("no metric '%s'", name);
	return NULL;
}

/* The level of a row at a time; 0: none. Without what was added for zeros. */
static double level(struct fed *x, const char *name, uint32_t row, double time_s)
{
	struct metric *m = metric(x, name);
	int64_t at;
	size_t first, end;
	const uint16_t *cells;

	level_finish(x->f);
	at = level_cell(x->f, m, time_s);
	panel_range(&m->panel, at, at + 1, &first, &end);
	if (first == end)
		return 0;
	cells = panel_cells(&m->panel, row, first);
	if (!cells || !cells[at & (PANEL_BLOCK - 1)])
		return 0;
	return panel_level(cells[at & (PANEL_BLOCK - 1)]) -
		(m->model.zero == ZERO_VALUE ? m->floor : 0);
}

static void near(double is, double want)
{
	if (!(fabs(is - want) <= 0.003 * fabs(want)))
		fail_msg("%.9g, not %.9g", is, want);
}

static void counters_become_rates(void **state)
{
	struct fed x = fed_new("c kind=counter worse=more zero=missing", NULL);
	uint32_t s = fed_series(&x, "c", "", "a");

	(void)state;
	fed_put(&x, s, 0, 1000);
	fed_put(&x, s, 10, 1050); /* 5 a second */
	fed_put(&x, s, 10, 9999); /* the same time again */
	fed_put(&x, s, 20, 1150); /* 10 */
	fed_put(&x, s, 30, 20);   /* a restart */
	fed_put(&x, s, 40, 50);   /* 3 */
	fed_put(&x, s, 35, 99);   /* late */
	fed_put(&x, s, 70, 170);  /* 4, after a gap */
	fed_put(&x, s, 80, 170);  /* nothing */
	near(level(&x, "c", 0, 10), 5);
	near(level(&x, "c", 0, 20), 10);
	near(level(&x, "c", 0, 40), 3);
	near(level(&x, "c", 0, 70), 4);
	assert_true(level(&x, "c", 0, 0) == 0 && level(&x, "c", 0, 30) == 0 &&
		level(&x, "c", 0, 50) == 0 && level(&x, "c", 0, 80) == 0);
	assert_int_equal(metric(&x, "c")->restarts, 1);
	assert_int_equal(metric(&x, "c")->repeated, 1);
	assert_int_equal(metric(&x, "c")->late, 1);
	assert_int_equal(metric(&x, "c")->zeros, 1);
	fed_free(&x);
}

/* Twice the work in twice the time is the same level, whichever series comes first, and whether the
 * values grow or not. */
static void amounts_are_divided_by_their_exposure(void **state)
{
	(void)state;
	for (int how = 0; how < 4; how++) {
		bool grows = how & 1;
		struct fed x = fed_new(
			grows ? "t per=n worse=more counter=yes" : "t per=n worse=more", NULL);
		const char *first = how & 2 ? "n" : "t", *second = how & 2 ? "t" : "n";
		uint32_t s1 = fed_series(&x, first, "", "a"), s2 = fed_series(&x, second, "", "a");
		double sum_n = 0, sum_t = 0;

		for (int i = 0; i < 100; i++) {
			double n = i % 10 ? 100 * (1 + i % 5) : 0, t = n * (i < 50 ? 3 : 7);

			sum_n = grows ? sum_n + n : n;
			sum_t = grows ? sum_t + t : t;
			fed_put(&x, s1, 60.0 * i, how & 2 ? sum_n : sum_t);
			fed_put(&x, s2, 60.0 * i, how & 2 ? sum_t : sum_n);
		}
		for (int i = 1; i < 100; i++)
			near(level(&x, "t", 0, 60.0 * i), i % 10 == 0 ? 0 : i < 50 ? 3 : 7);
		fed_free(&x);
	}
}

/* Bounds 1, 2, 4, +Inf with 10, 10, 10, 0 in them: the quantile 0.5 is 1.5, the one of 0.9 is 3.4.
 * Prometheus gives the largest finite bound if the quantile is above it. */
static void buckets_give_quantiles(void **state)
{
	static const struct {
		const char *declaration;
		double counts[4], want;
	} cases[] = {{"h kind=bucket worse=more quantile=0.5", {10, 20, 30, 30}, 1.5},
		{"h kind=bucket worse=more quantile=0.9", {10, 20, 30, 30}, 3.4},
		{"h kind=bucket worse=more quantile=0.1", {10, 20, 30, 30}, 0.3},
		{"h kind=bucket worse=more quantile=0.99", {10, 20, 30, 60}, 4},
		{"h kind=bucket worse=more quantile=0.5", {0, 0, 0, 9}, 4},
		{"h kind=bucket worse=more quantile=0.5", {0, 0, 8, 8}, 3},
		{"h kind=bucket worse=more", {0, 0, 0, 0}, 0}};
	/* In another order than that of their bounds. */
	static const char *const names[] = {
		"h{le=\"4\"}", "h{le=\"+Inf\"}", "h{le=\"1\"}", "h{le=\"2\"}"};
	static const int place[] = {2, 3, 0, 1};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct fed x = fed_new(cases[i].declaration, NULL);
		uint32_t s[4];

		for (int k = 0; k < 4; k++)
			s[k] = fed_series(&x, names[k], "", "a");
		for (int t = 0; t < 4; t++)
			for (int k = 0; k < 4; k++) /* at 3 it has restarted */
				fed_put(&x, s[k], 10 * t,
					t < 3 ? 100 + t * cases[i].counts[place[k]] : 1);
		near(level(&x, "h", 0, 10), cases[i].want);
		near(level(&x, "h", 0, 20), cases[i].want);
		fed_free(&x);
	}
}

static void zeros_are_levels_or_nothing(void **state)
{
	(void)state;
	for (int value = 0; value < 2; value++) {
		struct fed x = fed_new(value ? "q worse=more kind=gauge zero=value"
					     : "q worse=more kind=gauge zero=missing",
			NULL);
		uint32_t s = fed_series(&x, "q", "", "a");

		for (int i = 0; i < 50; i++)
			fed_put(&x, s, i, i % 2 ? 40 : i == 4 ? -1 : 0);
		near(level(&x, "q", 0, 3), 40);
		if (value) {
			near(metric(&x, "q")->floor, 2);
			assert_true(fabs(level(&x, "q", 0, 2)) < 0.01); /* it is there */
			assert_true(level(&x, "q", 0, 2) != 0);
		} else {
			assert_true(level(&x, "q", 0, 2) == 0);
		}
		assert_true(level(&x, "q", 0, 4) == 0);
		assert_int_equal(metric(&x, "q")->negatives, 1);
		assert_int_equal(metric(&x, "q")->zeros, 24);
		fed_free(&x);
	}
}

/* What is added for zeros is a twentieth of the typical level, in whichever unit. */
static void the_floor_follows_the_unit(void **state)
{
	static const char *const declarations[] = {"v kind=gauge worse=more zero=value",
		"v kind=counter worse=more zero=value", "v per=n worse=more zero=value",
		"v per=n worse=more zero=value counter=yes"};

	(void)state;
	for (size_t d = 0; d < 4; d++)
		for (double scale = 1e-6; scale < 1e7; scale *= 1e6) {
			struct fed x = fed_new(declarations[d], NULL);
			uint32_t v = fed_series(&x, "v", "", "a"), n = fed_series(&x, "n", "", "a");

			for (int i = 0; i < 200; i++) {
				double grown = d & 1 ? i : 1;

				fed_put(&x, v, 10 * i, scale * 600 * grown);
				fed_put(&x, n, 10 * i, 100 * grown);
			}
			level_finish(x.f);
			near(metric(&x, "v")->floor, (d == 0 ? 600 : d == 1 ? 60 : 6) * scale / 20);
			fed_free(&x);
		}
}

static void late_and_repeated_samples_have_their_place(void **state)
{
	struct fed x = fed_new("g kind=gauge worse=more zero=missing", NULL);
	uint32_t s = fed_series(&x, "g", "", "a");

	(void)state;
	for (int i = 0; i < 100; i++)
		if (i != 50)
			fed_put(&x, s, 60 * i, 2);
	fed_put(&x, s, 60 * 50, 8);  /* late */
	fed_put(&x, s, -60 * 10, 5); /* before all others */
	fed_put(&x, s, 60 * 100, 1); /* one cell: the geometric mean */
	fed_put(&x, s, 60 * 100, 4);
	near(level(&x, "g", 0, 60 * 49), 2);
	near(level(&x, "g", 0, 60 * 50), 8);
	near(level(&x, "g", 0, -60 * 10), 5);
	near(level(&x, "g", 0, 60 * 100), 2);
	near(level(&x, "g", 0, -60 * 9), 0);
	assert_int_equal(metric(&x, "g")->late, 2);
	assert_int_equal(metric(&x, "g")->repeated, 1);
	fed_free(&x);
}

static void steps_are_found(void **state)
{
	struct fed x = fed_new("", NULL);
	uint32_t a = fed_series(&x, "a", "", "m"), b = fed_series(&x, "b", "", "m"),
		 c = fed_series(&x, "c", "", "m");
	double random = 0;

	(void)state;
	for (uint64_t i = 0; i < 300; i++) {
		double jitter = 3 * (chance(1, 0, i) - 0.5);

		fed_put(&x, a, 1e9 + 60.0 * (double)i + jitter, 1); /* jittered */
		fed_put(&x, b, 1e9 + 10.0 * (double)i, 1);
		if (i % 9 < 2) /* so and then not at all */
			random += 3000;
		random += 100 + 40 * chance(2, 0, i);
		fed_put(&x, c, 1e9 + random, 1);
	}
	level_finish(x.f);
	assert_true(fabs(metric(&x, "a")->panel.step_s - 60) < 0.5);
	assert_true(metric(&x, "b")->panel.step_s == 10);
	assert_in_range(metric(&x, "c")->panel.step_s, 110, 140);
	/* Jitter neither merges cells nor leaves any empty, far from the first sample as well. */
	for (int i = 0; i < 300; i++)
		assert_true(level(&x, "a", 0, 1e9 + 60.0 * i) > 0 || i > 100);
	fed_free(&x);
}

static void metrics_that_come_together_share_their_cells(void **state)
{
	struct fed x = fed_new("", NULL);
	uint32_t a = fed_series(&x, "a", "", "m"), b = fed_series(&x, "b", "", "m");

	(void)state;
	for (uint64_t i = 0; i < 100; i++) {
		fed_put(&x, a, 60.0 * (double)i, 1);
		fed_put(&x, b, 60.0 * (double)i + 4 * chance(1, 0, i), 1);
	}
	level_finish(x.f);
	assert_true(metric(&x, "a")->panel.step_s == metric(&x, "b")->panel.step_s);
	fed_free(&x);
}

/* A metric that comes when others have been settled for long, or after a judgement. */
static void a_late_metric_finds_its_own_step(void **state)
{
	(void)state;
	for (int judged = 0; judged < 2; judged++) {
		struct fed x = fed_new("", NULL);
		uint32_t a = fed_series(&x, "a", "", "m"), b = fed_series(&x, "b", "", "m");

		for (int i = 0; i < 9000; i++)
			fed_put(&x, a, i, 1);
		if (judged)
			fed_judge(&x, 0, 0);
		for (int i = 0; i < 50; i++)
			fed_put(&x, b, 9000 + 300 * i, 5);
		level_finish(x.f);
		assert_true(metric(&x, "a")->panel.step_s == 1);
		assert_true(metric(&x, "b")->panel.step_s == 300);
		near(level(&x, "b", 0, 9300), 5);
		fed_free(&x);
	}
}

static void same_tables(struct fed *x, struct fed *y)
{
	level_finish(x->f);
	level_finish(y->f);
	assert_int_equal(x->f->n_metrics, y->f->n_metrics);
	for (size_t i = 0; i < x->f->n_metrics; i++) {
		struct panel *p = &x->f->metrics[i].panel, *q = &y->f->metrics[i].panel;

		assert_true(p->step_s == q->step_s && p->shift == q->shift);
		assert_int_equal(p->n_rows, q->n_rows);
		assert_int_equal(p->n_blocks, q->n_blocks);
		for (uint32_t row = 0; row < p->n_rows; row++)
			for (size_t b = 0; b < p->n_blocks; b++) {
				const uint16_t *u = panel_cells(p, row, b),
					       *v = panel_cells(q, row, b);

				assert_int_equal(p->when[b], q->when[b]);
				assert_int_equal(!u, !v);
				for (int c = 0; u && c < PANEL_BLOCK; c++)
					assert_int_equal(u[c], v[c]);
			}
	}
}

/* Series after series, or time after time. More samples than are waited for. */
static void the_order_of_series_does_not_matter(void **state)
{
	enum { MEMBERS = 5, TIMES = 3000, ALL = MEMBERS * TIMES };

	(void)state;
	for (int counter = 0; counter < 2; counter++) {
		const char *how = counter ? "g kind=counter" : "g kind=gauge zero=missing";
		struct fed x[2] = {fed_new(how, NULL), fed_new(how, NULL)};

		for (int order = 0; order < 2; order++)
			for (int i = 0; i < ALL; i++) {
				int s = order ? i / TIMES : i % MEMBERS;
				int t = order ? i % TIMES : i / MEMBERS;
				char name[2] = {(char)('a' + s)};

				fed_put(&x[order], fed_series(&x[order], "g", "", name), 60.0 * t,
					(s + 2.0) * t + chance((uint64_t)s, 0, (uint64_t)t));
			}
		x[1].f->metrics[0].floor = x[0].f->metrics[0].floor;
		if (!counter)
			same_tables(&x[0], &x[1]);
		assert_true(level(&x[1], "g", 0, 6000) > 0);
		fed_free(&x[0]);
		fed_free(&x[1]);
	}
}

/* The two series of an amount may come one after the other; those of a histogram must come
 * together. What has no counterpart is said. */
static void what_has_no_counterpart_is_said(void **state)
{
	(void)state;
	for (int bucket = 0; bucket < 2; bucket++) {
		struct fed x = fed_new(
			bucket ? "h worse=more kind=bucket" : "h worse=more per=n", NULL);
		const char *names[] = {
			bucket ? "h{le=\"1\"}" : "h", bucket ? "h{le=\"+Inf\"}" : "n"};
		bool said = false;

		if (!bucket)
			fed_put(&x, fed_series(&x, "h", "", "b"), 60, 1);
		for (int k = 0; k < 2; k++) {
			uint32_t s = fed_series(&x, names[k], "", "a");

			for (int i = 0; i < 100; i++)
				fed_put(&x, s, 60 * i, 100 * (i + 1) * (2 - k));
		}
		fed_judge(&x, 0, 0);
		for (size_t i = 0; i < x.r->n_notes; i++)
			said = said || strstr(x.r->notes[i], "have no counterpart");
		assert_true(said);
		if (bucket)
			assert_true(level(&x, "h", 0, 600) == 0);
		else
			near(level(&x, "h", 1, 600), 2);
		fed_free(&x);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counters_become_rates),
		cmocka_unit_test(amounts_are_divided_by_their_exposure),
		cmocka_unit_test(buckets_give_quantiles),
		cmocka_unit_test(zeros_are_levels_or_nothing),
		cmocka_unit_test(the_floor_follows_the_unit),
		cmocka_unit_test(late_and_repeated_samples_have_their_place),
		cmocka_unit_test(steps_are_found),
		cmocka_unit_test(metrics_that_come_together_share_their_cells),
		cmocka_unit_test(a_late_metric_finds_its_own_step),
		cmocka_unit_test(the_order_of_series_does_not_matter),
		cmocka_unit_test(what_has_no_counterpart_is_said),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
