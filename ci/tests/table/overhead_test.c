/* The overhead table: the figure, its interval, and omitted values. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <stdint.h>
#include <cmocka.h>

#include "harness/table/overhead.h"

static int add(struct overhead *o, const char *workload, const char *tracer, long block,
	double seconds, double cpu_s, int64_t calls)
{
	const struct overhead_run r = {.workload = workload,
		.tracer = tracer,
		.block = block,
		.seconds = seconds,
		.cpu_s = cpu_s,
		.tracers_s = cpu_s / 10,
		.records = calls < 0 ? -1 : calls / 10,
		.calls = calls,
		.lost = calls < 0 ? -1 : block == 2};
	struct err e;

	return overhead_add(o, &r, &e);
}

static struct overhead *filled(void)
{
	/* Worked out apart from the program: untraced 10 12 11 13, traced 11 13 12.5 13.5. */
	static const double untraced[] = {10, 12, 11, 13}, traced[] = {11, 13, 12.5, 13.5};
	/* Processor time: 2 added in 1 000 000 calls, 3 in 1 500 000, and so on. */
	static const double idle[] = {20, 21, 20, 21}, busy[] = {22, 24, 22.5, 23};
	static const int64_t calls[] = {1000000, 1500000, 1000000, 1500000};
	struct overhead *o = overhead_new();

	for (long b = 0; b < 4; b++) {
		assert_int_equal(add(o, "ddw", "ebpf", b, traced[b], busy[b], calls[b]), 0);
		assert_int_equal(add(o, "ddw", "sysstat", b, traced[b], busy[b], -1), 0);
		assert_int_equal(add(o, "ddw", "none", b, untraced[b], idle[b], -1), 0);
	}
	/* No untraced run in its block: not in a pair. */
	assert_int_equal(add(o, "ddw", "ebpf", 9, 1000, 1000, 10), 0);
	/* As runs of older versions: no processor time. */
	assert_int_equal(add(o, "postmark", "ebpf", 0, 2, 0, -1), 0);
	assert_int_equal(add(o, "postmark", "none", 0, 1, 0, -1), 0);
	return o;
}

static void test_figure(void **state)
{
	struct overhead *o = filled();
	struct overhead_cell c;

	(void)state;
	assert_int_equal(overhead_cell(o, "ddw", "ebpf", &c), 0);
	assert_int_equal(c.pairs, 4);
	assert_float_equal(c.mean_s, 12.5, 1e-9);
	assert_float_equal(c.untraced_mean_s, 11.5, 1e-9);
	/* R = 50/46; residuals t - R u: 0.130435 -0.043478 0.543478 -0.630435, s = 0.487073; half =
	 * 3.182446 s / (2 x 11.5). */
	assert_float_equal(c.wall_pct.value, 100 * (50.0 / 46 - 1), 1e-9);
	assert_float_equal(c.wall_pct.high - c.wall_pct.value, 6.73949, 1e-3);
	assert_float_equal(c.wall_pct.value - c.wall_pct.low, 6.73949, 1e-3);
	assert_int_equal(c.records, 500001);
	assert_int_equal(c.lost, 1);
	overhead_free(o);
}

static void test_few(void **state)
{
	struct overhead *o = filled();
	struct overhead_cell c;

	(void)state;
	assert_int_equal(overhead_cell(o, "postmark", "ebpf", &c), 0);
	assert_float_equal(c.wall_pct.value, 100, 1e-9);
	assert_true(isnan(c.wall_pct.low) && isnan(c.wall_pct.high));
	assert_int_equal(c.cpu_pairs, 0);
	assert_true(isnan(c.cpu_pct.value) && isnan(c.call_us.value) && isnan(c.cpu_mean_s));
	assert_int_equal(c.records, -1);
	assert_int_equal(overhead_cell(o, "postmark", "strace", &c), -2);
	assert_int_equal(overhead_cell(o, "ddr", "ebpf", &c), -2);
	overhead_free(o);
}

static void test_refused(void **state)
{
	struct overhead *o = overhead_new();

	(void)state;
	assert_int_equal(add(o, "ddw", "ebpf", 1, 0, 1, 0), -22);
	assert_int_equal(add(o, "ddw", "ebpf", 1, NAN, 1, 0), -22);
	overhead_free(o);
}

/* The interval of a ratio of paired means, by the formula in overhead.h. */
static double half_width(const double *y, const double *x, double quantile)
{
	double sy = 0, sx = 0, squares = 0;

	for (int i = 0; i < 4; i++)
		sy += y[i], sx += x[i];
	for (int i = 0; i < 4; i++)
		squares += pow(y[i] - sy / sx * x[i], 2);
	return quantile * sqrt(squares / 3) / (2 * sx / 4);
}

