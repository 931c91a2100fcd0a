/*
 * Who waits for whom, from runs in which one thread after the other was delayed before its
 * operations (Mesnier et al. 2007, section 4.1), and the application trace with these edges.
 *
 * While a thread is delayed before its operation k, all others go on as far as they can. A thread
 * that then stops after n operations waits with the next one for k: an edge. Delays of all
 * operations tell, for each operation, all that it depends on, directly or not; what other edges
 * imply is left out at the end. An edge that any run contradicts, in which the one began before the
 * other had ended, is dropped.
 *
 * Nothing here runs a program: it reads traces of runs and what a supervisor noted.
 */
#ifndef CULPRIT_DIAG_THROTTLE_EDGES_H
#define CULPRIT_DIAG_THROTTLE_EDGES_H

#include "diag/app/app.h"

/* One call that was delayed. Times: CLOCK_REALTIME. */
struct throttle_delay {
	int64_t trap_ns;    /* it arrived */
	int64_t quiet_ns;   /* from here on all others were blocked */
	int64_t release_ns; /* it was let go */
	int64_t next_ns;    /* its thread's next call that stopped at the supervisor; 0: none */
	bool decided;       /* the others became quiet in time */
};

struct throttle_edges;

struct throttle_edges *throttle_edges_new(void);
void throttle_edges_free(struct throttle_edges *x); /* NULL is fine */

/* Adds what the delays of 'thread' tell in the trace of that run. '*used' delays were of operations
 * and were decided. */
int throttle_edges_add(struct throttle_edges *x, const struct app_trace *run, uint32_t thread,
	const struct throttle_delay *d, size_t n, size_t *used, struct err *e);

/* Drops what this run contradicts. 'run' has the same calls as the others (app_compare). */
int throttle_edges_refute(struct throttle_edges *x, const struct app_trace *run, struct err *e);
uint64_t throttle_edges_refuted(const struct throttle_edges *x);

struct throttle_counts {
	uint64_t edges;         /* of the trace that was written */
	uint64_t messages;      /* edges that messages show, none of them implied */
	uint64_t throttling;    /* so, by throttling */
	uint64_t only_messages; /* of these, not even implied by the others */
	uint64_t only_throttling;
};

struct throttle_spec {
	unsigned method; /* enum app_method; both: edges of both */
	bool whole;      /* every thread was throttled, each of its operations was delayed */
	/* An edge that only one of the methods saw: 'op' (from 1) of 'thread' waits for it; or
	 * NULL. */
	void (*only)(void *ctx, enum app_method by, const struct app_trace *t, uint32_t thread,
		uint64_t op, const struct app_edge *edge);
	void *ctx;
};

/* Writes 'first', a trace by messages, as 'out', with edges as 'spec' says. */
int throttle_write(const struct app_trace *first, struct throttle_edges *x, const char *out,
	const struct throttle_spec *spec, struct throttle_counts *counts, struct err *e);

#endif
