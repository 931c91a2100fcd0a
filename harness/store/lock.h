/* One orchestrator for each run: a lock on RUN/lock that the kernel releases with its process. */
#ifndef CULPRIT_HARNESS_STORE_LOCK_H
#define CULPRIT_HARNESS_STORE_LOCK_H

#include <stdbool.h>
#include <sys/types.h>

#include "harness/base/err.h"

/* Closing '*fd' releases the lock. -EBUSY names the process that holds it. */
int run_lock(const char *folder, int *fd, struct err *e);

/* Is the run in progress? Takes no lock, so it can be called at any time. '*pid' (may be NULL):
 * the process that holds the lock. */
bool run_is_locked(const char *folder, pid_t *pid);

#endif
