/*
 * Scoring: compares the verdicts of a run with the faults injected into its cells.
 *
 * Ground truth and verdicts meet only here; by then all detectors have answered.
 */
#ifndef CULPRIT_HARNESS_JUDGING_SCORING_H
#define CULPRIT_HARNESS_JUDGING_SCORING_H

#include "diag/judge/score.h"
#include "harness/store/store.h"

struct scoring;

/* A range of cells by their numbers in the plan, both ends included; all cells if 'to' is 0. */
struct cell_range {
	long from, to;
};

/* Scores 'rows' (from judge_all; NULL: from the store) of these cells; missing null detectors are
 * judged here. -EINVAL for a run that ended before it could be judged. -ENOENT: none of these
 * cells is confirmed and scored. */
int scoring_new(struct store *s, const json_t *rows, struct cell_range cells, struct scoring **out,
	struct err *e);

struct scored_run {
	struct store *store;
	const json_t *rows; /* as for scoring_new */
	const char *name;
};

/* Scores several runs. 'merge': adds up their cells as if they were one run. Otherwise the table
 * has runs instead of workloads. */
int scoring_runs(
	const struct scored_run *runs, size_t n, bool merge, struct scoring **out, struct err *e);
void scoring_free(struct scoring *c);

const struct score_table *scoring_table(const struct scoring *c); /* borrowed */
struct cell_range scoring_range(const struct scoring *c);

/* [{cell, repeat, workload, fault, victims: [names]|null, detector, verdict, right, wrong,
 * again}], borrowed: the verdicts on 'any' of all detectors except null detectors, sorted by
 * table order and repeat, which is the same for every run of the scenario. right: exactly the
 * faulty servers, or no server in a control. again: number of preceding cells with the same
 * fault, workload, repeat and detector. */
const json_t *scoring_cells(const struct scoring *c);

/* [{attempt, cell, repeat, workload, fault, victims, detector, metric, right, wrong}]: the score
 * of every verdict of confirmed, scored cells, including those of null detectors and single
 * metrics. 'rows' as for scoring_new, but missing ones are not judged. right: as in scoring_cells.
 * New reference. */
int scoring_rows(struct store *s, const json_t *rows, json_t **out, struct err *e);

/* {label of a fault: {parameter: number}} from the scenario; empty if the run does not record
 * them. New reference. */
int scoring_fault_params(struct store *s, json_t **params, struct err *e);

#endif
