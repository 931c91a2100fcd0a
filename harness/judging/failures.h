/*
 * Failed calls of servers, each with the request, the FUSE request and the application's call
 * behind it, as far as flows link them (flows.h). Written as rows while an attempt is followed.
 */
#ifndef CULPRIT_HARNESS_JUDGING_FAILURES_H
#define CULPRIT_HARNESS_JUDGING_FAILURES_H

#include <stdio.h>

#include "diag/flow/flow.h"
#include "diag/query/requests.h"

struct flows;

/* Input of a collector; all pointers are borrowed. */
struct failures_spec {
	const struct flows *flows;
	const char *(*keep)(void *ctx, const char *text); /* a copy that outlives the rows */
	void *ctx;
	FILE *rows; /* receives consecutive struct failure_row */
};

struct failures;

struct failures *failures_new(const struct failures_spec *spec);
void failures_free(struct failures *f); /* NULL is fine */

/* Callbacks of struct flow_sink. */
int failures_request(struct failures *f, const struct flow_request *r, struct err *e);
int failures_disk(struct failures *f, uint32_t node, const struct flow_disk *d, struct err *e);

/* Call after the last one: writes the remaining rows. '*n': number of rows. */
int failures_end(struct failures *f, uint64_t *n, struct err *e);

#endif
