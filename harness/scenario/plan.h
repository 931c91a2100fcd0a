/*
 * Plan: the cells of a scenario, in the order in which they will run.
 *
 * Training cells come first, because a detector needs its model to judge. Scored cells follow in
 * blocks, one for each repeat, with every workload x fault once (the control 'controls' times) in
 * an order drawn from the seed, so that a slow change of the machine cannot look like a fault.
 * Victims are drawn from the same seed. The plan is a function of (scenario, number of servers,
 * seed) alone; filtering by 'only' removes cells but changes none.
 *
 * A scenario that measures run times has cells workload x tracer instead, with untraced ones in
 * each block; those of a block are compared with each other.
 */
#ifndef CULPRIT_HARNESS_SCENARIO_PLAN_H
#define CULPRIT_HARNESS_SCENARIO_PLAN_H

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
	size_t n_victims;            /* 0: control without any act */
	char key[65];                /* hash of its inputs (cell_key.h); "" until known */
	long attempts;               /* made before the run was resumed */
	bool done;                   /* one of them is confirmed, and its files are whole */
	bool aborted;                /* its last attempt was, and is not to be repeated */
	bool outdated; /* its fault's file has changed since: what was confirmed is redone */
};

struct plan {
	uint64_t seed;
	struct cell *cells;
	size_t n;
};

/* 'only' (may be NULL) is "workload=ddw,fault=disk-hog,tracer=ebpf,repeat=1,cell=7": scored cells
 * that do not match are removed, training cells stay. -EINVAL for a key or value that matches
 * nothing, and for a fault with as many victims as there are servers: none would be healthy. */
int plan_new(const struct scenario *s, size_t n_servers, uint64_t seed, const char *only,
	struct plan **out, struct err *e);
void plan_free(struct plan *p);

/* What the user does not allow, whatever the scenario says. */
struct plan_limits {
	long max_victims;         /* of one fault at once; 0: any number */
	const char *const *never; /* nodes that no fault may hit */
	size_t n_never;
};

/* -EINVAL: a fault of the scenario has too many victims, whether the plan has it or not. */
int plan_check_faults(const struct scenario *s, const struct plan_limits *limits, struct err *e);

/* -EINVAL: a cell of the plan has too many victims, or one that is never to be hit; the sentence
 * says which, with file and line where the scenario decides it, and what to do. 'servers': their
 * names, in the order of the cells' victims. */
int plan_check_limits(const struct plan *p, const struct scenario *s, char *const servers[],
	const struct plan_limits *limits, struct err *e);

/* Label of a cell's fault, or, if run times are measured, of its tracer. */
const char *cell_treatment(const struct scenario *s, const struct cell *c);
/* Label of a cell's fault: "none" for training. */
const char *cell_fault(const struct scenario *s, const struct cell *c);
/* Are its victims faulty? Not under a look-alike, which hits a server with work alone. */
bool cell_is_faulty(const struct scenario *s, const struct cell *c);

#endif
