/*
 * Rows that are not read from the query's logs: a store's, or those that are made of several logs
 * at once (requests, failures). The virtual tables ask for them through this.
 */
#ifndef CULPRIT_DIAG_QUERY_SOURCE_H
#define CULPRIT_DIAG_QUERY_SOURCE_H

#include "diag/query/query.h"
#include "diag/query/push.h"

/* What is asked for. More rows may come: SQLite checks the conditions again. */
struct query_ask {
	const struct query_table *table;
	uint64_t used; /* columns that are named: 1 << index; the last bit: all from 63 on */
	const struct push *pushes;
	size_t n_pushes;
	int64_t slot_ns; /* of the column slot */
	/* Of tables that are made: rows outside of it are left out (time, attempt, node). */
	const struct query_focus *focus;
	/* Asked now and then: true: nobody wants the rows any more, so that -EINTR is right. */
	bool (*stop)(void *ctx);
	/* Takes a sentence on what could not be read; the same one again is passed over. */
	void (*note)(void *ctx, const char *why);
	void *ctx;
};

/* Of a summed table a row is a part of a group: calls that agree in all columns that are named. */
struct query_part {
	int64_t measure[COLUMN_P50_NS];
	unsigned bucket; /* of their service times, if a percentile is named */
};

struct query_source {
	void *ctx;
	bool (*has)(void *ctx, const struct query_table *table);
	/* Opens the rows; errors end the query. 'ask' and what it points to are valid until
	 * close. */
	int (*open)(void *ctx, const struct query_ask *ask, void **rows, struct err *e);
	int (*next)(void *rows, struct err *e); /* 1; 0: there are no more */
	/* Of the row at hand; the value is valid until next. A column that is not named has
	 * none. */
	void (*get)(void *rows, int column, struct column_value *out);
	void (*part)(void *rows, struct query_part *out);
	/* Of the row at hand: the same in every reading (query_rowid). Summed tables need none. */
	int64_t (*rowid)(void *rows);
	void (*close)(void *rows);
	/* The i-th sentence on what could not be read; NULL: there is none. May be NULL. */
	const char *(*problem)(void *ctx, size_t i);
};

/* A record's number among all that a query sees. */
static inline int64_t query_rowid(size_t log, uint64_t number)
{
	return (int64_t)((uint64_t)log << 40 | (number & 0xffffffffff));
}

#endif
