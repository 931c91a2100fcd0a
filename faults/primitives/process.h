/*
 * The process primitive: a program that runs until it is undone.
 *
 * The child waits behind a gate until its number and start time are in the undo journal; then the
 * gate opens and it executes the program. If its parent dies before, the gate ends, and so does the
 * child. It leads its own session and carries CULPRIT_TAG=SESSION/HANDLE in its environment,
 * as do all its descendants. (A descendant that empties its environment on purpose is not found.)
 */
#ifndef CULPRIT_FAULTS_PRIMITIVES_PROCESS_H
#define CULPRIT_FAULTS_PRIMITIVES_PROCESS_H

#include <stdint.h>
#include <sys/types.h>

#include "faults/primitives/primitive.h"

#define PROCESS_TAG "CULPRIT_TAG"

struct process_spec {
	const char *const *argv; /* looked up in PATH; NULL-terminated */
	const char *tag;         /* SESSION/HANDLE */
	const json_t *env;       /* object of strings, added to ours; may be NULL */
	const char *cwd;         /* NULL: "/" */
	int in, out, err;        /* descriptors for 0, 1, 2; -1: /dev/null */
	int pass;                /* one more descriptor, kept under its number; -1: none */
	double grace_s; /* undo sends SIGTERM first and waits this long; 0: SIGKILL at once */
};

struct process_gate {
	pid_t pid;
	int open, failed; /* our ends of the two pipes */
};

/* Forks. '*inverse' is the caller's. The descriptors stay the caller's. */
int process_fork(
	const struct process_spec *s, struct process_gate *g, json_t **inverse, struct err *e);

/* Opens the gate and waits until the program runs. On failure (-ENOENT: no such program, ...) the
 * child is gone and reaped. */
int process_release(struct process_gate *g, const char *name, struct err *e);

/* Ends the child at its gate and reaps it. */
void process_abandon(struct process_gate *g);

/* Closes every descriptor above 2 that is not in 'keep' (n at most 8). */
void process_close_others(const int *keep, size_t n);

/* Makes this process one of ours that outlives the agent: a session of its own named 'name', no
 * descriptors but /dev/null and 'keep', deaf to signals that say stop, in "/". */
void process_detach(const char *name, const int *keep, size_t n);

/* Before an exec: signals as a program expects them. */
void process_default_signals(void);

/* What the live processes of a tag have done so far; see /proc/PID/io. */
struct process_usage {
	uint64_t read_bytes, write_bytes; /* storage */
	uint64_t rchar, wchar;            /* read and write calls */
	double cpu_s;
	uint64_t rss_bytes; /* of those that live: memory now */
};

struct process_account;

/* Remembers what was seen, so that the sums do not fall when a process ends. */
int process_account_new(const char *tag, struct process_account **out);

/* Looks again. '*live' gets the number of live processes. */
int process_account_update(
	struct process_account *a, struct process_usage *u, int *live, struct err *e);

/* To be called for a zombie before it is reaped: its last figures, exactly. */
void process_account_exit(struct process_account *a, pid_t pid);
void process_account_free(struct process_account *a);

#endif
