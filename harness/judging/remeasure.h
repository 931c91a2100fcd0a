/*
 * Measuring a recorded run again: its kept traces are reduced as if it had just been run, for what
 * this program reads out of them that the one that ran it did not. No cluster and no privilege.
 */
#ifndef CULPRIT_HARNESS_REMEASURE_H
#define CULPRIT_HARNESS_REMEASURE_H

#include "harness/judging/judge.h"
#include "harness/store/store.h"

/* Is everything there that it takes? -EINVAL: it is a corpus, or of run times, or was run by a
 * program that did not keep what a reduction takes; -EBADMSG: a file is missing or damaged, and
 * which. */
int remeasure_check(struct store *s, struct err *e);

/* Puts new samples, events, models and verdicts ('j': of this store) in place of the old ones, all
 * or nothing. 'traces' is the run's folder that the traces lie in; 'second': the second tracer's.
 * '*cells' is how many were measured. */
int remeasure_run(struct store *s, const char *traces, bool second, struct judge *j, size_t *cells,
	struct err *e);

#endif
