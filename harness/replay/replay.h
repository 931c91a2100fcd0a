/*
 * A captured application, done again on the clients of a cluster:
 *
 *     replay_run(&options, &result, &e)
 *
 * The trace is checked here, then sent to the clients, whose agents run it (harness/replayer) as
 * guarded processes: when this one ends in whatever way, they end. The processes on different nodes
 * hear each other over the SSH connections to their agents. Dummy files are made in a folder of its
 * own on the file system and removed in the end.
 *
 * The result:
 *	trace, trace_id   its file, and app_id of it
 *	mode, speed, clients (names), ranks, copies
 *	application       as captured: {ops, read_bytes, written_bytes, computed_s, away_s}, and
 *	                  where calls have times {seconds, calls_s, waited_s, waits, calls,
 *	                  series} as below
 *	application_s     from the first call to the end of the last, as captured; null: no times
 *	seconds           the same of the replay: mean of whole passes
 *	passes            [{seconds, whole, ops, read_bytes, written_bytes, computed_s, away_s,
 *	                  waited_s, waits, calls_s, short, errors, series}]: sums over nodes and
 *	                  threads; series is series_json's (diag/app/series.h) and first_s, the
 *	                  seconds from its start to the first call
 *	errors            of calls that succeeded when captured, by "CALL ERRNO": all passes
 *	calls             {name: {n, p50_s, p90_s, p99_s, max_s}}: all passes
 *	round_trip_s      of a line to another client and back, the worst of them
 */
#ifndef CULPRIT_HARNESS_REPLAY_REPLAY_H
#define CULPRIT_HARNESS_REPLAY_REPLAY_H

#include <jansson.h>
#include <signal.h>
#include <stdbool.h>

#include "diag/app/app.h"
#include "harness/base/err.h"

struct replay_options {
	const char *inventory, *trace, *mode;     /* a name of replay_mode_names */
	double speed, cpu, stall_s;               /* as in replayer.h */
	double limit_s;                           /* it is stopped after so long; 0: never */
	unsigned passes, clients;                 /* clients 0: all */
	unsigned copies;                          /* of the application at once */
	bool keep;                                /* the dummy files stay, for the next replay */
	const volatile sig_atomic_t *interrupted; /* of signals_catch */
	void (*tell)(const char *sentence);
};

/* -EINVAL, -EBADMSG, ... with ERR_USAGE: the trace or the inventory is not usable, and no node was
 * touched. ERR_CLUSTER: it failed on a node; the sentence is that node's. */
int replay_run(const struct replay_options *o, json_t **result, struct err *e);

/* merge.c: one result from the lines of all nodes' output. -EBADMSG. */
int replay_merge(char *const *outputs, size_t n, json_t *result, struct err *e);
/* {n, p50_s, p90_s, p99_s, max_s} of counts by latency_bucket. */
json_t *replay_latencies(const json_t *counts);

/* application.c: the result's "application". */
int replay_application(const struct app_trace *t, json_t **out, struct err *e);

#endif
