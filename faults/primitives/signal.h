/*
 * The signal primitive: a process is stopped (SIGSTOP), so that it hangs with all its threads,
 * sockets and locks, and goes on (SIGCONT) when it is undone.
 */
#ifndef CULPRIT_FAULTS_SIGNAL_H
#define CULPRIT_FAULTS_SIGNAL_H

#include <sys/types.h>

#include "faults/primitives/primitive.h"

/* What takes signal_stop back; new reference. -ESRCH; -EALREADY: it is stopped, by somebody who
 * will not expect it to go on. */
int signal_inverse(pid_t pid, json_t **inverse, struct err *e);

/* Stops it and waits until every thread stands still, or waits in the kernel for what a signal
 * cannot interrupt; at most 5 s (-ETIMEDOUT). */
int signal_stop(const json_t *inverse, struct err *e);

/* Is every thread of 'pid' stopped? A traced one that stands in a system call for a moment looks
 * the same; look twice. False if there is none. */
bool signal_is_stopped(pid_t pid);

#endif
