/*
 * A capture on all servers and clients of a cluster, told what to do while it runs (orders.h):
 *
 *     recording_run(&options, &written, &e)
 *
 * Agents are deployed and guarded as in a run: when this process ends in whatever way, the tracers
 * on the nodes detach and are removed. 'folder' becomes a run's store, with one cell for each time
 * that logs were written: cells/0001.1/NODE.fs.trace of the file system's processes, and
 * NODE.app.trace of applications. Everything that reads a run's traces reads them.
 *
 * Orders:
 *   write [REASON]    what the tracers keep now becomes a cell (with ring_s)
 *   on, off, filter WORDS   as diag/capture/choice.h has them, on all nodes
 *   status            how it goes
 *   stop              as a signal does
 * An answer begins with "refused: " (the order is wrong; nothing was done) or "failed: " (nodes may
 * differ now; each log says what it has) if it was not done.
 *
 * A node that is lost ends it; what the others have is fetched.
 */
#ifndef CULPRIT_HARNESS_LIVE_RECORDING_H
#define CULPRIT_HARNESS_LIVE_RECORDING_H

#include <jansson.h>
#include <signal.h>
#include <stdbool.h>

#include "harness/base/err.h"

struct recording_options {
	const char *inventory, *folder; /* the folder is made; -EEXIST */
	const json_t *tracing; /* arguments of trace.start, but for pids, out and control */
	const char *const *applications; /* programs on clients that are traced, too */
	size_t n_applications;
	const char *trigger; /* a file (trigger.h), for ring_s; NULL: none */
	/* Logs come while they are written, into cells/0001.1, which readers find from the start;
	 * needs bound_bytes in 'tracing', and no ring_s. */
	bool live;
	double bandwidth;                         /* live: bytes a second of each log; 0: any */
	double for_s;                             /* ends after so long; 0: not by itself */
	const volatile sig_atomic_t *interrupted; /* of signals_catch */
	void (*tell)(const char *sentence);
};

/* Runs until a signal, for_s, "stop" or the loss of a node. '*cells' gets how many cells were
 * written, in case of errors as well. */
int recording_run(const struct recording_options *o, size_t *cells, struct err *e);

#endif
