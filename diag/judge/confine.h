/*
 * Confined programs: what a detector that is a program can see and do.
 *
 * It runs as nobody, in its own mount, process, network, IPC and host-name namespaces, with an
 * empty environment, no descriptor but 0, 1 and 2, and limits on CPU, memory, file size and
 * processes. Its file tree holds /usr and what belongs to it (/bin, /lib*, /etc/alternatives, the
 * loader's cache), /dev/null, zero and urandom, a copy of the program in /detector, and an empty
 * /tmp, where it starts. There is no /proc, no /sys, no network, no keyring and nothing that
 * outlives it. So it can find neither the run's folder nor its caller, and cannot remember an
 * earlier run. Anything else that a program needs must be below /usr.
 */
#ifndef CULPRIT_DIAG_JUDGE_CONFINE_H
#define CULPRIT_DIAG_JUDGE_CONFINE_H

#include <stdbool.h>
#include <sys/types.h>

#include "harness/base/err.h"

struct confined {
	pid_t pid; /* SIGKILL to it ends all that the program started */
	/* Below $TMPDIR or /tmp; its tree is mounted there in its own namespace only. */
	char folder[128];
};

/* Is 'program' a file that could be started? -EINVAL with what to do: it is no file, or its lines
 * end as on Windows. */
int confine_check(const char *program, struct err *e);

/* Starts 'program' with the three descriptors, which stay the caller's. -EPERM if namespaces are
 * not available, with advice; if 'trust', it then runs without them (as nobody if the caller is
 * root). Another -errno if the program cannot be started: a missing interpreter is
 * named, with the program's file and line. */
int confine_start(const char *program, int in, int out, int error, bool trust, struct confined *c,
	struct err *e);

/* Kills what is left, waits, and removes the folder; the exit code, or 128+signal. */
int confine_end(struct confined *c, bool kill_it);

#endif
