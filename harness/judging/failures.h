/*
 * Calls of servers that failed, each with the request, the FUSE request and the application's call
 * behind it, as far as flows bind them (flows.h): written down as rows while an attempt is
 * followed.
 */
#ifndef CULPRIT_HARNESS_JUDGING_FAILURES_H
#define CULPRIT_HARNESS_JUDGING_FAILURES_H

#include <stdio.h>

#include "diag/flow/flow.h"
#include "diag/query/requests.h"

struct flows;

/* What a collector is told; all is borrowed. */
struct failures_spec {
	const struct flows *flows;
	const char *(*keep)(void *ctx, const char *text); /* a copy that outlives the rows */
	void *ctx;
	FILE *rows; /* gets struct failure_row, one behind the other */
};

struct failures;

struct failures *failures_new(const struct failures_spec *spec);
void failures_free(struct failures *f); /* NULL is fine */

/* As in struct flow_sink. */
int failures_request(struct failures *f, const struct flow_request *r, struct err *e);
int failures_disk(struct failures *f, uint32_t node, const struct flow_disk *d, struct err *e);

/* After the last one: writes what is left. '*n': how many rows there are. */
int failures_end(struct failures *f, uint64_t *n, struct err *e);

#endif
