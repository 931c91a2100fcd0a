/*
 * Runs of a command under supervision: its calls on files stop here (seccomp user notification).
 * The supervisor lets each call continue; those of one chosen thread only once all other threads
 * are blocked (watch.h). The first run delays no call: it learns each thread's limits.
 *
 * One object serves all runs of a command. The caller runs `culprit-agent throttled` with the
 * socket of supervisor_begin, polls the descriptors that supervisor_poll returns, and calls
 * supervisor_step after each wake-up. If the caller dies, the kernel fails the calls that wait.
 */
#ifndef CULPRIT_DIAG_THROTTLE_SUPERVISOR_H
#define CULPRIT_DIAG_THROTTLE_SUPERVISOR_H

#include <poll.h>

#include "diag/throttle/edges.h"

struct supervisor;

enum { SUPERVISOR_PATIENCE_S = 30 };

/* 'root': absolute, without links; calls on files at or below it are the operations. A delay stays
 * undecided if the other threads are not blocked within 'patience_s' plus four times the longest
 * time without an operation. */
struct supervisor *supervisor_new(const char *root, double patience_s);
void supervisor_free(struct supervisor *s); /* NULL is fine */

/* Starts a run. 'name' (borrowed until supervisor_end) is the thread to delay, before each
 * 'period'-th operation; NULL: learn. '*socket' is for the command; close it after the fork. */
int supervisor_begin(
	struct supervisor *s, const char *name, unsigned long period, int *socket, struct err *e);
/* Fills 'on' (two entries) and returns the poll time-out in ms. */
int supervisor_poll(struct supervisor *s, struct pollfd on[2]);
void supervisor_step(struct supervisor *s);
/* The command is about to end: releases the waiting call and delays no more. */
void supervisor_stop(struct supervisor *s);
/* The run has ended. Its delays are kept until the next run begins. */
void supervisor_end(struct supervisor *s);

/* These describe the last run. The name of a thread; NULL: the thread is unknown, or its name
 * differs between runs. */
const char *supervisor_name(const struct supervisor *s, uint32_t tid);
const struct throttle_delay *supervisor_delays(const struct supervisor *s, size_t *n);
/* The number of undecided delays; '*why' gets an example: "thread 12 of process 7 computes". */
size_t supervisor_undecided(const struct supervisor *s, const char **why);
/* True: the supervisor stopped delaying after several undecided delays in a row. */
bool supervisor_gave_up(const struct supervisor *s);

#endif
