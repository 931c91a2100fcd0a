/*
 * Where the time of requests went: requests of one attempt (diag/flow/flow.h), by phase, server and
 * part, and what the fault added to them.
 *
 *     slow_new(&spec, &slow);
 *     struct flow_sink sink = slow_sink(slow);      (then flow_run)
 *     slow_done(slow, flow, clocks);
 *     slow_text(slow, ...), slow_json(slow)
 *     slow_free(slow);
 *
 * A request's time is the client's: from the send of the call to the receipt of the answer. Its
 * parts (struct flow_parts) add up to it. A request belongs to the phase in which it began, by its
 * server's clock; its time to the phases in which it was spent.
 *
 * Which server stands out, and by which layer. Layers are the parts but for 'queue'; each moment in
 * which a server has requests is the deepest layer's that one is in: disk, waiting, answering,
 * there, back. What waits further up, waits for that.
 *
 * 1. Demand. A layer's demand is the time that it was busy over the work done in the meantime (the
 *    service demand law, Denning and Buzen 1978). The work of a request is what requests of its
 *    procedure spent in the layer on average before the fault, on any server, spread evenly over
 *    the time that the request took. So neither more requests at once, which wait for each other,
 *    nor fewer make a server slow.
 * 2. Change. The logarithm of the demand during the fault over that before it, less the median of
 *    the peers' (differences in differences); less nothing where the peers became faster.
 * 3. Dispersion. The variance of each mean of seconds, times the integrated autocorrelation time of
 *    the layer's seconds (all servers, both phases): seconds that depend on each other count as
 *    fewer. It is pooled over the peers and both phases, since peers may have little to do while
 *    all wait for a slow server; a server's own counts where it is larger. And times the
 *    factor, if above 1, by which servers differ more than that (Cochran's Q over its degrees of
 *    freedom; Higgins and Thompson 2002) where the fault has no part in it: the peers' changes, all
 *    servers from the first half of the phase before to the second, the peers' halves during.
 * 4. Test. Student's t with Welch's and Satterthwaite's degrees of freedom, one-sided, at 5 % for
 *    all servers and layers together: Bonferroni's correction for servers; all layers as one have a
 *    sixth of the level (they are one of six), and each by itself its share of all time before the
 *    fault of the rest. (A layer that was almost idle before cannot be compared; the whole server
 *    can.) Fewer than half of the servers may differ; the most for which the last one still does
 *    (Rosner 1983).
 * 5. Share. A server's excess is the busy time during the fault beyond what the same work would
 *    have taken with its peers' change, of all its layers. Named are those that pass the test in
 *    their layer with most excess, or as a whole, and have an equal part of all servers' excess at
 *    least, and only if they have more than half of it together.
 *
 * The level is the customary one; the rule has no other constant: "most" is more than half, "an
 * equal part" is 1/n. Assumed: the workload's procedures occurred before the fault, with the same
 * sizes on average; fewer than half of the servers are slow; a server that wanders over longer than
 * seconds does so within a phase, too; and what hits all servers hits them alike. A layer that was
 * never busy before cannot be compared; neither can one with fewer than two independent seconds in
 * a phase, but as a peer.
 *
 * The part is named only if most requests that must have a disk call have one bound to them: what
 * is not bound would count as waiting in the server.
 *
 * Memory: 56 bytes a request, 16 a disk call.
 */
#ifndef CULPRIT_DIAG_SLOW_SLOW_H
#define CULPRIT_DIAG_SLOW_SLOW_H

#include <jansson.h>
#include <stdio.h>

#include "diag/flow/flow.h"

enum slow_phase { SLOW_BEFORE, SLOW_DURING, SLOW_AFTER, SLOW_PHASES };
/* The parts of struct flow_parts, where 'waiting' is split: SLOW_QUEUE is the time in which a disk
 * call of another request of the server was under way. */
enum slow_part {
	SLOW_THERE,
	SLOW_WAITING,
	SLOW_QUEUE,
	SLOW_DISK,
	SLOW_ANSWERING,
	SLOW_BACK,
	SLOW_PARTS
};

const char *slow_phase_name(enum slow_phase p); /* "before" */
const char *slow_part_name(enum slow_part p);   /* "there", as the tables' columns are called */
const char *slow_part_words(enum slow_part p);  /* "in its disk" */

struct slow_spec {
	/* Of the attempt, on the clock that slow_done's offsets are against. onset 0: there was no
	 * fault, and all is "before". offset 0: it lasted until the end. */
	int64_t start_ns, onset_ns, offset_ns;
	int32_t seconds;
	size_t top;            /* how many of the slowest are kept */
	const char *server;    /* only requests to it; NULL: all */
	const char *procedure; /* only these; NULL: all */
	double from_s, to_s;   /* only those that began then, since start; to_s 0: no limit */
	/* Of the arguments of slow_sink's: the name of a node, and its clock minus the common one
	 * as far as it is known before the logs are read. */
	const char *(*node_name)(void *ctx, uint32_t node);
	int64_t (*clock_ns)(void *ctx, uint32_t node);
	bool (*is_server)(void *ctx, uint32_t node);
	void *ctx;
};

struct slow;

/* '*spec' is copied, what it points to is borrowed. */
void slow_new(const struct slow_spec *spec, struct slow **out);
void slow_free(struct slow *s);
struct flow_sink slow_sink(struct slow *s);

