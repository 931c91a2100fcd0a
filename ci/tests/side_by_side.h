/*
 * Tests that wait more than they compute, all at once: each in its own process, with its own setup
 * and teardown, and reported in order as if they had run one after the other.
 */
#ifndef CULPRIT_CI_TESTS_SIDE_BY_SIDE_H
#define CULPRIT_CI_TESTS_SIDE_BY_SIDE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

struct side {
	const struct CMUnitTest *test;
	CMFixtureFunction setup, teardown;
	pid_t pid;
	FILE *output;
};

static struct side *side_own; /* in its process */

static int side_run(void)
{
	return _cmocka_run_group_tests(
		side_own->test->name, side_own->test, 1, side_own->setup, side_own->teardown);
}

/* 'within': NULL, or what puts a test into namespaces (in_own_namespaces). */
static void side_start(struct side *s, int (*within)(int (*tests)(void)))
{
	s->output = tmpfile();
	fflush(stdout);
	s->pid = s->output ? fork() : -1;
	if (s->pid == 0) {
		dup2(fileno(s->output), STDOUT_FILENO);
		dup2(fileno(s->output), STDERR_FILENO);
		side_own = s;
		exit(within ? within(side_run) : side_run());
	}
}

/* Takes its end and its notes over; all that it printed, if it failed. */
static void side_end(void **state)
{
	struct side *s = *state;
	bool skipped = false;
	char line[1024];
	int status;

	assert_true(s->pid > 0);
	assert_int_equal(waitpid(s->pid, &status, 0), s->pid);
	rewind(s->output);
	while (fgets(line, sizeof(line), s->output)) {
		skipped |= strstr(line, "# SKIP") != NULL;
		if (status)
			printf("# %s", line);
		else if (!strncmp(line, "# ", 2) && strncmp(line, "# ok", 4))
			fputs(line, stdout);
	}
	fclose(s->output);
	assert_int_equal(status, 0);
	if (skipped)
		skip();
}

enum { MAX_SIDES = 32 };

/* As cmocka_run_group_tests. */
static inline int run_side_by_side(const struct CMUnitTest *tests, size_t n,
	CMFixtureFunction setup, CMFixtureFunction teardown, int (*within)(int (*tests)(void)))
{
	static struct side sides[MAX_SIDES];
	struct CMUnitTest ends[MAX_SIDES];

	if (n > MAX_SIDES)
		abort();
	for (size_t i = 0; i < n; i++) {
		sides[i] = (struct side){&tests[i], setup, teardown, 0, NULL};
		side_start(&sides[i], within);
		ends[i] = (struct CMUnitTest){
			.name = tests[i].name, .test_func = side_end, .initial_state = &sides[i]};
	}
	return _cmocka_run_group_tests("side by side", ends, n, NULL, NULL);
}

#endif
