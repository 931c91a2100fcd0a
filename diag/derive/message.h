/*
 * Messages: where a request or response begins and ends in the reads of a socket. metrics.h gives
 * the rule and the reasons. The caller keeps one 'struct message' for each connection.
 */
#ifndef CULPRIT_DIAG_DERIVE_MESSAGE_H
#define CULPRIT_DIAG_DERIVE_MESSAGE_H

#include "diag/derive/header.h"
#include "diag/record/stream.h"

/* Which messages are bulk data, that is, neither request nor response: 'bulk' in the file system's
 * Lua file (harness/fs/README.md). All zero: no message. */
struct bulk_rule {
	uint64_t above;  /* messages of more bytes; 0: none */
	uint32_t header; /* size of a bare header, whose data were read separately */
	/* If the log has heads of messages, these decide instead of the size: every message has
	 * 'check', bulk data has 'kind'. n 0: the size decides. */
	struct flow_values check, kind;
};

enum message_kind {
	MESSAGE_REQUEST, /* or a response */
	MESSAGE_BULK,
	MESSAGE_HEADER, /* only the header of bulk data */
};

struct message {
	int64_t start_ns, end_ns; /* of the first and the last read that brought data */
	uint64_t bytes;           /* 0: no message has begun */
	uint64_t first, left;     /* asked for by its first read; missing after its last read */
	uint64_t need;            /* bytes known to be wanted still: metrics.h */
	uint64_t last;            /* record number of the last read */
	uint32_t tid;             /* thread of the last read */
	bool wanted_more;         /* a read failed with EAGAIN since the last data */
	bool exact;               /* the last read's length is not that of a buffer */
	bool answered;            /* the same thread has written to the socket since */
	uint8_t head_size;        /* bytes of its beginning in the log */
	uint8_t head[RECORD_HEAD];
};

/* Bytes that a call of class CALL_READ asks for; 0: unknown. */
uint64_t message_asked(const struct call_info *info, const struct record_call *c);

/* Is the message whole if the next event on the socket is a read by 'tid' (0: no read) of 'asked'
 * bytes (0: unknown)? False if no message has begun. */
bool message_is_whole(
	const struct message *m, const struct stream *s, uint32_t tid, uint64_t asked);

/* A read brought data: the message begins or continues. */
void message_read(struct message *m, const struct record *rec, uint64_t asked);

/* Classifies a whole message. */
enum message_kind message_kind(const struct message *m, const struct bulk_rule *rule);

/* A read failed with EAGAIN. True: the read began anew, and the message is whole. False: the
 * message continues. */
bool message_nothing(struct message *m, uint64_t asked);

#endif
