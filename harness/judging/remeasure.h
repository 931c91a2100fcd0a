/*
 * Remeasures a recorded run: reduces its traces as if it had just run, so that an old run gets
 * the measurements of newer versions. Needs no cluster and no privilege.
 */
#ifndef CULPRIT_HARNESS_JUDGING_REMEASURE_H
#define CULPRIT_HARNESS_JUDGING_REMEASURE_H

#include "harness/judging/judge.h"
#include "harness/store/store.h"

/* Can the run be remeasured? -EINVAL: it is a corpus, it measured run times, or it lacks the
 * description of the cluster; -EBADMSG: a file is missing or damaged. */
int remeasure_check(struct store *s, struct err *e);

/* Replaces samples, events, requests, models and verdicts (judged by 'j', of this store), all or
 * none. 'traces' is the run's folder with the traces; 'second': uses the second tracer's. '*cells'
 * receives the number of remeasured cells. */
int remeasure_run(struct store *s, const char *traces, bool second, struct judge *j, size_t *cells,
	struct err *e);

#endif
