/* Shared by the threads of a replay on one node. Internal to harness/replayer. */
#ifndef CULPRIT_HARNESS_REPLAYER_STAGE_H
#define CULPRIT_HARNESS_REPLAYER_STAGE_H

#include <pthread.h>
#include <stdatomic.h>

#include "diag/app/series.h"
#include "harness/replayer/files.h"
#include "harness/replayer/latency.h"
#include "harness/replayer/replayer.h"

enum slot_state { SLOT_NONE, SLOT_OPEN, SLOT_FAILED };

/* A handle of the trace, on this node. */
struct slot {
	atomic_int fd;
	atomic_int state;      /* enum slot_state */
	uint32_t uses;         /* ops of this node's threads on it, per pass */
	_Atomic uint32_t left; /* uses left in this pass */
	atomic_bool closing;   /* its close came before ops of other threads on it */
	uint32_t opener;       /* thread of this node that opens it; UINT32_MAX: no thread */
	uint64_t opener_ops;   /* it is open once the opener has completed this many ops */
};

#define ERROR_KINDS 256

struct totals {
	_Atomic uint64_t ops, read_bytes, written_bytes, computed_ns, away_ns, waited_ns, waits,
		calls_ns, shorts;
	_Atomic uint32_t errors[APP_CALLS][ERROR_KINDS]; /* by errno; the last counts larger ones */
	_Atomic uint32_t latency[APP_CALLS][LATENCY_BUCKETS];
};

struct stage {
	const struct replayer_options *o;
	struct app_trace *trace;
	struct peers *peers;
	struct files files;
	unsigned me, nodes;
	uint32_t ranks;
	struct slot *slots; /* by handle number */
	size_t n_slots;
	pthread_mutex_t opening;
	uint64_t most_bytes, most_written; /* largest call on this node */
	struct player *players;
	size_t n_players;
	struct totals *totals;
	struct app_series *series;        /* NULL: not requested */
	pthread_mutex_t counting;         /* protects the series */
	int64_t begin_ns;                 /* start of the pass, CLOCK_MONOTONIC */
	_Atomic int64_t first_ns, end_ns; /* start of the first op, end of the last */
};

/* A thread of the trace. */
struct player {
	struct stage *stage;
	uint32_t thread;
	pthread_t id;
	bool started;
	unsigned char *buffer; /* stage->most_bytes */
	uint64_t done;         /* completed ops */
	int64_t last_end_ns, last_cpu_ns;
	int64_t traced_end_ns; /* end of the previous op, in the trace */
	int rc;
	struct err err;
};

/* "rank 3", or "rank 3 thread 1" if the rank has several. */
const char *stage_thread_name(const struct stage *s, uint32_t thread, char buf[64]);

/* calls.c */
/* Reads the trace once: handles, sizes, and who waits for this node's threads. */
int calls_scan(struct stage *s, struct err *e);
/* Before a pass: only handles open at the processes' start are open. */
int calls_begin(struct stage *s, struct err *e);
void calls_end(struct stage *s);
/* Executes and counts an op. Returns an error only if the replay cannot continue. */
int calls_do(struct player *p, const struct app_op *op, struct err *e);

/* report.c */
void report_begin(const struct stage *s, double round_trip_s);
void report_pass(const struct stage *s, unsigned long pass, bool whole);

#endif
