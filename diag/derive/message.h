/*
 * Messages: where a request or response begins and ends in the reads of a socket. metrics.h gives
 * the rule and the reasons. The caller keeps one 'struct message' a connection.
 */
#ifndef CULPRIT_DIAG_DERIVE_MESSAGE_H
#define CULPRIT_DIAG_DERIVE_MESSAGE_H

#include "diag/record/stream.h"

struct message {
	int64_t start_ns, end_ns; /* of the first and the last read that brought data */
	uint64_t bytes;           /* 0: no message has begun */
	uint64_t last;            /* number of the record of the last read */
	uint32_t tid;             /* its thread */
	bool wanted_more;         /* a read failed with EAGAIN since the last data */
	bool answered;            /* the same thread has written to the socket since */
};

/* Is the message whole, if the next event on the socket is a read by 'tid' (0: there is none)?
 * False if no message has begun. */
bool message_is_whole(const struct message *m, const struct stream *s, uint32_t tid);

/* A read brought data: the message begins or goes on. */
void message_read(struct message *m, const struct record *rec);

#endif
