/* A command under the tracer, with an end in any case. */
#ifndef CULPRIT_HARNESS_CLI_CAPTURE_RUN_H
#define CULPRIT_HARNESS_CLI_CAPTURE_RUN_H

#include "harness/base/err.h"

struct supervisor;

/* Which thread of the command is delayed (diag/throttle/supervisor.h); NULL: the run learns. */
struct capture_delays {
	struct supervisor *supervisor;
	const char *thread;
	unsigned long period;
};

/* Runs 'command' (ended by NULL; 'd' may be NULL: without supervision) until it and all that it
 * started have ended, and writes the log. 0; -ETIMEDOUT after 'limit_s', -EINTR at SIGINT, SIGTERM
 * or SIGHUP: all of it has been ended;
 * -ECANCELED: the command's exit code was not 0, or the tracer failed (which has said why). */
int capture_run(char **command, const char *log, const char *memory, double limit_s,
	const struct capture_delays *d, struct err *e);

#endif
