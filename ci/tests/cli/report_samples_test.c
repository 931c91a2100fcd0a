/* The numbers of a report: what a page reads from them (harness/web/report/samples.js) is the
 * number to three digits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants those four first */
#include <cmocka.h>
#include <math.h>

#include "harness/cli/report.h"

/* As the header says it; NAN: no sample. */
static double decoded(uint16_t code)
{
	const int size = (code & 0x7fff) - 2;

	if (code < 2)
		return code ? 0 : NAN;
	return (code & 0x8000 ? -1 : 1) * (100 + size % 900) * pow(10, size / 900 - 10);
}

static void assert_close(double x)
{
	const double seen = decoded(report_samples_code(x));

	if (!(fabs(seen - x) <= 0.00501 * fabs(x)))
		fail_msg("%.17g was read as %.17g", x, seen);
}

static void test_all_sizes(void **state)
{
	(void)state;
	for (int e = -7; e < 27; e++)
		for (double m = 1; m < 10; m *= 1.00771) {
			assert_close(m * pow(10, e));
			assert_close(-m * pow(10, e));
		}
}

static void test_exact_to_three_digits(void **state)
{
	(void)state;
	for (int n = 0; n < 1000; n++)
		assert_int_equal(lround(decoded(report_samples_code(n))), n);
	assert_int_equal(lround(decoded(report_samples_code(999.6))), 1000);
	assert_int_equal(lround(decoded(report_samples_code(0.9996)) * 1e6), 1000000);
}

static void test_ends(void **state)
{
	(void)state;
	assert_int_equal(report_samples_code(NAN), 0);
	assert_int_equal(report_samples_code(INFINITY), 0);
	assert_int_equal(report_samples_code(0), 1);
	assert_int_equal(report_samples_code(-0.0), 1);
	assert_int_equal(report_samples_code(1e-12), 1);
	assert_true(decoded(report_samples_code(1e300)) > 9e27);
	assert_true(decoded(report_samples_code(-1e300)) < -9e27);
}

static void test_order(void **state)
{
	uint16_t before = report_samples_code(1e-8), now;

	(void)state;
	for (double x = 1e-8; x < 1e26; x *= 1.0031, before = now) {
		now = report_samples_code(x);
		assert_true(now >= before);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_all_sizes),
		cmocka_unit_test(test_exact_to_three_digits), cmocka_unit_test(test_ends),
		cmocka_unit_test(test_order)};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
