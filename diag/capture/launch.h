/* A command that is to be recorded: its process waits until the tracer is ready for it. */
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

/* Forks; the process will run 'command', or 'body' if there is one. launch_close afterwards, also
 * after errors; to wait for the process is the caller's task. */
int launch_fork(struct launch *l, char **command, void (*body)(void), struct err *e);

/* Lets it go, and closes. -errno of its exec. */
int launch_go(struct launch *l, struct err *e);

void launch_close(struct launch *l);

/* For processes that are started: the default action for what trace_signals ignores. */
void usual_signals(void);

#endif
