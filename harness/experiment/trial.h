/*
 * Trial: an attempt while it goes on; shared by the files that make one (attempt.c tells the
 * order).
 */
#ifndef CULPRIT_HARNESS_TRIAL_H
#define CULPRIT_HARNESS_TRIAL_H

#include "harness/experiment/attempt.h"

#define CALL_TIMEOUT_S 30

/* One thing that runs on a node for the length of the attempt. */
struct job {
	struct member *member;
	char handle[64];
	bool running; /* to be stopped */
	bool ended;   /* by itself, with 0 */
};

struct trial {
	struct executor *x;
	const struct cell *cell;
	const struct part *workload, *fault; /* fault NULL: control */
	struct member *victims[MAX_VICTIMS];
	int contexts[MAX_VICTIMS]; /* Lua: the fault's context for each victim */
	size_t n_victims, n_contexts;
	char victim_names[128];
	struct attempt_row row;
	const struct tracing *tracing;
	struct job *tracers, *apps; /* tracers: servers then clients; apps: clients */
	struct job *beside;         /* the second tracers, in the same order */
	struct job *samplers;       /* servers then clients, those where one can be had */
	size_t n_tracers, n_apps, n_beside, n_samplers;
	int64_t beside_id; /* this attempt's in the store beside */
	json_t *before, *detail;
	json_t *report; /* of the gates; borrowed */
	char *folder;   /* "cells/0007.1", below the run's */
	const char
		*doing;  /* what nodes are at between phases ("fetching traces"); NULL: see jobs */
	bool clients_do; /* only clients do it; else all but outsiders */
	const char *fault_step; /* the last one of the fault's; NULL: it does not act */
	struct err gone;        /* set when an event made the attempt invalid */
	bool is_gone;
};

/* trial.c: looking out while time passes. */
bool trial_stop_asked(const struct trial *t);
/* For the progress line and what it says of each node: in a phase, or between phases, where all
 * servers and clients (all clients) are at the same. */
void trial_note_phase(struct trial *t, double left_s, const char *what);
void trial_note_between(struct trial *t, bool clients, const char *what);
/* For run.log, before the step is taken; the fault's own ("inject", "verify", "onset",
 * "verify-again", "undo", "offset") show with its victims. */
void trial_note_step(struct trial *t, const char *step);
/* Waits until 'until_s' (monotonic). -EINTR; -ENOTCONN: a node is lost; -EIO: an event spoilt the
 * attempt. */
int trial_wait_until(struct trial *t, double until_s, const char *what, struct err *e);

/* Waits until every client's workload has ended. -ETIMEDOUT after the scenario's limit; else as
 * trial_wait_until. */
int trial_wait_ended(struct trial *t, struct err *e);

/* trial_jobs.c: tracers and workload. */
void trial_drop_results(struct node_request *requests, size_t n);
int trial_start_tracers(struct trial *t, struct err *e);
int trial_start_workload(struct trial *t, struct err *e);
int trial_stop_jobs(struct job *jobs, size_t n, const char *op, json_t *results, struct err *e);
int trial_stop_all(struct trial *t, struct err *e);
void trial_clean_workload(struct trial *t);

/* trial_fault.c: the fault's life. */
int trial_early_fault(struct trial *t, struct err *e);
int trial_phases(struct trial *t, struct err *e);
int trial_fault_off(struct trial *t, struct err *e);

/* trial_fingerprint.c: {node: fingerprint} of the whole cluster (a new reference), and whether two
 * are the same: -EBUSY with the first difference. */
int trial_fingerprint(struct executor *x, json_t **out, struct err *e);
int trial_compare(const json_t *before, const json_t *after, struct err *e);

#endif
