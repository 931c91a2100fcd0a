/* What several commands print, and the numbers that they parse. */
#ifndef CULPRIT_CLI_SHOW_H
#define CULPRIT_CLI_SHOW_H

#include <stdbool.h>
#include <stdio.h>

#include "harness/run/plan.h"
#include "harness/run/store.h"
#include "results/table.h"

/* A whole number between 'min' and 'max'; else complains as 'command' and returns -EINVAL. */
int show_parse_whole(const char *command, const char *option, const char *text, long min, long max, long *value);

/* The plan, for --dry-run; returns an exit code. */
int show_plan(const struct scenario *s, const struct plan *p, char *const servers[], bool json, FILE *out);

/* Scores the verdicts in the store and renders the table. */
int show_table(struct store *s, enum table_format format, FILE *out, struct err *e);

#endif
