/* Internal types and functions of a recording. */
#ifndef CULPRIT_HARNESS_LIVE_RECORDING_IMPL_H
#define CULPRIT_HARNESS_LIVE_RECORDING_IMPL_H

#include "harness/run/cluster.h"
#include "harness/live/orders.h"
#include "harness/live/recording.h"
#include "harness/scenario/trigger.h"
#include "harness/store/store.h"

#define RECORDING_CALL_S 30
#define RECORDING_WRITE_S 90
#define RECORDING_FETCH_S 600

enum traced { TRACED_FS, TRACED_APP, TRACED_KINDS };

extern const char *const recording_files[TRACED_KINDS]; /* "fs.trace" */

/* For a live capture: how much of a log has been fetched from its node. */
struct tail {
	const char *remote; /* in the session's folder there */
	char *local;
	int fd;                     /* -1: no data yet */
	uint64_t got, size;         /* bytes fetched; size of the log in the last answer */
	struct node_asked *asked;   /* NULL: no request pending */
	double next_s;              /* CLOCK_MONOTONIC: time of the next request */
	struct zones_follow *index; /* NULL: no cache */
};

struct recording_tracer {
	const struct member *member;
	enum traced kind;
	char handle[64];
	bool ended; /* ended because all traced processes have */
	struct tail tail;
};

struct recording {
	const struct recording_options *o;
	struct cluster *cluster;
	struct store *store;
	struct orders *orders;
	struct trigger *trigger; /* NULL: none, or disabled after an error */
	double asked_s;          /* time of the last call, CLOCK_MONOTONIC */
	struct recording_tracer *tracers;
	size_t n_tracers, cells;
	double ring_s;
	int64_t start_ns; /* all tracers are running */
	char *state;      /* the last order that changed what is recorded */
	bool over;
	/* For a live capture: */
	int lock;         /* the folder's; -1 */
	int64_t live_row; /* row of the attempt in progress; 0: none */
};

/* The tracer of one kind on one member; NULL: none. */
struct recording_tracer *recording_tracer(
	struct recording *r, enum traced kind, const struct member *m);

/* cells.c: turns the tracers' logs into a cell. 'logs' has {node: path there} for each kind;
 * 'summaries' (may be NULL) goes into the attempt's detail; 'why' is the reason for the cell;
 * 'failed': why it is incomplete, or NULL. */
int recording_keep(struct recording *r, json_t *const logs[TRACED_KINDS], json_t *summaries,
	const char *why, const char *failed, struct err *e);

/* Shared by the two functions above and live.c. */
int recording_look_at_clocks(struct recording *r, struct err *e);
int recording_make_cell(struct recording *r, const char *cell, struct err *e);
/* Writes the row of an attempt in progress, so that readers find its logs; recording_keep
 * replaces it. */
int recording_put_live(struct recording *r, const json_t *detail, struct err *e);

/* live.c, in this order. live_begin: once the tracers are running. live_step: as often as
 * '*wait_s' says; never waits for a node. live_finish: when the tracers have ended; fetches the
 * rest. */
int live_begin(struct recording *r, struct err *e);
int live_step(struct recording *r, double *wait_s, struct err *e);
int live_finish(struct recording *r, struct err *e);
void live_clear(struct recording *r);

/* Both write a cell. 'cell' receives the folder's name below the store. */
int recording_write(struct recording *r, const char *why, char cell[32], struct err *e);
int recording_stop(struct recording *r, struct err *e);

#endif
