/*
 * Executor: connects the cluster, checks and prepares what the plan needs, runs its cells until
 * each has a confirmed attempt or has used up its tries, and judges as it goes.
 */
#ifndef CULPRIT_HARNESS_EXEC_H
#define CULPRIT_HARNESS_EXEC_H

#include "harness/experiment/attempt.h"

/* Runs the whole plan. 0 when every cell was tried as often as it takes (some may have ended
 * without a confirmed attempt: store_tally knows); -EINTR when interrupted; -EINVAL when a fault or
 * workload cannot run on this cluster, before anything was touched. */
int exec_run(struct executor *x, struct err *e);

/* Of a run that was begun before: judges what no detector has judged yet. No cluster is needed. */
int exec_judge_rest(struct executor *x, struct err *e);

/* Counts SIGINT, SIGTERM and SIGHUP (unless that is ignored); the first lets the running attempt
 * undo and end, a third kills at once. */
volatile sig_atomic_t *exec_catch_signals(void);

/* Readable once a signal has come; for what waits outside the executor. 0 if it could not be
 * made. */
int exec_interrupt_fd(void);

#endif
