/*
 * Vector clocks of completed operations, carried along messages, and the edges that they imply.
 *
 * A thread's frontier is what it has received since its own last operation: of each other thread,
 * the newest operation that it did not know before. Its next operation waits for these. An entry is
 * implied, and left out, if the operation of another entry waited for it. A message carries its
 * sender's frontier and the sender's last operation.
 *
 * Frontiers and knowledge are shared, reference-counted and immutable once shared, so memory grows
 * with the messages in flight, not with the log.
 */
#ifndef CULPRIT_DIAG_CAUSAL_CLOCK_H
#define CULPRIT_DIAG_CAUSAL_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* By thread: how many of its operations were completed before, directly or indirectly. */
struct known;

struct frontier_entry {
	uint32_t thread, ops;
	struct known *known; /* before that operation; NULL: nothing */
};

struct frontier {
	uint32_t refs, n;
	bool minimal;
	/* Of a minimal frontier: all that its entries imply; or NULL. */
	struct known *closure;
	struct frontier_entry entry[]; /* by thread */
};

struct clock {
	uint32_t thread; /* number among the threads with operations, or CLOCK_NO_THREAD */
	uint32_t done;
	struct known *known;
	struct frontier *frontier; /* NULL: empty */
	struct frontier *message;  /* what it would send now; NULL: not computed yet */
};

#define CLOCK_NO_THREAD UINT32_MAX

struct frontier *frontier_ref(struct frontier *f); /* NULL is fine */
void frontier_drop(struct frontier *f);

/* The frontier that a message of this thread carries; NULL: empty. The caller drops it. */
struct frontier *clock_send(struct clock *c);
/* Receives a message; the caller still owns 'f'. */
void clock_receive(struct clock *c, struct frontier *f);
/* The entries that the next operation waits for, without implied ones. Call clock_complete next. */
const struct frontier *clock_waits(struct clock *c);
/* The operation is completed. */
void clock_complete(struct clock *c);
/* At its last operation, did the thread know the first 'ops' operations of 'thread', directly or
 * not? */
bool clock_knows(const struct clock *c, uint32_t thread, uint32_t ops);
void clock_clear(struct clock *c);

#endif
