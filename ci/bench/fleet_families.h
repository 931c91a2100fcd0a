/* Results of fleet_families: a row of its file, and the tables made of them. */
#ifndef CULPRIT_BENCH_FLEET_FAMILIES_H
#define CULPRIT_BENCH_FLEET_FAMILIES_H

#include <stdbool.h>
#include <stdio.h>

#include "ci/bench/fleet_trial.h"

enum { FAMILY_RATIOS = 8, FAMILY_SHARES = 5 };
extern const double family_ratios[FAMILY_RATIOS], family_shares[FAMILY_SHARES];

struct family_row {
	unsigned family, cell; /* 0: clean; then ratio by ratio, in each the shares */
	char detector[32];
	unsigned fleets;
	struct tally t;
};
bool family_row_read(const char *line, struct family_row *row);

/* Prints what 'path' holds; the exit code. */
int family_tables(const char *path, FILE *out);

#endif
