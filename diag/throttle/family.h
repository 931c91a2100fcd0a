/*
 * The threads of an application, with names that are the same in each run: "0" is the command,
 * "0.2" its second child process, "0.2/1" the first thread that this one made. They are numbered by
 * the calls that made them, which stop at the supervisor: it tells family_forks of each.
 */
#ifndef CULPRIT_DIAG_THROTTLE_FAMILY_H
#define CULPRIT_DIAG_THROTTLE_FAMILY_H

#include "diag/throttle/watch.h"

/* What a thread did at most in the run without delays: before its first operation, between two, and
 * after its last. Programs begin and end with more than they do between. */
struct known_limits {
	char *name;
	uint64_t ops;
	struct watch_limits before, between, after;
};

struct family_member {
	pid_t pid, tid;
	char *name; /* "?...": its parent was gone before it was seen */
	bool gone;
	/* The supervisor's. */
	struct watch_reading op, last,
		mark;           /* at its last operation, the last, when all were still */
	int64_t op_ns, same_ns; /* of op; since when 'last' has the same runs */
	enum watch_verdict verdict;
	const char *why;
	uint64_t ops;
	struct watch_limits before, between, after; /* the most so far: operations */
	const struct known_limits *limits;          /* NULL: none are known */
	long trapped;                               /* its last call that stopped */
	bool trapped_on_file;
};

struct family_process {
	pid_t pid;
	uint32_t member;                /* its first thread */
	uint32_t forks, clones;         /* begun */
	uint32_t new_forks, new_clones; /* of which nothing was seen yet */
	bool gone;
};

struct family {
	struct family_member *members;
	struct family_process *processes;
	uint32_t n_members, n_processes, n_odd;
};

/* The thread, which is added if it was not known. NULL: there is none of that number. Pointers
 * are good until another is added. */
struct family_member *family_find(struct family *f, pid_t tid);
/* The process of 'm' is about to make a process or a thread. */
void family_forks(struct family *f, const struct family_member *m, bool thread);
/* It is about to end: its children are looked for while they are its own. */
void family_ends(struct family *f, const struct family_member *m);
/* Looks for what processes have made and was not seen yet. */
void family_look(struct family *f);
void family_clear(struct family *f);

#endif
