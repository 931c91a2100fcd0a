/*
 * Handles: what an act left on the node, by name. The inverse of an act is in the guard's journal
 * before the act begins; it is undone by asking the guard.
 */
#ifndef CULPRIT_HARNESS_AGENT_HANDLE_H
#define CULPRIT_HARNESS_AGENT_HANDLE_H

#include "faults/primitives/process.h"
#include "harness/agent/agent.h"

#define OUTPUT_MAX_BYTES (64u << 10)

/* What a handle waits for. */
enum handle_state {
	HANDLE_LIVE,
	HANDLE_STARTING, /* a tracer that is not "ready", a child that acts on a server */
	HANDLE_STOPPING, /* was signalled; has until 'deadline' */
	HANDLE_WRITING,  /* a tracer writes 'wanted', and has until 'wanted_until' */
	HANDLE_OBEYING,  /* a tracer does as it was told on 'control_fd', until 'wanted_until' */
	HANDLE_SUMMARY,  /* a child reads the log that it wrote */
	HANDLE_UNDOING,  /* the guard is undoing it */
};

enum handle_kind {
	HANDLE_ANY = -1,
	HANDLE_PROCESS,
	HANDLE_RUN,
	HANDLE_TRACE,
	HANDLE_PACKETS,
	HANDLE_DELAY, /* a rule and a program that holds packets back */
	HANDLE_COMMAND,
	HANDLE_LIMIT,
	HANDLE_STOP,
	HANDLE_GROUP, /* a limit by a control group */
	HANDLE_PAUSE, /* a program that stops others again and again */
	HANDLE_SERVICE,
	HANDLE_READONLY,
	HANDLE_DISK,
	HANDLE_DISK_ERRORS,
	HANDLE_CHECK, /* nothing to undo: freed when its child has answered */
};

struct handle {
	char name[16];
	enum handle_kind kind;
	enum handle_state state;
	json_t *inverse;
	struct handle *next;

	json_t *request_id; /* of the request that waits for this handle; NULL: none */
	double deadline;    /* of the state, or of a run; 0: none */
	void (*overdue)(struct agent *a, struct handle *h); /* the deadline of HANDLE_STARTING */
	/* Called when the guard has undone it for us; makes the answer. The handle is freed
	 * after. */
	void (*undone)(struct agent *a, struct handle *h, const struct guard_message *m);
	int failed; /* < 0: the request that waits will be refused, with 'failure' */
	struct err failure;

	int read_fd; /* of a child of ours; -1: none */
	void (*readable)(struct agent *a, struct handle *h);
	struct bytes output;
	struct bytes told; /* link.c: for the program, which has not taken it yet */
	void (*forked_done)(struct agent *a, struct handle *h, json_t *value);
	pid_t forked; /* the child of handle_fork; 0: none, or it has been reaped */

	/* Programs. */
	pid_t pid;
	bool ended;
	int exit;     /* code or 128 + signal, once ended */
	double cpu_s; /* once ended: exact, with the children that it waited for */
	bool killed;  /* what is traced did not end in its grace */
	bool left;    /* nor when it was killed */
	struct process_account *account;
	bool traced;     /* under our own tracer */
	bool linked;     /* 'read_fd' is the socket of link.c */
	char *log;       /* of a tracer; absolute path */
	bool keeps;      /* it keeps the last seconds only */
	bool bounded;    /* its log is taken away while it is written: parts of it are gone */
	unsigned writes; /* of trace.write, so far */
	char *wanted;    /* the file that is being written; or NULL */
	double wanted_until;
	int control_fd;  /* of a tracer that takes orders; -1: none */
	char order[256]; /* what it has answered so far */
	size_t n_order;
	char *error_log; /* where it complains; absolute path, or NULL */
	bool truncated;
	char *command;   /* of a run: its words, or the first of them */
	double limit_s;  /* of a run */
	json_t *summary; /* of its log: see log_summary */
};

/* -ENOMEM. If the operation that begins it fails, dispatch.c frees it. */
int handle_new(struct agent *a, enum handle_kind kind, struct handle **out, struct err *e);
void handle_free(struct agent *a, struct handle *h);

/* The handle that the argument "handle" names. -ENOENT: none of this name and kind; -EBUSY:
 * another request waits for it. */
int handle_get(struct agent *a, const json_t *args, enum handle_kind kind, struct handle **out,
	struct err *e);

/* Records 'inverse' (stolen; NULL: no memory) with the guard, which undoes it by itself 'max_s'
 * (> 0) after guard_acted. Once it returns 0 the act may follow. */
int handle_record(struct agent *a, struct handle *h, json_t *inverse, double max_s, struct err *e);

/* Ends an act whose result is 'rc': answers 'id' with the handle's name and the members of 'more'
 * (stolen, may be NULL); or has the guard undo it and returns 'rc'. */
int handle_acted(struct agent *a, json_t *id, struct handle *h, int rc, json_t *more);

/* Closes what is read from its child, if anything is. */
void handle_close(struct handle *h);

/* Answers the request that waits for it, or refuses it; the handle lives on. 'result' is stolen. */
void handle_answer(struct agent *a, struct handle *h, json_t *result);
void handle_refuse(struct agent *a, struct handle *h, int rc, const struct err *e);

/* Asks the guard to undo it, then calls 'undone', which answers 'h->request_id'. */
void handle_undo(struct agent *a, struct handle *h,
	void (*undone)(struct agent *, struct handle *, const struct guard_message *));

/* Forks a child that dies with the agent and computes a value, for what takes seconds. 'done' gets
 * the value, or NULL if the child died. */
int handle_fork(struct handle *h, json_t *(*compute)(const void *ctx), const void *ctx,
	void (*done)(struct agent *a, struct handle *h, json_t *value), struct err *e);

/* A child has been reaped. */
void handle_reaped(struct agent *a, pid_t pid);

/* Kills the children of handle_fork: none of them begins anything after its undo. One in a system
 * call holds its lock until it is dead. */
void handles_kill_forked(struct agent *a);

/* What the guard has done. */
void handle_undone_message(struct agent *a, const struct guard_message *m);

#endif
