/*
 * Runs of a command under supervision: its calls on files stop here (seccomp user notification) and
 * are let go on, those of one thread only once all other threads are blocked (watch.h). The first
 * run delays nothing: it learns each thread's limits.
 *
 * One object for all runs of a command. The caller runs `culprit-agent throttled` with the socket
 * of supervisor_begin, waits with poll for what supervisor_poll says, and calls supervisor_step
 * whenever that wakes. If the caller dies, the kernel fails the calls that wait.
 */
#ifndef CULPRIT_DIAG_THROTTLE_SUPERVISOR_H
#define CULPRIT_DIAG_THROTTLE_SUPERVISOR_H

#include <poll.h>

#include "diag/throttle/edges.h"

struct supervisor;

enum { SUPERVISOR_PATIENCE_S = 30 };

/* 'root': absolute, without links; calls on files at or below it are the operations. A delay tells
 * nothing if the others do not come to rest in 'patience_s' and four times the longest that any
 * took. */
struct supervisor *supervisor_new(const char *root, double patience_s);
void supervisor_free(struct supervisor *s); /* NULL is fine */

/* A new run; 'name' (borrowed until supervisor_end) is the thread to delay, before each 'period'-th
 * operation; NULL: learn. '*socket' is for the command, and is closed after its fork. */
int supervisor_begin(
	struct supervisor *s, const char *name, unsigned long period, int *socket, struct err *e);
/* Fills 'on', of two, and returns for how many ms to wait at most. */
int supervisor_poll(struct supervisor *s, struct pollfd on[2]);
void supervisor_step(struct supervisor *s);
/* The command is to end: what waits is let go, and nothing is delayed any more. */
void supervisor_stop(struct supervisor *s);
/* The run has ended. What was delayed is kept until the next. */
void supervisor_end(struct supervisor *s);

/* Of the last run. The name of a thread; NULL: it is not known, or has no name that is the same in
 * each run. */
const char *supervisor_name(const struct supervisor *s, uint32_t tid);
const struct throttle_delay *supervisor_delays(const struct supervisor *s, size_t *n);
/* Delays that were not decided; '*why' gets an example: "thread 12 of process 7 computes". */
size_t supervisor_undecided(const struct supervisor *s, const char **why);
/* It gave up after some of these, and delayed no more. */
bool supervisor_gave_up(const struct supervisor *s);

#endif
