/* culprit trace --inventory. */
#ifndef CULPRIT_HARNESS_CLI_TRACE_CLUSTER_H
#define CULPRIT_HARNESS_CLI_TRACE_CLUSTER_H

#include "harness/cli/options.h"

/* As the options of 'culprit trace' have it; NULL and 0: not given. */
struct trace_cluster {
	const char *inventory, *folder, *mode, *ring, *memory, *tracer, *trigger;
	bool heads, live;
	double for_s, bound, bandwidth; /* bound, bandwidth: bytes */
	const struct option_list *processes, *calls, *clients, *paths, *applications;
};

/* Returns an exit code. */
int trace_cluster(const struct trace_cluster *t);

#endif
