/*
 * Vector clocks of completed operations, carried along messages, and the edges that follow.
 *
 * A thread knows what it has received: its frontier, the newest operation of each other thread that
 * it has heard of since its own last one and that it did not know then. Its next operation waits
 * for these. An entry that another entry's operation waited for itself is implied, and left out.
 * A message carries its sender's frontier, and the sender's own last operation.
 *
 * Frontiers and what operations waited for are shared, counted and never changed once shared. So
 * memory grows with what is under way, not with the log.
 */
#ifndef CULPRIT_DIAG_CAUSAL_CLOCK_H
#define CULPRIT_DIAG_CAUSAL_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of each thread, how many operations were completed before: directly or not. */
struct known;

struct frontier_entry {
	uint32_t thread, ops;
	struct known *known; /* before that operation; NULL: nothing */
};

struct frontier {
	uint32_t refs, n;
	bool minimal;
	struct known *closure;         /* of a minimal one: all that its entries imply; or NULL */
	struct frontier_entry entry[]; /* by thread */
};

struct clock {
	uint32_t thread; /* its number among those with operations, or CLOCK_NO_THREAD */
	uint32_t done;
	struct known *known;
	struct frontier *frontier; /* NULL: empty */
	struct frontier *message;  /* what it would send now; NULL: not made yet */
};

#define CLOCK_NO_THREAD UINT32_MAX

struct frontier *frontier_ref(struct frontier *f); /* NULL is fine */
void frontier_drop(struct frontier *f);

/* What a message of it carries; NULL: nothing. The caller's to drop. */
struct frontier *clock_send(struct clock *c);
/* A message was received; 'f' stays the caller's. */
void clock_receive(struct clock *c, struct frontier *f);
/* The entries that the next operation waits for, none of them implied; then clock_complete. */
const struct frontier *clock_waits(struct clock *c);
/* That operation is completed. */
void clock_complete(struct clock *c);
/* Had it, at its last operation, 'ops' of 'thread' before it: directly or not? */
bool clock_knows(const struct clock *c, uint32_t thread, uint32_t ops);
void clock_clear(struct clock *c);

#endif
