/* The modelled disk as arithmetic, and what it holds. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "harness/lab/disk_model.h"
#include "harness/lab/disk_memory.h"

#define MS 1000000LL

/* 1 MB/s and 4 ms: 1000 bytes take 1 ms. */
static const struct disk_model slow = {.rate = 1e6, .seek_ns = 4 * MS};

static void what_follows_pays_no_seek(void **state)
{
	struct disk_model m = slow;

	(void)state;
	assert_int_equal(disk_model_request(&m, 0, 0, 1000).done_ns, 1 * MS);
	assert_int_equal(disk_model_request(&m, 0, 1000, 2000).done_ns, 3 * MS);
}

static void a_jump_pays_one_seek_either_way(void **state)
{
	struct disk_model m = slow;

	(void)state;
	assert_int_equal(disk_model_request(&m, 0, 50000, 1000).done_ns, 5 * MS);
	assert_int_equal(disk_model_request(&m, 0, 0, 1000).done_ns, 10 * MS);
	assert_int_equal(disk_model_request(&m, 0, 0, 1000).done_ns, 15 * MS);
}

static void requests_wait_for_those_before_them(void **state)
{
	struct disk_model m = slow;

	(void)state;
	assert_int_equal(disk_model_request(&m, 0, 0, 10000).done_ns, 10 * MS);
	assert_int_equal(disk_model_request(&m, 3 * MS, 10000, 1000).done_ns, 11 * MS);
	assert_int_equal(disk_model_idle(&m, 5 * MS), 11 * MS);
}

static void an_idle_disk_gains_no_credit(void **state)
{
	struct disk_model m = slow;

	(void)state;
	disk_model_request(&m, 0, 0, 1000);
	assert_int_equal(disk_model_idle(&m, 100 * MS), 100 * MS);
	assert_int_equal(disk_model_request(&m, 100 * MS, 1000, 1000).done_ns, 101 * MS);
}

static void two_streams_share_one_head(void **state)
{
	struct disk_model m = slow;
	int64_t done = 0;

	(void)state;
	for (uint64_t i = 0; i < 10; i++) {
		disk_model_request(&m, 0, i * 1000, 1000);
		done = disk_model_request(&m, 0, 1000000 + i * 1000, 1000).done_ns;
	}
	/* 20 times 1 ms, and every request but the first one jumps. */
	assert_int_equal(done, (20 + 19 * 4) * MS);
}

static void without_a_rate_all_is_done_at_once(void **state)
{
	struct disk_model m = {.seek_ns = 4 * MS};

	(void)state;
	assert_int_equal(disk_model_request(&m, 7, 12345, 1 << 30).done_ns, 7);
	assert_int_equal(disk_model_idle(&m, 8), 8);
}

/* ---- faults ---- */

#define S (1000 * MS)

static void a_slow_disk_takes_longer(void **state)
{
	struct disk_model m = slow;
	struct disk_turn t;

	(void)state;
	m.fault.latency_ns = 10 * MS;
	t = disk_model_request(&m, 0, 0, 1000);
	assert_int_equal(t.done_ns, 11 * MS);
	assert_int_equal(t.added_ns, 10 * MS);
	assert_false(t.held);
	m.fault = (struct disk_fault){.factor = 3};
	t = disk_model_request(&m, 0, 0, 1000); /* waits for the first; seek and transfer thrice */
	assert_int_equal(t.done_ns, (11 + 3 * 5) * MS);
	assert_int_equal(t.added_ns, 10 * MS);
	m.fault = (struct disk_fault){.rate = 1e5};
	t = disk_model_request(&m, 100 * MS, 1000, 1000);
	assert_int_equal(t.done_ns, 110 * MS);
	assert_int_equal(t.added_ns, 9 * MS);
	/* A rate above the disk's own changes nothing, and neither does no fault. */
	m.fault = (struct disk_fault){.rate = 1e9};
	assert_int_equal(disk_model_request(&m, 200 * MS, 2000, 1000).added_ns, 0);
	m.fault = (struct disk_fault){0};
	assert_int_equal(disk_model_request(&m, 300 * MS, 3000, 1000).done_ns, 301 * MS);
}

