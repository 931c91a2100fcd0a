/*
 * Trial: an attempt while it goes on, shared by the files that make one. attempt.c has the order of
 * its steps.
 */
#ifndef CULPRIT_HARNESS_RUN_TRIAL_IMPL_H
#define CULPRIT_HARNESS_RUN_TRIAL_IMPL_H

#include "harness/run/attempt.h"
#include "harness/run/jobs.h"
#include "harness/judging/reduce.h"

#define CALL_TIMEOUT_S 30
#define CLEAN_TIMEOUT_S 60

enum recorder_moment { RECORDER_ONSET, RECORDER_OFFSET, RECORDER_MOMENTS };

/* The scenario's flight recorder in this attempt. */
struct trial_recorder {
	json_t *report;                 /* detail.recorder; NULL: the scenario has none */
	json_t *remote;                 /* for each writing {node: path there} */
	struct trigger *trigger;        /* NULL: none, or it failed */
	double began_s, asked_s;        /* CLOCK_MONOTONIC */
	double due_s[RECORDER_MOMENTS]; /* 0: not, or done */
	long asked, fired, unseen;
	bool runs, full;
};

/* The scenario's 'abort_if' in this attempt. */
struct trial_safety {
	struct fs *fs;        /* NULL: not needed so far */
	double due_s;         /* when it is asked next; all of CLOCK_MONOTONIC */
	double until_s;       /* how long what it looks at may take */
	double read_s, bytes; /* the applications' bytes when they were last read */
};

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
	struct trial_recorder recorder;
	bool is_linked; /* programs of the workload hear each other */
	bool has_begun; /* the workload was asked to start: it may have left data */
	struct attempt_row row;
	int64_t second_id; /* this attempt's id in the second tracer's store */
	json_t *before;    /* the cluster's fingerprint */
	json_t *detail;
	double fs_cpu_s, tracers_cpu_s; /* processor time in the pass (run times) */
	json_t *gates;                  /* report of the gates; borrowed */
	char *folder;                   /* "cells/0007.1", below the run's */
	const char *doing; /* what nodes do between phases ("fetching traces"); NULL: their jobs */
	bool clients_do;   /* only clients do it; else servers as well */
	struct trial_safety safety;
	int64_t inject_ns;           /* when the fault was asked for, CLOCK_REALTIME; 0: not yet */
	const char *fault_step;      /* what the victims show; NULL: the fault does not act */
	const struct member *talker; /* the output of its program may say why the attempt failed */
	struct err spoilt;           /* why an event made the attempt invalid */
	bool is_spoilt;
};

bool trial_is_victim(const struct trial *t, const struct member *m);

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

/* trial_safety.c: the scenario's 'abort_if'. An attempt that it ends has detail.aborted:
 *
 *   {"why", "held_ns": when it was known to hold, "undone_ns": when the undo was verified}
 */
void safety_begin(struct trial *t); /* the fault is about to be injected */
/* Asks it, if a second has passed since and the fault acts. -ECANCELED and ERR_UNSAFE if it holds,
 * fails, or takes too long. */
int safety_check(struct trial *t, struct err *e);
void safety_undone(struct trial *t);
void safety_end(struct trial *t); /* frees */

/* recorder.c: the flight recorder. What befalls it is told on the progress line and in
 * detail.recorder, and spoils nothing:
 *
 *   {"ring_s", "tracer", "written": [{"folder": "recorder.1", "why", "at_ns" (on the orchestrator's
 *    clock), "took_s", "logs": {node: {"records", "calls", "lost", "from_ns", "to_ns"} or null (it
 *    cannot be read)}}], "trigger": {"asked", "held", "unseen"}, "troubles": [sentences]}
 */
int recorder_begin(struct trial *t, struct err *e); /* its tracers run */
/* It is to be written so long after this onset; at this offset (both CLOCK_MONOTONIC). */
void recorder_onset(struct trial *t, double at_s);
void recorder_offset(struct trial *t, double at_s);
void recorder_turn(struct trial *t); /* writes what is due, asks the trigger */
void recorder_last(struct trial *t); /* writes it at the end; it is not written after that */
void recorder_stopped(struct trial *t, const json_t *results);
void recorder_trouble(struct trial *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
size_t recorder_folders(const struct trial *t); /* recorder.1 to so many are in the attempt's */
/* 'below': path of the file below the run's folder. */
typedef int (*recorder_file_fn)(
	void *ctx, const struct member *m, const char *remote, const char *below, struct err *e);
int recorder_each_file(const struct trial *t, recorder_file_fn fn, void *ctx, struct err *e);
/* Fetches what was written, and looks for what was lost. */
int recorder_fetch(struct trial *t, struct err *e);
void recorder_end(struct trial *t); /* frees */

/* measure.c: the files that an attempt leaves, and the samples that they reduce to.
 *
 *   cells/0007.1/NODE.fs.trace         the file system's processes on a server or client
 *   cells/0007.1/NODE.fs.second.trace  the same, recorded by the second tracer
 *   cells/0007.1/recorder.1/NODE.fs.trace  the same, of the flight recorder
 *   cells/0007.1/NODE.fs.samples       the sampler's readings, second by second
 *   cells/0007.1/NODE.app.trace        the workload on a client
 *   cells/0007.1/NODE.app.out          its output
 *   cells/0007.1/NODE.app.times        its start and duration (run times)
 */

/* Fetches the files that job_kinds names into the attempt's folder, all nodes at once, removes them
 * on the nodes, and adds each client's result (the workload's reading of its own output) to
 * detail.results; under a fault that may fail, the reason why there is none. */
int measure_fetch(struct trial *t, struct err *e);
/* Of an attempt that failed: fetches the last 64 KiB of the programs' output from the clients that
 * can be reached, and ends 'why' with the talker's last lines. Output is never scored there. */
void measure_keep_output(struct trial *t, struct err *why);
/* Lists what measure_keep_output fetched. Inside the caller's transaction. */
int measure_list_output(struct trial *t, struct err *e);
/* Removes the attempt's files from the nodes that can be reached. */
void measure_discard(struct cluster *c);
/* -ENODATA: a server answered the clients, and its trace has no call: the traced processes were not
 * those that serve. */
int measure_check_served(const struct trial *t, const struct reduction *r, struct err *e);
/* reduce_traces of the attempt's files; 'second': of the second tracer's traces. */
int measure_reduce(
	struct trial *t, const json_t *cluster, bool second, struct reduction **out, struct err *e);
/* Reads the processor time of the file system's processes and their tracers on all nodes, just
 * before a pass (sign -1) and after it (1): the trial keeps the difference. -ESRCH: a process ended
 * in between. */
int measure_cpu(struct trial *t, int sign, struct err *e);
/* Mean over the clients of their workloads' durations, as detail.runtime_s; and what the pass took
 * of the processors, as detail.cpu: file_system_s, applications_s, tracers_s (without their start;
 * those of the file system without their end), all_s. Only processes count: no kernel threads, no
 * interrupts, no agents. */
int measure_runtime(struct trial *t, struct err *e);
/* Writes samples and events ('r' NULL: none) and, in the run's own store, requests and the list of
 * files. Inside the caller's transaction. */
int measure_store(struct trial *t, struct store *s, const struct reduction *r, struct err *e);

#endif
