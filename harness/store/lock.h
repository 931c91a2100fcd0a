/*
 * One orchestrator a run: a lock on RUN/lock that goes with its process, however that ends.
 */
#ifndef CULPRIT_HARNESS_LOCK_H
#define CULPRIT_HARNESS_LOCK_H

#include <stdbool.h>
#include <sys/types.h>

#include "harness/base/err.h"

/* '*fd' is closed to give it back. -EBUSY: another process has it, and which. */
int run_lock(const char *folder, int *fd, struct err *e);

/* Is somebody at it? Takes nothing, so that it can be asked at any time. '*pid' (may be NULL) is
 * who said so last. */
bool run_is_locked(const char *folder, pid_t *pid);

#endif
