/*
 * Scoring: compares the verdicts of a run with what was injected into its cells.
 *
 * Ground truth and verdicts meet nowhere else; by then all detectors have answered.
 */
#ifndef CULPRIT_HARNESS_JUDGING_SCORING_H
#define CULPRIT_HARNESS_JUDGING_SCORING_H

#include "diag/judge/score.h"
#include "harness/store/store.h"

struct scoring;

/* Cells by their numbers in the plan, both ends included; all of them if 'to' is 0. */
struct cell_range {
	long from, to;
};

/* Scores 'rows' as judge_all gives them, or those in the store if NULL, of these cells; null
 * detectors that they lack are judged here. -EINVAL for a run that ended before it could be judged.
 * -ENOENT: none of these cells is confirmed and scored. */
int scoring_new(struct store *s, const json_t *rows, struct cell_range cells, struct scoring **out,
	struct err *e);

struct scored_run {
	struct store *store;
	const json_t *rows; /* as for scoring_new */
	const char *name;
};

/* Scores several runs. 'merge': their cells are added up as if they were one run's. Else the table
 * has runs in place of workloads. */
int scoring_runs(
	const struct scored_run *runs, size_t n, bool merge, struct scoring **out, struct err *e);
void scoring_free(struct scoring *c);

const struct score_table *scoring_table(const struct scoring *c); /* borrowed */
struct cell_range scoring_range(const struct scoring *c);

/* [{cell, repeat, workload, fault, victims: [names]|null, detector, verdict, right, wrong, again}],
 * borrowed: what
 * each detector but the null detectors said on 'any', in the order of the table and of repeats,
 * which is the same for every run of the scenario. right: the faulty servers and no other, or in a
 * control nobody. again: how many cells of the same fault, workload, repeat and detector come
 * before it. */
const json_t *scoring_cells(const struct scoring *c);

/* [{attempt, cell, repeat, workload, fault, victims, detector, metric, right, wrong}]: what every
 * verdict of a confirmed, scored cell was worth, null detectors' and single metrics', too. 'rows'
 * as for scoring_new, but none are judged. right: as in scoring_cells. New reference. */
int scoring_rows(struct store *s, const json_t *rows, json_t **out, struct err *e);

/* {label of a fault: {parameter: number}}, as the scenario has them; empty if the run does not
 * record them. New reference. */
int scoring_fault_params(struct store *s, json_t **params, struct err *e);

#endif
