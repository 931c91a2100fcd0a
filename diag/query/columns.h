/*
 * What is in logs, as tables: the one declaration of their columns. SQLite's tables are made from
 * it, 'culprit query --schema' prints it, and whoever sends records elsewhere uses it as well.
 *
 * A column's 'get' tells its value in the record at hand. What it needs (enum column_needs) is read
 * only if the column is asked for.
 */
#ifndef CULPRIT_DIAG_QUERY_COLUMNS_H
#define CULPRIT_DIAG_QUERY_COLUMNS_H

#include "diag/record/describe.h"

/* A log, and where it stands in its run. Zero: nothing but 'path' is known. */
struct query_log {
	const char *path;        /* where it is */
	const char *name;        /* as it is shown: relative to its run */
	const char *node;        /* NULL: the host in the log's head */
	struct stream_spec spec; /* borrowed, like all here */
	bool in_attempt;
	bool goes_on;          /* its attempt has not ended: more may come */
	int64_t cell, attempt; /* attempt: attempts.id */
	/* On the orchestrator's clock; 0: not reached. start: all workloads run; onset and offset:
	 * the fault was verified to act, and to be gone. */
	int64_t start_ns, onset_ns, offset_ns;
};

enum column_type { COLUMN_INT, COLUMN_REAL, COLUMN_TEXT };

struct column_value {
	enum { VALUE_NULL, VALUE_INT, VALUE_REAL, VALUE_TEXT } type;
	union {
		int64_t number;
		double real;
		const char *text;
	};
	bool lasting; /* the text lives as long as the program, or as the log's description */
};

struct request_row;
struct failure_row;

/* The record at hand. */
struct query_row {
	const struct query_log *log;
	const struct log_head *head;
	struct stream_item *item;
	const struct request_row *request; /* of the table 'requests' (requests.h) */
	const struct failure_row *failure; /* of the table 'failures' (requests.h) */
	int64_t slot_ns;                   /* of the column slot; 0: a second */
	char text[16384];                  /* for 'get' */
};

enum column_needs {
	NEEDS_DETAILS = 1, /* arguments, offsets and paths of calls */
	NEEDS_STATE = 2,   /* descriptors, and names of threads */
	OF_PLACE = 4,      /* nothing: the log and the record's time tell it */
	NEEDS_MOVED = 8,   /* what call_moved needs of calls */
};

/* What a comparison with the column spares reading, if its value is one of these. */
enum column_key {
	KEY_NONE,
	KEY_TIME_NS,
	KEY_T,
	KEY_SECOND,
	KEY_NODE,
	KEY_LOG,
	KEY_OWNER,
	KEY_CELL,
	KEY_ATTEMPT,
	KEY_PHASE,
	KEY_PID,
	KEY_TID,
	KEY_CALL,
	KEY_CLASS,
	KEY_RESULT,
	KEY_ERRNO,
	KEY_SERVICE_NS,
};

struct column {
	const char *name; /* NULL ends a table */
	enum column_type type;
	unsigned needs;                                               /* enum column_needs, ORed */
	void (*get)(struct query_row *row, struct column_value *out); /* NULL: a measure */
	const char *about;                                            /* with the unit */
	enum column_key key;
};

struct query_table {
	const char *name;
	enum record_type of; /* a row is a record of this type */
	const struct column *columns;
	const char *about;
	/* The rows are summed up: those that agree in all columns which a query names, and are no
	 * measures, are one. So it is made for a query, and is nothing to be kept. */
	bool summed;
	/* The rows are no records, but made of all logs of an attempt by a source (source.h). */
	bool made;
	bool unshipped; /* stores do not keep them */
};

/* Measures of summed rows, in the order in which they stand, last, among the columns. */
enum column_measure {
	COLUMN_CALLS,
	COLUMN_ERRORS,
	COLUMN_BYTES,
	COLUMN_TOTAL_NS,
	COLUMN_MAX_NS,
	COLUMN_P50_NS,
	COLUMN_P99_NS,
	COLUMN_COUNT,
};

/* All tables, ended by one without a name. */
extern const struct query_table query_tables[];

/* Moment of the row that seconds are counted from, on its node's clock: the attempt's start, or
 * that of the log. */
int64_t query_start_ns(const struct query_log *log, const struct log_head *head);
const char *query_node(const struct query_log *log, const struct log_head *head);
const char *query_owner(const struct query_log *log); /* "server"; NULL: not known */

#endif
