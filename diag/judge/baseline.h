/*
 * Baselines: scores kept in a file, and whether later ones have become worse.
 *
 * A file holds, for each detector and fault, the number of cells n, in how many of them the right
 * server was indicted, and in how many a wrong one (see score.h; metric 'any', workloads together).
 * Compared are, fault by fault and over all faults that both have: right servers, and wrong ones. A
 * rate is a regression if it is worse and Fisher's exact test, one-sided, gives less than
 * BASELINE_LEVEL for as bad a result from an unchanged detector. A raw difference is none:
 * 4 of 5 after 5 of 5 has p = 0.5. By chance alone, at most one comparison in a hundred is called a
 *   regression.
 */
#ifndef CULPRIT_DIAG_BASELINE_H
#define CULPRIT_DIAG_BASELINE_H

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

/* The file's text as JSON, of all detectors but those in 'except' (ended by NULL). New reference,
 * NULL: no memory. */
json_t *baseline_make(const struct score_table *t, const char *run, const char *const *except);

/* Compares what a baseline and a table both have. 'source' is the baseline's path, for complaints.
 * -EINVAL for JSON of another form, or if there is nothing in both. The caller clears. */
int baseline_compare(const struct score_table *t, const json_t *baseline, const char *source,
	struct comparisons *out, struct err *e);
void comparisons_clear(struct comparisons *c);

/* P(at most 'now' of 'n_now', or at least if 'more') when all of 'before' + 'now' hits fall on
 * n_before + n_now cells by chance: Fisher's exact test, one-sided. */
double fisher_p(unsigned before, unsigned n_before, unsigned now, unsigned n_now, bool more);

#endif
