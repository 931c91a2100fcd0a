/* For tests by failing.h: a process that acts are tried on, in whose life the tests run. */
#ifndef CULPRIT_CI_TESTS_AGENT_FAILING_TARGET_H
#define CULPRIT_CI_TESTS_AGENT_FAILING_TARGET_H

#include "ci/tests/agent/failing.h"

static pid_t target;

static int setup(void **unused)
{
	if (plan_make())
		return -1;
	target = fork();
	if (target == 0)
		for (;;)
			pause();
	return peer_setup(unused);
}

static int teardown(void **unused)
{
	kill(target, SIGKILL);
	waitpid(target, NULL, 0);
	return peer_teardown(unused);
}

#endif
