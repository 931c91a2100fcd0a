/* The modelled disk as arithmetic, and what it holds. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "harness/lab/disk_model.h"
#include "harness/lab/disk_memory.h"

#define MS 1000000LL

/* 1 MB/s and 4 ms: 1000 bytes take 1 ms. */
static const struct disk_model slow = {.rate = 1e6, .seek_ns = 4 * MS};

static void what_follows_pays_no_seek(void **state)
{
	struct disk_model m = slow;

	(void)state;
	assert_int_equal(disk_model_request(&m, 0, 0, 1000), 1 * MS);
	assert_int_equal(disk_model_request(&m, 0, 1000, 2000), 3 * MS);
}

static void a_jump_pays_one_seek_either_way(void **state)
{
	struct disk_model m = slow;

	(void)state;
	assert_int_equal(disk_model_request(&m, 0, 50000, 1000), 5 * MS);
	assert_int_equal(disk_model_request(&m, 0, 0, 1000), 10 * MS);
	assert_int_equal(disk_model_request(&m, 0, 0, 1000), 15 * MS);
}

static void requests_wait_for_those_before_them(void **state)
{
	struct disk_model m = slow;

	(void)state;
	assert_int_equal(disk_model_request(&m, 0, 0, 10000), 10 * MS);
	assert_int_equal(disk_model_request(&m, 3 * MS, 10000, 1000), 11 * MS);
	assert_int_equal(disk_model_idle(&m, 5 * MS), 11 * MS);
}

static void an_idle_disk_gains_no_credit(void **state)
{
	struct disk_model m = slow;

	(void)state;
	disk_model_request(&m, 0, 0, 1000);
	assert_int_equal(disk_model_idle(&m, 100 * MS), 100 * MS);
	assert_int_equal(disk_model_request(&m, 100 * MS, 1000, 1000), 101 * MS);
}

static void two_streams_share_one_head(void **state)
{
	struct disk_model m = slow;
	int64_t done = 0;

	(void)state;
	for (uint64_t i = 0; i < 10; i++) {
		disk_model_request(&m, 0, i * 1000, 1000);
		done = disk_model_request(&m, 0, 1000000 + i * 1000, 1000);
	}
	/* 20 times 1 ms, and every request but the first one jumps. */
	assert_int_equal(done, (20 + 19 * 4) * MS);
}

static void without_a_rate_all_is_done_at_once(void **state)
{
	struct disk_model m = {.seek_ns = 4 * MS};

	(void)state;
	assert_int_equal(disk_model_request(&m, 7, 12345, 1 << 30), 7);
	assert_int_equal(disk_model_idle(&m, 8), 8);
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
