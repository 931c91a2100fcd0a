/* Internals of run_requests: following attempts, and the source of the results. */
#ifndef CULPRIT_HARNESS_JUDGING_RUN_REQUESTS_IMPL_H
#define CULPRIT_HARNESS_JUDGING_RUN_REQUESTS_IMPL_H

#include <pthread.h>
#include <stdio.h>

#include "harness/judging/run_requests.h"

enum kind { REQUESTS, FAILURES, KINDS };

/* An attempt, or one writing of its flight recorder, and, once followed, its rows. */
struct followed {
	json_t *row;
	struct query_log log;
	bool is_known;     /* it has already been followed */
	FILE *rows[KINDS]; /* consecutive struct request_row, struct failure_row */
	uint64_t n[KINDS];
	char *without;
	char **troubles;
	size_t n_troubles;
};

struct run_requests {
	char *folder;
	struct followed *v;
	size_t n;
	pthread_mutex_t lock; /* held while an attempt is followed */
	void *texts;          /* tsearch: each text once; rows point to them */
	struct query_source source;
};

/* Follows the i-th attempt, once; thread-safe. 'ask' (may be NULL) can stop it. */
int run_requests_follow(
	struct run_requests *r, size_t i, const struct query_ask *ask, struct err *e);

/* Copies the k-th row of a followed attempt to 'out'. */
int run_requests_row(
	const struct followed *a, enum kind kind, uint64_t k, void *out, struct err *e);

/* Fills r->source. */
void run_requests_be_source(struct run_requests *r);

#endif
