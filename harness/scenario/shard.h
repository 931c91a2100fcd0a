/*
 * Shards: a plan split over several clusters or labs, "2/3": the second of three.
 *
 * Scored cells are dealt out one by one, since a verdict concerns its own cell alone, and all
 * detectors judge it there: comparisons of detectors keep their pairs. They are dealt out so that
 * what a cluster does cannot look like the work of a fault: of each workload x fault, and of all
 * cells, no shard has more than one cell more than another; where that leaves a choice, faults,
 * victims, workloads and repeats are evened out. Training cells go to every shard, since a model
 * holds for the cluster that it was made on. Where run times are measured, a repeat's cells, traced
 * and untraced, are compared with each other: they stay together.
 *
 * A shard's cells keep the numbers, victims and order that they have in the plan.
 */
#ifndef CULPRIT_HARNESS_SCENARIO_SHARD_H
#define CULPRIT_HARNESS_SCENARIO_SHARD_H

#include "harness/scenario/plan.h"

enum { SHARDS_MAX = 100 };

struct shard {
	long index, of; /* 1 .. of; of is 0: no shard */
};

/* "2/3", and nothing else; 0 or -EINVAL with a sentence that follows the option's name. */
int shard_parse(const char *text, struct shard *out, struct err *e);

/* Removes the other shards' cells. -EINVAL if there are more shards than cells (or, with run times,
 * repeats) to deal out. */
int shard_take(struct plan *p, const struct scenario *s, struct shard shard, struct err *e);

/* SHA-256 in hex of the plan: numbers, workloads, faults, tracers, repeats and victims (by their
 * places among the servers) of all cells. */
void shard_digest(const struct plan *p, const struct scenario *s, char hex[65]);

#endif
