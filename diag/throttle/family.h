/*
 * The threads of an application, with names that are the same in each run: "0" is the command,
 * "0.2" its second child process, "0.2/1" the first thread that this child made. Numbers follow the
 * order of the calls that make processes and threads. These calls stop at the supervisor, which
 * calls family_forks for each.
 */
#ifndef CULPRIT_DIAG_THROTTLE_FAMILY_H
#define CULPRIT_DIAG_THROTTLE_FAMILY_H

#include "diag/throttle/watch.h"

/* The maxima of a thread in the run without delays: before its first operation, between two, and
 * after its last. Start and end of a program take more than the time between operations. */
struct known_limits {
	char *name;
	uint64_t ops;
	struct watch_limits before, between, after;
};

struct family_member {
	pid_t pid, tid;
	char *name; /* "?...": its parent ended before it was seen */
	bool gone;
	/* Fields of the supervisor. Readings: at the last operation; the newest; when all were
	 * blocked. */
	struct watch_reading op, last, mark;
	/* op_ns: time of 'op'; same_ns: since when 'runs' is unchanged. */
	int64_t op_ns, same_ns;
	enum watch_verdict verdict;
	const char *why;
	uint64_t ops;
	/* Maxima so far; 'ops' counts the operations. */
	struct watch_limits before, between, after;
	const struct known_limits *limits; /* NULL: unknown */
	long trapped;                      /* its last call that stopped */
	bool trapped_on_file;
};

struct family_process {
	pid_t pid;
	uint32_t member;                /* its first thread */
	uint32_t forks, clones;         /* begun */
	uint32_t new_forks, new_clones; /* begun, but no child or thread seen yet */
	bool gone;
};

struct family {
	struct family_member *members;
	struct family_process *processes;
	uint32_t n_members, n_processes, n_odd;
};

/* Finds the thread, and adds it if it is new. NULL: no such thread. The pointer is valid until
 * another thread is added. */
struct family_member *family_find(struct family *f, pid_t tid);
/* Call this before the process of 'm' makes a process or a thread. */
void family_forks(struct family *f, const struct family_member *m, bool thread);
/* Call this before the process ends: its children are still listed below it. */
void family_ends(struct family *f, const struct family_member *m);
/* Looks for processes and threads that were begun but not seen yet. */
void family_look(struct family *f);
void family_clear(struct family *f);

#endif
