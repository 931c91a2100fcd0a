/*
 * Confines a detector that is a program: limits what it can see and do.
 *
 * It runs as nobody, in separate mount, process, network, IPC and host-name namespaces, with an
 * empty environment, only the descriptors 0, 1 and 2, and limits on CPU, memory, file size and
 * processes. Its file tree holds /usr and the paths that belong to it (/bin, /lib*,
 * /etc/alternatives, the loader's cache), /dev/null, zero and urandom, a copy of the program in
 * /detector, and an empty /tmp, where it starts. It has no /proc, no /sys, no network, no keyring,
 * and leaves nothing behind. So it can find neither the run's folder nor its caller, and cannot
 * remember an earlier run. Any other file that a program needs must be below /usr.
 */
#ifndef CULPRIT_DIAG_JUDGE_CONFINE_H
#define CULPRIT_DIAG_JUDGE_CONFINE_H

#include <stdbool.h>
#include <sys/types.h>

#include "harness/base/err.h"

struct confined {
	pid_t pid; /* SIGKILL to it ends all processes of the program */
	/* Below $TMPDIR or /tmp; its tree is mounted there, only in its own namespace. */
	char folder[128];
};

/* Is 'program' a file that can be started? -EINVAL with the remedy: not a file, or lines that end
 * with CR LF. */
int confine_check(const char *program, struct err *e);

/* Starts 'program' with the three descriptors, which stay the caller's. Without namespaces: -EPERM
 * with advice, or, if 'trust', it runs without them (as nobody if the caller is root). Another
 * -errno if the program cannot be started: a missing interpreter is named, with the program's file
 * and line. */
int confine_start(const char *program, int in, int out, int error, bool trust, struct confined *c,
	struct err *e);

/* Kills remaining processes, waits, and removes the folder; returns the exit code, or
 * 128+signal. */
int confine_end(struct confined *c, bool kill_it);

#endif
