/*
 * Fingerprints: what of a node an attempt must leave as it was (mounts, firewall tables, processes
 * ...), as the agent's operation 'fingerprint' reports it.
 */
#ifndef CULPRIT_HARNESS_RUN_FINGERPRINT_H
#define CULPRIT_HARNESS_RUN_FINGERPRINT_H

#include "harness/run/cluster.h"

/* {node: fingerprint} of the whole cluster. New reference. */
int fingerprint_take(struct cluster *c, json_t **out, struct err *e);

/* -EBUSY with the first difference between two fingerprints of the cluster. */
int fingerprint_compare(const json_t *before, const json_t *after, struct err *e);

/* cluster_args_fn of operations that take the file system's processes: {pids}, or none. */
int fingerprint_pids(void *ctx, const struct member *m, json_t **args, struct err *e);

#endif
