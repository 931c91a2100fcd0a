#include "harness/base/home.h"

#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int own_folder(char *buf, size_t size, struct err *e)
{
	ssize_t n = readlink("/proc/self/exe", buf, size - 1);

	if (n < 0)
		return err_errno(e, -errno, "cannot read '/proc/self/exe'");
	buf[n] = '\0';
	dirname(buf);
	return 0;
}

/* The first of 'candidates' below which 'probe' exists. */
static int first_with(const char *const candidates[], const char *probe, char *home, size_t size)
{
	char path[PATH_MAX + 64];

	for (int i = 0; candidates[i]; i++) {
		snprintf(path, sizeof(path), "%s/%s", candidates[i], probe);
		if (access(path, R_OK) == 0 && realpath(candidates[i], path)) {
			snprintf(home, size, "%s", path);
			return 0;
		}
	}
	return -ENOENT;
}

static int find(const char *probe, const char *installed, const char *beside, char *home, size_t size, struct err *e)
{
	char self[PATH_MAX], tree[PATH_MAX + 16];
	const char *env = getenv("CULPRIT_HOME");
	const char *candidates[] = {tree, installed, NULL};
	int rc;

	if (env) {
		snprintf(home, size, "%s", env);
		return 0;
	}
	rc = own_folder(self, sizeof(self), e);
	if (rc)
		return rc;
	snprintf(tree, sizeof(tree), "%s/%s", self, beside);
	if (first_with(candidates, probe, home, size))
		return err_set(e, -ENOENT, "cannot find culprit's files ('%s' beside the program or in '%s'); "
			       "run 'make install', or set CULPRIT_HOME", probe, installed);
	return 0;
}

int home_path(const char *sub, char **path, struct err *e)
{
	char home[PATH_MAX];
	int rc;

	/* The program is out/culprit or out/tests/NAME in a source tree; out/ has folders named as the sources'. */
	rc = find("workloads/ddw.lua", CULPRIT_PREFIX "/share/culprit", "..", home, sizeof(home), NULL);
	if (rc)
		rc = find("workloads/ddw.lua", CULPRIT_PREFIX "/share/culprit", "../..", home, sizeof(home), e);
	if (rc)
		return rc;
	if (asprintf(path, "%s/%s", home, sub) < 0)
		return err_errno(e, -ENOMEM, "cannot find '%s'", sub);
	return 0;
}

int home_agent_dir(char **path, struct err *e)
{
	const char *env = getenv("CULPRIT_AGENT_DIR");
	char dir[PATH_MAX], self[PATH_MAX], beside[2][PATH_MAX + 16];
	const char *candidates[] = {beside[0], beside[1], CULPRIT_PREFIX "/lib/culprit/agent", NULL};
	int rc;

	if (env) {
		snprintf(dir, sizeof(dir), "%s", env);
	} else {
		rc = own_folder(self, sizeof(self), e);
		if (rc)
			return rc;
		snprintf(beside[0], sizeof(beside[0]), "%s/agent", self);
		snprintf(beside[1], sizeof(beside[1]), "%s/../agent", self);
		if (first_with(candidates, "culprit-agent", dir, sizeof(dir)))
			return err_set(e, -ENOENT, "cannot find the agent beside '%s' or in '%s'; run 'make'", self,
				       CULPRIT_PREFIX "/lib/culprit/agent");
	}
	*path = strdup(dir);
	return *path ? 0 : err_errno(e, -ENOMEM, "cannot find the agent");
}
