/*
 * Messages: where a request or response begins and ends in the reads of a socket.
 * The rule and its reasons are in metrics.h. One 'struct message' a socket, one
 * 'struct pollers' a log; neither allocates for a record.
 */
#ifndef CULPRIT_DIAG_METRICS_MESSAGE_H
#define CULPRIT_DIAG_METRICS_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* When each thread last waited for descriptors, as a record number. */
struct pollers {
	struct poller {
		uint32_t tid; /* 0: free */
		uint64_t last;
	} * slots;
	size_t size, used;
};

/* 0 or -ENOMEM. */
int pollers_set(struct pollers *p, uint32_t tid, uint64_t number);
uint64_t pollers_get(const struct pollers *p, uint32_t tid); /* 0: never */
void pollers_remove(struct pollers *p, uint32_t tid);
void pollers_clear(struct pollers *p);

struct message {
	int64_t start_ns, end_ns; /* of the first and the last read that brought data */
	uint64_t bytes;           /* 0: no message under way */
	uint64_t last;            /* number of the record of the last read */
	uint32_t tid;             /* its thread */
	bool wanted_more;         /* EAGAIN since the last data */
	bool answered;            /* the same thread has written to the socket since */
};

/* Is the message whole, if the next thing that happens on the socket is a read by 'tid' (0: by
 * nobody any more)? False if there is none. */
bool message_is_whole(const struct message *m, const struct pollers *p, uint32_t tid);

#endif
