/*
 * What else is done with series of a fleet, small: each gives every member a score, larger is
 * worse, and a verdict at its usual limit. What is published is cited in diag/REFERENCES.md.
 */
#ifndef CULPRIT_CI_BENCH_FLEET_RIVALS_H
#define CULPRIT_CI_BENCH_FLEET_RIVALS_H

#include <stdbool.h>

/* Levels, more is worse; NAN: no sample. Row by row, a member each. */
struct rival_table {
	unsigned n_members, n_steps, n_groups;
	const float *level;
	const float *throughput; /* NULL: there is none */
	const unsigned *group;   /* of each member, below n_groups */
	double step_s;
	/* Medians of all members, filled once by rival_medians. */
	double *median;
};

struct rival {
	const char *name, *summary;
	/* A member is accused where its score is above 'limit'. */
	double limit;
	bool medians; /* it needs rival_medians, whose time is part of it */
	void (*score)(const struct rival_table *t, double *score);
};
extern const struct rival rivals[]; /* ended by a NULL name */

void rival_medians(struct rival_table *t);

#endif
