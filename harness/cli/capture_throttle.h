/* Captures by throttling (diag/throttle): one run that learns, one for each thread that is delayed,
 * and the trace with the edges that follow. */
#ifndef CULPRIT_HARNESS_CLI_CAPTURE_THROTTLE_H
#define CULPRIT_HARNESS_CLI_CAPTURE_THROTTLE_H

#include "diag/throttle/supervisor.h"
#include "harness/cli/capture_run.h"

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
