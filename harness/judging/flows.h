/*
 * The flows of an attempt (diag/flow/flow.h), with the description of messages of the file system
 * that it was run on: of the table that was stored when it was measured, else of its logs, found
 * through the store and read together. Both give the same.
 *
 *     json_t *row = one of ROWS_TRACED;
 *     struct flow_sink sink = {.request = show, .ctx = &mine};
 *     flows_new(store, row, NULL, &sink, &flows, &e);
 *     flow_run(flows_flow(flows), &e);
 *     flow_counts(flows_flow(flows)) ...
 *     flows_free(flows);
 *
 * Clocks: start_ns, onset_ns and offset_ns of an attempt are on the orchestrator's clock; a node's
 * raw time minus flows_clock_ns(node) is as well, as exactly as the run measured it over SSH. The
 * intervals that messages give (flow_clock) are between nodes and much narrower.
 */
#ifndef CULPRIT_HARNESS_JUDGING_FLOWS_H
#define CULPRIT_HARNESS_JUDGING_FLOWS_H

#include "diag/flow/flow.h"
#include "harness/store/store.h"

struct flows;
struct stream;
struct flow_protocol;

/* 'row' is one of ROWS_TRACED, or writing_row's of one; 'fs_type' an adapter as fs_load takes it,
 * NULL: the one that the run recorded. 's', '*sink' and '*row' are borrowed until flows_free. Logs
 * are read if no table was stored, if it is another version's, if 'fs_type' is given, or if the
 * sink wants FUSE requests. -EINVAL: a corpus without the table, or a run that did not keep what
 * this takes. A log that is missing or no log is passed over (flows_trouble); if none is left, the
 * error is that of the first. */
int flows_new(struct store *s, const json_t *row, const char *fs_type, const struct flow_sink *sink,
	struct flows **out, struct err *e);
/* As flows_new, always of logs; 'opened' is called for each log's stream before it is read, with
 * its node's name: to add consumers (the stream's spec says whose log it is), and to ask for names
 * later. */
int flows_open(struct store *s, const json_t *row, const char *fs_type,
	const struct flow_sink *sink,
	void (*opened)(void *ctx, struct stream *stream, const char *node), void *ctx,
	struct flows **out, struct err *e);
void flows_free(struct flows *f);

struct flow *flows_flow(const struct flows *f);

/* The description of messages and layers; NULL: the file system has none, and there are no
 * requests. */
const struct flow_protocol *flows_protocol(const struct flows *f);

/* A node's clock minus the orchestrator's, by the run's own measurement. 'node' as in flow.h;
 * flow.h's nodes are servers, then clients, in the order of the description (places.h), without
 * those that have no log. */
int64_t flows_clock_ns(const struct flows *f, uint32_t node);
bool flows_is_server(const struct flows *f, uint32_t node);

/* A sentence for each log that is missing or that ended early, which says which log and where;
 * NULL: there is no i-th one. After flow_run. */
const char *flows_trouble(const struct flows *f, size_t i);

/* Were these logs of flows? false with a sentence that says what is missing: flow records, heads of
 * messages, a description. After flow_run. */
bool flows_complete(const struct flows *f, char *why, size_t size);

/* Reads the logs of an attempt (of what its flight recorder wrote, each) and stores the table of
 * its requests, inside the caller's transaction, instead of one that is there. 'row' needs attempt,
 * cell, number, start_ns, seconds and detail. An attempt whose logs are not whole logs of flows has
 * no table: that is no error. */
int flows_store(struct store *s, const json_t *row, struct err *e);

#endif
