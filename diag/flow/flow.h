/*
 * Flows: from the logs of all nodes of a cell to requests. One pass over all logs, merged by time;
 * what belongs together is bound, handed to a sink and forgotten.
 *
 *     struct flow_spec spec = {.protocol = protocol};
 *     struct flow_sink sink = {.request = show, .ctx = &mine};
 *     flow_new(&spec, &sink, &flow);
 *     stream_new("c1.fs.log", &stream_spec, &stream, &e);
 *     flow_add(flow, "c1", stream, &e);   (flow owns the stream)
 *     flow_run(flow, &e);
 *     flow_counts(flow), flow_clock(...), flow_depth(...)
 *     flow_free(flow);
 *
 * What is bound to what, and how (enum flow_how):
 *   - a receive to the sends whose bytes it took: exact, by stream position;
 *   - bytes to messages, messages of one id to a request: exact, by the file system's description
 *     (protocol.h) and the bytes that either end's calls began with;
 *   - a server's disk calls to a request: by thread (those that the thread which writes the answer
 *     began after the request had come and after its last answer; if the last of them moved all
 *     that the messages carry, none before it), else by content (the only one whose messages have
 *     the size of the data, of a request in flight that no other fits; known when all requests
 *     that came before its end have ended);
 *   - a request to the FUSE request that caused it: by thread (the thread that read it from
 *     /dev/fuse, or that takes an answer and goes on, sends it; or the thread that takes the answer
 *     writes the FUSE answer next; or a thread sends it that has read one FUSE request only and
 *     then answers that itself), else by content (size);
 *   - a FUSE request to the application's call: by thread (the call that the thread was inside of).
 * What is not bound is counted with its reason (enum flow_reason).
 *
 * Times are raw: each on the clock of its node, CLOCK_REALTIME in nanoseconds. Nothing is reordered
 * by them. A request carries the difference of the two clocks and how far it may be off.
 *
 * Memory is bounded by what is in flight, and by FLOW_LIMIT items in each queue for logs that are
 * torn or hostile: what falls out is counted.
 */
#ifndef CULPRIT_DIAG_FLOW_FLOW_H
#define CULPRIT_DIAG_FLOW_FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "harness/base/err.h"

struct stream;
struct flow_protocol;
struct flow;

enum flow_how {
	FLOW_UNBOUND,
	FLOW_EXACT,   /* by stream position and id */
	FLOW_THREAD,  /* by thread of execution */
	FLOW_CONTENT, /* by size, and since nothing else fits */
};

#define FLOW_NO_NODE UINT32_MAX

/* When and by whom: calls of one node. 'how' FLOW_UNBOUND: not seen, all else is 0. */
struct flow_span {
	int64_t begin_ns, end_ns; /* the first call's start, the last one's end */
	uint32_t node;
	uint32_t pid, tid; /* of the last call */
	uint16_t calls;    /* at most 65535 */
	uint8_t how;       /* enum flow_how */
};

/* A server's call on a file. */
struct flow_disk {
	int64_t begin_ns, end_ns;
	uint32_t pid, tid, nr; /* nr: as in record_call */
	uint8_t how;
	uint8_t class;  /* enum call_class; CALL_OTHER, CALL_OPEN ...: metadata */
	int64_t result; /* bytes, or negative errno */
	int64_t offset; /* -1: none */
	uint64_t device, inode;
};

/* A FUSE request, and the application's call around it. */
struct flow_fuse {
	uint64_t unique, nodeid;
	uint32_t device, opcode;
	int32_t error;
	bool ended;              /* else its end was not seen */
	struct flow_span kernel; /* from its beginning to its end; tid: the application's thread */
	struct flow_span daemon; /* from the read of /dev/fuse to the write of the answer */
	uint32_t requests;       /* caused so far */
	struct flow_span call;   /* of the application; how: FLOW_UNBOUND or FLOW_THREAD */
	uint32_t nr;             /* the call, as in record_call */
	int64_t offset, result;
	char thread[16];  /* name of the application's thread, as it calls itself; "": not known */
	const char *path; /* the call's file, as the application named it; NULL: not known */
};

/* Why something is missing or not bound; also an index into flow_counts' reasons. */
enum flow_reason {
	FLOW_NO_POSITION,    /* a send or receive on TCP without a stream position */
	FLOW_NO_DESCRIPTOR,  /* a call on a connection whose addresses are not known */
	FLOW_NO_HEADS,       /* a message whose header neither end's heads show */
	FLOW_NO_DESCRIPTION, /* the file system describes no messages */
	FLOW_PEER_UNSEEN,    /* the other end's calls are in no log */
	FLOW_BEFORE_ATTACH,  /* bytes that were sent before the other end's log began */
	FLOW_GAP,            /* the other end's log lacks calls that moved these bytes */
	FLOW_AFTER_END,      /* the other end's log ended before */
	FLOW_OUT_OF_STEP, /* message boundaries are unknown here (attached or lost in a message) */
	FLOW_BAD_HEADER,  /* the check value or the length is wrong */
	FLOW_ID_REUSED,   /* a call with the id of one without an answer */
	FLOW_NO_CALL,     /* an answer without a call */
	FLOW_NO_ANSWER,   /* a call without an answer until the end */
	FLOW_NOT_ANSWERING,  /* a disk call of a thread that answered no request after it */
	FLOW_BEFORE_REQUEST, /* a disk call that began before the request came */
	FLOW_SEVERAL_FIT,    /* by content, more than one fits */
	FLOW_NO_FUSE,        /* a request of the client without a FUSE request behind it */
	FLOW_NO_APPLICATION, /* a FUSE request outside of any call of a recorded thread */
	FLOW_OVER_LIMIT,     /* fell out of a full queue */
	FLOW_REASONS,
};

