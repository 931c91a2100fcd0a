/*
 * Questions to logs in SQL: SQLite over virtual tables (columns.h) that read the logs where they
 * lie. Nothing is copied, and nothing can be written: an authorizer refuses all but SELECT.
 *
 *     struct query_spec spec = {.logs = logs, .n_logs = 2, .timeout_s = 60};
 *     query_new(&spec, &q, &e);
 *     query_run(q, "select call, count(*) from events group by call", &sink, &e);
 *     for (size_t i = 0; (why = query_problem(q, i)); i++)
 *             complain(why);
 *     query_free(q);
 *
 * Functions besides SQLite's: percentile(value, p), an aggregate: the p-th percentile (0 .. 100) of
 * the numbers, between two of them linearly. basename(path): what follows its last slash.
 */
#ifndef CULPRIT_DIAG_QUERY_QUERY_H
#define CULPRIT_DIAG_QUERY_QUERY_H

#include <jansson.h>
#include <signal.h>

#include "diag/query/columns.h"

struct query_source;

/* What all queries look at, as if nothing else had been recorded. Zero: at everything. */
struct query_focus {
	int64_t from_ns, to_ns; /* what began in [from, to), in ns where t is in s; to 0: no end */
	bool in_time;           /* these hold */
	const char *node;
	int64_t attempt; /* attempts.id; 0: all */
	/* Of calls, i.e. of 'events' and 'totals'. */
	const char *call, *class, *thread; /* names */
	const char *path;                  /* a part of the path */
	uint32_t id;                       /* process or thread */
	bool failed;
};

/* A value that a statement names ":name". */
struct query_param {
	const char *name; /* with its colon; NULL ends a list */
	enum { PARAM_NULL, PARAM_INT, PARAM_REAL, PARAM_TEXT } type;
	int64_t number;
	double real;
	const char *text;
};

/* Everything is borrowed. */
struct query_spec {
	const struct query_log *logs;
	size_t n_logs;
	/* Why there are none: asking for tables that do not come from a source below ends with it
	 * and -ENODATA. Or NULL. */
	const char *no_logs;
	/* The tables that they have come from there (source.h); NULL: there is none. 'store': all
	 * tables; 'made': those that are made of several logs. Borrowed. */
	const struct query_source *store, *made;
	bool no_index;
	uint64_t index_least;                     /* as in struct scan_spec */
	double timeout_s;                         /* 0: none */
	const volatile sig_atomic_t *interrupted; /* not 0: stop; or NULL */
	bool (*unwanted)(void *ctx); /* asked often while a query runs; true: stop; or NULL */
	void *ctx;
	struct query_focus focus;
	int64_t slot_ns;                  /* of the column 'slot'; 0: a second */
	const struct query_param *params; /* or NULL */
};

struct query;

/* Opens each log once, to see that it is one; the logs of an attempt only when they are asked for.
 * Errors as log_reader_new. */
int query_new(const struct query_spec *spec, struct query **out, struct err *e);
void query_free(struct query *q); /* NULL is fine */

/* A table of the caller's, e.g. a run's cells: 'rows' are objects; 'columns' ends with NULL. They
 * are copied. */
int query_add_table(struct query *q, const char *name, const char *const columns[],
	const json_t *rows, struct err *e);

struct query_cell {
	enum { CELL_NULL, CELL_INT, CELL_REAL, CELL_TEXT, CELL_BLOB } type;
	int64_t number;
	double real;
	const char *text; /* TEXT and BLOB: 'size' bytes; TEXT with a NUL behind them */
	size_t size;
};

/* Both return 0, or what ends the query: below 0 an error, which they fill; above 0 that no more
 * rows are wanted. */
struct query_sink {
	int (*begin)(void *ctx, int n, const char *const names[], struct err *e);
	int (*row)(void *ctx, int n, const struct query_cell *cells, struct err *e);
	void *ctx;
};

/* Runs one statement. -EINVAL: SQLite's message with its place in the text, or a statement that
 * does more than ask; -ETIME: the time limit; -EINTR: interrupted; else what the sink returned.
 * 1: the sink wanted no more rows. */
int query_run(struct query *q, const char *sql, const struct query_sink *sink, struct err *e);

/* Compiles the statement, and does no more. -EINVAL as query_run; '*at' is then the place of what
 * is wrong, in bytes, or -1. */
int query_check(struct query *q, const char *sql, int *at, struct err *e);

/* When the first and the last record of calls, sums and readings in focus began, in ns on the axis
 * of t, and how many there are; of logs with an index by whole blocks. 'records' 0: there are none.
 * What cannot be read is a query_problem. Errors as query_run. */
struct query_extent {
	int64_t first_ns, last_ns;
	uint64_t records;
};
int query_extent(struct query *q, struct query_extent *out, struct err *e);

/* What could not be read while the queries ran: each log that is damaged, cut short or missing,
 * with the place; NULL behind the last one. What stands before the place has been asked. */
const char *query_problem(const struct query *q, size_t i);

/* The queries asked for calls (events, totals), and every log that they read is of a kind without:
 * which, and what keeps calls. NULL: it is not so. Valid until the query is freed. */
const char *query_no_calls(const struct query *q);

/* Blocks that were read and passed over with an index, by all queries. */
void query_counts(const struct query *q, uint64_t *read, uint64_t *passed);

#endif
