/*
 * Baselines: scores kept in a file, to see whether later scores are worse.
 *
 * For each detector and fault a file holds the number of cells n, the number of cells in which the
 * right server was indicted, and the number in which a wrong one was (score.h; metric 'any',
 * workloads together). Both rates are compared for each fault and for all common faults together. A
 * rate is a regression if it is worse and Fisher's exact test, one-sided, gives a probability below
 * BASELINE_LEVEL that an unchanged detector has a result at least as bad. A raw difference is not
 * enough: 4 of 5 after 5 of 5 has p = 0.5. By chance, at most one comparison in a hundred is called
 * a regression.
 */
#ifndef CULPRIT_DIAG_JUDGE_BASELINE_H
#define CULPRIT_DIAG_JUDGE_BASELINE_H

#include "diag/judge/score.h"

#define BASELINE_LEVEL 0.01

struct comparison {
	char *detector, *fault; /* fault NULL: all */
	bool wrong;             /* wrong servers; false: right servers */
	unsigned before, n_before, now, n_now;
	double p;                     /* of a result at least as bad */
	bool regression, improvement; /* improvement: the same rule in the other direction */
};

struct comparisons {
	struct comparison *list;
	size_t n, regressions;
	char *run; /* that wrote the baseline */
};

/* Makes a file's JSON, of all detectors except those in 'except' (NULL at the end). New
 * reference. */
json_t *baseline_make(const struct score_table *t, const char *run, const char *const *except);

/* Compares the detectors and faults that a baseline and a table have in common. 'source' is the
 * baseline's path, for errors. -EINVAL for JSON of another form, or without common ones. The caller
 * clears. */
int baseline_compare(const struct score_table *t, const json_t *baseline, const char *source,
	struct comparisons *out, struct err *e);
void comparisons_clear(struct comparisons *c);

/* Fisher's exact test, one-sided: the probability of at most 'now' ('more': at least) hits in
 * 'n_now' cells if 'before' + 'now' hits fall on n_before + n_now cells by chance. */
double fisher_p(unsigned before, unsigned n_before, unsigned now, unsigned n_now, bool more);

#endif
