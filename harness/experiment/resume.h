/*
 * Taking a run up where it stopped: what its folder holds is looked through, mended, and put into
 * the plan.
 */
#ifndef CULPRIT_HARNESS_RESUME_H
#define CULPRIT_HARNESS_RESUME_H

#include "harness/experiment/attempt.h"

struct resume {
	size_t done; /* cells that need nothing more */
	size_t damaged; /* confirmed attempts whose files are not what they were: invalid from now on */
	size_t halves;      /* folders of attempts that never ended, removed */
	bool training_lost; /* a damaged one is for training: all verdicts are given anew */
};

/* Works on x->store and x->beside (may be NULL), fills 'done' and 'attempts' of x->plan's cells.
 * Every file is read and compared with its checksum; what came of it is said through
 * x->progress. */
int resume_scan(struct executor *x, struct resume *t, struct err *e);

/* The keys of the cells' attempts are those of the plan's cells: -EINVAL where one is not. */
int resume_check_keys(struct executor *x, struct err *e);

#endif
