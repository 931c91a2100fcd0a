/*
 * The tables 'requests' and 'failures' of a run: its attempts' flows (flows.h), stored or of logs,
 * followed when one of the tables is asked (diag/query/source.h). What was found of an attempt is
 * kept for the next question, in files without names. Threads may ask at the same time.
 */
#ifndef CULPRIT_HARNESS_JUDGING_RUN_REQUESTS_H
#define CULPRIT_HARNESS_JUDGING_RUN_REQUESTS_H

#include <signal.h>

#include "diag/query/requests.h"
#include "diag/query/source.h"
#include "harness/store/store.h"

struct run_requests;

/* Of all confirmed attempts, or of those of one cell. Where a flight recorder wrote the logs, each
 * writing counts like an attempt; 'recording' above 0: only what these wrote the recording-th time.
 * Reads 'run.db' now; the store may be closed afterwards. */
int run_requests_new(
	struct store *s, int64_t cell, size_t recording, struct run_requests **out, struct err *e);
void run_requests_free(struct run_requests *r); /* NULL is fine */

/* The attempts in their order, each as a log of its requests: 'name' is the attempt's folder. */
size_t run_requests_count(const struct run_requests *r);
const struct query_log *run_requests_log(const struct run_requests *r, size_t i);

/* Calls 'fn' for each request of the i-th attempt, until it returns other than 0. An attempt
 * without logs of flows has none. What could not be read: run_requests_trouble. */
typedef int (*run_requests_fn)(void *ctx, const struct request_row *row, struct err *e);
int run_requests_each(
	struct run_requests *r, size_t i, run_requests_fn fn, void *ctx, struct err *e);

/* After run_requests_each: why the logs of the i-th attempt do not tell its requests; NULL: they
 * do. */
const char *run_requests_without(const struct run_requests *r, size_t i);

/* After run_requests_each: the k-th sentence on what could not be read of the i-th attempt; NULL:
 * there is none. */
const char *run_requests_trouble(const struct run_requests *r, size_t i, size_t k);

/* Asked of a run without any logs of flows, its tables end with -ENODATA. */
const struct query_source *run_requests_source(const struct run_requests *r);

#endif
