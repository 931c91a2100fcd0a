/*
 * Jobs: what runs on the nodes for the length of an attempt, and is started and stopped by it. A
 * row in job_kinds describes each kind; nothing else tells the kinds apart.
 */
#ifndef CULPRIT_HARNESS_RUN_JOBS_H
#define CULPRIT_HARNESS_RUN_JOBS_H

#include "harness/run/cluster.h"

struct trial;

/* In the order in which they are stopped. */
enum job_kind_id {
	JOB_WORKLOAD,
	JOB_TRACER,
	JOB_SECOND_TRACER,
	JOB_RECORDER,
	JOB_SAMPLER,
	JOB_KINDS
};

/* A file that a job leaves in its node's session folder. It is fetched, and listed in the store,
 * where 'measures' has the bit of the scenario's measure; elsewhere it is only removed. */
struct job_file {
	const char *name;
	unsigned measures;
};

struct job_kind {
	const char *name;         /* for messages: "the tracer" */
	const char *start, *stop; /* operations of the agent */
	const char *signal;       /* argument of 'stop'; NULL: none */
	/* Makes the arguments of 'start': 0, 1 where the kind does not run, or an error. */
	int (*args)(struct trial *t, struct member *m, json_t **args, struct err *e);
	const char *sink; /* key of the attempt's detail that takes {node: result of 'stop'} */
	const char *
		summary; /* key of the recording's summary in that result; NULL: the result is it */
	bool is_log;     /* its records and losses are added up in the detail */
	bool may_end;    /* by itself with exit code 0; else its end spoils the attempt */
	bool spare;      /* its end and its losses spoil nothing: see recorder.c */
	struct job_file files[4]; /* ended by a NULL name */
	unsigned more;            /* at most so many other files, FILE.1, FILE.2 ..., of each */
};

extern const struct job_kind job_kinds[JOB_KINDS];

struct job {
	enum job_kind_id kind;
	struct member *member;
	char handle[64];
	bool running; /* to be stopped */
	bool ended;   /* by itself, with 0 */
};

#endif
