/*
 * What 'run', 'rescore' and 'table' end with: the table, or TAP; a JUnit file; a baseline to hold
 * it against.
 */
#ifndef CULPRIT_CLI_OUTCOME_H
#define CULPRIT_CLI_OUTCOME_H

#include <getopt.h>

#include "harness/cli/show.h"

struct outcome_options {
	enum table_format format;
	bool details, tap, by_strength;
	double level; /* of --by strength; 0: not given */
	struct cell_range cells;
	const char *junit, *baseline, *write_baseline, *against;
};

/* Lines for a getopt_long table, and the codes that it then gives to outcome_option. */
enum {
	OUTCOME_TAP = 1000,
	OUTCOME_JUNIT,
	OUTCOME_BASELINE,
	OUTCOME_WRITE_BASELINE,
	OUTCOME_DETAILS,
	OUTCOME_FORMAT,
	OUTCOME_JSON,
	OUTCOME_BY,
	OUTCOME_LEVEL,
	OUTCOME_AGAINST,
	OUTCOME_CELLS
};
#define OUTCOME_LONGS                                                                              \
	{"tap", no_argument, NULL, OUTCOME_TAP},                                                   \
		{"junit", required_argument, NULL, OUTCOME_JUNIT},                                 \
		{"baseline", required_argument, NULL, OUTCOME_BASELINE},                           \
		{"write-baseline", required_argument, NULL, OUTCOME_WRITE_BASELINE},               \
		{"details", no_argument, NULL, OUTCOME_DETAILS},                                   \
		{"format", required_argument, NULL, OUTCOME_FORMAT},                               \
		{"json", no_argument, NULL, OUTCOME_JSON},                                         \
		{"by", required_argument, NULL, OUTCOME_BY},                                       \
		{"level", required_argument, NULL, OUTCOME_LEVEL},                                 \
	{                                                                                          \
		"against", required_argument, NULL, OUTCOME_AGAINST                                \
	}
/* Of runs that are over. */
#define OUTCOME_RECORDED_LONGS                                                                     \
	{                                                                                          \
		"cells", required_argument, NULL, OUTCOME_CELLS                                    \
	}
#define OUTCOME_RECORDED_USAGE                                                                     \
	"  --cells FROM-TO   score these cells of the plan only (training is as ever)\n"
#define OUTCOME_USAGE                                                                                        \
	"  --format FORMAT   text, markdown, csv or json (--json)\n"                                         \
	"  --against NAME    beside a published table: hotdep09-table1 (TP and FP), or, of run times,\n"     \
	"                    hotdep09-table2; its layout, published, measured and interval\n"                \
	"  --details         also null detectors by fault, detection, resource, delay, abstentions\n"        \
	"  --by strength     instead of the table: how TP grows with a fault's strength, and the smallest\n" \
	"                    strength from which on it is at least --level X (0.95)\n"                       \
	"  --tap             instead of the table a TAP test for each cell and detector\n"                   \
	"  --junit FILE      write these tests to FILE, as JUnit XML\n"                                      \
	"  --baseline FILE   compare with the scores in FILE; worse is what an exact test calls worse\n"     \
	"                    (one-sided, 1 %), and only this decides then, not single cells\n"               \
	"  --write-baseline FILE  write the scores to FILE\n"

/* Takes an option of these; 0, 1 if it is none of them, -EINVAL (said as 'command'). */
int outcome_option(const char *command, int code, const char *arg, struct outcome_options *o);

/* Scores and prints; returns an exit code: 1 if there is a regression or, under --tap or --junit
 * without a baseline, a wrong verdict. 'rows': as for show_table. */
int outcome_show(const char *command, struct store *s, const json_t *rows,
	const struct outcome_options *o, FILE *out);

#endif
