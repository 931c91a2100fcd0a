/*
 * Overhead: what tracing adds to the run time of a workload (Table 2 of Kasick et al. 2009).
 *
 * A traced run is compared with the untraced run of the same workload and block (repeat). For n
 * pairs (t_i, u_i) the figure is the paper's, the increase of the mean: R = sum t / sum u, less 1.
 * Its 95 % interval is R +- t(n-1) s / (sqrt n mean u), with s the standard deviation of
 * t_i - R u_i: that of a ratio of paired means (Cochran, Sampling Techniques, 6.3). There is no
 * interval below three pairs.
 */
#ifndef CULPRIT_RESULTS_OVERHEAD_H
#define CULPRIT_RESULTS_OVERHEAD_H

#include <stdint.h>

#include "results/table.h"

struct overhead;

struct overhead *overhead_new(void);
void overhead_free(struct overhead *o);

/* Names are shown in the order of these calls; others follow in the order of their runs. */
void overhead_declare(struct overhead *o, const char *workload, const char *tracer);

/* One run; 'tracer' "none" is the untraced one. 'lost' and 'records' are negative where the tracer
 * does not count. -EINVAL: seconds not above 0. */
int overhead_add(struct overhead *o, const char *workload, const char *tracer, long block,
	double seconds, int64_t records, int64_t lost, struct err *e);

/* A published figure, in percent. It is shown below the measured ones if the run has a workload of
 * this name, with any parameters. */
void overhead_publish(struct overhead *o, const char *source, const char *workload,
	const char *tracer, double pct);

/* All figures of results/NAME.csv: instrumentation,workload,overhead_pct, with the source as its
 * first comment. -EINVAL: there is no such file,
 * or it holds something else. */
int overhead_read_published(struct overhead *o, const char *name, struct err *e);

struct overhead_cell {
	unsigned pairs;
	double mean_s, untraced_mean_s; /* over the pairs */
	double pct;                     /* increase, in percent; NAN without a pair */
	double low_pct, high_pct;       /* NAN below three pairs */
	int64_t records, lost;          /* sums over all its runs; negative: not counted */
};

/* 0, or -ENOENT when there is no such run. */
int overhead_cell(const struct overhead *o, const char *workload, const char *tracer,
	struct overhead_cell *out);

int overhead_render(const struct overhead *o, enum table_format format,
	const struct table_notes *notes, FILE *f);

#endif
