/* What the threads of a replay on one node share. Inside of harness/replayer. */
#ifndef CULPRIT_HARNESS_REPLAYER_STAGE_H
#define CULPRIT_HARNESS_REPLAYER_STAGE_H

#include <pthread.h>
#include <stdatomic.h>

#include "diag/app/series.h"
#include "harness/replayer/files.h"
#include "harness/replayer/latency.h"
#include "harness/replayer/replayer.h"

enum slot_state { SLOT_NONE, SLOT_OPEN, SLOT_FAILED };

/* A handle of the trace on this node. */
struct slot {
	atomic_int fd;
	atomic_int state;      /* enum slot_state */
	uint32_t uses;         /* ops of this node's threads with it, in a pass */
	_Atomic uint32_t left; /* of them */
	atomic_bool closing;   /* its close came while others had ops with it before them */
	uint32_t opener;       /* thread of this node that opens it; UINT32_MAX: none does */
	uint64_t opener_ops;   /* it is open when the opener has completed so many */
};

#define ERROR_KINDS 256

struct totals {
	_Atomic uint64_t ops, read_bytes, written_bytes, computed_ns, away_ns, waited_ns, waits,
		calls_ns, shorts;
	_Atomic uint32_t errors[APP_CALLS][ERROR_KINDS]; /* by errno; the last is all beyond */
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
	uint64_t most_bytes, most_written; /* of one call on this node */
	struct player *players;
	size_t n_players;
	struct totals *totals;
	struct app_series *series;        /* NULL: not asked for */
	pthread_mutex_t counting;         /* of the series */
	int64_t begin_ns;                 /* of the pass, CLOCK_MONOTONIC */
	_Atomic int64_t first_ns, end_ns; /* the first op's begin, the last one's end */
};

/* A thread of the trace. */
struct player {
	struct stage *stage;
	uint32_t thread;
	pthread_t id;
	bool started;
	unsigned char *buffer; /* stage->most_bytes */
	uint64_t done;         /* ops */
	int64_t last_end_ns, last_cpu_ns;
	int64_t traced_end_ns; /* of the op before, in the trace */
	int rc;
	struct err err;
};

/* "rank 3", or "rank 3 thread 1" where the rank has several. */
const char *stage_thread_name(const struct stage *s, uint32_t thread, char buf[64]);

/* calls.c */
/* Reads the trace once: handles, sizes, and who waits for this node's threads. */
int calls_scan(struct stage *s, struct err *e);
/* Before a pass: no handle is open but those that the processes began with. */
int calls_begin(struct stage *s, struct err *e);
void calls_end(struct stage *s);
/* Does an op; counts it. An error only where the replay cannot continue. */
int calls_do(struct player *p, const struct app_op *op, struct err *e);

/* report.c */
void report_begin(const struct stage *s, double round_trip_s);
void report_pass(const struct stage *s, unsigned long pass, bool whole);

#endif
