/* The requests of a run's attempts as logs that are shipped. */
#ifndef CULPRIT_HARNESS_CLI_SHIP_REQUESTS_H
#define CULPRIT_HARNESS_CLI_SHIP_REQUESTS_H

#include "diag/ship/ship.h"
#include "harness/judging/run_logs.h"
#include "harness/judging/run_requests.h"

/* Sends the requests of the i-th attempt; a block is one request. '*none': its logs do not tell
 * them; nothing was sent. */
int ship_requests(struct run_requests *r, size_t i, const struct run_logs *logs,
	const struct ship_spec *spec, const struct ship_sink *sink, struct ship_counts *counts,
	bool *none, struct err *e);

#endif
