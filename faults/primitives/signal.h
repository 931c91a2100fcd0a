/*
 * The signal primitive: stops a process (SIGSTOP), so that it hangs with all its threads, sockets
 * and locks. Undo lets it go on (SIGCONT).
 */
#ifndef CULPRIT_FAULTS_SIGNAL_H
#define CULPRIT_FAULTS_SIGNAL_H

#include <sys/types.h>

#include "faults/primitives/primitive.h"

/* The inverse of signal_stop; new reference. -ESRCH; -EALREADY: somebody else has stopped it, and
 * does not expect it to go on. */
int signal_inverse(pid_t pid, json_t **inverse, struct err *e);

/* Stops it and waits until every thread is stopped, or in an uninterruptible wait in the kernel; at
 * most 5 s (-ETIMEDOUT). */
int signal_stop(const json_t *inverse, struct err *e);

/* Is every thread of 'pid' stopped? A traced thread looks the same for a moment in each system
 * call. False if there is no such process. */
bool signal_is_stopped(pid_t pid);

#endif
