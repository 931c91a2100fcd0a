/*
 * Is a thread blocked? Mesnier et al. 2007 (section 4.1.2): if it is longer in a call, or computes
 * longer, than in the unthrottled run, by a factor. Time on the wall grows on a busy machine, so it
 * counts only where the program asked for it (a sleep of a set time); else it is
 *
 *   still   asleep in a call that waits for others, and has not run since,
 *   looks   it has computed, or slept and woken, more often since its last operation than twice the
 *           most between two operations of the unthrottled run: it polls.
 *
 * A thread in a call on a file, one that waits for a processor, and one that has yet to compute, is
 * busy. An application is quiet when no thread but the delayed one is busy, and nothing has changed
 * for a while: twice the longest time that the unthrottled run was quiet and continued by itself.
 */
#ifndef CULPRIT_DIAG_THROTTLE_WATCH_H
#define CULPRIT_DIAG_THROTTLE_WATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum {
	WATCH_LEAST_NS = 20000000,      /* nothing is quiet before */
	WATCH_LEAST_CPU_NS = 20000000,  /* added to twice the most */
	WATCH_LEAST_SLEEPS = 100,       /* so */
	WATCH_LEAST_WALL_NS = 50000000, /* so */
	/* A thread that looks must have done so once all others are blocked. */
	WATCH_LOOK_CPU_NS = 12000000,
	WATCH_LOOK_SLEEPS = 3,
};

#define WATCH_NO_CALL (-1)

/* A thread at one moment, as /proc has it. */
struct watch_reading {
	char state;      /* of /proc/PID/status */
	uint64_t cpu_ns; /* on a processor, as of when it last left one or a tick came */
	uint64_t sleeps; /* voluntary switches */
	uint64_t runs;   /* how often it got a processor */
	long call;       /* number of the call that it is in; WATCH_NO_CALL: none */
	uint64_t args[6];
	bool on_file; /* that call is one on a file */
};

/* The most of the unthrottled run, from one operation to the next. */
struct watch_limits {
	uint64_t cpu_ns, sleeps;
	int64_t wall_ns;
};

enum watch_verdict { WATCH_BUSY, WATCH_STILL, WATCH_LOOKS, WATCH_GONE };

/* What one thread does. 'op': the reading at its last operation, or its first; 'limits' may be
 * NULL: none are known. 'same_ns': so long it has not run. '*why' of a busy one: "computes". */
enum watch_verdict watch_judge(const struct watch_reading *now, const struct watch_reading *op,
	int64_t same_ns, const struct watch_limits *limits, const char **why);

/* Of one that is blocked: is it still so since 'mark', having had its turn? */
bool watch_settled(
	enum watch_verdict v, const struct watch_reading *now, const struct watch_reading *mark);

/* Takes a reading of a thread. False: it is gone. Without 'call' neither call nor args are read. */
bool watch_read(pid_t pid, pid_t tid, bool call, struct watch_reading *out);

#endif
