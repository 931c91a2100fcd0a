/* culprit table of several runs: side by side, or added up. */
#ifndef CULPRIT_HARNESS_CLI_TABLE_RUNS_H
#define CULPRIT_HARNESS_CLI_TABLE_RUNS_H

#include "harness/cli/outcome.h"

enum { TABLE_RUNS_MAX = 100 };

struct table_options {
	struct outcome_options outcome;
	bool merge, words;
};

/* A corpus holds no verdicts: the detectors of its scenario judge it. '*rows' stays NULL if the
 * store has verdicts. The caller releases both. */
int table_judge_corpus(struct store *s, struct judge **judge, json_t **rows, struct err *e);

/* What --json prints of several runs. New reference. */
int table_runs_json(int n, char **folders, json_t **out, struct err *e);

/* Returns an exit code. */
int table_runs(int n, char **folders, const struct table_options *o);

#endif
