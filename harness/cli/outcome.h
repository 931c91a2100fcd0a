/*
 * What 'run', 'rescore' and 'table' end with: the table, or TAP; a JUnit file; a baseline to hold
 * it against.
 */
#ifndef CULPRIT_HARNESS_CLI_OUTCOME_H
#define CULPRIT_HARNESS_CLI_OUTCOME_H

#include "harness/cli/show.h"

struct outcome_options {
	enum table_format format;
	bool details, tap, by_strength;
	double level; /* of --by strength; 0: not given */
	struct cell_range cells;
	const char *junit, *baseline, *write_baseline, *against;
};

/* Refuses options that contradict each other, or that mean nothing without another: 0, or an exit
 * code. To be called before anything is run. */
int outcome_check(const char *command, const struct outcome_options *o);

/* Scores and prints; returns an exit code: 1 if there is a regression or, under --tap or --junit
 * without a baseline, a wrong verdict. 'rows': as for show_table. */
int outcome_show(const char *command, struct store *s, const json_t *rows,
	const struct outcome_options *o, FILE *out);

#endif
