/*
 * Gates: what must hold of hosts and clocks for an attempt to count, looked at before and after
 * each.
 *
 * Before an attempt, until all holds, no cell is run: a host that does not fit is quarantined, and
 * the run ends when that lasts too long. After it, what does not hold makes the attempt invalid.
 *
 * Where several of the run's hosts, or one and the orchestrator, are one machine (the lab), each
 * sees the others' work, ours among it: there, load, process, steal and pressure are only written
 * down, unless the scenario gives them.
 */
#ifndef CULPRIT_HARNESS_GATES_H
#define CULPRIT_HARNESS_GATES_H

#include <jansson.h>

#include "harness/base/err.h"

struct executor;

/* One look at everything: the file system's processes, health, the fingerprint that the run began
 * with, clocks (taken over into the cluster), load, disk. '*report' gets what was seen, a new
 * reference. -EAGAIN: the host and what does not hold; another errno when that could not be found
 * out. */
int gates_before(struct executor *x, json_t **report, struct err *e);

/* The workload has stopped: what went on since gates_before is put into report.during. */
int gates_during(struct executor *x, json_t *report, struct err *e);

/* Load since gates_during, which was at 'since_s' (monotonic), and clocks. -EBUSY: the host and
 * what does not hold. */
int gates_after(struct executor *x, json_t *report, double since_s, struct err *e);

#endif
