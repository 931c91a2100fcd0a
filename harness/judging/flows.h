/*
 * The flows of an attempt (diag/flow/flow.h), with the file system's description of messages: from
 * the table that was stored when the attempt was measured, otherwise from its logs, found through
 * the store and read together. Both give the same.
 *
 *     json_t *row = one of ROWS_TRACED;
 *     struct flow_sink sink = {.request = show, .ctx = &mine};
 *     flows_new(store, row, NULL, &sink, &flows, &e);
 *     flow_run(flows_flow(flows), &e);
 *     flow_counts(flows_flow(flows)) ...
 *     flows_free(flows);
 *
 * Clocks: start_ns, onset_ns and offset_ns of an attempt are on the orchestrator's clock. A
 * node's raw time minus flows_clock_ns(node) is also on it, with the accuracy of the run's
 * measurement over SSH. The intervals from messages (flow_clock) are between nodes and much
 * narrower.
 */
#ifndef CULPRIT_HARNESS_JUDGING_FLOWS_H
#define CULPRIT_HARNESS_JUDGING_FLOWS_H

#include "diag/flow/flow.h"
#include "harness/store/store.h"

struct flows;
struct stream;
struct flow_protocol;

/* 'row' is one of ROWS_TRACED, or a writing_row of one. 'fs_type' is an adapter as for fs_load;
 * NULL: the recorded one. 's', '*sink' and '*row' are borrowed until flows_free. Logs are read if
 * no table was stored, if it is another version's, if 'fs_type' is given, or if the sink wants FUSE
 * requests. -EINVAL: a corpus without the table, or a run without the required data. A log that is
 * missing or invalid is skipped (flows_trouble); if all are, the error is that of the first. */
int flows_new(struct store *s, const json_t *row, const char *fs_type, const struct flow_sink *sink,
	struct flows **out, struct err *e);
/* Like flows_new, but always reads logs; calls 'opened' with the node's name for each log's stream
 * before it is read: to add consumers (the stream's spec names the log's owner) and to look up
 * names later. */
int flows_open(struct store *s, const json_t *row, const char *fs_type,
	const struct flow_sink *sink,
	void (*opened)(void *ctx, struct stream *stream, const char *node), void *ctx,
	struct flows **out, struct err *e);
void flows_free(struct flows *f);

struct flow *flows_flow(const struct flows *f);

/* The description of messages and layers; NULL: the file system has none, so there are no
 * requests. */
const struct flow_protocol *flows_protocol(const struct flows *f);

/* A node's clock minus the orchestrator's, as measured by the run. 'node' as in flow.h, whose
 * nodes are servers, then clients, in the order of the description (places.h), without those that
 * have no log. */
int64_t flows_clock_ns(const struct flows *f, uint32_t node);
bool flows_is_server(const struct flows *f, uint32_t node);

/* The i-th sentence about a log that is missing or ended early, with its name and place; NULL: no
 * further one. Call after flow_run. */
const char *flows_trouble(const struct flows *f, size_t i);

/* Were these flow logs? If not, returns false with a sentence about what is missing: flow
 * records, heads of messages, or a description. Call after flow_run. */
bool flows_complete(const struct flows *f, char *why, size_t size);

/* Reads the logs of an attempt (of what its flight recorder wrote, each) and stores the table of
 * its requests, inside the caller's transaction, instead of one that is there. 'row' needs attempt,
 * cell, number, start_ns, seconds and detail. An attempt whose logs are not whole logs of flows has
 * no table: that is no error. */
int flows_store(struct store *s, const json_t *row, struct err *e);

#endif
