/* Finds culprit's own files and the agent's bundle. */
#include "harness/base/home.h"

#include <dirent.h>
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/alloc.h"

/* Number of parent folders to search: out/tests/FOLDER/NAME_test is the deepest program of a
 * source tree. */
enum { LEVELS = 4 };

/* Looks for 'probe' in the folders 'below' of the program's folder and of its parents, and
 * returns the first match: the source tree for a program in out/, PREFIX for an installed
 * program. This still works after the tree has been moved. */
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
		"cannot find culprit's files: no '%s%s' above the program; "
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
		rc = err_set(e, -ENOENT, "%s is '%s', which has no '%s'", variable, named, probe);
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

/* The path of the loader in the bundle, or NULL if the agent is static. */
static int find_loader(const char *folder, char **loader, struct err *e)
{
	DIR *d = opendir(folder);
	struct dirent *entry;

	*loader = NULL;
	if (!d)
		return err_errno(e, -errno, "cannot read the agent's folder '%s'", folder);
	while (!*loader && (entry = readdir(d)))
		if (!strncmp(entry->d_name, "ld-linux", strlen("ld-linux")))
			*loader = alloc_format("%s/%s", folder, entry->d_name);
	closedir(d);
	return 0;
}

int agent_start_init(struct agent_start *a, struct err *e)
{
	char *folder = NULL, *loader;
	int rc;

	*a = (struct agent_start){.n = 0};
	rc = home_agent_dir(&folder, e) ?: find_loader(folder, &loader, e);
	if (!rc && loader) {
		a->words[a->n++] = loader;
		a->words[a->n++] = alloc_copy("--library-path");
		a->words[a->n++] = alloc_copy(folder);
	}
	if (!rc)
		a->words[a->n++] = alloc_format("%s/culprit-agent", folder);
	free(folder);
	return rc;
}

void agent_start_clear(struct agent_start *a)
{
	for (size_t i = 0; i < a->n; i++)
		free(a->words[i]);
	a->n = 0;
}
