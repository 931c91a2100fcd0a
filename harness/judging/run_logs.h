/*
 * The recorded logs of a run, for queries: each with its node, its place in the cluster, its
 * attempt and the fault's times; and the run's own tables in the form that queries see.
 */
#ifndef CULPRIT_HARNESS_JUDGING_RUN_LOGS_H
#define CULPRIT_HARNESS_JUDGING_RUN_LOGS_H

#include "diag/query/query.h"
#include "harness/store/store.h"

struct run_logs;

/* The logs of all attempts, or of one cell ('cell' 0: all), including writings of flight
 * recorders; 'recording' above 0: only the recording-th writing of each. Attempts without logs
 * are skipped. -EINVAL: the cell does not exist. -ENODATA: there are no logs, or it is a corpus,
 * which never has any. */
int run_logs_new(
	struct store *s, int64_t cell, size_t recording, struct run_logs **out, struct err *e);
void run_logs_free(struct run_logs *r); /* NULL is fine */

/* Sorted by attempt, then by file; valid as long as 'r'. */
const struct query_log *run_logs_list(const struct run_logs *r, size_t *n);

struct run_logs_table;

/* The rows of one of run_logs_tables, without the secret that blinds detectors. They are copied,
 * so that run.db is not locked during a query. New reference. */
int run_logs_rows(struct store *s, const struct run_logs_table *t, json_t **rows, struct err *e);

/* Their columns, ended by an entry without a name. */
struct run_logs_table {
	const char *name, *of, *about;
	const char *columns[16];
};
extern const struct run_logs_table run_logs_tables[];

#endif
