/*
 * Attempt: one try at one cell, from a clean cluster to a clean cluster.
 *
 *   fingerprint - tracers on - workload on - [before] - inject, verify (onset) - [fault] -
 *   verify, undo (offset) - [after] - workload off - tracers off - fetch - fingerprint - reduce
 *
 * A fault that acts from the start (a server misconfigured before anybody uses it) is injected
 * before the tracers and undone after them.
 */
#ifndef CULPRIT_HARNESS_ATTEMPT_H
#define CULPRIT_HARNESS_ATTEMPT_H

#include <signal.h>

#include "harness/experiment/bind_node.h"
#include "harness/cluster/cluster.h"
#include "harness/judging/judge.h"
#include "harness/scenario/plan.h"
#include "harness/experiment/progress.h"
#include "harness/store/store.h"

/* What all attempts of a run share. */
struct executor {
	struct scenario *scenario;
	struct plan *plan;
	struct cluster *cluster;
	struct store *store;
	struct judge *judge;
	struct store
		*beside; /* of the second tracer: a run of its own, with the same plan; or NULL */
	struct judge *judge_beside;
	bool undo_failed;  /* interrupted, and a node could not be asked to undo: its guard will */
	bool judge_failed; /* some attempt could not be judged; the log says why */
	struct progress *progress;
	json_t *clean;  /* the hosts' fingerprints as the run began */
	bool unsettled; /* the last attempt may have left clients without a server for a while */
	json_t *inputs; /* what the cells depend on (key.h), as far as it is known */
	int lock;       /* of the run's folder (lock.h); -1: none */
	bool resumed;   /* the run was begun before */
	struct acts *acts;
	char **server_names; /* in the order of cluster.servers; used as sample.server */
	volatile sig_atomic_t *interrupted; /* number of SIGINT and SIGTERM so far */
};

/* The scenario's phases together, in seconds. */
double attempt_phases_s(const struct scenario *s);

/* Runs one attempt and writes it to the store, whatever its outcome; '*outcome' gets it and 'why'
 * its reason. 'report' is what gates_before saw; the rest of what the gates see is put there, and
 * it goes with the attempt. 0, -EINTR (interrupted: the fault is undone, nothing is written), or
 * another negative errno when the run cannot go on (the store cannot be written). */
int attempt_run(struct executor *x, const struct cell *c, long number, enum outcome *outcome,
	struct err *why, json_t *report, int64_t *id, int64_t *beside_id, struct err *e);

#endif
