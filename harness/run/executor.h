/*
 * Executor: connects the cluster, prepares what the plan needs, runs its cells until each has a
 * confirmed attempt or has used up its tries, and judges as it goes.
 */
#ifndef CULPRIT_HARNESS_RUN_EXECUTOR_H
#define CULPRIT_HARNESS_RUN_EXECUTOR_H

#include "harness/run/attempt.h"

/* Runs the whole plan. 0 when every cell was tried as often as the scenario allows; store_tally has
 * the cells without a confirmed attempt. The error's class is ERR_INTERRUPTED after a signal,
 * ERR_SCENARIO when a fault or workload cannot run on this cluster, ERR_CLUSTER when a node failed
 * for too long. */
int exec_run(struct executor *x, struct err *e);

/* Judges what no detector has judged yet of a resumed run. No cluster is needed. */
int exec_judge_rest(struct executor *x, struct err *e);

#endif
