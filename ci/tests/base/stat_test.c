#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/stat.h"

static void medians_of_few(void **state)
{
	double one[] = {4}, two[] = {5, 1}, three[] = {9, 1, 2};

	(void)state;
	assert_true(isnan(stat_median(NULL, 0)));
	assert_true(isnan(stat_median_sorted(NULL, 0)));
	assert_true(isnan(stat_quantile(NULL, 0, 0.5)));
	assert_float_equal(stat_median(one, 1), 4, 0);
	assert_float_equal(stat_median(two, 2), 3, 0);
	assert_float_equal(stat_median(three, 3), 2, 0);
}

/* At each q the value that lies so far along the sorted ones. */
static void quantiles_are_those_of_sorted_values(void **state)
{
	double v[101], sorted[101];

	(void)state;
	srand(5);
	for (size_t n = 1; n <= 101; n += 25) {
		for (size_t i = 0; i < n; i++)
			v[i] = rand() % 50;
		memcpy(sorted, v, sizeof(sorted));
		qsort(sorted, n, sizeof(*sorted), stat_compare);
		assert_float_equal(stat_median_sorted(sorted, n), stat_median(v, n), 0);
		for (int q = 0; q <= 40; q++) {
			double at = q / 40.0 * (double)(n - 1), low = sorted[(size_t)at];
			double high = sorted[(size_t)ceil(at)];

			assert_float_equal(stat_quantile(v, n, q / 40.0),
				low + (at - floor(at)) * (high - low), 1e-9);
		}
	}
}

static void orders(void **state)
{
	double a = 1, b = 2;
	float c = 1, d = 2;

	(void)state;
	assert_int_equal(stat_compare(&a, &b), -1);
	assert_int_equal(stat_compare(&b, &a), 1);
	assert_int_equal(stat_compare(&a, &a), 0);
	assert_int_equal(stat_compare_float(&c, &d), -1);
	assert_int_equal(stat_compare_float(&d, &c), 1);
	assert_int_equal(stat_compare_float(&d, &d), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(medians_of_few),
		cmocka_unit_test(quantiles_are_those_of_sorted_values),
		cmocka_unit_test(orders),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
