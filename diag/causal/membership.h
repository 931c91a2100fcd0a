/*
 * Which processes belong to the application, where logs of launchers have others, too (causal.h):
 *
 *     membership_begin(&b, &d, &in)
 *     decode_run(&d, &in, membership_event, &b, &e)
 *     membership_end(&b)                              then the results are set
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
	struct membership_pair *pairs; /* each once, as first seen */
	size_t n_pairs;
	struct map seen;
	/* By process; the caller's to free. from: of a launcher's child that belongs, the process
	 * that had it started, and one: who sent what it received first. 0: not known. */
	bool *dropped;
	uint32_t *from;
	uint32_t n;
	/* Logs: a process that belongs, in the first, has received by TCP what nobody in any log
	 * has sent, from the node of the second. NULL: that did not happen. */
	const struct causal_log *outside[2];
};

void membership_begin(struct membership *b, const struct decode *d);
int membership_event(void *belong, const struct causal_event *ev, struct err *e);
void membership_end(struct membership *b);

/* Compares processes by the order of ranks: that of the logs; in a log, as the tree of processes
 * has them; of a launcher's children, as those who had them started are ordered. 'from' may be
 * NULL. As qsort's function. */
int membership_compare(const struct decode *d, const uint32_t *from, uint32_t a, uint32_t b);

#endif
