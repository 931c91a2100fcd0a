/* Shared by reading and rendering of a published table. */
#ifndef CULPRIT_HARNESS_TABLE_PAPER_IMPL_H
#define CULPRIT_HARNESS_TABLE_PAPER_IMPL_H

#include "harness/table/paper.h"
#include "harness/table/table_impl.h"

enum { PAPER_NAME = 48, PAPER_WORKLOADS = 8, PAPER_METRICS = 16, PAPER_PARTS = 4 };

struct paper_row {
	char fault[PAPER_NAME], metric[PAPER_NAME], workload[PAPER_NAME];
	double tp, fp;
};

/* Metrics whose rows have the same workloads. */
struct paper_part {
	const char *workloads[PAPER_WORKLOADS], *metrics[PAPER_METRICS];
	size_t n_workloads, n_metrics;
};

struct paper {
	char *name, *source; /* source: the first comment, or the name */
	unsigned cells;      /* number of cells behind each published figure; 0: unknown */
	struct paper_row *rows;
	size_t n;
	const char **faults; /* in the order of the rows, each once */
	size_t n_faults;
	struct paper_part parts[PAPER_PARTS];
	size_t n_parts;
};

/* A run next to a published table: its rows and columns have the names of the published table
 * that occur in the run, then the other labels. */
struct paper_view {
	const struct paper *p;
	struct tables v;
	const char **faults, **workloads; /* malloced lists of borrowed names */
	size_t n_faults, n_workloads;
};

/* The published cell, or NULL. */
const struct paper_row *paper_at(
	const struct paper *p, const char *fault, const char *metric, const char *workload);
/* Does a part have this metric under this workload? */
bool paper_has(const struct paper *p, const char *metric, const char *workload);

/* All of a detector's cells of a fault, workload and metric, with any parameters. The caller
 * frees delays_s; paper_counts does not set it. */
struct score paper_gather(const struct paper_view *b, size_t detector, const char *fault,
	const char *workload, const char *metric);
struct score paper_counts(const struct paper_view *b, size_t detector, const char *fault,
	const char *workload, const char *metric);

/* Does the detector have verdicts on metrics of the paper? */
bool paper_by_metric(const struct paper_view *b, size_t detector);

/* paper_look.c: published and measured shares, two detectors per grid. With TABLE_SVG, a picture
 * of the first of these grids; -ENOENT if there is none. */
int paper_look(struct paper_view *b);

/* paper_pages.c */
void paper_page(struct paper_view *b);

/* paper_data.c: every detector, fault, workload and metric, including "any". */
void paper_fill(struct paper_view *b, struct grid *g);

#endif
