/* What several commands print. */
#ifndef CULPRIT_HARNESS_CLI_SHOW_H
#define CULPRIT_HARNESS_CLI_SHOW_H

#include <stdbool.h>
#include <stdio.h>

#include "harness/judging/judge.h"
#include "harness/scenario/plan.h"
#include "harness/judging/scoring.h"
#include "harness/store/store.h"
#include "harness/table/table.h"

/* The plan, for --dry-run, and 'skipped', a list of {fault, reason}; returns an exit code. */
int show_plan(const struct scenario *s, const struct plan *p, char *const servers[],
	const json_t *skipped, bool json, FILE *out);

/* Renders the table of what was scored, next to the published table 'against' (NULL: none; run
 * times default to hotdep09-table2). -ENOENT or -EINVAL if it does not exist or is of another
 * kind. */
int show_table(struct store *s, struct scoring *c, enum table_format format, bool details,
	const char *against, FILE *out, struct err *e);

#define SHOW_DOSE_LEVEL 0.95 /* of TP, unless told */

/* What was scored by the strength of faults (harness/table/dose.h). */
int show_doses(struct store *s, struct scoring *c, enum table_format format, bool details,
	double level, FILE *out, struct err *e);

/* "NAME", or "NAME,KEY=VALUE,...", appended to a list of {name, params}; else complains and returns
 * -EINVAL. */
int show_parse_detector(const char *command, const char *text, json_t *list);

/* The judge of a recorded run, with these detectors or, if there are none, its own. */
int show_judge(struct store *s, const json_t *detectors, struct judge **out, struct err *e);

#endif
