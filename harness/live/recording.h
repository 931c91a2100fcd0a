/*
 * Records all servers and clients of a cluster, controlled by orders (orders.h):
 *
 *     recording_run(&options, &written, &e)
 *
 * Agents are deployed and guarded as in a run: whenever this process ends, the tracers on the nodes
 * detach and are removed. 'folder' becomes a run's store, with one cell for each time that logs
 * were written: cells/0001.1/NODE.fs.trace of the file system's processes, and NODE.app.trace of
 * applications. All readers of a run's traces can read them.
 *
 * Orders:
 *   write [REASON]    writes the tracers' current records as a cell (with ring_s)
 *   on, off, filter WORDS   on all nodes, see diag/capture/choice.h
 *   status            prints the state
 *   stop              ends the capture, like a signal
 * If an order was not carried out, its answer begins with "refused: " (the order is invalid, and
 * no node was changed) or "failed: " (nodes may differ now; each log states what it contains).
 *
 * A lost node ends the recording; the logs of the other nodes are fetched.
 */
#ifndef CULPRIT_HARNESS_LIVE_RECORDING_H
#define CULPRIT_HARNESS_LIVE_RECORDING_H

#include <jansson.h>
#include <signal.h>
#include <stdbool.h>

#include "harness/base/err.h"

struct recording_options {
	const char *inventory, *folder; /* the folder is made; -EEXIST */
	const json_t *tracing;          /* arguments of trace.start, except pids, out and control */
	const char *const *applications; /* programs to trace on clients as well */
	size_t n_applications;
	const char *trigger; /* a file (trigger.h), for ring_s; NULL: none */
	/* Fetches logs while they are written, into cells/0001.1, which readers find from the
	 * start; needs bound_bytes in 'tracing', and no ring_s. */
	bool live;
	double bandwidth; /* live: bytes per second of each log; 0: no limit */
	double for_s;     /* duration; 0: no limit */
	const volatile sig_atomic_t *interrupted; /* of signals_catch */
	void (*tell)(const char *sentence);
};

/* Runs until a signal, for_s, "stop" or the loss of a node. '*cells' receives the number of cells
 * written, also on error. */
int recording_run(const struct recording_options *o, size_t *cells, struct err *e);

#endif