/* 2 s of each 10 s, from second 100. */
static void a_stall_holds_what_meets_it(void **state)
{
	static const struct {
		int64_t start_ms, work_ms, done_ms;
	} cases[] = {
		{100000, 5, 102005},    /* at its begin */
		{101999, 5, 102005},    /* at its end */
		{102000, 5, 102005},    /* after it */
		{109000, 1000, 110000}, /* done just before the next one */
		{109000, 1001, 112001}, /* interrupted by the next one */
		{109000, 9000, 112000 + 8000}, {109000, 9001, 122001}, /* interrupted by two */
		{101000, 16001, 122001}, /* waits, and is interrupted by two */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct disk_model m = {.rate = 1e6,
			.fault = {.stall_ns = 2 * S, .every_ns = 10 * S, .begin_ns = 100 * S}};
		struct disk_turn t = disk_model_request(
			&m, cases[i].start_ms * MS, 0, (uint64_t)cases[i].work_ms * 1000);

		assert_int_equal(t.done_ns, cases[i].done_ms * MS);
		assert_int_equal(t.held, cases[i].done_ms > cases[i].start_ms + cases[i].work_ms);
	}
}

static void one_stall_is_the_only_one(void **state)
{
	struct disk_model m = {.rate = 1e6, .fault = {.stall_ns = 2 * S, .begin_ns = 100 * S}};

	(void)state;
	assert_true(disk_model_stalls(&m, 100 * S));
	assert_true(disk_model_stalls(&m, 102 * S - 1));
	assert_false(disk_model_stalls(&m, 102 * S));
	assert_int_equal(disk_model_idle(&m, 101 * S), 102 * S);
	assert_int_equal(disk_model_request(&m, 101 * S, 0, 1000).done_ns, 102 * S + MS);
	assert_int_equal(disk_model_request(&m, 200 * S, 1000, 1000).done_ns, 200 * S + MS);
	m.rate = 0; /* the lab goes down */
	assert_false(disk_model_stalls(&m, 101 * S));
	assert_int_equal(disk_model_request(&m, 101 * S, 0, 1000).done_ns, 101 * S);
}

static void a_share_of_the_reads_fails(void **state)
{
	static const double shares[] = {0, 1, 10, 50, 99, 100};

	(void)state;
	for (size_t i = 0; i < sizeof(shares) / sizeof(shares[0]); i++) {
		struct disk_model m = {.rate = 1e6, .fault = {.errors_pct = shares[i]}};
		int failed = 0;

		for (int n = 0; n < 10000; n++)
			failed += disk_model_fails(&m);
		assert_in_range(failed, shares[i] * 100 - (shares[i] > 0) * (shares[i] < 100) * 20,
			shares[i] * 100 + (shares[i] > 0) * (shares[i] < 100) * 20);
	}
}

/* What the file says is taken back as it was: it is the inverse of every fault. */
static void a_state_survives_being_read_and_written(void **state)
{
	static const char *const states[] = {
		"{\"latency_s\": 0.0123456, \"rate\": 123456.7, \"factor\": 1.1}",
		"{\"stall_s\": 0.3, \"every_s\": 7.1, \"errors_pct\": 7}",
		"{}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		struct disk_counters c = {.requests = 3, .added_ns = 2 * MS};
		struct disk_fault f, again;
		char *text, *written;
		json_t *all;
		struct err e;

		assert_int_equal(disk_fault_parse(states[i], strlen(states[i]), 5, &f, &e), 0);
		assert_int_equal(f.begin_ns, 5);
		text = disk_control_text(&f, &c);
		all = json_loads(text, 0, NULL);
		assert_int_equal(json_integer_value(json_object_get(
					 json_object_get(all, "counters"), "requests")),
			3);
		written = json_dumps(json_object_get(all, "state"), 0);
		assert_int_equal(disk_fault_parse(written, strlen(written), 6, &again, &e), 0);
		assert_true(disk_fault_same(&f, &again));
		json_decref(all);
		free(written);
		free(text);
	}
}

static void a_bad_state_is_refused(void **state)
{
	static const char *const bad[] = {"", "x", "[]", "{\"latency\": 1}",
		"{\"latency_s\": \"1\"}", "{\"latency_s\": -1}", "{\"latency_s\": 61}",
		"{\"rate\": 65535}", "{\"factor\": 0.5}", "{\"factor\": 1e4}",
		"{\"stall_s\": 2, \"every_s\": 2}", "{\"stall_s\": 2, \"every_s\": 2.09}",
		"{\"stall_s\": 1e9}", "{\"errors_pct\": 101}", "{} {}"};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct disk_fault f = {.rate = 4};
		struct err e;

		if (disk_fault_parse(bad[i], strlen(bad[i]), 0, &f, &e) != -EINVAL)
			fail_msg("'%s' is taken", bad[i]);
		assert_true(f.rate == 4);
	}
}

