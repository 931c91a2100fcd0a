/* Tests which threads are blocked, from readings of threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants those first */
#include <cmocka.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "diag/throttle/watch.h"

#define MS 1000000ll

/* The thread's maxima in the unthrottled run: 30 ms of computing, 200 sleeps, 400 ms. */
static const struct watch_limits limits = {.cpu_ns = 30 * MS, .sleeps = 200, .wall_ns = 400 * MS};

struct example {
	char state;
	uint64_t cpu_ms, sleeps; /* since its last operation */
	int64_t same_ms;
	long call;
	uint64_t args[6];
	bool on_file;
	enum watch_verdict want;
	const char *why;
};

static const struct example examples[] = {
	/* Asleep in calls that wait for other threads. */
	{'S', 1, 1, 1, SYS_futex, {0, FUTEX_WAIT}, false, WATCH_STILL, NULL},
	{'S', 1, 1, 1, SYS_wait4, {0}, false, WATCH_STILL, NULL},
	{'S', 1, 1, 1, SYS_read, {0}, false, WATCH_STILL, NULL},
	{'S', 1, 1, 1, SYS_ppoll, {0, 2, 1}, false, WATCH_STILL, NULL},
	/* In a call on a file, for any time. */
	{'S', 1, 1, 99999, SYS_read, {0}, true, WATCH_BUSY, "is in a call on a file"},
	{'S', 999, 999, 1, SYS_read, {0}, true, WATCH_BUSY, "is in a call on a file"},
	{'D', 999, 999, 99999, SYS_futex, {0}, false, WATCH_BUSY, "waits in the kernel"},
	{'T', 999, 999, 99999, SYS_futex, {0}, false, WATCH_BUSY, "is stopped"},
	{'S', 1, 1, 1, WATCH_NO_CALL, {0}, false, WATCH_BUSY, "waits for a page"},
	/* Asleep for a set time, longer than any in the unthrottled run. */
	{'S', 1, 1, 700, SYS_nanosleep, {0}, false, WATCH_BUSY, "sleeps for a set time"},
	{'S', 1, 1, 900, SYS_nanosleep, {0}, false, WATCH_STILL, NULL},
	{'S', 1, 1, 700, SYS_clock_nanosleep, {0}, false, WATCH_BUSY, "sleeps for a set time"},
	{'S', 1, 1, 700, SYS_ppoll, {0, 0, 1}, false, WATCH_BUSY, "sleeps for a set time"},
	{'S', 1, 1, 1, SYS_ppoll, {0, 0, 0}, false, WATCH_STILL, NULL},
	{'S', 1, 1, 700, SYS_futex, {0, FUTEX_WAIT, 0, 1}, false, WATCH_BUSY,
		"sleeps for a set time"},
	/* Computing is measured as processor time, so a busy machine makes no difference. */
	{'R', 1, 1, 0, WATCH_NO_CALL, {0}, false, WATCH_BUSY, "computes"},
	{'R', 79, 1, 0, WATCH_NO_CALL, {0}, false, WATCH_BUSY, "computes"},
	{'R', 81, 1, 0, WATCH_NO_CALL, {0}, false, WATCH_LOOKS, NULL},
	{'S', 81, 1, 0, SYS_nanosleep, {0}, false, WATCH_LOOKS, NULL},
	/* Sleeps and polls more often than in the unthrottled run. */
	{'S', 1, 499, 0, SYS_nanosleep, {0}, false, WATCH_BUSY, "sleeps for a set time"},
	{'S', 1, 501, 0, SYS_nanosleep, {0}, false, WATCH_LOOKS, NULL},
	{'Z', 0, 0, 0, WATCH_NO_CALL, {0}, false, WATCH_GONE, NULL},
};

static void readings_are_judged(void **state)
{
	const struct watch_reading op = {.cpu_ns = 5000 * MS, .sleeps = 7000, .runs = 9000};

	(void)state;
	for (size_t i = 0; i < sizeof(examples) / sizeof(examples[0]); i++) {
		const struct example *x = &examples[i];
		const char *why = NULL;
		struct watch_reading now = {.state = x->state,
			.cpu_ns = op.cpu_ns + x->cpu_ms * MS,
			.sleeps = op.sleeps + x->sleeps,
			.runs = op.runs + 1,
			.call = x->call,
			.on_file = x->on_file};
		enum watch_verdict got;

		memcpy(now.args, x->args, sizeof(now.args));
		got = watch_judge(&now, &op, x->same_ms * MS, &limits, &why);
		if (got != x->want || (x->why && strcmp(why, x->why)))
			fail_msg("example %zu: %d (%s)", i, got, why ? why : "");
		/* While the limits are unknown, a computing thread is never blocked. */
		got = watch_judge(&now, &op, x->same_ms * MS, NULL, &why);
		assert_true(got == WATCH_BUSY || got == WATCH_GONE || x->state == 'S');
		assert_true(got != WATCH_LOOKS);
	}
}

/* A polling thread must have polled after all others were blocked. */
static void polling_threads_must_poll_again(void **state)
{
	const struct watch_reading mark = {
		.state = 'R', .cpu_ns = 100 * MS, .sleeps = 50, .runs = 70};
	struct watch_reading now = mark;

	(void)state;
	assert_false(watch_settled(WATCH_BUSY, &now, &mark));
	assert_true(watch_settled(WATCH_STILL, &now, &mark));
	assert_true(watch_settled(WATCH_GONE, &now, &mark));
	/* It waits for a processor. */
	assert_false(watch_settled(WATCH_LOOKS, &now, &mark));
	now.cpu_ns += WATCH_LOOK_CPU_NS - 1;
	now.runs++;
	assert_false(watch_settled(WATCH_LOOKS, &now, &mark));
	now.cpu_ns++;
	assert_true(watch_settled(WATCH_LOOKS, &now, &mark));
	now = mark;
	now.sleeps += WATCH_LOOK_SLEEPS;
	now.runs += WATCH_LOOK_SLEEPS;
	assert_true(watch_settled(WATCH_LOOKS, &now, &mark));
	/* It has polled before, and has slept since. */
	now = mark;
	now.state = 'S';
	assert_true(watch_settled(WATCH_LOOKS, &now, &mark));
	now.runs++;
	assert_false(watch_settled(WATCH_LOOKS, &now, &mark));
}

static void the_tests_own_thread_is_read(void **state)
{
	struct watch_reading r;

	(void)state;
	assert_true(watch_read(getpid(), getpid(), true, &r));
	assert_int_equal(r.state, 'R');
	assert_int_equal(r.call, WATCH_NO_CALL);
	assert_false(watch_read(getpid(), 1, true, &r));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(readings_are_judged),
		cmocka_unit_test(polling_threads_must_poll_again),
		cmocka_unit_test(the_tests_own_thread_is_read),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
