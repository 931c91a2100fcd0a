/* Where the build's other programs are, for tests: built("agent/culprit-agent", path). */
#ifndef CULPRIT_CI_TESTS_BUILT_H
#define CULPRIT_CI_TESTS_BUILT_H

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* "OUT/sub" into 'path' (4096 bytes), for a program OUT/tests/ROOM/NAME; returns 'path', or
 * NULL. */
static inline char *built(const char *sub, char path[4096])
{
	ssize_t n = readlink("/proc/self/exe", path, 4095);
	char *tests;

	if (n < 0)
		return NULL;
	path[n] = '\0';
	tests = strstr(path, "/tests/");
	if (!tests)
		return NULL;
	snprintf(tests, 4096 - (size_t)(tests - path), "/%s", sub);
	return path;
}

#endif
