/* How commands show a run: its table, notes, words, verdicts, environment. */
#ifndef CULPRIT_HARNESS_CLI_TABLES_H
#define CULPRIT_HARNESS_CLI_TABLES_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "harness/base/err.h"
#include "harness/cli/options.h"
#include "harness/judging/judge.h"
#include "harness/judging/scoring.h"
#include "harness/scenario/plan.h"
#include "harness/store/store.h"
#include "harness/table/table.h"

/* ---- environment.c ---- */

/*
 * The environment of a run in a few lines below its table: scenario, hosts, times, and how busy
 * processors, disks and networks were in fault-free cells, by the samplers' readings. In a lab all
 * nodes share the same processors.
 */

struct environment {
	char *lines[64];
	size_t n;
};

/* What was not recorded is left out. '*env' is empty before; the caller clears it in any case. */
int environment_read(struct store *s, struct environment *env, struct err *e);
void environment_clear(struct environment *env);

/* ---- outcome.c ---- */

/*
 * What 'run', 'rescore' and 'table' end with: the table, or TAP; a JUnit file; a baseline to hold
 * it against.
 */

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

/* ---- groups.c ---- */

/* Options that several commands share; an OPTION_GROUP row includes them. */

/* Of struct outcome_options: what 'run', 'rescore' and 'table' end with; and the part of it that
 * needs a recorded run. */
extern const struct option_row outcome_rows[], outcome_recorded_rows[];
#define OUTCOME_EXITS                                                                              \
	"1 a regression or, under --tap or --junit without --baseline, a wrong verdict; "

/* Of a const char *: the inventory of 'doctor' and 'undo'. */
extern const struct option_row inventory_rows[];

struct detector_options {
	struct option_list names; /* "NAME" or "NAME,KEY=VALUE,..." */
	bool trust;               /* run programs also where they cannot be confined */
};
extern const struct option_row detector_rows[];

/* [{name, params}] of --detector, a new reference, and takes note of --trust. 0, or -EINVAL after
 * a complaint in the name of 'command'. */
int detectors_chosen(const char *command, const struct detector_options *o, json_t **list);

/* ---- verdicts.c ---- */

/* Prints verdicts: which servers are indicted, by which metric, since when, on what evidence. */

/* 'verdicts': [{what, detector, verdict, ...}], grouped by 'what'. As JSON, all of it; else a line
 * for each detector, and one for each metric that indicts a server. Returns what outfile_flush
 * does. */
int verdicts_print(const json_t *verdicts, bool json, bool evidence, FILE *out, struct err *e);

/* ---- table_notes.c ---- */

/* What stands below the tables of a run (struct table_notes): its cells, attempts and remarks. */

/* 'range': the cells that were scored. The run's id is borrowed from 's'. The caller clears. */
int table_notes_make(
	struct store *s, struct cell_range range, struct table_notes *out, struct err *e);
void table_notes_clear(struct table_notes *n);

/* ---- table_words.c ---- */

/* What happened in each cell, how much it slowed the application (application.h), and what was said
 * of it, in a sentence for each detector. */

/* In the order of the table; null detectors are left out. 0 or a negative errno. */
int table_words(struct store *s, const struct scoring *c, FILE *out, struct err *e);

/* ---- table_runs.c ---- */

/* culprit table of several runs: side by side, or added up. */

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

/* ---- show.c ---- */

/* What several commands print. */

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
