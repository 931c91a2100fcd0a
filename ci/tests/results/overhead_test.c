/* The overhead table: the figure, its interval, and what is left out. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <stdint.h>
#include <cmocka.h>

#include "results/overhead.h"

static struct overhead *filled(void)
{
	/* Worked out apart from the program: untraced 10 12 11 13, traced 11 13 12.5 13.5. */
	static const double untraced[] = {10, 12, 11, 13}, traced[] = {11, 13, 12.5, 13.5};
	struct overhead *o = overhead_new();
	struct err e;

	for (long b = 0; b < 4; b++) {
		assert_int_equal(overhead_add(o, "ddw", "ebpf", b, traced[b], 100, b == 2, &e), 0);
		assert_int_equal(overhead_add(o, "ddw", "none", b, untraced[b], -1, -1, &e), 0);
	}
	/* No untraced run in its block: not in a pair. */
	assert_int_equal(overhead_add(o, "ddw", "ebpf", 9, 1000, 1, 0, &e), 0);
	assert_int_equal(overhead_add(o, "postmark", "ebpf", 0, 2, -1, -1, &e), 0);
	assert_int_equal(overhead_add(o, "postmark", "none", 0, 1, -1, -1, &e), 0);
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
	assert_float_equal(c.pct, 100 * (50.0 / 46 - 1), 1e-9);
	assert_float_equal(c.high_pct - c.pct, 6.73949, 1e-3);
	assert_float_equal(c.pct - c.low_pct, 6.73949, 1e-3);
	assert_int_equal(c.records, 401);
	assert_int_equal(c.lost, 1);
	overhead_free(o);
}

static void test_few(void **state)
{
	struct overhead *o = filled();
	struct overhead_cell c;

	(void)state;
	assert_int_equal(overhead_cell(o, "postmark", "ebpf", &c), 0);
	assert_float_equal(c.pct, 100, 1e-9);
	assert_true(isnan(c.low_pct) && isnan(c.high_pct));
	assert_int_equal(c.records, -1);
	assert_int_equal(overhead_cell(o, "postmark", "strace", &c), -2);
	assert_int_equal(overhead_cell(o, "ddr", "ebpf", &c), -2);
	overhead_free(o);
}

static void test_refused(void **state)
{
	struct overhead *o = overhead_new();
	struct err e;

	(void)state;
	assert_int_equal(overhead_add(o, "ddw", "ebpf", 1, 0, 0, 0, &e), -22);
	assert_int_equal(overhead_add(o, "ddw", "ebpf", 1, NAN, 0, 0, &e), -22);
	overhead_free(o);
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
		{"ebpf,ddw,4,12.5000,11.5000,8.696,1.956,15.435,401,1\n",
			"ebpf,postmark,1,2.0000,1.0000,100.000,,,,\n", "pct"},
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
			assert_true(strlen(line) <= 80);
		free(text);
	}
	overhead_free(o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_figure),
		cmocka_unit_test(test_few),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_shown),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("overhead", tests, NULL, NULL);
}
