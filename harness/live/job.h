/*
 * A command that runs on one client of a cluster, recorded there and on all other clients on which
 * it has processes started, for diag/causal:
 *
 *     job_open(&options, &j, &e)
 *     job_run(j, folder, &e)      as often as wanted, each with its own folder
 *     job_logs(j, &n)
 *     job_close(j)
 *
 * The command runs under a tracer of the agent on its client. On every client, a second tracer
 * follows the launcher, the program that starts processes for other nodes (sshd), from before the
 * command begins until it has ended: nothing is asked of the launcher, and who is the application's
 * among what it started is found afterwards, in the logs (diag/causal/causal.h).
 *
 * Agents are deployed and guarded as in a run. When this process ends in whatever way, tracers
 * detach, and the command ends with all its descendants on its client; what it had started on other
 * nodes is for its own launching program to end.
 */
#ifndef CULPRIT_HARNESS_LIVE_JOB_H
#define CULPRIT_HARNESS_LIVE_JOB_H

#include <signal.h>

#include "diag/causal/causal.h"
#include "harness/base/err.h"

struct job_options {
	const char *inventory;
	const char *from;     /* the client that it runs on; NULL: the first */
	const char *root;     /* a folder there, on the file system; NULL: its mount */
	const char *launcher; /* name of the program's file */
	char *const *argv;    /* ends with NULL; its folder is the root */
	double memory_bytes;  /* of each tracer's buffers */
	double limit_s;
	const volatile sig_atomic_t *interrupted; /* of signals_catch */
	void (*tell)(const char *sentence);
};

struct job;

/* Connects, and looks at the root and the launchers. -EINVAL: 'from' or 'root' cannot be used
 * (ERR_USAGE), or two clients have one address (ERR_SCENARIO); -ESRCH: there is no launcher on
 * another client. */
int job_open(const struct job_options *o, struct job **out, struct err *e);

/* Runs it once. What it prints is printed. 'folder', which is made, gets the logs and the lists of
 * files 'before' and 'after' (culprit-agent files). -ECANCELED: it failed; -ETIMEDOUT: it ran for
 * longer than the limit, and was ended. */
int job_run(struct job *j, const char *folder, struct err *e);

/* Of the last run, for causal_make: as long as 'j', and until it runs again. */
const struct causal_log *job_logs(const struct job *j, size_t *n);
const char *job_kernel(const struct job *j); /* its client's: release and architecture */

void job_close(struct job *j); /* NULL is fine */

#endif
