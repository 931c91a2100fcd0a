/*
 * Signals: SIGINT, SIGTERM and SIGHUP (unless it is ignored) ask a run to stop. The first lets the
 * running attempt undo its fault and end. The third kills the process, whatever its threads do; the
 * nodes' guards then undo what is left.
 */
#ifndef CULPRIT_HARNESS_RUN_SIGNALS_H
#define CULPRIT_HARNESS_RUN_SIGNALS_H

#include <signal.h>

#include "harness/base/err.h"

struct cluster;
struct nodeset;

/* Installs the handler. The result counts the signals. */
volatile sig_atomic_t *signals_catch(void);

/* Readable once a signal has come, for code that waits; 0: there is no such descriptor. */
int signals_fd(void);

/* Each signal also interrupts calls of these nodes; NULL: of none. */
void signals_interrupt(struct nodeset *set);

/* Connects the cluster; signals interrupt that, and calls of its nodes from then on. Errors of
 * cluster_connect. */
int signals_connect(struct cluster *c, struct err *e);

/* The error of what a signal ended: -EINTR, ERR_INTERRUPTED. */
int signals_interrupted(struct err *e);

/* Sleeps a second, or until a signal comes. */
void signals_nap(void);

#endif
