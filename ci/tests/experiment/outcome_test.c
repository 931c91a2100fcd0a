/*
 * Whose error it is decides what an attempt counts for and with which code the program ends; and
 * the third signal ends it, whatever it does.
 */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "harness/run/attempt.h"
#include "harness/run/signals.h"

static void a_class_has_one_outcome_and_one_exit_code(void **state)
{
	static const struct {
		enum err_class class;
		enum outcome outcome;
		int exit_code;
	} table[] = {
		{ERR_UNCLASSED, OUTCOME_INVALID, 3},
		{ERR_USAGE, OUTCOME_ERROR, 2},
		{ERR_SCENARIO, OUTCOME_ERROR, 2},
		{ERR_CLUSTER, OUTCOME_INVALID, 3},
		{ERR_DAMAGED, OUTCOME_INVALID, 2},
		{ERR_INTERRUPTED, OUTCOME_INVALID, 3},
		{ERR_HARNESS, OUTCOME_ERROR, 3},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct err e = {.class = table[i].class};

		/* No error of an attempt is a confirmed attempt that missed its fault. */
		assert_int_equal(attempt_outcome(e.class), table[i].outcome);
		assert_int_equal(err_exit_code(&e), table[i].exit_code);
	}
}

static void the_code_nearest_to_the_cause_blames(void **state)
{
	struct err e;

	(void)state;
	err_set(&e, -EIO, "s1: no answer");
	assert_int_equal(e.class, ERR_UNCLASSED);
	assert_int_equal(err_blame(&e, ERR_CLUSTER, -EIO), -EIO);
	err_blame(&e, ERR_DAMAGED, -EIO);
	err_prefix(&e, -EIO, "cell 7");
	assert_int_equal(e.class, ERR_CLUSTER);
	assert_string_equal(e.text, "cell 7: s1: no answer");
	/* Memory is short here, whatever was to be done with it. */
	assert_int_equal(err_errno(&e, -ENOMEM, "cannot begin"), -ENOMEM);
	assert_int_equal(cluster_blame(-ENOMEM, &e), -ENOMEM);
	assert_int_equal(e.class, ERR_HARNESS);
	/* The agent refuses malformed arguments with -EINVAL. */
	err_set(&e, -EINVAL, "s1: percent must be above 0");
	cluster_blame(-EINVAL, &e);
	assert_int_equal(e.class, ERR_SCENARIO);
}

/* A child that does not stop when it is asked to; it counts signals into shared memory and has a
 * stderr that is a pipe. */
static pid_t start_stubborn(volatile sig_atomic_t *seen, int *error_fd)
{
	int p[2];
	pid_t pid;

	assert_int_equal(pipe(p), 0);
	pid = fork();
	if (!pid) {
		volatile sig_atomic_t *count;

		dup2(p[1], 2);
		close(p[0]);
		close(p[1]);
		count = signals_catch();
		*seen = 0;
		for (;;)
			*seen = *count;
	}
	close(p[1]);
	*error_fd = p[0];
	return pid;
}

static void wait_seen(volatile sig_atomic_t *seen, int n)
{
	while (*seen != n)
		usleep(1000);
}

static void the_third_signal_ends_a_program_that_loops(void **state)
{
	volatile sig_atomic_t *seen = mmap(
		NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	static const int signals_sent[] = {SIGINT, SIGTERM, SIGINT};
	char text[256] = "";
	int fd, status;
	pid_t pid;

	(void)state;
	*seen = -1;
	pid = start_stubborn(seen, &fd);
	for (int i = 0; i < 3; i++) {
		wait_seen(seen, i);
		assert_int_equal(waitpid(pid, &status, WNOHANG), 0);
		kill(pid, signals_sent[i]);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT);
	assert_true(read(fd, text, sizeof(text) - 1) > 0);
	assert_non_null(strstr(text, "each node's guard undoes what is left"));
	close(fd);
	munmap((void *)seen, 4096);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_class_has_one_outcome_and_one_exit_code),
		cmocka_unit_test(the_code_nearest_to_the_cause_blames),
		cmocka_unit_test(the_third_signal_ends_a_program_that_loops),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
