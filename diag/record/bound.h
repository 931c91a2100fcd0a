/*
 * The limit of unread data in a log's file, as log_writer_bound promises. The reader punches a hole
 * where it has taken data, so the file itself shows how full it is.
 */
#ifndef CULPRIT_DIAG_RECORD_BOUND_H
#define CULPRIT_DIAG_RECORD_BOUND_H

#include "diag/record/record.h"

struct log_bound {
	uint64_t most; /* bytes; 0: no bound */
	/* Records dropped, and those already reported by LOST records. */
	uint64_t dropped, reported;
	int64_t last_ns; /* end of the last dropped record */
	bool full;
};

/* Checks for room for 'more' bytes and another block at the end of the file. -ENOBUFS: it holds
 * twice the bound. */
int log_bound_look(struct log_bound *b, int fd, uint64_t more);

/* True if 'rec' must be dropped; counts it. */
bool log_bound_drops(struct log_bound *b, const struct record *rec);

/* True, with a LOST record in '*lost', if records were dropped since the last one and there is room
 * again; 'now': also without room. */
bool log_bound_tell(struct log_bound *b, struct record *lost, bool now);

#endif
