/* Reports of several nodes become one result. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants those before it */
#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "harness/base/jget.h"
#include "harness/replay/replay.h"
#include "harness/replayer/latency.h"

static void expect(const json_t *v, const char *key, double wanted)
{
	double got = jget_real(v, key);

	if (fabs(got - wanted) > 1e-9)
		fail_msg("%s is %g, not %g", key, got, wanted);
}

static void passes_of_nodes_are_added_and_their_times_are_not(void **state)
{
	char *outputs[] = {
		(char *)"{\"replay\":\"x\",\"node\":0,\"round_trip_us\":800.0}\n"
			"{\"pass\":1,\"whole\":true,\"seconds\":5.0,\"first_s\":1.0,\"ops\":3,"
			"\"read_bytes\":10,\"waited_s\":0.5,\"short\":1,"
			"\"errors\":{\"open ENOENT\":2}}\n"
			"{\"pass\":2,\"whole\":true,\"seconds\":4.0,\"first_s\":0.0,\"ops\":3,"
			"\"read_bytes\":10,\"waited_s\":0.0,\"short\":0,\"errors\":{}}\n"
			"{\"pass\":3,\"whole\":false,\"seconds\":9.0,\"first_s\":0.0,\"ops\":1}\n",
		(char *)"{\"replay\":\"x\",\"node\":1,\"round_trip_us\":900.0}\n"
			"{\"pass\":1,\"whole\":true,\"seconds\":6.0,\"first_s\":0.5,\"ops\":4,"
			"\"read_bytes\":20,\"waited_s\":0.25,\"short\":0,\"errors\":{\"open "
			"ENOENT\":1,\"stat EIO\":1}}\n"
			"{\"pass\":2,\"whole\":true,\"seconds\":3.0,\"first_s\":0.5,\"ops\":4}\n",
	};
	json_auto_t *r = json_object();
	struct err e;
	const json_t *first;

	(void)state;
	assert_int_equal(replay_merge(outputs, 2, r, &e), 0);
	first = json_array_get(jget(r, "passes"), 0);
	expect(first, "seconds", 5.5);
	expect(first, "ops", 7);
	expect(first, "read_bytes", 30);
	expect(first, "waited_s", 0.75);
	assert_int_equal(jget_int(jget(first, "errors"), "open ENOENT"), 3);
	/* The pass that was cut short has no time. */
	expect(r, "seconds", (5.5 + 4.0) / 2);
	assert_int_equal(json_array_size(jget(r, "passes")), 3);
	assert_int_equal(jget_int(jget(r, "errors"), "stat EIO"), 1);
	expect(r, "round_trip_s", 0.0009);
}

static void percentiles_are_those_of_all_calls(void **state)
{
	unsigned low = latency_bucket(1000000), high = latency_bucket(50000000);
	char line[256], other[256];
	char *outputs[] = {line, other};
	json_auto_t *r = json_object();
	const json_t *c;
	struct err e;

	(void)state;
	snprintf(line, sizeof(line),
		"{\"pass\":1,\"whole\":true,\"seconds\":1.0,\"latency\":{\"pread\":[%u,80]}}", low);
	snprintf(other, sizeof(other),
		"{\"pass\":1,\"whole\":true,\"seconds\":1.0,\"latency\":{\"pread\":[%u,15,%u,5]}}",
		low, high);
	assert_int_equal(replay_merge(outputs, 2, r, &e), 0);
	c = jget(jget(r, "calls"), "pread");
	assert_int_equal(jget_int(c, "n"), 100);
	expect(c, "p50_s", latency_ns(low) / 1e9);
	expect(c, "p90_s", latency_ns(low) / 1e9);
	expect(c, "p99_s", latency_ns(high) / 1e9);
	expect(c, "max_s", latency_ns(high) / 1e9);
}

static void buckets_are_within_six_percent(void **state)
{
	(void)state;
	for (uint64_t ns = 1; ns < 1ull << 62; ns += ns / 7 + 1) {
		double middle = latency_ns(latency_bucket(ns));

		assert_true(latency_bucket(ns) < LATENCY_BUCKETS);
		if (fabs(middle - (double)ns) > 0.0626 * (double)ns)
			fail_msg("%llu ns count as %g", (unsigned long long)ns, middle);
	}
}

/* Steps of 1 and of 2 ms become steps of 2 ms. */
static void bytes_over_time_are_added(void **state)
{
	char *outputs[] = {
		(char *)"{\"pass\":1,\"whole\":true,\"seconds\":0.006,\"first_s\":0.002,\"ops\":1,"
			"\"series\":{\"interval_s\":0.001,\"skipped\":2,\"read_bytes\":[1,2,4],"
			"\"written_bytes\":[]}}",
		(char *)"{\"pass\":1,\"whole\":true,\"seconds\":0.006,\"first_s\":0.003,\"ops\":1,"
			"\"series\":{\"interval_s\":0.002,\"skipped\":1,\"read_bytes\":[10,20],"
			"\"written_bytes\":[5]}}"};
	json_auto_t *r = json_object();
	const json_t *series;
	struct err e;

	(void)state;
	assert_int_equal(replay_merge(outputs, 2, r, &e), 0);
	series = jget(json_array_get(jget(r, "passes"), 0), "series");
	expect(series, "interval_s", 0.002);
	expect(series, "skipped", 1);
	expect(series, "first_s", 0.002);
	assert_int_equal(json_integer_value(json_array_get(jget(series, "read_bytes"), 0)), 13);
	assert_int_equal(json_integer_value(json_array_get(jget(series, "read_bytes"), 1)), 24);
	assert_int_equal(json_integer_value(json_array_get(jget(series, "written_bytes"), 0)), 5);
}

static void invalid_reports_are_refused(void **state)
{
	static const char *const bad[] = {"Segmentation fault", "{\"pass\":0}", "{}", "[1]",
		"{\"pass\":99999999}", "{\"pass\":\"1\"}"};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		char *outputs[] = {(char *)bad[i]};
		json_auto_t *r = json_object();
		struct err e;

		assert_int_equal(replay_merge(outputs, 1, r, &e), -EBADMSG);
		assert_non_null(strstr(e.text, "not a report"));
	}
	{
		char *outputs[] = {(char *)"{\"pass\":1,\"series\":{\"interval_s\":0.003}}"};
		json_auto_t *r = json_object();
		struct err e;

		assert_int_equal(replay_merge(outputs, 1, r, &e), -EBADMSG);
		assert_non_null(strstr(e.text, "bytes over time"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(passes_of_nodes_are_added_and_their_times_are_not),
		cmocka_unit_test(percentiles_are_those_of_all_calls),
		cmocka_unit_test(buckets_are_within_six_percent),
		cmocka_unit_test(bytes_over_time_are_added),
		cmocka_unit_test(invalid_reports_are_refused),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("merge", tests, NULL, NULL);
}
