/*
 * On a target host we are started as LOADER --library-path DIR DIR/culprit-agent,
 * so that no library of the host is used. /proc/self/exe is then the loader, and
 * to start ourselves again means to start it in the same way.
 */
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/agent/agent.h"

static char exe[PATH_MAX], program[PATH_MAX], folder[PATH_MAX];
static const char *words[5];

int self_init(const char *argv0, struct err *e)
{
	char copy[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

	if (n < 0)
		return err_errno(e, -errno, "cannot read '/proc/self/exe'");
	exe[n] = '\0';
	words[0] = exe;
	strcpy(copy, exe);
	if (strncmp(basename(copy), "ld-", 3))
		return 0;
	if (!realpath(argv0, program))
		return err_errno(e, -errno, "cannot find this program as '%s'", argv0);
	strcpy(folder, program);
	words[1] = "--library-path";
	words[2] = dirname(folder);
	words[3] = program;
	return 0;
}

const char *const *self_argv(void)
{
	return words;
}
