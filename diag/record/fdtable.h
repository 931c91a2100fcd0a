/*
 * What a descriptor means now: feed it the records of one log in their order, ask
 * about any process and descriptor at any moment. The rules are in record.h.
 * Memory grows with the descriptors that are open at once.
 */
#ifndef CULPRIT_DIAG_LOG_FDTABLE_H
#define CULPRIT_DIAG_LOG_FDTABLE_H

#include "diag/record/record.h"

struct fdtable;

struct fd_state {
	struct record_fd now; /* the last record; its path is the table's */
	uint64_t user;        /* the caller's; 0 whenever the meaning has changed */
};

struct fdtable *fdtable_new(void); /* NULL: out of memory */
void fdtable_free(struct fdtable *t);

/* Takes note of a record (others than FD and PROCESS are no concern of it). 0 or -ENOMEM. */
int fdtable_feed(struct fdtable *t, const struct record *rec);

/* Meaning of 'fd' in thread group 'pid', or NULL if it is not open (or not known).
 * Valid until the next record about that process is fed. O(1). */
struct fd_state *fdtable_get(const struct fdtable *t, uint32_t pid, int32_t fd);

/* Calls 'fn' for every open descriptor of 'pid', in no order; it may not feed. */
void fdtable_each(const struct fdtable *t, uint32_t pid,
	void (*fn)(void *ctx, const struct fd_state *s), void *ctx);

#endif