const char *flow_how_name(enum flow_how how);          /* "by thread" */
const char *flow_reason_name(enum flow_reason reason); /* "other end in no log" */

/* A request: one call message and its answer. Valid inside the sink's function. */
struct flow_request {
	uint64_t number;     /* 1, 2 ... in the order of completion */
	uint64_t id;         /* the protocol's */
	uint64_t connection; /* 1, 2 ...: a life of a connection; reconnects count anew */
	uint32_t program, procedure;
	const char *name;        /* of the procedure; NULL: it has none, or it is not known */
	uint32_t client, server; /* nodes, or FLOW_NO_NODE */
	uint64_t call_bytes, answer_bytes;
	uint32_t call_messages, answer_messages; /* data that follows a call counts, too */
	/* Legs: the client sends the call, the server receives it, sends and the client receives
	 * the answer. With several messages: the call's own, the last answer's. */
	struct flow_span sent, received, answered, returned;
	const struct flow_disk *disks; /* in the order in which they ended */
	size_t n_disks;
	const struct flow_fuse *fuse; /* NULL: none */
	uint8_t fuse_how;
	/* Who sent the first request of its chain (those that a thread sent, each when it had
	 * taken the answer to the one before), else its own sender. */
	uint32_t first_pid, first_tid;
	const char *first_thread; /* what that thread, or else its process, calls itself, or "" */
	/* The server's clock minus the client's lies within offset_ns +- width_ns / 2.
	 * width_ns < 0: nothing is known about it. */
	int64_t offset_ns, width_ns;
	bool doubtful;    /* the time there or back is less than half the width: it may be 0 */
	uint32_t reasons; /* 1 << enum flow_reason, ORed: why legs are missing */
};

/* The request's time by part, nanoseconds; -1: not known. 'there' and 'back' are corrected by
 * offset_ns, all others are differences on one clock. */
struct flow_parts {
	int64_t total;     /* client: from the call's send to the answer's receipt */
	int64_t there;     /* on the wire and in socket buffers, until the server has read it */
	int64_t waiting;   /* in the server, in no disk call */
	int64_t disk;      /* in disk calls; overlapping ones count once */
	int64_t answering; /* from the last disk call's end to the answer's send */
	int64_t back;      /* from the answer's send until the client has read it */
};

void flow_request_parts(const struct flow_request *r, struct flow_parts *out);

/* Each function may be NULL, and returns 0 or a negative errno, which ends flow_run. */
struct flow_sink {
	int (*request)(void *ctx, const struct flow_request *r, struct err *e);
	/* A FUSE request that ended, with or without requests; after its requests. Not of a table
	 * (table.h). */
	int (*fuse)(void *ctx, uint32_t node, const struct flow_fuse *u, struct err *e);
	/* A server's call on a file that no request took; 'how' is FLOW_UNBOUND. */
	int (*disk)(void *ctx, uint32_t node, const struct flow_disk *d, struct err *e);
	/* Asked now and then while logs are read, whatever they hold. */
	int (*look)(void *ctx, struct err *e);
	void *ctx;
};

enum { FLOW_LIMIT = 1 << 16 };

struct flow_spec {
	const struct flow_protocol *protocol; /* borrowed; NULL: wire only */
	size_t limit;                         /* of each queue; 0: FLOW_LIMIT */
	double drift_ppm; /* clocks of two nodes diverge by no more; 0: 500 (adjtimex's limit) */
	int64_t start_ns; /* flow_depth: second 0, on the first node's clock; 0: its first record */
	int32_t seconds;  /* flow_depth: so many at most; 0: 3600 */
};

/* '*spec' is copied, and so is '*sink'. */
void flow_new(const struct flow_spec *spec, const struct flow_sink *sink, struct flow **out);
void flow_free(struct flow *f);

/* Adds the log of a node, before flow_run; a node may have several (daemon, application), which
 * share its clock. 's' becomes flow's, even in case of errors. Its spec's clock_offset_ns only
 * helps to merge. -EINVAL: the log's architecture is not known. */
int flow_add(struct flow *f, const char *node, struct stream *s, struct err *e);

/* Reads all logs to their ends. A log that is damaged or cut short ends there and is counted; the
 * others continue. Errors: those of the sink. */
