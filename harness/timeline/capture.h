/*
 * A captured application and its replays on a timeline: a track of kind cluster with
 *
 *   application   counters "read" and "written": bytes over time (Mesnier et al. 2007, Figure 1)
 *   replay, MODE  the same for a replay, from its first call on
 *   ranks         rank > thread, if it has several: calls, and between them computing, away and
 *                 waiting
 *
 * Second 0 is the application's first call; a replay's first call is aligned with it.
 *
 * A trace has the durations of computing and being away between two calls, but not their order.
 * They are drawn in the order of a replay: computing, away, and then, if the call has edges,
 * waiting until it begins. An arrow leads from the awaited call to the waiting one.
 */
#ifndef CULPRIT_HARNESS_TIMELINE_CAPTURE_H
#define CULPRIT_HARNESS_TIMELINE_CAPTURE_H

#include <jansson.h>

#include "diag/app/app.h"
#include "harness/web/timeline/timeline.h"

struct capture_options {
	/* Shows calls that begin in [from, to), in seconds from the first; to_s 0: to the end. */
	double from_s, to_s;
};

/* Reads a result of 'culprit replay --output': new reference. -EINVAL: it is invalid, of another
 * trace, or without bytes over time. */
int capture_replay(const char *path, const struct app_trace *t, json_t **out, struct err *e);

/* "replay, causal, 4 copies"; the caller frees. */
char *capture_replay_name(const json_t *result);

/* Adds the application and its replays. 'replays': n results of capture_replay. -EINVAL: the
 * trace's calls have no times. */
int capture_timeline(const struct app_trace *t, json_t *const *replays, size_t n,
	const struct capture_options *o, struct timeline *out, struct err *e);

#endif
