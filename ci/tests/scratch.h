/* A folder for a test program's files, there before its tests and gone after them:
 * cmocka_run_group_tests(tests, make_dir, remove_dir). */
#ifndef CULPRIT_CI_TESTS_SCRATCH_H
#define CULPRIT_CI_TESTS_SCRATCH_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "harness/base/file.h"

static char dir[64];

static int make_dir(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), "/tmp/%.40s.XXXXXX", program_invocation_short_name);
	return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
	(void)state;
	return file_remove_tree(dir, NULL);
}

#endif
