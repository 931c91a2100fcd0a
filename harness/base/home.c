#include "harness/base/home.h"

#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* From the program's folder upwards: out/tests/ROOM/NAME_test is the deepest program of a source
 * tree. */
enum { LEVELS = 4 };

/* Looks for 'probe' below the folders 'below' of the program's folder and of its parents. The first
 * match is the answer: the source tree for a program in out/, PREFIX for an installed one, wherever
 * both were moved to. */
static int find_upwards(const char *const below[], const char *probe, char **found, struct err *e)
{
	char folder[PATH_MAX], path[2 * PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", folder, sizeof(folder) - 1);

	if (n < 0)
		return err_errno(e, -errno, "cannot read '/proc/self/exe'");
	folder[n] = '\0';
	for (int level = 0; level < LEVELS; level++) {
		dirname(folder);
		for (int i = 0; below[i]; i++) {
			snprintf(path, sizeof(path), "%s/%s%s", folder, below[i], probe);
			if (access(path, R_OK) < 0)
				continue;
			path[strlen(path) - strlen(probe)] = '\0';
			*found = realpath(path, NULL);
			return *found ? 0 : err_errno(e, -errno, "cannot find '%s'", path);
		}
	}
	return err_set(e, -ENOENT,
		"cannot find culprit's files: there is no '%s%s' above the program; "
		"run 'make install', or set CULPRIT_HOME",
		below[0], probe);
}

static int found_or_named(const char *variable, const char *const below[], const char *probe,
	char **found, struct err *e)
{
	const char *named = getenv(variable);
	char path[PATH_MAX];
	int rc;

	if (!named)
		rc = find_upwards(below, probe, found, e);
	else if (snprintf(path, sizeof(path), "%s/%s", named, probe) >= (int)sizeof(path) ||
		access(path, R_OK) < 0)
		rc = err_set(e, -ENOENT, "%s is '%s', but there is no '%s' in it", variable, named,
			probe);
	else
		rc = (*found = strdup(named)) ? 0 : err_errno(e, -ENOMEM, "no memory");
	return rc ? err_blame(e, ERR_HARNESS, rc) : 0;
}

int home_path(const char *sub, char **path, struct err *e)
{
	static const char *const below[] = {"share/culprit/", "", NULL};
	char *home = NULL;
	int rc = found_or_named("CULPRIT_HOME", below, "workloads/ddw.lua", &home, e);

	if (rc)
		return rc;
	if (asprintf(path, "%s/%s", home, sub) < 0)
		rc = err_errno(e, -ENOMEM, "cannot find '%s'", sub);
	free(home);
	return rc;
}

int home_agent_dir(char **path, struct err *e)
{
	static const char *const below[] = {"agent/", "lib/culprit/agent/", NULL};

	return found_or_named("CULPRIT_AGENT_DIR", below, "culprit-agent", path, e);
}