/* After flow_run: reconciles the clocks and sorts. Borrows 'f' until slow_free. */
void slow_done(struct slow *s, const struct flow *f);

/* A server in a phase. */
struct slow_cell {
	uint64_t requests; /* that began in it */
	double median_s, p99_s;
	/* Time that requests spent at it in the phase, whenever they began: request seconds; its
	 * share of all servers' time; its parts. */
	double time_s, share, parts_s[SLOW_PARTS];
};

struct slow_server {
	uint32_t node;
	struct slow_cell phases[SLOW_PHASES];
	uint64_t unanswered; /* calls, until the end of the logs */
	uint64_t partial;    /* requests of which a leg is missing; in no other figure */
	/* During the fault, against requests of the same procedures before it at this server. */
	double added_s, added_parts_s[SLOW_PARTS];
	/* Busy time beyond its peers': of all layers, of the worst; its share of all servers'. */
	double excess_s, layer_excess_s, excess_share;
	/* Of its layer with the most excess. */
	bool tested, differs;
	bool whole; /* the figures below are of all its layers as one: these differ, that not */
	double p;   /* of the test, for all servers and layers; 1: not tested */
	double slowness; /* time for the same work, during over before */
	double peers;    /* median of its peers' slowness; at least 1 */
	double needed;   /* slowness / peers that the test needs */
	bool stands_out;
	/* Requests of the phase that is judged (during; without a fault all) that carry 4 KiB or
	 * more, and those of them without a disk call: their time in the disk counts as waiting. If
	 * they are most, no part inside of the server is named: part_known is false. */
	uint64_t data, unbound;
	bool part_known;
	enum slow_part worst; /* that layer; SLOW_QUEUE if more was spent waiting for the disk */
};

/* Servers in the order of nodes. */
const struct slow_server *slow_servers(const struct slow *s, size_t *n);

enum slow_verdict {
	SLOW_NO_REQUESTS, /* nothing to judge */
	SLOW_NO_FAULT,    /* see slow_comparison */
	SLOW_NO_PEERS,    /* requests to one server only */
	SLOW_TOO_SHORT,   /* no layer of two servers has enough seconds in both phases */
	SLOW_NOTHING,     /* no server stands out */
	SLOW_FOUND,
};

enum slow_verdict slow_verdict(const struct slow *s);

/* A cell without a fault (SLOW_NO_FAULT) is compared with itself by the rule above. SERVERS: levels
 * of demand in place of changes, the usual work being that of all servers, so "no worse than
 * before" is left out. HALVES: as if a fault had begun in the middle. */
enum slow_compared { SLOW_SERVERS, SLOW_HALVES, SLOW_COMPARISONS };
struct slow_comparison {
	enum slow_verdict verdict; /* SLOW_NO_PEERS, SLOW_TOO_SHORT, SLOW_NOTHING, SLOW_FOUND */
	char *sentence;            /* NULL: nothing was compared */
	uint32_t found[16];        /* nodes that stand out, the most excess first */
	size_t n_found;
};
const char *slow_compared_name(enum slow_compared what); /* "servers", "halves" */
const struct slow_comparison *slow_comparison(const struct slow *s, enum slow_compared what);
/* Those that stand out, the most excess first. */
size_t slow_found(const struct slow *s, const struct slow_server *out[], size_t size);
/* One sentence in words, without a full stop; names are not escaped. The caller frees. */
char *slow_sentence(const struct slow *s);

/* One of the slowest requests, slowest first. Borrowed. */
struct slow_request {
	double at_s;           /* since start */
	struct flow_request r; /* 'disks' NULL, 'fuse' NULL or == &fuse */
	struct flow_parts parts;
	int64_t queue_ns; /* of parts.waiting */
	struct flow_fuse fuse;
	uint8_t disk_how; /* FLOW_CONTENT if any of its disk calls is */
	char *path;
};

const struct slow_request *slow_top(const struct slow *s, size_t *n);

/* Requests of clients with FUSE daemons, by the thread that began their chain (flow.h); of those,
 * how many have a FUSE request behind them. A thread of which none has works for the client. */
struct slow_thread {
	char name[16]; /* of all clients; "": not known, and those that are one too many */
	uint64_t sent, bound;
};

const struct slow_thread *slow_threads(const struct slow *s, size_t *n);

/* Of these requests, which are in a call of the application. Data: a read or write of the file,
 * by its FUSE request or the server's disk call. 'own': of threads that work for the client itself;
 * in no other count. */
struct slow_calls {
	uint64_t data, data_in_call, others, others_in_call, own;
};

struct slow_calls slow_calls(const struct slow *s);

/* The largest difference of a node's clock to what spec's clock_ns said, and its node;
 * FLOW_NO_NODE: no two clocks could be compared. */
double slow_clock_error(const struct slow *s, uint32_t *node);

/* ---- slow_text.c, slow_json.c ---- */

void slow_text_phases(const struct slow *s, FILE *out);
void slow_text_layers(const struct slow *s, FILE *out);
void slow_text_top(const struct slow *s, FILE *out);
/* Coverage: what was bound, what was not and why, and the clocks. */
void slow_text_coverage(const struct slow *s, FILE *out);

/* {verdict, sentence, found: [server names], servers, layers, slowest, coverage, clocks}, without a
 * fault also comparisons: {servers, halves: {verdict, sentence, found}}; keys as
 * in ci/tests/slow/slow_test.c. New reference. */
json_t *slow_json(const struct slow *s);

#endif
