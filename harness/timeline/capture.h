/*
 * A captured application on a timeline, and replays of it: a track of kind cluster with
 *
 *   application   counters "read" and "written": bytes over time (Mesnier et al. 2007, Figure 1)
 *   replay, MODE  the same of a replay, from its first call on
 *   ranks         rank > thread, where it has several: calls, and between them computing, away and
 *                 waiting
 *
 * Second 0 is the application's first call; a replay's first call is put there as well.
 *
 * Between two calls a trace tells how long the thread computed and was away, not when. They are
 * drawn in the order in which a replay does them: computing, away, and then, if the call has edges,
 * waiting until it begins. An arrow leads from the call that was waited for to the one that waited.
 */
#ifndef CULPRIT_HARNESS_TIMELINE_CAPTURE_H
#define CULPRIT_HARNESS_TIMELINE_CAPTURE_H

#include <jansson.h>

#include "diag/app/app.h"
#include "harness/web/timeline/timeline.h"

struct capture_options {
	/* Calls that begin in [from, to) are shown, in seconds from the first; to_s 0: to the end.
	 */
	double from_s, to_s;
};

/* A replay's result as 'culprit replay --output' writes it: new reference. -EINVAL: it is none, of
 * another trace, or without bytes over time. */
int capture_replay(const char *path, const struct app_trace *t, json_t **out, struct err *e);

/* "replay, causal, 4 copies"; the caller frees. */
char *capture_replay_name(const json_t *result);

/* Adds all of it. 'replays': n of capture_replay's. -EINVAL: the trace's calls have no times. */
int capture_timeline(const struct app_trace *t, json_t *const *replays, size_t n,
	const struct capture_options *o, struct timeline *out, struct err *e);

#endif
