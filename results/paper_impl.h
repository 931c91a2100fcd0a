/* What reading a published table and rendering it share; not for others. */
#ifndef CULPRIT_RESULTS_PAPER_IMPL_H
#define CULPRIT_RESULTS_PAPER_IMPL_H

#include "results/paper.h"
#include "results/table_impl.h"

enum { PAPER_NAME = 48, PAPER_WORKLOADS = 8, PAPER_METRICS = 16, PAPER_PARTS = 4 };

struct published {
	char fault[PAPER_NAME], metric[PAPER_NAME], workload[PAPER_NAME];
	double tp, fp;
};

/* Metrics whose rows have the same workloads. */
struct part {
	const char *workloads[PAPER_WORKLOADS], *metrics[PAPER_METRICS];
	size_t n_workloads, n_metrics;
};

struct paper {
	char *name, *source; /* source: the first comment, or the name */
	struct published *rows;
	size_t n;
	const char **faults; /* in the order of the rows, each once */
	size_t n_faults;
	struct part parts[PAPER_PARTS];
	size_t n_parts;
};

/* The published cell, or NULL. */
const struct published *paper_at(
	const struct paper *p, const char *fault, const char *metric, const char *workload);
/* Index of the part that has this metric under this workload, or n_parts. */
size_t paper_part(const struct paper *p, const char *metric, const char *workload);

/* All of a detector's cells of a fault, workload and metric, whatever the parameters. The caller
 * frees delays_s. */
struct score paper_gather(const struct score_table *t, size_t detector, const char *fault,
	const char *workload, const char *metric);
/* Is 'label' that name, alone or with parameters? */
bool paper_named(const char *label, const char *name);

/* A row of a part is shown if it is published or if ours is not 0. */
bool paper_shown(const struct paper *p, const struct score_table *t, size_t detector,
	const struct part *part, const char *fault, const char *metric);
/* Has the detector verdicts of its own on metrics of the paper? */
bool paper_by_metric(const struct paper *p, const struct score_table *t, size_t detector);

/* Calls 'fn' with what 'by metric' has measured and no part of the paper has room for, where it is
 * not 0; how often. */
typedef void (*paper_stray_fn)(const char *fault, const char *metric, const char *workload,
	const struct score *s, FILE *f);
size_t paper_strays(const struct paper *p, const struct score_table *t, size_t detector,
	paper_stray_fn fn, FILE *f);

/* Names for our own table of a detector: those of the paper that the run has, then the others'
 * labels; malloced list, names borrowed. 'axis' is SCORE_FAULT or SCORE_WORKLOAD. */
const char **paper_names(
	const struct paper *p, const struct score_table *t, enum score_axis axis, size_t *n);

/* paper_grid.c: published and measured in one look, two detectors a grid, at most 80 columns of
 * text. */
void paper_grid(const struct paper *p, const struct score_table *t, const struct table_notes *notes,
	bool markdown, FILE *f);

/* paper_data.c */
void paper_csv(const struct paper *p, const struct score_table *t, FILE *f);
void paper_json(const struct paper *p, const struct score_table *t, const struct table_notes *notes,
	FILE *f);

#endif
