/*
 * A Prometheus server, asked again and again: each query begins a step before the last sample, so
 * that late samples are found; those that were taken before are left out. The newest step is asked
 * for one step later, when all scrapes of it have arrived.
 */
#ifndef CULPRIT_HARNESS_LIVE_POLL_H
#define CULPRIT_HARNESS_LIVE_POLL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "diag/import/import.h"
#include "harness/base/err.h"

/* prometheus_query, or a test's. */
typedef int poll_query(void *ctx, double from_s, double to_s, const struct import_sink *sink,
	double *done_s, struct err *e);

struct poll {
	poll_query *query;
	void *ctx;
	struct import_sink sink;
	double step_s, history_s; /* the first query reaches so far back */
	/* Private; zero at first. */
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

/* Takes in what is new at 'now_s' (of the server's clock, about). As prometheus_query. */
int poll_once(struct poll *p, double now_s, struct err *e);

#endif
