/* Shared by the files of diag/slow only. */
#ifndef CULPRIT_DIAG_SLOW_SLOW_IMPL_H
#define CULPRIT_DIAG_SLOW_SLOW_IMPL_H

#include "harness/base/alloc.h"
#include "diag/slow/slow.h"

/* A request, as it is kept. */
struct slow_item {
	int64_t begin_ns; /* on the server's clock */
	uint32_t node;    /* the server's */
	uint32_t kind;    /* of procedure */
	float total_s, parts_s[SLOW_PARTS];
	float held_s;    /* waiting and disk: from its receipt to the last disk call's end */
	int64_t from_ns; /* its receipt, on the server's clock */
	uint8_t phase;   /* set by slow_done; SLOW_PHASES: outside of the seconds asked for */
	/* It carries a page or more, so that its server has a file to read or write; a call on one
	 * is bound to it. */
	bool data, bound;
};

static inline int64_t slow_end_ns(const struct slow_item *it)
{
	return it->begin_ns + (int64_t)((double)it->total_s * 1e9);
}

struct slow_kind {
	uint32_t program, procedure;
};

/* A time in which a server's disk had a call. */
struct slow_span {
	int64_t begin_ns, end_ns;
};

struct slow_spans {
	uint32_t node;
	struct slow_span *v;
	size_t n;
};

struct slow {
	struct slow_spec spec;
	const struct flow *flow;
	struct slow_item *items;
	size_t n_items;
	struct slow_kind *kinds;
	size_t n_kinds;
	struct slow_server *servers;
	size_t n_servers;
	struct slow_request *top; /* a heap, the fastest first; sorted by slow_done */
	size_t n_top;
	struct slow_thread *threads;
	struct slow_calls *calls; /* by thread */
	size_t n_threads;
	struct slow_spans *disks; /* by server; after slow_done disjoint and sorted */
	size_t n_disks;
	int64_t *clocks; /* by node and moment: minus the common clock; after slow_done */
	size_t n_clocks;
	double clock_error_s;
	uint32_t clock_error_node;
	enum slow_verdict verdict;
	struct slow_comparison comparisons[SLOW_COMPARISONS];
};

enum { SLOW_MOMENTS = 17 }; /* at which clocks are compared, from the start to the end */

/* A node's clock against the first one's, over the seconds that are examined. */
bool slow_clock_over(const struct slow *s, uint32_t node, struct flow_clock_summary *out);

struct slow_server *slow_server_of(struct slow *s, uint32_t node);
/* A node's clock minus the common one, at this moment of it. After slow_done's first step. */
int64_t slow_clock_of(const struct slow *s, uint32_t node, int64_t raw_ns);

/* Puts the items into phases by the spec's onset and offset. */
void slow_classify(struct slow *s);

/* slow_text.c: what a comparison of a cell without a fault found, while 's' holds its outcome. */
char *slow_comparison_sentence(const struct slow *s, enum slow_compared what);

/* Ends of a phase, seconds since start. */
void slow_phase_ends(const struct slow *s, enum slow_phase p, double *from, double *to);

/* slow_callers.c: which requests have an application behind them. */
void slow_callers_note(struct slow *s, const struct flow_request *r);

/* slow_queue.c: when disks were busy, and who waited then. */
void slow_queue_note(struct slow *s, const struct flow_request *r);
void slow_queue_done(struct slow *s);

/* ---- slow_demand.c ---- */

/* What requests of a procedure took before the fault: sums, and how many there were. */
struct slow_usual {
	double time_s, parts_s[SLOW_PARTS];
	uint64_t n;
};

/* By procedure, at one server or (FLOW_NO_NODE) at all. The caller frees. */
struct slow_usual *slow_usual_of(const struct slow *s, uint32_t node);

/* Of a server: the parts but for SLOW_QUEUE, the deepest first; behind them all of them as one. */
enum { SLOW_LAYERS = 5, SLOW_WHOLE = SLOW_LAYERS, SLOW_JUDGED };
enum slow_part slow_layer_part(size_t layer);

/* A layer of a server in a second: how long it was busy while no deeper one was, and what the
 * requests' procedures usually spend in it. */
struct slow_second {
	double busy_s, work_s;
};

/* The whole seconds before the fault, then those during it. */
struct slow_demand {
	size_t n_servers, n, n_before;
	double from_s[2]; /* of the phases, since start */
	struct slow_second *all;
};

void slow_demand_make(const struct slow *s, struct slow_demand *d);
void slow_demand_clear(struct slow_demand *d);

static inline struct slow_second *slow_seconds_of(
	const struct slow_demand *d, size_t layer, size_t server)
{
	return &d->all[(layer * d->n_servers + server) * d->n];
}

/* ---- slow_layer.c ---- */

/* A layer's demand at a server in a phase: busy time over work, its logarithm. A mean of 'n'
 * seconds, of which each has the variance 's2' (of a ratio's logarithm, linearised), if they did
 * not depend on each other. */
struct slow_rate {
	double log, s2, n, busy_s;
	size_t seconds; /* 0: nothing is known */
};

struct slow_layer {
	/* By phase, server; of each half of a phase. */
	struct slow_rate *rates[2], *halves[2][2];
	/* SLOW_DURING: changes are compared; SLOW_BEFORE: there is one phase, and levels are. */
	enum slow_phase last;
	double memory_s; /* so many seconds count as one */
};

void slow_layer_make(const struct slow_demand *d, size_t layer, struct slow_layer *y);
void slow_layer_clear(struct slow_layer *y);

/* slow_judge.c: what stands out; after the items have their phases. */
void slow_judge(struct slow *s);

#endif
