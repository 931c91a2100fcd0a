/*
 * Which thread waits for which, derived from runs in which one thread after another was delayed
 * before its operations (Mesnier et al. 2007, section 4.1); and the application trace with these
 * edges.
 *
 * While a thread is delayed before its operation k, all other threads continue until they block. A
 * thread that then stops after n operations waits for k with operation n + 1: an edge. Delays of
 * all operations show every dependency of each operation, direct or not; edges that others imply
 * are removed at the end. An edge is dropped if any run contradicts it, that is, if the waiting
 * operation began before the other had ended.
 *
 * This module runs no program: it reads traces of runs and the supervisor's notes.
 */
#ifndef CULPRIT_DIAG_THROTTLE_EDGES_H
#define CULPRIT_DIAG_THROTTLE_EDGES_H

#include "diag/app/app.h"

/* One delayed call. Times: CLOCK_REALTIME. */
struct throttle_delay {
	int64_t trap_ns;    /* the call arrived */
	int64_t quiet_ns;   /* from here on all other threads were blocked */
	int64_t release_ns; /* the call was released */
	/* the thread's next call that stopped at the supervisor; 0: no such call */
	int64_t next_ns;
	bool decided; /* the other threads became quiet in time */
};

struct throttle_edges;

struct throttle_edges *throttle_edges_new(void);
void throttle_edges_free(struct throttle_edges *x); /* NULL is fine */

/* Adds the edges that the delays of 'thread' show in the trace of that run. '*used' gets the number
 * of decided delays of operations. */
int throttle_edges_add(struct throttle_edges *x, const struct app_trace *run, uint32_t thread,
	const struct throttle_delay *d, size_t n, size_t *used, struct err *e);

/* Drops the edges that this run contradicts. 'run' has the same calls as the others
 * (app_compare). */
int throttle_edges_refute(struct throttle_edges *x, const struct app_trace *run, struct err *e);
uint64_t throttle_edges_refuted(const struct throttle_edges *x);

struct throttle_counts {
	uint64_t edges;         /* in the trace that was written */
	uint64_t messages;      /* found by messages, without implied edges */
	uint64_t throttling;    /* found by throttling, without implied edges */
	uint64_t only_messages; /* found by messages, and not implied by edges of throttling */
	uint64_t only_throttling;
};

struct throttle_spec {
	unsigned method; /* enum app_method; with both bits, the edges of both */
	bool whole;      /* every thread was throttled, and each of its operations delayed */
	/* Called for each edge that only one method found: 'op' (from 1) of 'thread' waits for it.
	 * May be NULL. */
	void (*only)(void *ctx, enum app_method by, const struct app_trace *t, uint32_t thread,
		uint64_t op, const struct app_edge *edge);
	void *ctx;
};

/* Writes 'first', a trace by messages, as 'out', with the edges that 'spec' selects. */
int throttle_write(const struct app_trace *first, struct throttle_edges *x, const char *out,
	const struct throttle_spec *spec, struct throttle_counts *counts, struct err *e);

#endif
