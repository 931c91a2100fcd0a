/*
 * Preparation of a run, between the connection to its cluster and its first cell: what cannot run
 * there is left out of the plan or refused, and the workloads' data is made.
 */
#ifndef CULPRIT_HARNESS_RUN_PREPARE_H
#define CULPRIT_HARNESS_RUN_PREPARE_H

#include "harness/run/executor.h"

/* Records the hosts, checks tracers, samplers, faults and programs, identifies what the cells
 * depend on, and runs the workloads' 'prepare'. Parts that cannot run are left out, with a reason
 * in the store. ERR_SCENARIO when nothing remains, or when a resumed run is not the same any more;
 * ERR_CLUSTER when a node failed. */
int prepare_run(struct executor *x, struct err *e);

/* Removes the run's folder on the file system, as far as that can be reached. */
void prepare_remove_data(struct executor *x);

/* Shows the same line for all nodes, or all clients, as they do the same between cells. */
void prepare_note(struct executor *x, bool clients, const char *what);

#endif
