/*
 * The application's progress in each cell, during the fault against before it, and what the fault
 * costs it against controls (diag/judge/impact.h).
 *
 * Two measures of a cell:
 *   throughput   bytes of payload that arrived in a second, at servers from clients and at clients
 *                from servers (metrics tcp_received_bytes, client_tcp_received_bytes): what the
 *                application wrote and read, without retransmissions. A workload's own figures are
 *                of a whole cell, and a pass may outlast it.
 *   latency      mean time of a request that began in the span, from the client's send to its
 *                receipt of the answer; only where the store has requests (flows_store).
 *
 * Its ratio: the value during the fault (onset to offset) over the value before it. The time before
 * begins when the workload is under way: after the first second in which a tenth of the busiest
 * second before the onset was moved (programs start one after the other, on several clients). For
 * throughput only whole seconds count, and only those with a reading: a second in which the fault
 * began or ended belongs to neither. A control has no fault; its onset and offset are the medians
 * of the cells that have one.
 *
 * Unknown is a cell or a control without a whole second with a reading both before the onset, under
 * way, and during the fault; or in which nothing was moved any more from the last second of the
 * fault to the end of the record, since its workload may have ended (as one that a fault stops for
 * good).
 *
 * Throughput below a hundredth of that before counts as a hundredth: the logarithm of a stop would
 * outweigh all other cells. Requests that were never answered are in no latency.
 */
#ifndef CULPRIT_HARNESS_JUDGING_APPLICATION_H
#define CULPRIT_HARNESS_JUDGING_APPLICATION_H

#include "diag/judge/impact.h"
#include "harness/judging/scoring.h"

/* Of the confirmed, scored cells in the range. A run without faults, controls or readings is no
 * error: all its impacts are unknown. The caller frees '*out'. */
int application_impacts(
	struct store *s, struct cell_range cells, struct impacts **out, struct err *e);

#endif
