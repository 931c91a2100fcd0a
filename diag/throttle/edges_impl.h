#ifndef CULPRIT_DIAG_THROTTLE_EDGES_IMPL_H
#define CULPRIT_DIAG_THROTTLE_EDGES_IMPL_H

#include "diag/throttle/edges.h"

/* Operation 'op' of 'thread' (from 1) begins when 'on' has completed 'on_ops'. */
struct throttle_edge {
	uint32_t thread, on;
	uint64_t op, on_ops;
};

struct throttle_edges {
	struct throttle_edge *edge;
	size_t n;
	bool sorted;
	uint64_t refuted;
};

/* By operation, the newest of each thread that it waits for. */
void throttle_edges_sort(struct throttle_edges *x);

#endif
