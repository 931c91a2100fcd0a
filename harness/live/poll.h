/*
 * Polls a Prometheus server: each query begins one step before the last sample, so that late
 * samples are found; samples already taken are skipped. The newest step is queried one step
 * later, when all of its scrapes have arrived.
 */
#ifndef CULPRIT_HARNESS_LIVE_POLL_H
#define CULPRIT_HARNESS_LIVE_POLL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "diag/import/import.h"
#include "harness/base/err.h"

/* prometheus_query, or a replacement in tests. */
typedef int poll_query(void *ctx, double from_s, double to_s, const struct import_sink *sink,
	double *done_s, struct err *e);

struct poll {
	poll_query *query;
	void *ctx;
	struct import_sink sink;
	double step_s, history_s; /* history_s: range of the first query */
	/* Private; initialise with zeros. */
	bool begun;
	double done_s;
	struct poll_seen {
		int64_t last;  /* the newest step taken */
		uint64_t bits; /* bit k: step last - k was taken */
	} * seen;              /* by series */
	size_t room;
	uint64_t repeated;
};
void poll_clear(struct poll *p);

/* Fetches new samples at 'now_s' (the server's clock, approximately). Returns like
 * prometheus_query. */
int poll_once(struct poll *p, double now_s, struct err *e);

#endif
