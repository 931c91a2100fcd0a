/*
 * Finds culprit's own files (faults/, workloads/, scenarios/ ...) and the agent's bundle,
 * relative to the program: in the source tree above out/, or in PREFIX/share/culprit and
 * PREFIX/lib/culprit/agent for PREFIX/bin/culprit. An installed tree can therefore be moved.
 * $CULPRIT_HOME and $CULPRIT_AGENT_DIR override the search.
 */
#ifndef CULPRIT_HARNESS_BASE_HOME_H
#define CULPRIT_HARNESS_BASE_HOME_H

#include <stddef.h>

#include "harness/base/err.h"

/* Absolute path of 'sub' ("faults/disk-hog.lua") below the home; malloced, never NULL on 0.
 * Returns -ENOENT if there is no home. The path need not exist. */
int home_path(const char *sub, char **path, struct err *e);

/* The folder with the agent's bundle; malloced. -ENOENT if it was not built or installed. */
int home_agent_dir(char **path, struct err *e);

/* How to start the agent on this machine: through the loader in the bundle, as on hosts, so that
 * it needs no library of this machine. 'words' precede those of the agent's command. */
struct agent_start {
	char *words[4];
	size_t n;
};

int agent_start_init(struct agent_start *a, struct err *e);
void agent_start_clear(struct agent_start *a);

#endif
