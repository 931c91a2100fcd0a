/*
 * Replays a captured application on the clients of a cluster:
 *
 *     replay_run(&options, &result, &e)
 *
 * The trace is checked here, then sent to the clients, whose agents run it (harness/replayer) as
 * guarded processes, which end with this process. The processes on different nodes exchange
 * progress over the SSH connections to their agents. Dummy files are made in a separate folder of
 * the file system and removed at the end.
 *
 * The result:
 *	trace, trace_id   its file, and app_id of it
 *	mode, speed, clients (names), ranks, copies
 *	application       as captured: {ops, read_bytes, written_bytes, computed_s, away_s}, and
 *	                  if calls have times {seconds, calls_s, waited_s, waits, calls,
 *	                  series} as below
 *	application_s     from the first call to the end of the last, as captured; null: no times
 *	seconds           the same of the replay: mean of whole passes
 *	passes            [{seconds, whole, ops, read_bytes, written_bytes, computed_s, away_s,
 *	                  waited_s, waits, calls_s, short, errors, series}]: sums over nodes and
 *	                  threads; series is series_json's (diag/app/series.h) and first_s, the
 *	                  seconds from its start to the first call
 *	errors            of calls that succeeded when captured, by "CALL ERRNO": all passes
 *	calls             {name: {n, p50_s, p90_s, p99_s, max_s}}: all passes
 *	round_trip_s      of a line to another client and back, largest value
 */
#ifndef CULPRIT_HARNESS_REPLAY_REPLAY_H
#define CULPRIT_HARNESS_REPLAY_REPLAY_H

#include <jansson.h>
#include <signal.h>
#include <stdbool.h>

#include "diag/app/app.h"
#include "harness/base/err.h"

struct replay_options {
	const char *inventory, *trace, *mode;     /* mode: one of replay_mode_names */
	double speed, cpu, stall_s;               /* as in replayer.h */
	double limit_s;                           /* stop after this time; 0: no limit */
	unsigned passes, clients;                 /* clients 0: all */
	unsigned copies;                          /* parallel copies of the application */
	bool keep;                                /* keep the dummy files for the next replay */
	const volatile sig_atomic_t *interrupted; /* of signals_catch */
	void (*tell)(const char *sentence);
};

/* -EINVAL, -EBADMSG, ... with ERR_USAGE: the trace or the inventory is not usable, and no node
 * was touched. ERR_CLUSTER: a node failed; the sentence is that node's. */
int replay_run(const struct replay_options *o, json_t **result, struct err *e);

/* merge.c: merges the output lines of all nodes into one result. -EBADMSG. */
int replay_merge(char *const *outputs, size_t n, json_t *result, struct err *e);
/* {n, p50_s, p90_s, p99_s, max_s} from counts by latency_bucket. */
json_t *replay_latencies(const json_t *counts);

/* application.c: the result's "application". */
int replay_application(const struct app_trace *t, json_t **out, struct err *e);

#endif
