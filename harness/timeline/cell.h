/*
 * A cell of a run on a timeline: its logs, samples and store as tracks, slices,
 * arrows, counters and marks of a builder (harness/web/timeline/timeline.h).
 *
 * Tracks. The cell is a track of kind cluster, with a node for each server, then for each client:
 *
 *   server   requests      from the call's receipt to the answer's send
 *            waiting       of that, until the first disk call begins
 *            disk calls    process > thread: calls on files below the storage
 *   client   application   process > thread: calls on the mount, or that caused FUSE requests
 *            FUSE          requests of the kernel's FUSE client
 *            requests      to each server: from the call's send to the answer's receipt, with its
 *                          parts (flow.h) as arguments
 *   both     messages      process > thread: calls on connections between servers and clients; only
 *                          if the logs show no requests
 *            counters      requests in flight by layer; the sampler's readings, in groups
 *
 * Arrows: application's call -> FUSE request -> request at the client -> request at the server ->
 * waiting and disk calls; and the answer from the server's request back to the client's.
 *
 * Times. The axis is the orchestrator's clock, on which the run knows the starts of its phases.
 * The nodes' clocks are compared through messages (flow_clock_at). The node from which the others
 * are known best is the reference. The others' raw times are shifted by the middle of their
 * interval at that moment, and all by the run's SSH measurement of the reference. Shifts follow
 * the clocks' slow drift, so events of one node stay in order, unless a clock was set: that is
 * reported, and times around that moment are doubtful. TIMELINE_DOUBTFUL marks: events that begin
 * while the clocks are in doubt, requests whose clock uncertainty exceeds their duration, and
 * requests whose own messages contradict the shifts. A request whose time on the wire is that
 * uncertain has an argument that says so. Notes give the reference, the shifts, drift and widths.
 */
#ifndef CULPRIT_HARNESS_TIMELINE_CELL_H
#define CULPRIT_HARNESS_TIMELINE_CELL_H

#include "harness/store/store.h"
#include "harness/web/timeline/timeline.h"

struct cell_options {
	const char *file_system; /* an adapter; NULL: the recorded one */
	/* Shows events that begin in [from, to), in seconds from the start of the cell's
	 * measurement; to_s 0: to the end. */
	double from_s, to_s;
	/* Above 0: only requests (and calls without a request) of at least this duration. */
	double slower_s;
	bool several; /* the timeline also has another cell: notes name this one */
};

enum { CELL_NODES = 64, CELL_MISSING = 1024 };

/* The result. */
struct cell_found {
	int32_t track; /* track of the cell */
	int32_t nodes[CELL_NODES];
	char *names[CELL_NODES];  /* owned */
	size_t n_nodes;           /* at most CELL_NODES of them */
	int64_t start_ns, end_ns; /* range of the measurement, on the axis */
	uint64_t requests;
	char missing[CELL_MISSING]; /* a sentence about missing data; "": none */
};
void cell_found_clear(struct cell_found *found);

/* The row (ROWS_TRACED) of cell 'number'; 0: of the first scored cell with a fault, otherwise of
 * the first scored cell, otherwise of the first cell. If its flight recorder wrote, the row of
 * the recording-th writing, or of the last (0). New reference. -ENOENT: no such row. */
int cell_choose(struct store *s, int64_t number, size_t recording, json_t **row, struct err *e);

/* "flow, cell 2: disk-hog on s3 under ddw"; the caller frees. */
char *cell_title(const struct store *s, const json_t *row);

/* Adds the cell to 't'. The caller clears 'found', even on error. A truncated log is read to its
 * end, and 'missing' says so. Errors as for flows_new. */
int cell_timeline(struct store *s, const json_t *row, const struct cell_options *o,
	struct timeline *t, struct cell_found *found, struct err *e);

#endif
