/* Sessions one after the other on one node: what the earlier one held is free at the hello of the
 * next. */
#include "ci/tests/agent/agent_peer.h"

/* Reads nothing more from 'p', whose end is known. */
static void forget(struct peer *p)
{
	kill(p->pid, SIGKILL);
	peer_end(p);
}

static void input_closed(void **unused)
{
	pid_t target = start_pausing();
	struct peer a, b;

	(void)unused;
	for (int i = 0; i < 5; i++) {
		peer_start(&a, LONG_LEASE, NULL, NULL);
		json_decref(peer_call(&a, "trace.start", trace_args(target)));
		close(a.in);
		a.in = -1;
		peer_start(&b, LONG_LEASE, NULL, NULL);
		json_decref(peer_call(&b, "trace.start", trace_args(target)));
		assert_int_equal(peer_end(&b), 0);
		assert_int_equal(peer_end(&a), 0);
	}
	end_target(target);
}

static void silent(void **unused)
{
	pid_t target = start_pausing();
	struct peer a, b;

	(void)unused;
	peer_start(&a, short_lease(), NULL, NULL);
	json_decref(peer_call(&a, "trace.start", trace_args(target)));
	peer_start(&b, LONG_LEASE, NULL, NULL);
	json_decref(peer_call(&b, "trace.start", trace_args(target)));
	forget(&a);
	assert_int_equal(peer_end(&b), 0);
	end_target(target);
}

static void killed_together(void **unused)
{
	pid_t target = start_pausing();
	struct peer a, b;

	(void)unused;
	peer_start(&a, LONG_LEASE, NULL, NULL);
	json_decref(peer_call(&a, "trace.start", trace_args(target)));
	kill(a.pid, SIGKILL);
	peer_start(&b, LONG_LEASE, NULL, NULL);
	json_decref(peer_call(&b, "trace.start", trace_args(target)));
	forget(&a);
	assert_int_equal(peer_end(&b), 0);
	end_target(target);
}

/* The first session stays alive: the second does not wait for its end, and does not harm it. */
static void alive(void **unused)
{
	struct peer a, b;
	json_t *end;
	pid_t beat;

	(void)unused;
	peer_start(&a, short_lease(), NULL, NULL);
	json_decref(peer_call(&a, "process.start", sleep_args()));
	beat = fork();
	if (beat == 0) {
		struct timespec nap = {.tv_nsec = 100000000};

		while (write(a.in, "{\"id\":9,\"op\":\"ping\"}\n", 21) == 21)
			nanosleep(&nap, NULL);
		_exit(0);
	}
	assert_true(beat > 0);
	peer_start(&b, LONG_LEASE, NULL, NULL);
	assert_int_equal(json_array_size(json_object_get(b.hello, "cleaned")), 0);
	assert_int_equal(peer_end(&b), 0);
	end_target(beat);
	close(a.in);
	a.in = -1;
	end = peer_event(&a, "end");
	assert_string_equal(json_string_value(json_object_get(end, "why")), "end of input");
	json_decref(end);
	assert_int_equal(peer_end(&a), 0);
}

static int tests(void)
{
	const struct CMUnitTest list[] = {
		cmocka_unit_test(input_closed),
		cmocka_unit_test(silent),
		cmocka_unit_test(killed_together),
		cmocka_unit_test(alive),
	};

	return cmocka_run_group_tests_name("sessions", list, peer_setup, peer_teardown);
}

int main(void)
{
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return in_own_namespaces(tests);
}
