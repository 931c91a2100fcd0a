/*
 * The signal primitive: stops a process and its descendants (SIGSTOP), so that they hang with all
 * their threads, sockets and locks. Undo lets them continue (SIGCONT).
 *
 * The pauses primitive does so again and again, by a process on the node that keeps the time, since
 * a call from the orchestrator takes longer than a short pause. Its inverse is that of the process
 * primitive with "servers", a list of inverses of signal_stop: undo ends the process that stops
 * them, and then lets them continue.
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

struct signal_pauses {
	unsigned long stops; /* how often every thread of all was seen stopped */
	/* Of pauses that have ended: from that moment to SIGCONT, if they were stopped until then.
	 */
	double stopped_s;
	double whole_s; /* from the first pause to the end of the last whole period */
};

/* Stops 'servers' (see above) for 'pause_s' of every 'every_s' seconds; 0: once. 'note' is called
 * after each change. Returns only with an error: -ESRCH: one of them has ended. */
int signal_pause(const json_t *servers, double pause_s, double every_s,
	void (*note)(const struct signal_pauses *so_far), struct err *e);

#endif
