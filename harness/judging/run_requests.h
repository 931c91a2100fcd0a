/*
 * The tables 'requests' and 'failures' of a run. Its attempts' flows (flows.h), stored or of logs,
 * are followed when a query uses one of the tables (diag/query/source.h). The results are kept for
 * later queries, in unnamed temporary files. Several threads may query at the same time.
 */
#ifndef CULPRIT_HARNESS_JUDGING_RUN_REQUESTS_H
#define CULPRIT_HARNESS_JUDGING_RUN_REQUESTS_H

#include <signal.h>

#include "diag/query/requests.h"
#include "diag/query/source.h"
#include "harness/store/store.h"

struct run_requests;

/* For all confirmed attempts, or those of one cell. Each writing of a flight recorder counts like
 * an attempt; 'recording' above 0: only the recording-th writings. Reads 'run.db' now; the store
 * may be closed afterwards. */
int run_requests_new(
	struct store *s, int64_t cell, size_t recording, struct run_requests **out, struct err *e);
void run_requests_free(struct run_requests *r); /* NULL is fine */

/* The attempts in order, each as a log of its requests: 'name' is the attempt's folder. */
size_t run_requests_count(const struct run_requests *r);
const struct query_log *run_requests_log(const struct run_requests *r, size_t i);

/* Calls 'fn' for each request of the i-th attempt, until it returns non-zero. An attempt without
 * flow logs has no requests. For read errors see run_requests_trouble. */
typedef int (*run_requests_fn)(void *ctx, const struct request_row *row, struct err *e);
int run_requests_each(
	struct run_requests *r, size_t i, run_requests_fn fn, void *ctx, struct err *e);

/* After run_requests_each: why the logs of the i-th attempt show no requests; NULL: they do. */
const char *run_requests_without(const struct run_requests *r, size_t i);

/* After run_requests_each: the k-th sentence about a read error in the i-th attempt; NULL: no
 * further one. */
const char *run_requests_trouble(const struct run_requests *r, size_t i, size_t k);

/* In a run without flow logs, queries of these tables end with -ENODATA. */
const struct query_source *run_requests_source(const struct run_requests *r);

#endif
