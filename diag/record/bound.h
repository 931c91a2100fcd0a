/*
 * A log's file that may hold so much that nobody has taken: what log_writer_bound promises. Its
 * reader makes a hole of what it has taken, so the file itself says how full it is.
 */
#ifndef CULPRIT_DIAG_RECORD_BOUND_H
#define CULPRIT_DIAG_RECORD_BOUND_H

#include "diag/record/record.h"

struct log_bound {
	uint64_t most;          /* bytes; 0: no bound */
	uint64_t dropped, told; /* records; 'told' of them by LOST records */
	int64_t last_ns;        /* when the last one that was dropped ended */
	bool full;
};

/* Looks whether there is room for 'more' bytes and another block at the end of the file. -ENOBUFS:
 * it holds twice the bound. */
int log_bound_look(struct log_bound *b, int fd, uint64_t more);

/* True, and counted, if 'rec' must be dropped. */
bool log_bound_drops(struct log_bound *b, const struct record *rec);

/* True, with the record in '*lost', if there is room and records were dropped since the last time;
 * 'now': even if there is none. */
bool log_bound_tell(struct log_bound *b, struct record *lost, bool now);

#endif
