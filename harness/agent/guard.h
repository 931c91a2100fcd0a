/*
 * The guard: a process next to the agent that holds the undo journal and undoes everything when the
 * agent dies, falls silent, or asks for it.
 *
 * They exchange JSON objects over a socket pair, one a packet. The order for each act:
 * guard_record (journal written, acknowledged), the act, guard_acted.
 *
 * The guard has a twin, the standby (standby.h), in case that it is killed as well.
 */
#ifndef CULPRIT_HARNESS_AGENT_GUARD_H
#define CULPRIT_HARNESS_AGENT_GUARD_H

#include <jansson.h>
#include <stdbool.h>

#include "harness/base/err.h"

struct guard;

/* Forks the guard, which forks the standby; returns when the journal and the session's folder are
 * there. */
int guard_start(
	const char *state, const char *session, double lease_s, struct guard **out, struct err *e);
/* Also ends the standby. */
void guard_free(struct guard *g);

int guard_fd(const struct guard *g);
int guard_pid(const struct guard *g);
const char *guard_dir(const struct guard *g); /* the session's folder */

/* Records the inverse of an act that follows; waits until it is in the journal. 'max_s' > 0: the
 * guard undoes it that long after guard_acted. -EPIPE: the guard is dead, so don't act. */
int guard_record(struct guard *g, const char *handle, const char *primitive, const json_t *inverse,
	double max_s, struct err *e);
void guard_acted(struct guard *g, const char *handle);

/* Asks for an undo; the answer comes through guard_next. */
void guard_undo(struct guard *g, const char *handle);

/* Renews the lease (sent at most ten times a lease). */
void guard_beat(struct guard *g);

/* Asks it to undo all and end; the answer is a message without handle. */
void guard_bye(struct guard *g);

struct guard_message {
	char handle[32]; /* "" for the answer to guard_bye */
	bool asked;      /* false: its time (max_s) was up */
	bool was_there;
	int rc;         /* 0: undone and verified */
	struct err err; /* when rc < 0 */
};

/* 1 and a message, 0 when there is none now, -EPIPE when the guard is dead. */
int guard_next(struct guard *g, struct guard_message *m);

/* After the guard died: undoes what its journal holds. */
int guard_take_over(struct guard *g, struct err *e);

/* The guard's descriptors: its end of the socket pair, and both ends of the standby's pipe. It
 * keeps 'life_read' for the next standby. */
struct guard_pipes {
	int sock, life, life_read;
};

/* guard_main.c: the guard's own program. */
_Noreturn void guard_main(const struct guard_pipes *pipes, const char *state, const char *session,
	const char *journal, double lease_s, int agent_pid);

/* Undoes what is in the journal at 'path', unless it is gone. */
int guard_revert_left(const char *path, double retry_s, struct err *e);

#endif
