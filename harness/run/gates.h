/*
 * Gates: what must hold of hosts and clocks for an attempt to count, checked before and after each.
 *
 * Before an attempt, a host that does not meet the limits is quarantined: no cell is run until it
 * does, and the run ends when that takes too long. After an attempt, a limit that does not hold
 * makes the attempt invalid.
 *
 * Where several of the run's hosts, or one and the orchestrator, are one machine (the lab), each
 * sees the others' work, including this run's. There, load, process, steal and pressure are only
 * recorded unless the scenario gives their limits.
 */
#ifndef CULPRIT_HARNESS_RUN_GATES_H
#define CULPRIT_HARNESS_RUN_GATES_H

#include <jansson.h>
#include <signal.h>

#include "harness/run/cluster.h"
#include "harness/scenario/gate_limits.h"

struct gate {
	struct cluster *cluster;
	const struct gates *limits;
	const char *folder; /* where the run is kept */
	volatile sig_atomic_t *interrupted;
	json_t *clean;  /* the hosts' fingerprints as the run began; the owner drops it */
	bool unsettled; /* the last attempt may have left clients without a server for a while */
};

/* One check of everything: the file system's processes, health, the fingerprint that the run began
 * with, clocks (the cluster's are updated), load, disk. '*report' gets what was measured, a new
 * reference. -EAGAIN with the host and the limit that does not hold; another errno when that could
 * not be found out, of the class ERR_CLUSTER where a node did not answer. */
int gates_before(struct gate *g, json_t **report, struct err *e);

/* After an attempt that failed: adds a host's full disk, where there is one, to the reason. */
void gates_explain(struct gate *g, struct err *why);

/* Adds the load since gates_before as report.during; the workload has stopped. -EBUSY as below. */
int gates_during(struct gate *g, json_t *report, struct err *e);

/* Checks the load since gates_during, which was at 'since_s' (monotonic), and the clocks. -EBUSY
 * with the host and the limit that does not hold. */
int gates_after(struct gate *g, json_t *report, double since_s, struct err *e);

#endif
