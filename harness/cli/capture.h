/* What the files of 'culprit capture' share. */
#ifndef CULPRIT_HARNESS_CLI_CAPTURE_H
#define CULPRIT_HARNESS_CLI_CAPTURE_H

#include <stdint.h>

#include "diag/throttle/supervisor.h"
#include "harness/base/err.h"

/* ---- capture_files.c ---- */

/* The sizes of all files below a folder, at one moment. */

struct capture_files;

/* Looks at 'root' on this machine. Errors as app_walk. */
int capture_files_new(const char *root, struct capture_files **out, struct err *e);
/* Reads a list that 'culprit-agent files' wrote. -EBADMSG: it is none, or cut short. */
int capture_files_read(const char *list, struct capture_files **out, struct err *e);
void capture_files_free(struct capture_files *f); /* NULL is fine */

/* Bytes; 0 of what is no regular file; -1: it was not there. 'path' is relative to the root. */
int64_t capture_files_size(const struct capture_files *f, const char *path);

/* ---- capture_run.c ---- */

/* A command under the tracer, with an end in any case. */

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

/* ---- capture_throttle.c ---- */

/* Captures by throttling (diag/throttle): one run that learns, one for each thread that is delayed,
 * and the trace with the edges that follow. */

struct capture_throttle {
	const char *root, *work; /* work: folder of what is under way */
	unsigned method;         /* enum app_method */
	unsigned period, nodes;  /* nodes: ranks to delay; 0: all */
	/* Runs the command once; its trace is 'name' in 'work'. */
	int (*once)(void *ctx, const char *name, const struct capture_delays *d, struct err *e);
	void *ctx;
};

/* The trace is 'work'/final. Warnings go to standard error, what only one of two methods saw to
 * standard output. -EDOM: runs differ; -ENODATA: nothing could be told. */
int capture_throttle(const struct capture_throttle *c, struct err *e);

#endif
