/*
 * Trial: an attempt while it goes on, shared by the files that make one. attempt.c has the order of
 * its steps.
 */
#ifndef CULPRIT_HARNESS_TRIAL_IMPL_H
#define CULPRIT_HARNESS_TRIAL_IMPL_H

#include "harness/experiment/attempt.h"
#include "harness/experiment/jobs.h"
#include "harness/judging/reduce.h"

#define CALL_TIMEOUT_S 30
#define CLEAN_TIMEOUT_S 60

struct trial {
	struct executor *x;
	const struct cell *cell;
	const struct part *workload, *fault; /* fault NULL: control */
	const struct tracing *tracing;
	struct member *victims[MAX_VICTIMS];
	int contexts[MAX_VICTIMS]; /* Lua: the fault's context for each victim */
	size_t n_victims, n_contexts;
	char victim_names[128];
	bool may_fail;    /* workload and server may fail under the fault */
	struct job *jobs; /* room for every kind on every member */
	size_t n_jobs;
	bool has_begun; /* the workload was asked to start: it may have left data */
	struct attempt_row row;
	int64_t second_id; /* this attempt's id in the second tracer's store */
	json_t *before;    /* the cluster's fingerprint */
	json_t *detail;
	json_t *gates;     /* report of the gates; borrowed */
	char *folder;      /* "cells/0007.1", below the run's */
	const char *doing; /* what nodes do between phases ("fetching traces"); NULL: their jobs */
	bool clients_do;   /* only clients do it; else servers as well */
	const char *fault_step; /* what the victims show; NULL: the fault does not act */
	struct err spoilt;      /* why an event made the attempt invalid */
	bool is_spoilt;
};

/* trial.c: watching the nodes while time passes. */
bool trial_stop_asked(const struct trial *t);
/* Does the fault's or workload's file define the function 'name'? */
bool trial_has(const struct trial *t, const struct part *p, const char *name);
/* Shows on the progress line and for each node what all servers and clients (or all clients) do
 * between phases. */
void trial_note_between(struct trial *t, bool clients, const char *what);
/* Writes the step to run.log before it is taken. The victims show the fault's steps: "inject",
 * "verify", "onset", "verify-again", "undo", "offset". */
void trial_note_step(struct trial *t, const char *step);
/* Waits until 'until_s' (monotonic). -EINTR; -ENOTCONN: a node is lost; -EIO: an event spoilt the
 * attempt. */
int trial_wait_until(struct trial *t, double until_s, const char *what, struct err *e);
/* Waits until every client's workload has ended. -ETIMEDOUT after the scenario's limit; else as
 * trial_wait_until. */
int trial_wait_ended(struct trial *t, struct err *e);

/* jobs.c: tracers, samplers, workload. */
int trial_start_tracers(struct trial *t, struct err *e); /* all kinds but the workload */
int trial_start_workload(struct trial *t, struct err *e);
/* Stops every job. results[kind] is {node: result of its stop}: new references. Goes on after a
 * failure and returns the first. */
int trial_stop(struct trial *t, json_t *results[JOB_KINDS], struct err *e);
/* Stops every job, puts the results into the detail. -EBADMSG: a recording is not whole. */
int trial_stop_all(struct trial *t, struct err *e);
/* The workload's own cleaning. A failure spoils nothing that was measured: it is only noted. */
void trial_clean_workload(struct trial *t);
/* The running job of a kind on a member, or NULL. */
const struct job *trial_job(const struct trial *t, enum job_kind_id kind, const struct member *m);

/* trial_fault.c: the fault's life. */
int trial_early_fault(struct trial *t, struct err *e);
int trial_phases(struct trial *t, struct err *e);
int trial_fault_off(struct trial *t, struct err *e);

/* measure.c: the files that an attempt leaves, and the samples that they reduce to.
 *
 *   cells/0007.1/NODE.fs.trace         the file system's processes on a server or client
 *   cells/0007.1/NODE.fs.second.trace  the same, recorded by the second tracer
 *   cells/0007.1/NODE.fs.samples       the sampler's readings, second by second
 *   cells/0007.1/NODE.app.trace        the workload on a client
 *   cells/0007.1/NODE.app.out          its output
 *   cells/0007.1/NODE.app.times        its start and duration (run times)
 */

/* Fetches the files that job_kinds names into the attempt's folder, all nodes at once, removes them
 * on the nodes, and adds each client's result (the workload's reading of its own output) to
 * detail.results; under a fault that may fail, the reason why there is none. */
int measure_fetch(struct trial *t, struct err *e);
/* Removes the attempt's files from the nodes that can be reached. */
void measure_discard(struct cluster *c);
/* The cluster's description for a reduction (reduce.h). New reference. */
int measure_describe(struct trial *t, json_t **out, struct err *e);
/* reduce_traces of the attempt's files; 'second': of the second tracer's traces. */
int measure_reduce(
	struct trial *t, const json_t *cluster, bool second, struct reduction **out, struct err *e);
/* Mean over the clients of their workloads' durations, as detail.runtime_s. */
int measure_runtime(struct trial *t, struct err *e);
/* Writes samples ('r' NULL: none) and, in the run's own store, the list of files. Inside the
 * caller's transaction. */
int measure_store(struct trial *t, struct store *s, const struct reduction *r, struct err *e);

#endif
