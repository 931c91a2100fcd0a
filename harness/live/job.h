/*
 * Runs a command on one client of a cluster and records it there, as well as its processes on all
 * other clients, for diag/causal:
 *
 *     job_open(&options, &j, &e)
 *     job_run(j, folder, &e)      as often as wanted, each with a different folder
 *     job_logs(j, &n)
 *     job_close(j)
 *
 * The command runs under a tracer of the agent on its client. On every client, a second tracer
 * follows the launcher, the program that starts processes for other nodes (sshd), from before the
 * command begins until it has ended. The launcher needs no changes: the logs show afterwards which
 * of its processes belong to the application (diag/causal/causal.h).
 *
 * Agents are deployed and guarded as in a run. Whenever this process ends, tracers detach, and the
 * command ends with all its descendants on its client; its own launching program must end its
 * processes on other nodes.
 */
#ifndef CULPRIT_HARNESS_LIVE_JOB_H
#define CULPRIT_HARNESS_LIVE_JOB_H

#include <signal.h>

#include "diag/causal/causal.h"
#include "harness/base/err.h"

struct job_options {
	const char *inventory;
	const char *from;     /* the client to run on; NULL: the first */
	const char *root;     /* a folder there, on the file system; NULL: its mount */
	const char *launcher; /* name of the program's file */
	char *const *argv;    /* NULL-terminated; runs in the root folder */
	double memory_bytes;  /* of each tracer's buffers */
	double limit_s;
	const volatile sig_atomic_t *interrupted; /* of signals_catch */
	void (*tell)(const char *sentence);
};

struct job;

/* Connects and checks the root and the launchers. -EINVAL: 'from' or 'root' cannot be used
 * (ERR_USAGE), or two clients have the same address (ERR_SCENARIO); -ESRCH: another client has no
 * launcher. */
int job_open(const struct job_options *o, struct job **out, struct err *e);

/* Runs the command once and prints its output. Creates 'folder', which receives the logs and the
 * lists of files 'before' and 'after' (culprit-agent files). -ECANCELED: the command failed;
 * -ETIMEDOUT: it exceeded the limit and was killed. */
int job_run(struct job *j, const char *folder, struct err *e);

/* Logs of the last run, for causal_make; valid until the next run or job_close. */
const struct causal_log *job_logs(const struct job *j, size_t *n);
const char *job_kernel(const struct job *j); /* kernel of the client: release and architecture */

void job_close(struct job *j); /* NULL is fine */

#endif
