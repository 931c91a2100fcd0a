/*
 * Where culprit's own files are: faults/, workloads/, scenarios/ ... and the agent's bundle. They
 * are looked for relative to the program: the source tree above out/, or PREFIX/share/culprit and
 * PREFIX/lib/culprit/agent for PREFIX/bin/culprit. So an installed tree can be moved. $CULPRIT_HOME
 * and $CULPRIT_AGENT_DIR override.
 */
#ifndef CULPRIT_HARNESS_BASE_HOME_H
#define CULPRIT_HARNESS_BASE_HOME_H

#include <stddef.h>

#include "harness/base/err.h"

/* Absolute path of 'sub' ("faults/disk-hog.lua") below the home; malloced, never NULL on 0.
 * -ENOENT when there is no home to be found. The path itself need not exist. */
int home_path(const char *sub, char **path, struct err *e);

/* The folder with the agent's bundle; malloced. -ENOENT when it was not built or installed. */
int home_agent_dir(char **path, struct err *e);

/* How the agent is started on this machine: by the loader that is in its folder, as on hosts, so
 * that it needs no library of this machine. 'words' come before those of its command. */
struct agent_start {
	char *words[4];
	size_t n;
};

int agent_start_init(struct agent_start *a, struct err *e);
void agent_start_clear(struct agent_start *a);

#endif