int flow_run(struct flow *f, struct err *e);

/* After flow_run, the logs that ended early: a sentence for each that says which and where; NULL:
 * there is no i-th one. */
const char *flow_cut(const struct flow *f, size_t i);

size_t flow_nodes(const struct flow *f);
const char *flow_node_name(const struct flow *f, uint32_t node);
/* Name of a system call there ("pwrite64"), or NULL. */
const char *flow_call_name(const struct flow *f, uint32_t node, uint32_t nr);

struct flow_counts {
	uint64_t records, logs_cut;
	uint64_t connections;
	uint64_t sends, receives; /* calls that moved bytes on TCP */
	uint64_t receives_bound;
	uint64_t sent_bytes, received_bytes, bound_bytes;
	uint64_t messages;
	uint64_t requests, requests_whole;              /* whole: with all four legs */
	uint64_t disk_calls, disk_thread, disk_content; /* data and syncs of servers */
	uint64_t meta_calls, meta_thread;               /* metadata of servers */
	uint64_t client_requests;                       /* sent by a node that has a FUSE daemon */
	uint64_t fuse_thread, fuse_content;             /* of client_requests */
	uint64_t fuse, fuse_in_call;                    /* FUSE requests; inside a known call */
	uint64_t overlaps;    /* calls whose positions overlapped those of another thread */
	uint64_t clock_steps; /* message edges that contradict the interval so far */
	uint64_t held_peak;   /* items held at once */
	uint64_t reasons[FLOW_REASONS];
};

const struct flow_counts *flow_counts(const struct flow *f);

/* The table of what was bound and of what was not, with reasons; lines end with a newline. */
void flow_print_counts(const struct flow *f, FILE *out);

/* Clock of node 'b' minus that of 'a', now (after flow_run: at the end), also over other nodes.
 * false: no messages went both ways. */
struct flow_clock {
	int64_t lowest_ns, highest_ns;
	int64_t narrowest_ns; /* the smallest width so far */
	uint32_t hops;        /* 1: directly */
};

bool flow_clock(const struct flow *f, uint32_t a, uint32_t b, struct flow_clock *out);

/* The same at any moment of a's clock, by all messages before and after it; also over other nodes.
 * After flow_run. Assumed: around a moment (the 8 windows of time before and behind it, of which
 * there are at most 128 over all of the logs, none shorter than a second) clocks diverge steadily;
 * where they do not, it is said. */
enum flow_doubt {
	FLOW_DOUBT_NONE,
	FLOW_DOUBT_RATE, /* no steady rate fits: by flow_spec.drift_ppm alone */
	FLOW_DOUBT_STEP, /* one of the clocks was set about then: from before, or from after */
};

struct flow_offset {
	int64_t lowest_ns, highest_ns;
	double least_ppm, most_ppm; /* what b gains on a; of one hop only, else 0 */
	enum flow_doubt doubt;      /* the worst of all hops */
	uint32_t hops;
};

bool flow_clock_at(
	const struct flow *f, uint32_t a, uint32_t b, int64_t at_ns, struct flow_offset *out);

/* Of all nodes against 'a': arrays of flow_nodes; known[b] false: no messages tell. */
void flow_clocks_at(
	const struct flow *f, uint32_t a, int64_t at_ns, struct flow_offset *out, bool *known);

/* When one of the two clocks was set, and by how much b's then went forward against a's, in the
 * order of a's times. */
struct flow_step {
	int64_t from_ns, to_ns; /* in between, on the clock of the one with the lower number */
	int64_t least_ns, most_ns;
	bool known; /* by how much */
};

/* Of two nodes that exchanged messages, a < b. '*out' is valid until flow_free. */
size_t flow_clock_steps(const struct flow *f, uint32_t a, uint32_t b, const struct flow_step **out);

/* Over a time on a's clock. */
struct flow_clock_summary {
	int64_t narrowest_ns,
		widest_ns;            /* of the intervals at moments in it; without doubtful ones */
	double least_ppm, most_ppm;   /* of b against a, over all of it */
	unsigned moments, rate, step; /* that were examined; those in doubt */
	uint32_t hops;                /* at most */
};
bool flow_clock_over(const struct flow *f, uint32_t a, uint32_t b, int64_t from_ns, int64_t to_ns,
	struct flow_clock_summary *out);

/* Requests in flight by layer, node and second. Layers are the protocol's (protocol.h). */
struct flow_depth {
	double average; /* in flight, averaged over the second */
	double entered; /* how many began in it */
};

size_t flow_layers(const struct flow *f);
const char *flow_layer_name(const struct flow *f, size_t layer);

/* A second of a layer on a node; zero outside. After flow_run. */
struct flow_depth flow_depth(const struct flow *f, size_t layer, uint32_t node, int32_t second);
int32_t flow_seconds(const struct flow *f); /* seconds that have values */

/* Over all seconds: time-average in flight, and seconds per entry. */
void flow_depth_total(
	const struct flow *f, size_t layer, uint32_t node, double *average, double *per_request_s);

#endif
