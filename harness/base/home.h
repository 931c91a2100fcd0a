/*
 * Where culprit's own files are (faults/, workloads/, scenarios/, the agent's bundle): the
 * source tree that the program was built in, or PREFIX/share/culprit once installed;
 * $CULPRIT_HOME overrides.
 */
#ifndef CULPRIT_BASE_HOME_H
#define CULPRIT_BASE_HOME_H

#include "harness/base/err.h"

/* Absolute path of 'sub' ("faults/disk-hog.lua") below the home; malloced, never NULL on 0.
 * -ENOENT when there is no home to be found. The path itself need not exist. */
int home_path(const char *sub, char **path, struct err *e);

/* The folder with the agent's bundle; malloced. -ENOENT when it was not built or installed. */
int home_agent_dir(char **path, struct err *e);

#endif
