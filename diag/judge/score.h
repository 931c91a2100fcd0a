/*
 * Scores: verdicts compared with the truth.
 *
 *   TP          share of the faulty cells in which every faulty server is indicted (Kasick et al.
 *               2009, footnote 4)
 *   FP          share of the cells in which at least one healthy server is indicted (the same)
 *   detected    share of the faulty cells in which any server is indicted; compare with the FP of
 *               the controls
 *   classified  share of the faulty cells in which every faulty server is indicted and the verdict
 *               names the fault's resource up to a slash ("network" of "network/hog"); for
 *               detectors that name one
 *   explained   likewise with the part after the slash, the cause; equal to 'classified' if the
 *               fault's resource has no such part
 *   delay       seconds from the verified onset to the first indictment of a faulty server, if the
 *               verdict has times; with several victims, of the last one
 *
 * Rates are kept per detector, fault, workload and metric; a control (no victim;
 * look-alikes have none) has FP only. A cell in which the detector abstained or failed counts as
 * one without an indicted server. Intervals are exact (Clopper-Pearson, 95 %).
 */
#ifndef CULPRIT_DIAG_JUDGE_SCORE_H
#define CULPRIT_DIAG_JUDGE_SCORE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "harness/base/err.h"

enum score_axis { SCORE_DETECTOR, SCORE_FAULT, SCORE_WORKLOAD, SCORE_METRIC, SCORE_AXES };

struct score {
	size_t at[SCORE_AXES]; /* indices into the names of each axis */
	bool control;          /* no victim: hits are undefined */
	bool causes;           /* the fault's resource has a part after a slash */
	union {
		struct {
			unsigned n; /* cells */
			unsigned hits,
				/* hits: every victim indicted; alarms: some healthy server
				 * indicted */
				alarms;
			unsigned detected;   /* any server indicted */
			unsigned named;      /* hits that name a resource */
			unsigned classified; /* of those, with the fault's own */
			unsigned explained;  /* of those, with the part after the slash, if any */
			unsigned abstained;
			unsigned failed; /* of those, errors of the detector */
			unsigned early;  /* hits with a time before the onset */
		};
		unsigned counts[10];
	};
	double *delays_s; /* of the other hits with a time, sorted */
	size_t n_delays;
};

/* The truth about a cell. */
struct score_cell {
	const char *fault, *workload;
	const json_t *victims; /* an array of names, or a name, or NULL (control) */
	const char *resource;  /* of the fault, "disk" or "network/hog"; or NULL */
	double onset_s;        /* since the start of the run; below 0: unknown */
	int64_t id;            /* of the cell, for score_paired; 0: unknown */
};

struct score_table;

struct score_table *score_table_new(void);
void score_table_free(struct score_table *t);

/* Adds a name to an axis, so that it is shown even without scores. Other names follow in the order
 * of their first verdict; the first metrics are always dread, dwrite, nsread, ncread, any. Returns
 * its index. */
size_t score_declare(struct score_table *t, enum score_axis axis, const char *name);

/* Counts one verdict of detector_diagnose; cell and verdict must use the same server names. -EINVAL
 * for JSON of another form. */
int score_add(struct score_table *t, const char *detector, const struct score_cell *cell,
	const json_t *verdict, struct err *e);

/* Does a verdict indict every victim ('right') and any other server ('wrong')? */
void score_compare(const json_t *victims, const json_t *verdict, bool *right, bool *wrong);

size_t score_names(const struct score_table *t, enum score_axis axis, const char *const **names);

/* The score at a place, or NULL if it has none. */
const struct score *score_at(
	const struct score_table *t, size_t detector, size_t fault, size_t workload, size_t metric);

/* Adds a score to a sum of its kind; the caller frees the sum's delays_s. */
void score_join(struct score *sum, const struct score *s);

/* The sum over all faults and workloads for one metric: faulty cells, or controls. The caller frees
 * delays_s. */
struct score score_sum(const struct score_table *t, size_t detector, size_t metric, bool control);

/* Does the resource of any scored fault have a part after a slash? If not, causes add no
 * information. */
bool score_causes(const struct score_table *t);

/* Two detectors on the faulty cells that both judged, by their verdicts on "any". */
struct paired {
	unsigned cells, only_first, only_second; /* right in a cell where the other is not */
	double p; /* exact McNemar test, two-sided; see score_mcnemar */
};

/* False if they did not judge the same cells, or the cells are unknown. */
bool score_paired(const struct score_table *t, size_t first, size_t second, struct paired *out);

/* The probability, two-sided and exact, that cells in which only one of two equal detectors is
 * right fall at least as unevenly as these. 1 without such cells. */
double score_mcnemar(unsigned only_first, unsigned only_second);

/* The number of faulty cells after which an exact McNemar test at 'level' distinguishes, with a
 * probability of at least 'power', a detector that is right with 'rate' from one that is never
 * right. 0 for a rate of 0. */
unsigned score_cells_needed(double rate, double level, double power);

/* The number of controls without a false alarm after which the exact 95 % interval excludes
 * 'rate'. */
unsigned score_controls_needed(double rate);

/* 1: the first rate is above the second; -1: below; 0: their exact 95 % intervals overlap. */
int score_order(unsigned hits1, unsigned n1, unsigned hits2, unsigned n2);

/* Clopper-Pearson interval of 'hits' out of 'n' at 'confidence' (0.95). [0, 1] for n = 0. */
void score_interval(unsigned hits, unsigned n, double confidence, double *low, double *high);

#endif
