/*
 * The signal primitive: stops a process and its descendants (SIGSTOP), so that they hang with all
 * their threads, sockets and locks. Undo lets them continue (SIGCONT).
 */
#ifndef CULPRIT_FAULTS_PRIMITIVES_SIGNAL_H
#define CULPRIT_FAULTS_PRIMITIVES_SIGNAL_H

#include <sys/types.h>

#include "faults/primitives/primitive.h"

/* The inverse of signal_stop; new reference. -ESRCH; -EALREADY: somebody else has stopped it or a
 * descendant, and does not expect that to continue. */
int signal_inverse(pid_t pid, json_t **inverse, struct err *e);

/* Stops it, then its descendants, until every thread of all is stopped, or in an uninterruptible
 * wait in the kernel; at most 5 s (-ETIMEDOUT). */
int signal_stop(const json_t *inverse, struct err *e);

/* Is every thread of 'pid' stopped? A traced thread looks the same for a moment in each system
 * call. False if there is no such process. */
bool signal_is_stopped(pid_t pid);

#endif
