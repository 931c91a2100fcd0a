#ifndef CULPRIT_DIAG_THROTTLE_EDGES_IMPL_H
#define CULPRIT_DIAG_THROTTLE_EDGES_IMPL_H

#include "diag/throttle/edges.h"

/* Operation 'op' of 'thread' (from 1) begins when 'on' has completed 'on_ops' operations. */
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

/* Sorts by operation and keeps, of each thread waited for, the newest edge. */
void throttle_edges_sort(struct throttle_edges *x);

#endif
