/*
 * Resume: scans what an interrupted run's folder holds, mends it, and marks in the plan what is
 * done.
 */
#ifndef CULPRIT_HARNESS_RUN_RESUME_H
#define CULPRIT_HARNESS_RUN_RESUME_H

#include "harness/run/attempt.h"

struct resume {
	size_t done;     /* cells that need no attempt */
	size_t aborted;  /* cells that were aborted, and are not to be run again */
	size_t damaged;  /* confirmed attempts with damaged files; they are invalid from now on */
	size_t outdated; /* confirmed attempts of outdated cells; likewise */
	size_t halves;   /* folders of attempts that never ended, removed */
	bool training_lost; /* a training cell is damaged: all cells must be judged again */
};

/* Reads every file and compares it with its checksum. Works on x->store and x->second_store (may be
 * NULL), fills 'done' and 'attempts' of x->plan's cells, reports to x->progress. */
int resume_scan(struct executor *x, struct resume *t, struct err *e);

/* -EINVAL where the key of a confirmed attempt is not its cell's. */
int resume_check_keys(struct executor *x, struct err *e);

#endif
