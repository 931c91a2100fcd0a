/*
 * The guard's twin: a process that takes the undo journal over when the guard cannot.
 *
 * The guard starts it, in its own session, and each is at one end of a socket pair, the tie.
 * The tie ends when the other is killed: the guard then starts another standby; the standby waits
 * for the agent to undo, for the lease at most, and otherwise kills it and undoes by itself. It
 * also reads from the pipe 'life', whose other end only agent and guard hold: when that ends,
 * neither is left, and it undoes at once.
 *
 * Where systemd runs, a transient unit outlives all three: 'culprit-agent standby', in a control
 * group of its own, started again by systemd if it is killed as well. It ends with the journal.
 */
#ifndef CULPRIT_HARNESS_AGENT_STANDBY_H
#define CULPRIT_HARNESS_AGENT_STANDBY_H

#include <stdbool.h>

#include "faults/primitives/target.h"

/* What it watches. */
struct standby_duty {
	const char *journal;
	struct target agent;
	double lease_s;
};

/* The guard's side. */
struct standby {
	pid_t pid; /* 0: none runs */
	int tie;   /* -1: none runs */
	double started_s;
};

/* Forks one. 'unit': it also asks systemd for the unit, if there is a systemd. -errno. */
int standby_start(struct standby *s, const struct standby_duty *d, int life, bool unit);

/* It has been killed: reaps it. */
void standby_lost(struct standby *s);

/* Tells it to end and do nothing, and waits for that (5 s; then it is killed). */
void standby_end(struct standby *s);

#endif
