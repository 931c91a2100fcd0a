/*
 * Is a thread blocked? In Mesnier et al. 2007 (section 4.1.2) it is, once it stays in a call or
 * computes longer than in the unthrottled run by some factor. Wall-clock time grows on a busy
 * machine, so it counts here only for sleeps of a time that the program set. Otherwise a blocked
 * thread is
 *
 *   still   asleep in a call that waits for others, and has not run since; or
 *   looks   polling: since its last operation it has computed, or slept and woken, more than twice
 *           the maximum between two operations of the unthrottled run.
 *
 * A thread is busy if it is in a call on a file, waits for a processor, or still has to compute. An
 * application is quiet when every thread except the delayed one is blocked and no state has changed
 * for a while: twice the longest time after which the unthrottled run continued by itself.
 */
#ifndef CULPRIT_DIAG_THROTTLE_WATCH_H
#define CULPRIT_DIAG_THROTTLE_WATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum {
	WATCH_LEAST_NS = 20000000,      /* shortest quiet time that counts */
	WATCH_LEAST_CPU_NS = 20000000,  /* added to twice the maximum of the unthrottled run */
	WATCH_LEAST_SLEEPS = 100,       /* likewise */
	WATCH_LEAST_WALL_NS = 50000000, /* likewise */
	/* A polling thread must have polled this much after all others were blocked. */
	WATCH_LOOK_CPU_NS = 12000000,
	WATCH_LOOK_SLEEPS = 3,
};

#define WATCH_NO_CALL (-1)

/* A thread at one moment, read from /proc. */
struct watch_reading {
	char state;      /* of /proc/PID/status */
	uint64_t cpu_ns; /* processor time, as of its last switch or tick */
	uint64_t sleeps; /* voluntary context switches */
	uint64_t runs;   /* times it was scheduled */
	long call;       /* the system call that it is in; WATCH_NO_CALL: none */
	uint64_t args[6];
	bool on_file; /* 'call' is a call on a file */
};

/* Maxima of the unthrottled run between two operations. */
struct watch_limits {
	uint64_t cpu_ns, sleeps;
	int64_t wall_ns;
};

enum watch_verdict { WATCH_BUSY, WATCH_STILL, WATCH_LOOKS, WATCH_GONE };

/* Judges one thread. 'op': the reading at its last operation, or the first reading; 'limits': NULL
 * if unknown; 'same_ns': time since it last ran. '*why' gets the reason of a busy one:
 * "computes". */
enum watch_verdict watch_judge(const struct watch_reading *now, const struct watch_reading *op,
	int64_t same_ns, const struct watch_limits *limits, const char **why);

/* Is a blocked thread still blocked since the reading 'mark', although it had a chance to run? */
bool watch_settled(
	enum watch_verdict v, const struct watch_reading *now, const struct watch_reading *mark);

/* Reads a thread. False: it has ended. Without 'call', the call and its arguments are not read. */
bool watch_read(pid_t pid, pid_t tid, bool call, struct watch_reading *out);

#endif
