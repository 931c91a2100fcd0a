/*
 * All tables of a run for queries: the logs of its attempts, its own tables (cells, attempts
 * ...), and tables derived from all logs of an attempt (requests, failures). Read once; then any
 * number of queries may follow, from any thread.
 */
#ifndef CULPRIT_HARNESS_JUDGING_RUN_TABLES_H
#define CULPRIT_HARNESS_JUDGING_RUN_TABLES_H

#include "harness/judging/run_logs.h"
#include "harness/judging/run_requests.h"

struct run_tables;

struct run_tables_spec {
	int64_t cell;      /* 0: all */
	size_t recording;  /* as for run_logs_new */
	bool may_be_empty; /* no error if no attempt has logs yet */
	bool only_tables;  /* no error if the run never has logs, except for queries of records */
	const json_t *verdicts; /* from judge_all, instead of the store's; or NULL */
};

/* The run's verdicts scored as right or wrong, by cell, detector and metric. */
extern const struct run_logs_table run_tables_scores;

/* Reads 'run.db'; the store may be closed afterwards. Errors as run_logs_new. */
int run_tables_new(struct store *s, const struct run_tables_spec *spec, struct run_tables **out,
	struct err *e);
void run_tables_free(struct run_tables *t); /* NULL is fine */

const struct query_log *run_tables_logs(const struct run_tables *t, size_t *n);

/* The rows of run_logs_tables[i]; borrowed. */
const json_t *run_tables_rows(const struct run_tables *t, size_t i);

/* A query of all tables; '*spec' has the caller's other wishes. 't' must outlive the query. */
int run_tables_query(
	struct run_tables *t, const struct query_spec *spec, struct query **q, struct err *e);

#endif
