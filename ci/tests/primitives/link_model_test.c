/* The arithmetic of a slow link. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "faults/primitives/link_model.h"

static void latency_is_added(void **unused)
{
	struct link_model m = {.latency_ns = 1000};

	(void)unused;
	assert_int_equal(link_model_packet(&m, 5, 100), 1005);
	assert_int_equal(link_model_packet(&m, 7, 100), 1007);
	assert_int_equal(link_model_packet(&m, 7, 100), 1007);
}

static void jitter_keeps_the_order_and_its_limits(void **unused)
{
	struct link_model m = {.latency_ns = 1000, .jitter_ns = 1000};
	int64_t last = 0, least = INT64_MAX, most = 0;

	(void)unused;
	for (int64_t now = 0; now < 10000000; now += 10000) {
		int64_t due = link_model_packet(&m, now, 100);

		assert_true(due >= last);
		last = due;
		least = due - now < least ? due - now : least;
		most = due - now > most ? due - now : most;
	}
	assert_in_range(least, 0, 20);
	assert_in_range(most, 1980, 2000);
	/* Packets that come together cannot overtake each other. */
	for (int i = 0; i < 1000; i++) {
		int64_t due = link_model_packet(&m, 20000000, 100);

		assert_true(due >= last);
		last = due;
	}
}

static void bytes_take_their_time(void **unused)
{
	/* 1000 bytes a microsecond; 3 us of queue */
	struct link_model m = {.rate = 1e9, .queue_ns = 3000, .latency_ns = 7};

	(void)unused;
	assert_int_equal(link_model_packet(&m, 0, 1000), 1007);
	assert_int_equal(link_model_packet(&m, 0, 2000), 3007);
	assert_int_equal(link_model_packet(&m, 500, 1000), 4007);
	/* It would wait 3500 ns. */
	assert_int_equal(link_model_packet(&m, 500, 1), LINK_DROPS);
	assert_int_equal(link_model_packet(&m, 1000, 1000), 5007);
	/* An idle link owes nothing. */
	assert_int_equal(link_model_packet(&m, 100000, 1000), 101007);
}

int main(void)
{
	const struct CMUnitTest all[] = {
		cmocka_unit_test(latency_is_added),
		cmocka_unit_test(jitter_keeps_the_order_and_its_limits),
		cmocka_unit_test(bytes_take_their_time),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("link model", all, NULL, NULL);
}
