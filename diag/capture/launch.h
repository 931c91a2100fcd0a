/* Starts a command to be recorded: its process waits until the tracer is ready. */
#ifndef CULPRIT_DIAG_CAPTURE_LAUNCH_H
#define CULPRIT_DIAG_CAPTURE_LAUNCH_H

#include <sys/types.h>

#include "harness/base/err.h"

struct launch {
	char **command;
	pid_t pid;  /* 0: none */
	int go;     /* closed without a byte: the process ends */
	int failed; /* errno of a failed exec */
};

/* Forks a process that will execute 'command', or run 'body' if given. Call launch_close
 * afterwards, also after errors; the caller waits for the process. */
int launch_fork(struct launch *l, char **command, void (*body)(void), struct err *e);

/* Lets the process run, and closes. -errno of its exec. */
int launch_go(struct launch *l, struct err *e);

void launch_close(struct launch *l);

/* For started processes: restores the default action of signals that trace_signals ignores. */
void usual_signals(void);

#endif