static void test_cpu(void **state)
{
	static const double idle[] = {20, 21, 20, 21}, busy[] = {22, 24, 22.5, 23};
	static const double added[] = {2, 3, 2.5, 2}, calls[] = {1e6, 1.5e6, 1e6, 1.5e6};
	struct overhead *o = filled();
	struct overhead_cell c;

	(void)state;
	assert_int_equal(overhead_cell(o, "ddw", "ebpf", &c), 0);
	assert_int_equal(c.cpu_pairs, 4);
	assert_float_equal(c.cpu_mean_s, 91.5 / 4, 1e-9);
	assert_float_equal(c.tracers_mean_s, 9.15 / 4, 1e-9);
	assert_float_equal(c.cpu_pct.value, 100 * (91.5 / 82 - 1), 1e-9);
	assert_float_equal(
		c.cpu_pct.high - c.cpu_pct.value, 100 * half_width(busy, idle, 3.182446), 1e-4);
	/* 9.5 s in 5 million calls. */
	assert_float_equal(c.call_us.value, 1.9, 1e-9);
	assert_float_equal(
		c.call_us.value - c.call_us.low, 1e6 * half_width(added, calls, 3.182446), 1e-4);
	/* A tracer that counts no calls is taken to see those of one that does: the mean over all
	 * its passes, also of the one without a pair. */
	assert_int_equal(overhead_cell(o, "ddw", "sysstat", &c), 0);
	assert_float_equal(c.calls, 1000002, 0.5);
	assert_float_equal(c.call_us.value, 9.5e6 / (4 * 1000002), 1e-6);
	/* One that traces a single server sees fewer, and nobody knows how many. */
	assert_int_equal(add(o, "ddw", "strace(one server)", 0, 11, 22, -1), 0);
	assert_int_equal(overhead_cell(o, "ddw", "strace(one server)", &c), 0);
	assert_true(isnan(c.calls) && isnan(c.call_us.value));
	assert_float_equal(c.cpu_pct.value, 10, 1e-9);
	overhead_free(o);
}

static void test_power(void **state)
{
	struct overhead *o = filled(), *none = overhead_new();
	double n;

	(void)state;
	/* Successive untraced passes: 2, 1, 2 apart: s = sqrt 3 of a mean of 11.5: 15.0613 times
	 * 1 %. (1.959964 + 0.841621)^2 of its square is 1780.5; with Student's t 1782.4. */
	n = overhead_pairs(o, "ddw", false);
	assert_true(n >= 1781 && n <= 1785);
	/* 1 apart of 20.5: 4.87805 times 1 %; normal 186.8. */
	n = overhead_pairs(o, "ddw", true);
	assert_true(n >= 187 && n <= 191);
	assert_true(isnan(overhead_pairs(o, "postmark", false)));
	assert_true(isnan(overhead_pairs(o, "none such", false)));
	/* The order of the blocks counts, not that of the runs; passes that do not differ need as
	 * few pairs as an interval does. */
	for (long b = 4; b >= 0; b--) {
		assert_int_equal(
			add(none, "drifts", "none", b * 2 % 5, 100 + (double)(b * 2 % 5), 0, -1),
			0);
		assert_int_equal(add(none, "same", "none", b, 7, 0, -1), 0);
	}
	assert_float_equal(overhead_pairs(none, "same", false), 3, 0);
	n = overhead_pairs(none, "drifts", false);
	/* 1 apart of 102: 0.98 times 1 %, normal 7.5; Student's t with 9 or 10 pairs. */
	assert_true(n >= 9 && n <= 10);
	assert_true(isnan(overhead_pairs(none, "drifts", true)));
	overhead_free(o);
	overhead_free(none);
}

static char *render(struct overhead *o, enum table_format format)
{
	const struct table_notes notes = {.run_id = "r1", .planned = 9, .confirmed = 9};
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	assert_int_equal(overhead_render(o, format, &notes, f), 0);
	fclose(f);
	return text;
}

static void test_shown(void **state)
{
	static const char *const formats[][3] = {
		{"+8.7", "[2.0,15.4]", "+64.4"},
		{"| ebpf | +8.7 [2.0,15.4] n=4 | +100 n<3 n=1 |", "*+64.4*", "run r1"},
		{"ebpf,ddw,4,12.5000,11.5000,8.696,1.956,15.435,500001,1,4,22.8750,20.5000,2.2875,",
			"ebpf,postmark,1,2.0000,1.0000,100.000,,,,,0,,,,,,,,,,,,\n", "pct"},
		{"\"pairs\": 4", "\"low_pct\": null", "\"run\": \"r1\""},
	};
	struct overhead *o = filled();

	(void)state;
	overhead_publish(o, "a paper", "postmark", "syscap", 64.4);
	overhead_publish(o, "a paper", "iozoner", "syscap", 77.7);
	for (int k = TABLE_TEXT; k <= TABLE_JSON; k++) {
		char *text = render(o, (enum table_format)k), *line, *save = NULL;

		for (int i = 0; i < 3; i++)
			if (!strstr(text, formats[k][i]))
				fail_msg("no '%s' in:\n%s", formats[k][i], text);
		assert_null(strstr(text, "77.7"));
		for (line = k ? NULL : strtok_r(text, "\n", &save); line;
			line = strtok_r(NULL, "\n", &save))
			if (strlen(line) > 80)
				fail_msg("too long: %s", line);
		free(text);
	}
	overhead_free(o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_figure),
		cmocka_unit_test(test_cpu),
		cmocka_unit_test(test_power),
		cmocka_unit_test(test_few),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_shown),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("overhead", tests, NULL, NULL);
}
