/* What of a query's conditions spares reading. */
#ifndef CULPRIT_DIAG_QUERY_PUSH_H
#define CULPRIT_DIAG_QUERY_PUSH_H

#include "diag/query/columns.h"
#include "diag/query/scan.h"

/* A value that a column is compared with. */
struct push_value {
	enum { PUSH_OTHER, PUSH_INT, PUSH_REAL, PUSH_TEXT } type;
	int64_t number;
	double real;
	char *text;
};

/* A condition on a column: one of the values (IN), or a comparison with the only one. */
struct push {
	int column; /* of its table */
	enum column_key key;
	enum push_op {
		PUSH_EQ = 'e',
		PUSH_GT = 'g',
		PUSH_GE = 'G',
		PUSH_LT = 'l',
		PUSH_LE = 'L',
		PUSH_NOT_NULL = 'n',
		PUSH_IN = 'i',
	} op;
	struct push_value *values;
	size_t n;
};

/* Narrows the filter to records of which the condition can hold; false: no record of the log can
 * fulfil it. SQLite checks each row again, so that what is not understood is let through. 'head'
 * NULL: the log is not open yet, and only what is known of it without is examined. */
bool push_apply(const struct push *p, const struct query_log *log, const struct log_head *head,
	struct scan_filter *f);

/* The whole numbers for which the condition can hold, a little too many at most; false: it is not
 * understood. */
bool push_range(const struct push *p, int64_t *low, int64_t *high);

#endif
