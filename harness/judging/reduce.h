/*
 * Reduction: the traces in an attempt's folder to samples and events, for the store.
 *
 * What it takes besides the traces is a description of the cluster as it was, kept with the attempt
 * (detail.reduction), so that a recorded run can be reduced again without it (remeasure.h):
 *
 *   {"servers": [{"name", "address", "port", "storage", "clock_offset_ns", "sampled"}],
 *    "clients": [{"name", "mount", "clock_offset_ns", "sampled"}]}
 *
 * address: as a number; storage, mount: null where there is none; clock_offset_ns: the node's clock
 * minus the orchestrator's; sampled: is there a log of its sampler?
 */
#ifndef CULPRIT_HARNESS_REDUCE_H
#define CULPRIT_HARNESS_REDUCE_H

#include "harness/store/store.h"

struct reduction;

struct reduce_spec {
	const char *folder;    /* of the attempt, as a path */
	const json_t *cluster; /* as above; borrowed for as long as the reduction lives */
	int64_t start_ns;
	int32_t seconds;
	bool second; /* the second tracer's traces, not the first's */
};

/* -EBADMSG when a trace is damaged or lost records, -ENOENT where one is missing, -EINVAL for a
 * description that is none. */
int reduce_traces(const struct reduce_spec *spec, struct reduction **out, struct err *e);
void reduce_free(struct reduction *r);

/* Writes samples and events of an attempt that has none, inside the caller's transaction. */
int reduce_store(const struct reduction *r, struct store *s, int64_t attempt, struct err *e);

#endif
