/*
 * Baselines: scores kept in a file, to find out whether later scores are worse.
 *
 * A file holds, for each detector and fault, the number of cells n, in how many of them the right
 * server was indicted, and in how many a wrong one (see score.h; metric 'any', workloads together).
 * Both rates are compared for each fault and for all common faults together. A rate is a regression
 * if it is worse and Fisher's exact test, one-sided, gives a probability below BASELINE_LEVEL for
 * as bad a result from an unchanged detector. A raw difference is not enough: 4 of 5 after 5 of 5
 * has p = 0.5. By chance alone, at most one comparison in a hundred is called a regression.
 */
#ifndef CULPRIT_DIAG_JUDGE_BASELINE_H
#define CULPRIT_DIAG_JUDGE_BASELINE_H

#include "diag/judge/score.h"

#define BASELINE_LEVEL 0.01

struct comparison {
	char *detector, *fault; /* fault NULL: all */
	bool wrong;             /* wrong servers, else right ones */
	unsigned before, n_before, now, n_now;
	double p;                     /* of a result at least as bad */
	bool regression, improvement; /* improvement: by the same rule, the other way */
};

struct comparisons {
	struct comparison *list;
	size_t n, regressions;
	char *run; /* that the baseline is from */
};

/* The file's text as JSON, of all detectors but those in 'except' (ended by NULL). New
 * reference. */
json_t *baseline_make(const struct score_table *t, const char *run, const char *const *except);

/* Compares the detectors and faults that a baseline and a table have in common. 'source' is the
 * baseline's path, for complaints. -EINVAL for JSON of another form, or if they have none. The
 * caller clears. */
int baseline_compare(const struct score_table *t, const json_t *baseline, const char *source,
	struct comparisons *out, struct err *e);
void comparisons_clear(struct comparisons *c);

/* Fisher's exact test, one-sided: the probability of at most 'now' (if 'more': at least) of
 * 'n_now', if 'before' + 'now' hits fall on n_before + n_now cells by chance. */
double fisher_p(unsigned before, unsigned n_before, unsigned now, unsigned n_now, bool more);

#endif
