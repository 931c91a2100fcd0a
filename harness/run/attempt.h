/*
 * Attempt: one try at one cell, from a clean cluster to a clean cluster.
 *
 *   fingerprint - tracers on - workload on - [before] - inject, verify (onset) - [fault] -
 *   verify, undo (offset) - [after] - workload off - tracers off - fetch - fingerprint - reduce
 *
 * A fault that acts from the start (a server misconfigured before it is used) is injected before
 * the tracers start and undone after they stop.
 */
#ifndef CULPRIT_HARNESS_RUN_ATTEMPT_H
#define CULPRIT_HARNESS_RUN_ATTEMPT_H

#include <signal.h>

#include "harness/run/cluster.h"
#include "harness/run/bind_node.h"
#include "harness/run/gates.h"
#include "harness/run/progress.h"
#include "harness/judging/judge.h"
#include "harness/scenario/shard.h"
#include "harness/store/store.h"

/* What all attempts of a run share. */
struct executor {
	struct scenario *scenario;
	struct plan *plan;
	struct shard shard;
	json_t *shard_fact; /* of the whole plan: {index, of, cells, training, plan}, or NULL */
	struct cluster *cluster;
	struct store *store;
	struct judge *judge;        /* NULL: run times are measured, nobody judges */
	struct store *second_store; /* the second tracer's run, of the same plan; or NULL */
	struct judge *second_judge;
	struct progress *progress;
	struct gate gate;
	struct acts *acts;
	json_t *inputs;      /* what the cells depend on (cell_key.h), as far as it is known */
	char **server_names; /* in the order of cluster.servers; used as sample.server */
	volatile sig_atomic_t *interrupted; /* number of signals so far (signals.h) */
	int lock;                           /* of the run's folder (lock.h); -1: none */
	bool resumed;                       /* the run was begun before */
	bool retries_aborted;               /* ... and cells that were aborted are run again */
	bool undo_failed;  /* a node could not be asked to undo: its guard does it */
	bool judge_failed; /* an attempt could not be judged; the log has the reason */
};

/* The scenario's phases together, in seconds. */
double attempt_phases_s(const struct scenario *s);

struct attempt_request {
	const struct cell *cell;
	long number;   /* of the attempt at this cell: 1, 2 ... */
	json_t *gates; /* report of gates_before; later gates add to it */
};

struct attempt_result {
	enum outcome outcome;
	struct err why;        /* unless confirmed */
	int64_t id, second_id; /* in the run's own and in the second tracer's store */
};

/* Runs one attempt and writes it to the stores, whatever its outcome. An error ends the run:
 * ERR_INTERRUPTED (the fault is undone, nothing is written), or a store cannot be written. */
int attempt_run(struct executor *x, const struct attempt_request *request,
	struct attempt_result *result, struct err *e);

/* The outcome of an attempt that ended with an error of this class: an error if the scenario or
 * this program is wrong, which another attempt would not mend; else invalid. */
enum outcome attempt_outcome(enum err_class class);

#endif