/* The times of a full queue under the worst fault fit. */
static void the_bounds_keep_times_in_range(void **state)
{
	static const char worst[] = "{\"latency_s\": 60, \"rate\": 65536, \"factor\": 1000, "
				    "\"stall_s\": 3599.9, \"every_s\": 3600}";
	struct disk_model m = {.rate = 1e6, .seek_ns = 100 * MS};
	int64_t last = 0;

	(void)state;
	assert_int_equal(disk_fault_parse(worst, strlen(worst), 0, &m.fault, NULL), 0);
	for (uint64_t i = 0; i < 16; i++) {
		int64_t done = disk_model_request(&m, 0, i << 30, 128 << 10).done_ns;

		assert_true(done > last);
		last = done;
	}
}

static int store;

static int setup(void **state)
{
	struct err e;

	(void)state;
	store = disk_memory_new("test", 1 << 20, &e);
	return store < 0;
}

static int teardown(void **state)
{
	(void)state;
	return close(store);
}

static void fresh_blocks_read_as_zeros(void **state)
{
	char got[9000], zeros[9000] = {0};

	(void)state;
	memset(got, 'x', sizeof(got));
	assert_int_equal(disk_memory_read(store, got, sizeof(got), 12345), 0);
	assert_memory_equal(got, zeros, sizeof(got));
}

static void zeros_on_fresh_blocks_take_no_room(void **state)
{
	static const char zeros[65536];

	(void)state;
	assert_int_equal(disk_memory_write(store, zeros, sizeof(zeros), 4096), 0);
	assert_int_equal(disk_memory_room(store), 0);
}

static void zeros_over_data_are_written(void **state)
{
	char data[8192], got[8192], zeros[8192] = {0};

	(void)state;
	memset(data, 'd', sizeof(data));
	assert_int_equal(disk_memory_write(store, data, sizeof(data), 5000), 0);
	assert_int_equal(disk_memory_read(store, got, sizeof(got), 5000), 0);
	assert_memory_equal(got, data, sizeof(data));
	assert_int_equal(disk_memory_write(store, zeros, 3000, 6000), 0);
	assert_int_equal(disk_memory_read(store, got, sizeof(got), 5000), 0);
	memset(data + 1000, 0, 3000);
	assert_memory_equal(got, data, sizeof(data));
}

static void a_discard_zeroes_just_its_range_and_gives_the_room_back(void **state)
{
	char data[20000], got[20000];

	(void)state;
	memset(data, 'd', sizeof(data));
	assert_int_equal(disk_memory_write(store, data, sizeof(data), 0), 0);
	assert_int_equal(disk_memory_room(store), 5 * 4096);
	assert_int_equal(disk_memory_zero(store, 10000, 1000), 0);
	assert_int_equal(disk_memory_room(store), 4 * 4096);
	memset(data + 1000, 0, 10000);
	assert_int_equal(disk_memory_read(store, got, sizeof(got), 0), 0);
	assert_memory_equal(got, data, sizeof(data));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_follows_pays_no_seek),
		cmocka_unit_test(a_jump_pays_one_seek_either_way),
		cmocka_unit_test(requests_wait_for_those_before_them),
		cmocka_unit_test(an_idle_disk_gains_no_credit),
		cmocka_unit_test(two_streams_share_one_head),
		cmocka_unit_test(without_a_rate_all_is_done_at_once),
		cmocka_unit_test(a_slow_disk_takes_longer),
		cmocka_unit_test(a_stall_holds_what_meets_it),
		cmocka_unit_test(one_stall_is_the_only_one),
		cmocka_unit_test(a_share_of_the_reads_fails),
		cmocka_unit_test(a_state_survives_being_read_and_written),
		cmocka_unit_test(a_bad_state_is_refused),
		cmocka_unit_test(the_bounds_keep_times_in_range),
		cmocka_unit_test_setup_teardown(fresh_blocks_read_as_zeros, setup, teardown),
		cmocka_unit_test_setup_teardown(
			zeros_on_fresh_blocks_take_no_room, setup, teardown),
		cmocka_unit_test_setup_teardown(zeros_over_data_are_written, setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_discard_zeroes_just_its_range_and_gives_the_room_back, setup, teardown),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
