/* Tests bytes over time: sums are exact, intervals grow, and other JSON is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants those first */
#include <cmocka.h>

#include "diag/app/series.h"

#define MS 1000000

static uint64_t sum(const uint64_t *steps)
{
	uint64_t all = 0;

	for (int i = 0; i < SERIES_STEPS; i++)
		all += steps[i];
	return all;
}

static void bytes_are_spread_over_a_call(void **state)
{
	struct app_series s;

	(void)state;
	series_begin(&s);
	series_add(&s, false, 2 * MS + MS / 2, 4 * MS + MS / 2, 1000);
	assert_int_equal(s.read[1], 0);
	assert_int_equal(s.read[2], 250);
	assert_int_equal(s.read[3], 500);
	assert_int_equal(s.read[4], 250);
	assert_int_equal(s.n, 5);
	series_add(&s, true, 4 * MS, 5 * MS, 7); /* up to the end of an interval, not beyond */
	assert_int_equal(s.written[4], 7);
	assert_int_equal(s.n, 5);
	series_add(&s, true, 9 * MS, 9 * MS, 3); /* without duration */
	assert_int_equal(s.written[9], 3);
}

static void sums_are_exact(void **state)
{
	uint64_t x = 88172645463325252u, read = 0, written = 0;
	struct app_series s;

	(void)state;
	series_begin(&s);
	for (int i = 0; i < 20000; i++) {
		uint64_t bytes;
		int64_t begin;

		x ^= x << 13, x ^= x >> 7, x ^= x << 17;
		begin = (int64_t)(x % 100) * i * 1000;
		bytes = x >> 40;
		series_add(&s, i % 2, begin, begin + (int64_t)(x >> 30 & 0xfffffff), bytes);
		*(i % 2 ? &written : &read) += bytes;
	}
	assert_true(s.interval_ns > SERIES_LEAST_NS);
	assert_int_equal(sum(s.read), read);
	assert_int_equal(sum(s.written), written);
}

static void calls_at_any_time_are_counted(void **state)
{
	static const int64_t times[] = {INT64_MIN, -1, 0, 1, MS, (int64_t)1 << 62, INT64_MAX};
	struct app_series s;
	uint64_t n = 0;

	(void)state;
	series_begin(&s);
	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++)
		for (size_t k = 0; k < sizeof(times) / sizeof(times[0]); k++, n++)
			series_add(&s, false, times[i], times[k], 5);
	assert_int_equal(sum(s.read), 5 * n);
	assert_true(s.n <= SERIES_STEPS);
}

static void merging_equals_adding_all(void **state)
{
	struct app_series a, b, both;

	(void)state;
	series_begin(&a);
	series_begin(&b);
	series_begin(&both);
	series_add(&a, false, 0, 3 * MS, 300);
	series_add(&both, false, 0, 3 * MS, 300);
	series_add(&b, true, 0, 3000ll * MS, 3000);
	series_add(&both, true, 0, 3000ll * MS, 3000);
	series_merge(&a, &b);
	assert_int_equal(a.interval_ns, both.interval_ns);
	assert_int_equal(a.n, both.n);
	assert_memory_equal(a.read, both.read, sizeof(a.read));
	assert_memory_equal(a.written, both.written, sizeof(a.written));
}

static void json_is_read_back(void **state)
{
	struct app_series s, back;
	json_t *v;

	(void)state;
	series_begin(&s);
	series_add(&s, false, 5000ll * MS, 9000ll * MS, 123456789);
	series_add(&s, true, 7000ll * MS, 7000ll * MS, 1);
	v = series_json(&s);
	assert_true(json_integer_value(json_object_get(v, "skipped")) > 300);
	assert_true(series_from_json(v, &back));
	assert_memory_equal(&s, &back, sizeof(s));
	json_decref(v);
}

static void other_json_is_refused(void **state)
{
	static const char *const bad[] = {"{}", "[]", "1",
		"{\"interval_s\":0,\"read_bytes\":[],\"written_bytes\":[]}",
		"{\"interval_s\":0.003,\"read_bytes\":[],\"written_bytes\":[]}",
		"{\"interval_s\":1e300,\"read_bytes\":[],\"written_bytes\":[]}",
		"{\"interval_s\":-0.001,\"read_bytes\":[],\"written_bytes\":[]}",
		"{\"interval_s\":0.001,\"read_bytes\":[-1],\"written_bytes\":[]}",
		"{\"interval_s\":0.001,\"read_bytes\":[1.5],\"written_bytes\":[]}",
		"{\"interval_s\":0.001,\"read_bytes\":[9223372036854775807],\"written_bytes\":[]}",
		"{\"interval_s\":0.001,\"read_bytes\":[]}",
		"{\"interval_s\":0.001,\"skipped\":-1,\"read_bytes\":[],\"written_bytes\":[]}",
		"{\"interval_s\":0.001,\"skipped\":1024,\"read_bytes\":[1],\"written_bytes\":[]}"};
	struct app_series s = {.n = 77};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		json_t *v = json_loads(bad[i], JSON_DECODE_ANY, NULL);

		assert_non_null(v);
		if (series_from_json(v, &s))
			fail_msg("taken: %s", bad[i]);
		assert_int_equal(s.n, 77);
		json_decref(v);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_are_spread_over_a_call),
		cmocka_unit_test(sums_are_exact),
		cmocka_unit_test(calls_at_any_time_are_counted),
		cmocka_unit_test(merging_equals_adding_all),
		cmocka_unit_test(json_is_read_back),
		cmocka_unit_test(other_json_is_refused),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("series", tests, NULL, NULL);
}
