/* The inside of a query: its virtual tables (tables.c) and groups (summed.c). */
#ifndef CULPRIT_DIAG_QUERY_QUERY_IMPL_H
#define CULPRIT_DIAG_QUERY_QUERY_IMPL_H

#include <sqlite3.h>

#include "diag/query/push.h"
#include "diag/query/query.h"
#include "diag/query/source.h"

struct query {
	sqlite3 *db;
	struct query_spec spec;
	double until_s;  /* clock_mono_s; 0: no limit */
	int why;         /* -ETIME, -EINTR: it was stopped */
	bool declaring;  /* SQLite asks the authorizer about declarations of virtual tables, too */
	char **problems; /* by log; NULL: none */
	size_t *problem_of, n_problems; /* logs with one, in order */
	char **notes;                   /* of sources */
	size_t n_notes;
	char *no_calls; /* query_no_calls, unless may_call */
	bool may_call;  /* a log was read that may have calls */
	struct scan_counts counts;
	int failed; /* of a source; 'error' says why */
	struct err error;
};

/* From now on the time limit runs. */
void query_watch(struct query *q);
/* Says why a query that was stopped did not end. */
int query_was_stopped(const struct query *q, struct err *e);
/* Has the query been stopped? Then 'why' says so. */
bool query_stopped(struct query *q);

/* Notes why a log could not be read; once. */
void query_note(struct query *q, size_t log, const char *why);

/* Notes whether a log that calls are asked of can have any. */
void query_note_kind(struct query *q, const struct query_log *log, const struct log_head *head);

/* Notes what a source could not read; the same sentence once. */
void query_note_text(struct query *q, const char *why);

/* Fills 'e' with what SQLite says; -EIO. */
int query_fail(struct query *q, const char *doing, struct err *e);

/* Narrows the filter to the records in focus; false: the log has none. 'head' as push_apply. */
bool focus_apply(const struct query_focus *focus, enum record_type of, const struct query_log *log,
	const struct log_head *head, struct scan_filter *f);
/* What focus_holds needs (enum column_needs). */
unsigned focus_needs(const struct query_focus *focus, enum record_type of);
/* Is the row, which has passed the filter, in focus? */
bool focus_holds(const struct query_focus *focus, enum record_type of, struct query_row *row);

int query_add_events(struct query *q, struct err *e);
int query_add_functions(sqlite3 *db);

/* Rows that are summed up (summed.c). 'used': the columns that the query names, 1 << index. */
struct summed *summed_new(const struct column *columns, uint64_t used);
void summed_free(struct summed *t);                       /* NULL is fine */
bool summed_add(struct summed *t, struct query_row *row); /* false: there are too many groups */
/* Adds a part of a group that a source has summed up. */
bool summed_add_part(struct summed *t, const struct query_source *source, void *rows);
/* What a group is known by, whichever others there are. */
int64_t summed_id(const struct summed *t, size_t group);
/* Number of groups; a column of one of them. */
size_t summed_count(const struct summed *t);
void summed_column(const struct summed *t, size_t group, int column, struct column_value *out);

#endif
