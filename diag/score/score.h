/*
 * Scores: verdicts beside the truth, as 001 counts them (its footnote 4).
 *
 *   TP  share of the faulty cells in which every faulty server is indicted
 *   FP  share of the cells in which at least one healthy server is indicted
 *
 * Rates are kept per detector, fault, workload and metric; a control (no victim) has no TP. A
 * cell in which the detector abstained counts: nobody was indicted in it.
 * Intervals are exact (Clopper-Pearson, 95 %).
 */
#ifndef CULPRIT_DIAG_SCORE_H
#define CULPRIT_DIAG_SCORE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "harness/base/err.h"

enum score_axis { SCORE_DETECTOR, SCORE_FAULT, SCORE_WORKLOAD, SCORE_METRIC, SCORE_AXES };

struct score {
	size_t at[SCORE_AXES];      /* indices into the names of each axis */
	bool control;               /* no victim: hits mean nothing */
	unsigned n;                 /* cells */
	unsigned hits, alarms;      /* of which: every victim indicted; some healthy server indicted */
	unsigned abstained;
};

struct score_table;

struct score_table *score_table_new(void); /* NULL: out of memory */
void score_table_free(struct score_table *t);

/* Adds a name to an axis, so that it has its place and is shown though nothing was scored.
 * Names that are not declared come in the order of their first verdict; the metrics are dread, dwrite,
 * nsread, ncread, any, always. 0 or -ENOMEM. */
int score_declare(struct score_table *t, enum score_axis axis, const char *name, struct err *e);

/* Counts one verdict of detector_diagnose. 'victims' is an array of names, or a name, or NULL (control). The
 * names must be of the same kind as those in the verdict. -EINVAL for JSON of another form. */
int score_add(struct score_table *t, const char *detector, const char *fault, const char *workload,
	      const json_t *victims, const json_t *verdict, struct err *e);

/* As score_add, for every verdict of an array. */
int score_add_all(struct score_table *t, const char *detector, const char *fault, const char *workload,
		  const json_t *victims, const json_t *verdicts, struct err *e);

size_t score_names(const struct score_table *t, enum score_axis axis, const char *const **names);

/* The score at a place, or NULL if nothing was scored there. */
const struct score *score_at(const struct score_table *t, size_t detector, size_t fault, size_t workload,
			     size_t metric);

/* Clopper-Pearson interval of 'hits' out of 'n' at 'confidence' (0.95). [0, 1] for n = 0. */
void score_interval(unsigned hits, unsigned n, double confidence, double *low, double *high);

#endif
