/*
 * From a log of `culprit-agent trace --mode flow --causal` to an application trace: every call on a
 * file below the root, with the processor time before it, and edges from what it knew of others
 * when it began (Mesnier et al. 2007 find them by delays; these are found in one run, by vector
 * clocks of completed calls that are carried along messages).
 *
 * Messages are what TCP and Unix sockets and pipes carry, the begin and end of processes and
 * threads (wait4, pthread_join), and wakes by futex inside a process. Not seen: shared memory, end
 * of a stream (a read that returns 0), eventfd, signals, locks of files, sendmmsg and recvmmsg on
 * Unix sockets. When several threads write to one pipe or Unix socket at the same moment, their
 * messages count in the order in which the calls ended.
 *
 * Logs of several nodes make one trace. What happens on a node is ordered by its own log, and nodes
 * by messages on TCP alone: their clocks only say when a call was made, for people.
 *
 * A log may be that of a launcher, such as a node's sshd, whose children start what the command
 * wants on that node, and what others want as well. A process that such a launcher started belongs
 * to the application if messages lead from it to a process of the command: its parents and children
 * (but for the launcher), and who sends to whom on sockets and pipes. All others are left out.
 *
 * Logs are read twice; three times if one is a launcher's. No edge can close a cycle, since each
 * leads back in time.
 */
#ifndef CULPRIT_DIAG_CAUSAL_CAUSAL_H
#define CULPRIT_DIAG_CAUSAL_CAUSAL_H

#include "diag/app/app.h"

/* What one tracer wrote. */
struct causal_log {
	const char *path;
	const char *node;       /* name of its node: logs of one node have the same */
	const char *root, *cwd; /* there, absolute, without links; cwd: of the first process */
	const char *address;    /* IP address by which other nodes reach this one; or NULL */
	int64_t offset_ns;      /* the node's clock minus that of the trace */
	bool launcher;          /* the processes that it begins with are launchers */
};

struct causal_spec {
	const struct causal_log *logs; /* the command's first; ranks are in this order */
	size_t n_logs;
	const char *comment, *kernel;
	const uint8_t *salt; /* APP_SALT bytes: names are hashed; or NULL */
	/* Size of a file before, -1: it was not there; NULL: nothing is known, 0. */
	int64_t (*before)(void *ctx, const char *path);
	/* So, afterwards; NULL: it is looked for below the first log's root, here. */
	int64_t (*after)(void *ctx, const char *path);
	void *ctx;
};

struct causal_counts {
	uint64_t calls, operations, edges;
	uint64_t messages; /* calls that sent on sockets and pipes */
	uint64_t forced; /* receives whose sends were not found in time: their edges are missing */
	uint64_t lost;   /* records, by the tracer */
	uint64_t not_captured;
	uint32_t ranks;
	bool shared_memory;
	uint32_t sharing; /* ranks that share memory with others ... */
	uint32_t alone;   /* ... of which no edge leads from or to another rank */
	uint32_t nodes;   /* on which ranks are */
	uint32_t running; /* ranks that continued when their tracer ended */
	/* Nodes: a process on the first has received, by TCP, what nobody in any log has sent, from
	 * the second, which has a log. NULL: that did not happen. */
	const char *outside[2];
};

/* Writes the trace 'out'. -ENODATA: no call on a file below the root; -EIO: a log lost records. */
int causal_make(const char *out, const struct causal_spec *spec, struct causal_counts *counts,
	struct err *e);

#endif
