/*
 * Which processes belong to the application when launchers' logs contain other processes as well
 * (causal.h):
 *
 *     membership_begin(&b, &d, &in)
 *     decode_run(&d, &in, membership_event, &b, &e)
 *     membership_end(&b)                              fills in the results
 */
#ifndef CULPRIT_DIAG_CAUSAL_MEMBERSHIP_H
#define CULPRIT_DIAG_CAUSAL_MEMBERSHIP_H

#include "diag/causal/decode.h"

/* A process sends or receives on a channel. */
struct membership_pair {
	uint32_t channel, process;
	bool receives;
};

struct membership {
	const struct decode *d;
	struct membership_pair *pairs; /* without duplicates, in the order seen */
	size_t n_pairs;
	struct map seen;
	/* By process; the caller frees both. 'from': for a launcher's child that belongs, index + 1
	 * of the process that had it started, that is, the sender of the first data it received. 0:
	 * unknown. */
	bool *dropped;
	uint32_t *from;
	uint32_t n;
	/* A process of the application on the first log's node has received, by TCP from the
	 * second's node, data whose sender is in no log. NULL: no such data. */
	const struct causal_log *outside[2];
};

void membership_begin(struct membership *b, const struct decode *d);
int membership_event(void *belong, const struct causal_event *ev, struct err *e);
void membership_end(struct membership *b);

/* Compares processes by rank order: by log; within a log by the tree of processes; children of a
 * launcher by the order of the processes that had them started. 'from' may be NULL. For qsort. */
int membership_compare(const struct decode *d, const uint32_t *from, uint32_t a, uint32_t b);

#endif
