/*
 * Names that come from files: of hosts, scenarios, faults, workloads, detectors.
 *
 * They become file names, Lua keys and words on a terminal, so one rule holds for all of them.
 */
#ifndef CULPRIT_HARNESS_BASE_NAME_H
#define CULPRIT_HARNESS_BASE_NAME_H

#include "harness/base/err.h"

enum { NAME_LENGTH_MAX = 64 };

/* A name is 1 to 64 ASCII letters, digits, '.', '_' and '-', and starts with neither '.' nor '-'.
 * 'kind' is what the name names ("fault"); it begins the error's sentence. 0 or -EINVAL. */
int name_check(const char *kind, const char *name, struct err *e);

#endif
