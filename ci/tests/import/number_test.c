/* Tests that numbers are read like strtod does, and times by their meaning. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "diag/import/import.h"
#include "diag/import/number.h"

static void same_as_strtod(const char *text)
{
	double x = 0, want = strtod(text, NULL);

	if (number_read(text, strlen(text), &x) != NUMBER_OK || memcmp(&x, &want, sizeof(x)))
		fail_msg("'%s' is read as %.17g, not %.17g", text, x, want);
}

static void hard_numbers_are_exact(void **state)
{
	static const char *const hard[] = {"0", "-0", "0.0", "-0.000", "1", "+1", "1.", ".5", "-.5",
		"007", "0.1", "0.3", "123456789.123456789", "9007199254740991", "9007199254740992",
		"9007199254740993", "9007199254740993.0", "900719925474099.3",
		"9999999999999999999", "18446744073709551615", "18446744073709551616",
		"184467440737095516150", "99999999999999999999.5", "0.0000000000000000001",
		"0.00000000000000000001", "0.000000000000000000000000000000000000000012", "1e22",
		"1e23", "8.5e-5", "1E+5", "1e-400", "4.9e-324", "2.2250738585072011e-308",
		"1.7976931348623157e308",
		"0.500000000000000166533453693773481063544750213623046875",
		"3.518437208883201171875e13", "62.5364939768271845828",
		"1.00000000000000011102230246251565404236316680908203125", "9214843084008499",
		"30078505129381147446200", "7.2057594037927933e16"};

	(void)state;
	for (size_t i = 0; i < sizeof(hard) / sizeof(hard[0]); i++)
		same_as_strtod(hard[i]);
}

static uint64_t draw(uint64_t *s)
{
	*s ^= *s << 13;
	*s ^= *s >> 7;
	*s ^= *s << 17;
	return *s;
}

static void random_numbers_are_exact(void **state)
{
	uint64_t s = 88172645463325252;
	char text[100];
	double x;

	(void)state;
	for (int i = 0; i < 200000; i++) {
		uint64_t bits = draw(&s);

		memcpy(&x, &bits, sizeof(x));
		if (isfinite(x)) {
			snprintf(text, sizeof(text), "%.17g", x);
			same_as_strtod(text);
		}
		snprintf(text, sizeof(text), "%.*f", (int)(draw(&s) % 20),
			(double)draw(&s) / (double)(draw(&s) >> draw(&s) % 60 | 1));
		same_as_strtod(text);
		snprintf(text, sizeof(text), "%s%llu.%llu", draw(&s) % 2 ? "-" : "",
			(unsigned long long)(draw(&s) >> draw(&s) % 64),
			(unsigned long long)(draw(&s) >> draw(&s) % 64));
		same_as_strtod(text);
	}
}

static void missing_and_bad_numbers(void **state)
{
	static const char *const missing[] = {"", "-", "NaN", "nan", "NAN", "NA", "na", "N/A",
		"null", "NULL", "None", "-nan", "inf", "Inf", "+Inf", "-Inf", "INF", "Infinity",
		"+Infinity", "-infinity", "+NaN"};
	static const char *const bad[] = {"infi", "++inf", "0x10", "0x1p3", "1e999", "-1e999",
		"1,5", "1 2", "12x", "--1", "+-1", "1e", "e5", ".", "+", "1.2.3", "1_000", "nan(1)",
		"\xd9\xa1"};
	char *longest = malloc(100002);
	double x;

	(void)state;
	for (size_t i = 0; i < sizeof(missing) / sizeof(missing[0]); i++) {
		assert_int_equal(number_read(missing[i], strlen(missing[i]), &x), NUMBER_MISSING);
		assert_true(isnan(x));
	}
	x = 7;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(number_read(bad[i], strlen(bad[i]), &x), NUMBER_BAD);
	assert_true(x == 7);
	/* A hundred thousand digits. */
	memset(longest, '3', 100001);
	longest[1] = '.';
	longest[100001] = '\0';
	assert_int_equal(number_read(longest, 100001, &x), NUMBER_OK);
	assert_true(x == 10 / 3.0);
	free(longest);
}

static const struct {
	const char *text;
	double unit_s, want; /* NAN: refused */
} times[] = {
	{"0", 1, 0},
	{"-12.5", 1, -12.5},
	{"1700000000123", 1e-3, 1700000000.123},
	{"1700000000123456789", 1e-9, 1700000000.123456789},
	{"1e3", 1e-6, 1e-3},
	{"1970-01-01", 1, 0},
	{"1970-01-01T00:00:00Z", 1, 0},
	{"2026-11-22T14:00:00Z", 1, 1795356000},
	{"2026-11-22 14:00:00", 1e-3, 1795356000},
	{"2026-11-22t14:00:00.250z", 1, 1795356000.25},
	{"2026-11-22 14:00:00,5 UTC", 1, 1795356000.5},
	{"2026-11-22T15:00:00+01:00", 1, 1795356000},
	{"2026-11-22T15:00+0100", 1, 1795356000},
	{"2026-11-22 08:30:00 -05:30", 1, 1795356000},
	{"2026-11-22T16+02", 1, NAN},
	{"2000-02-29T00:00:00Z", 1, 951782400},
	{"2024-02-29T23:59:60Z", 1, 1709251200},
	{"1969-12-31T23:59:59Z", 1, -1},
	{"0001-01-01T00:00:00Z", 1, -62135596800},
	{"9999-12-31T24:00:00Z", 1, 253402300800},
	{"1900-02-29T00:00:00Z", 1, NAN},
	{"2026-13-01", 1, NAN},
	{"2026-00-01", 1, NAN},
	{"2026-04-31", 1, NAN},
	{"0000-01-01", 1, NAN},
	{"2026-11-22T25:00:00", 1, NAN},
	{"2026-11-22T24:00:01", 1, NAN},
	{"2026-11-22T14:60:00", 1, NAN},
	{"2026-11-22T14:00:61", 1, NAN},
	{"2026-11-22T14:00:00.", 1, NAN},
	{"2026-11-22T14:00:00+", 1, NAN},
	{"2026-11-22T14:00:00+24:00", 1, NAN},
	{"2026-11-22T14:00:00ZZ", 1, NAN},
	{"2026-11-22T", 1, NAN},
	{"22.11.2026", 1, NAN},
	{"12:30", 1, NAN},
	{"", 1, NAN},
	{"nan", 1, NAN},
	{"inf", 1, NAN},
	{"now", 1, NAN},
};

static void times_are_read(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
		double t = 7;
		int rc = import_time(times[i].text, times[i].unit_s, &t);

		if (isnan(times[i].want) ? rc != -EINVAL || t < 7 || t > 7
					 : rc || memcmp(&t, &times[i].want, sizeof(t)))
			fail_msg("'%s': %d, %.17g", times[i].text, rc, t);
	}
}

/* Compares with the C library, which also counts the days. */
static void every_day_is_counted(void **state)
{
	char text[40];
	double t;

	(void)state;
	for (time_t day = -25567; day < 60000; day += 7) {
		time_t at = day * 86400 + 3723;
		struct tm tm;

		gmtime_r(&at, &tm);
		strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
		assert_int_equal(import_time(text, 1, &t), 0);
		assert_true(t == (double)at);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hard_numbers_are_exact),
		cmocka_unit_test(random_numbers_are_exact),
		cmocka_unit_test(missing_and_bad_numbers),
		cmocka_unit_test(times_are_read),
		cmocka_unit_test(every_day_is_counted),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
