/*
 * Plan: the cells that a scenario makes, in the order in which they will run.
 *
 * Training cells come first (a model must exist before it can judge). Scored cells follow in
 * blocks, one block a repeat, each holding every workload x fault that the scenario asks for once
 * (the control 'controls' times) in an order drawn from the seed, so that a slow change of the
 * machine cannot pose as a fault. Victims are drawn from the same seed. The plan is a function of
 * (scenario, number of servers, seed) alone; filtering by 'only' leaves out cells but changes none.
 *
 * A scenario that measures run times has cells workload x tracer instead, untraced ones among them
 * in each block: those of a block are compared with each other.
 */
#ifndef CULPRIT_HARNESS_PLAN_H
#define CULPRIT_HARNESS_PLAN_H

#include <stdint.h>

#include "harness/scenario/scenario.h"

#define MAX_VICTIMS 16

struct cell {
	size_t number; /* 1, 2, 3 ... in the unfiltered plan: names the cell */
	bool training;
	size_t workload; /* index into scenario.workloads */
	size_t fault;    /* index into scenario.faults; SIZE_MAX: none (training, run times) */
	size_t tracer;   /* index into scenario.tracers */
	long repeat;     /* 1 .. repeats */
	size_t victims[MAX_VICTIMS]; /* servers' indices among the servers, ascending */
	size_t n_victims;            /* 0: control */
	char key[65];                /* of all that decides it (key.h); "" until that is known */
	long attempts;               /* that a run which is resumed has already */
	bool done;                   /* one of them is confirmed, and its files are whole */
};

struct plan {
	uint64_t seed;
	struct cell *cells;
	size_t n;
};

/* -EINVAL for a fault with as many victims as there are servers: no healthy one would be left.
 * 'only' (may be NULL) is "workload=ddw,fault=disk-hog,tracer=ebpf,repeat=1,cell=7": scored cells
 * that do not match are left out, training cells stay. -EINVAL for a key or value that matches
 * nothing. */
int plan_new(const struct scenario *s, size_t n_servers, uint64_t seed, const char *only,
	struct plan **out, struct err *e);
void plan_free(struct plan *p);

/* What is done to a cell's workload: its fault's label, or, where run times are measured, its
 * tracer's. */
const char *cell_treatment(const struct scenario *s, const struct cell *c);
/* Label of a cell's fault: "none" for training. */
const char *cell_fault(const struct scenario *s, const struct cell *c);

#endif
