/*
 * Scoring: the verdicts of a run beside what was true of its cells.
 *
 * This is where the truth meets the verdicts, and the only place: detectors have all been asked by
 * then.
 */
#ifndef CULPRIT_HARNESS_SCORING_H
#define CULPRIT_HARNESS_SCORING_H

#include "harness/store/store.h"
#include "results/table.h"

struct scoring;

/* Cells by their numbers in the plan, both ends included; all of them if 'to' is 0. */
struct cell_range {
	long from, to;
};

/* Scores 'rows' as judge_all gives them, or those in the store if NULL, of these cells; null
 * detectors that these lack are judged here. -EINVAL for a run that was not written to the point
 * where it can be judged. -ENOENT: none of these cells was run and is scored. */
int scoring_new(struct store *s, const json_t *rows, struct cell_range cells, struct scoring **out,
	struct err *e);
void scoring_free(struct scoring *c);

/* Of one scoring; all borrowed. */
const struct score_table *scoring_table(const struct scoring *c);
struct table_notes *scoring_notes(struct scoring *c);

/* [{cell, workload, fault, victims: [names]|null, detector, verdict, right, wrong}]: what each
 * detector that is no null detector said on 'any', in the order of cells. right: the fault's
 * servers and no other, or in a control nobody. */
const json_t *scoring_cells(const struct scoring *c);

/* {label of a fault: {parameter: number}}, as the scenario had them; empty for a run that was
 * recorded without. */
json_t *scoring_fault_params(struct store *s);

/* A fact of the run that is JSON: a new reference, or NULL. */
json_t *scoring_fact(struct store *s, const char *key);

#endif
