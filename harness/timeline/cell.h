/*
 * A cell of a run on a timeline: what its logs, its samplers and its store tell, as tracks, slices,
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
 *                          where the logs do not tell requests
 *            counters      requests in flight by layer; what the sampler read, in groups
 *
 * Arrows: application's call -> FUSE request -> request at the client -> request at the server ->
 * waiting and disk calls; and the answer from the server's request back to the client's.
 *
 * Times. The axis is the orchestrator's clock, on which the run knows when its phases began. The
 * nodes' clocks are compared by messages (flow_clock_at): one node, from which the others are known
 * best, is the reference; the others' raw times are moved by the middle of their interval at that
 * moment, and all by what the run measured over SSH for the reference. Moves follow the clocks'
 * drift, which is slow against time itself, so what happened on one node stays in order, but for a
 * clock that was set: that is told, and times about then are doubtful. What begins when the clocks
 * are in doubt, a request whose clocks were known to no better than it lasted, and one whose own
 * messages contradict the moves, are marked TIMELINE_DOUBTFUL; one whose time on the wire is that
 * uncertain says so in an argument. Notes name the reference, the moves, drift and widths.
 */
#ifndef CULPRIT_HARNESS_TIMELINE_CELL_H
#define CULPRIT_HARNESS_TIMELINE_CELL_H

#include "harness/store/store.h"
#include "harness/web/timeline/timeline.h"

struct cell_options {
	const char *file_system; /* an adapter; NULL: the one that the run recorded */
	/* What begins in [from, to) is shown, in seconds from the start of the cell's measurement;
	 * to_s 0: to the end. */
	double from_s, to_s;
	/* Above 0: only requests (and calls that belong to none) that took so long. */
	double slower_s;
	bool several; /* the timeline holds another cell as well: notes name this one */
};

enum { CELL_NODES = 64, CELL_MISSING = 1024 };

/* What was found. */
struct cell_found {
	int32_t track; /* of the cell */
	int32_t nodes[CELL_NODES];
	char *names[CELL_NODES];  /* owned */
	size_t n_nodes;           /* at most CELL_NODES of them */
	int64_t start_ns, end_ns; /* of the measurement, on the axis */
	uint64_t requests;
	char missing[CELL_MISSING]; /* one sentence on what the logs lack; "": nothing */
};
void cell_found_clear(struct cell_found *found);

/* The row (ROWS_TRACED) of cell 'number'; 0: of the first scored cell with a fault or, without
 * one, of the first scored, or the first. Of it what its flight recorder wrote, the recording-th
 * time, or the last (0), if anything. New reference. -ENOENT: there is none. */
int cell_choose(struct store *s, int64_t number, size_t recording, json_t **row, struct err *e);

/* "flow, cell 2: disk-hog on s3 under ddw"; the caller frees. */
char *cell_title(const struct store *s, const json_t *row);

/* Adds the cell to 't'. 'found' is cleared by the caller, in case of errors, too. A log that is cut
 * short is read as far as it goes, and said in 'missing'. Errors as flows_new. */
int cell_timeline(struct store *s, const json_t *row, const struct cell_options *o,
	struct timeline *t, struct cell_found *found, struct err *e);

#endif
