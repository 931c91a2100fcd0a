/*
 * Shared by the files of harness/timeline only.
 *
 *   cell.c           one cell, from its row to a filled builder
 *   cell_clocks.c    aligns nodes' clocks to one axis
 *   cell_tracks.c    tracks of nodes, processes and threads; slices
 *   cell_requests.c  requests, FUSE requests, disk calls
 *   cell_calls.c     calls without a request
 *   cell_counters.c  requests in flight; the sampler's readings
 *   cell_marks.c     phases, fault, verdicts
 */
#ifndef CULPRIT_HARNESS_TIMELINE_CELL_IMPL_H
#define CULPRIT_HARNESS_TIMELINE_CELL_IMPL_H

#include <stdbool.h>

#include "diag/flow/flow.h"
#include "diag/record/stream.h"
#include "harness/base/map.h"
#include "harness/judging/flows.h"
#include "harness/judging/places.h"
#include "harness/timeline/cell.h"

enum cell_log { LOG_SYSTEM, LOG_APPLICATION, CELL_LOGS }; /* of a node */
enum cell_group { GROUP_DEPTH, GROUP_DISK, GROUP_NETWORK, GROUP_CPU, GROUP_MEMORY, CELL_GROUPS };

enum { CELL_CALLS = 64 }; /* remembered calls of an application's thread */

/* A thread, and its last calls. */
struct cell_thread {
	bool known; /* it has a track */
	int32_t track;
	uint32_t n; /* calls so far */
	struct {
		int64_t begin_ns;
		uint32_t slice;
	} * calls; /* array of CELL_CALLS, or NULL */
};

/* Threads or processes, by node, log and pid. */
struct cell_threads {
	struct cell_thread *v;
	size_t n;
	struct map index; /* index in v, plus 1 */
};

/* A node's clock minus the axis at a moment of that clock. */
struct cell_knot {
	int64_t raw_ns, ahead_ns;
	bool doubtful;
};

struct cell_node {
	const char *name; /* of 'place' */
	const struct place *place;
	bool server;
	bool bounded;            /* messages bound its clock */
	struct cell_knot *knots; /* sorted by raw time; interpolate in between */
	size_t n_knots;          /* 1: constant */
	struct stream *logs[CELL_LOGS];
	int32_t track, requests, waiting, calls, fuse, messages, counters;
	int32_t groups[CELL_GROUPS]; /* TIMELINE_NONE: not created yet */
	int32_t *to;                 /* for a client: track by server */
	uint32_t threads;            /* number with a track */
	struct cell_thread others;   /* all further threads together; key 0: none */
};

/* A request whose FUSE request is still unknown. */
struct cell_pending {
	uint32_t slice;
	enum timeline_link link;
};

struct filling {
	struct timeline *t;
	const struct cell_options *o;
	const json_t *row;
	double logs_from_s, logs_to_s; /* range of a flight recorder's logs; to 0: all */
	struct flows *flows;
	struct places places;
	/* Those of flow.h, by its numbers; then those without a log. */
	struct cell_node *nodes;
	size_t n_nodes;
	int32_t root; /* the track of the cell */
	int64_t start_ns, from_ns, to_ns, slower_ns;
	struct cell_threads threads, processes;
	struct cell_pending *pending;
	size_t n_pending;
	uint64_t calls, shown;
	bool with_messages; /* the logs show no requests: show their calls */
	struct {
		uint32_t request, server, waiting, disk, metadata, fuse, application, message;
	} category;
	struct {
		uint32_t id, there, waiting, disk, answering, back, call, answer, width, missing,
			doubtful, client, result, offset, inode, path, unique, node, daemon, error;
	} key;
};

/* Times come from logs and can have any value. */
static inline int64_t cell_difference(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a - (uint64_t)b);
}

/* ---- cell_clocks.c ---- */

/* After the first pass: sets nodes[].knots, and adds notes. */
void cell_clocks(struct filling *c);
int64_t cell_ahead(const struct cell_node *n, int64_t raw_ns);
bool cell_doubts(const struct cell_node *n, int64_t raw_ns);
/* Adds a note; if the timeline has several cells, its term names this one. */
void cell_note(struct filling *c, const char *term, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* ---- cell_tracks.c ---- */

void cell_words(struct filling *c);
void cell_tracks(struct filling *c, int32_t root);
int32_t cell_group(struct filling *c, struct cell_node *n, enum cell_group group);
/* The thread below 'parent', created when first seen. */
struct cell_thread *cell_thread(struct filling *c, uint32_t node, enum cell_log log, int32_t parent,
	uint32_t pid, uint32_t tid);
void cell_threads_clear(struct cell_threads *t);

/* Is this raw time in the window? */
bool cell_shows(const struct filling *c, uint32_t node, int64_t begin_ns);

struct cell_slice {
	int32_t track;
	uint32_t node, name, category;
	int64_t begin_ns, end_ns; /* raw */
	uint8_t flags;
	uint8_t n_args;
	struct timeline_arg args[TIMELINE_ARGS_MAX];
};

uint32_t cell_slice(struct filling *c, const struct cell_slice *s);
/* Appends arguments; a negative number or an empty string is omitted. */
void cell_number(struct cell_slice *s, uint32_t key, int64_t value);
/* A part corrected by clocks can be negative; -1: unknown. */
void cell_span(struct cell_slice *s, uint32_t key, int64_t value);
void cell_text(struct filling *c, struct cell_slice *s, uint32_t key, const char *text);
/* The name of a call of a node's log. */
uint32_t cell_call_name(struct filling *c, uint32_t node, enum cell_log log, uint32_t nr);

/* ---- cell_requests.c ---- */

extern const struct flow_sink cell_sink; /* ctx: struct filling */
/* The slice of an application's call: existing or new. */
struct cell_call {
	uint32_t node, nr;
	struct flow_span span;
	int64_t offset, result;
	const char *path; /* NULL: unknown */
};
uint32_t cell_application_call(struct filling *c, const struct cell_call *call);

/* ---- cell_calls.c ---- */

/* Adds the consumer of a log: counts calls and, with 'draw', shows them. */
void cell_watch(struct filling *c, struct stream *s, uint32_t node, bool draw);

/* ---- cell_counters.c ---- */

void cell_depths(struct filling *c);
/* Adds the samplers' logs. Returns how many were unreadable or incomplete; 'first': the reason
 * for the first of them. */
int cell_readings(struct filling *c, const char *folder, struct err *first);

/* ---- cell_marks.c ---- */

int cell_marks(struct filling *c, struct store *s, struct err *e);

#endif
