/* Results of fleet_families: a row of its file, and the tables made of them. */
#ifndef CULPRIT_CI_BENCH_FLEET_FAMILIES_H
#define CULPRIT_CI_BENCH_FLEET_FAMILIES_H

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

/* Prints tables of what 'path' holds, in Markdown: all, or the one of this name, of both halves or
 * of "dev" or "held"; the exit code. */
int family_tables(const char *path, const char *name, const char *half, FILE *out);
/* Prints what the families are. */
void family_list(FILE *out);

/* For tables: the rows of a file, and sums over some of them. */
struct family_rows {
	struct family_row *v;
	size_t n;
	char detectors[TRIAL_DETECTORS_MAX][32];
	unsigned n_detectors;
};
/* Which rows to add up; -1: all. */
struct family_choice {
	int detector, family, held, ratio, share, faulty;
};
struct tally family_sum(const struct family_rows *rows, struct family_choice c);
/* Cells of a row of a table. */
void family_print_share(FILE *f, unsigned hits, unsigned n);
void family_print_mean(FILE *f, double total, unsigned n); /* '-' of nothing */
/* What leaving out a part changes, where rows have such detectors. */
void family_parts_table(FILE *f, const struct family_rows *rows);

#endif
