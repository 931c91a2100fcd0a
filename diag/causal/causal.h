/*
 * Turns logs of `culprit-agent trace --mode flow --causal` into an application trace: each call on
 * a file below the root, the processor time before it, and edges from the calls of other threads
 * that it knew of when it began. (Mesnier et al. 2007 find the edges by delays; here one run is
 * enough, because messages carry vector clocks of completed calls.)
 *
 * Messages are data of TCP connections, Unix sockets and pipes, the begin and end of processes and
 * threads (wait4, pthread_join), and wakes by futex inside a process. Not seen: shared memory, the
 * end of a stream (a read that returns 0), eventfd, signals, file locks, sendmmsg and recvmmsg on
 * Unix sockets. If several threads write to one pipe or Unix socket at the same moment, their
 * messages count in the order in which the calls ended.
 *
 * Logs of several nodes make one trace. A node's own log orders its events, and only TCP messages
 * order nodes: clocks give start times for display, never order.
 *
 * A log may be that of a launcher, such as a node's sshd, whose children are processes of the
 * command on that node and of other users. A process started by a launcher belongs to the
 * application if messages connect it with a process of the command: through parents and children
 * (except the launcher), and through the peers of its sockets and pipes. Others are left out.
 *
 * Each log is read twice, or three times if one of the logs is a launcher's. Edges cannot form a
 * cycle, since each leads back in time.
 */
#ifndef CULPRIT_DIAG_CAUSAL_CAUSAL_H
#define CULPRIT_DIAG_CAUSAL_CAUSAL_H

#include "diag/app/app.h"

/* The log of one tracer. */
struct causal_log {
	const char *path;
	const char *node; /* name of its node; logs of one node have the same name */
	/* On that node, absolute, without links; cwd: of the first process. */
	const char *root, *cwd;
	const char *address; /* IP address by which other nodes reach this one; or NULL */
	int64_t offset_ns;   /* the node's clock minus the trace's clock */
	bool launcher;       /* its first processes are launchers */
};

struct causal_spec {
	const struct causal_log *logs; /* the command's log first; ranks follow this order */
	size_t n_logs;
	const char *comment, *kernel;
	const uint8_t *salt; /* APP_SALT bytes: hash all names; or NULL */
	/* File size before the run, -1: it did not exist. NULL: all sizes are unknown and recorded
	 * as 0. */
	int64_t (*before)(void *ctx, const char *path);
	/* File size after the run. NULL: taken from this machine, below the first log's root. */
	int64_t (*after)(void *ctx, const char *path);
	void *ctx;
};

struct causal_counts {
	uint64_t calls, operations, edges;
	uint64_t messages; /* sends on sockets and pipes */
	/* receives whose sends were not found in time, so that their edges are missing */
	uint64_t forced;
	uint64_t lost; /* records that the tracer lost */
	uint64_t not_captured;
	uint32_t ranks;
	bool shared_memory;
	uint32_t sharing; /* ranks that share memory with other ranks ... */
	uint32_t alone;   /* ... and have no edge from or to another rank */
	uint32_t nodes;   /* nodes with ranks */
	uint32_t running; /* ranks that still ran when their tracer ended */
	/* A process on the first node has received, by TCP from the second, data whose sender is in
	 * no log, although the second node has one. NULL: no such data. */
	const char *outside[2];
};

/* Writes the trace 'out'. -ENODATA: no call on a file below the root; -EIO: a log lost records. */
int causal_make(const char *out, const struct causal_spec *spec, struct causal_counts *counts,
	struct err *e);

#endif
