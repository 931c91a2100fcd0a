/*
 * Overhead: the increase of a workload's run time due to tracing (Table 2 of Kasick et al. 2009),
 * and of the nodes' processor time.
 *
 * A traced run is compared with the untraced run of the same workload and block (repeat). For n
 * pairs (t_i, u_i) the figure is the paper's, the increase of the mean: R = sum t / sum u, less
 * 1. Its 95 % interval is R +- t(n-1) s / (sqrt n mean u), with s the standard deviation of t_i -
 * R u_i: the interval of a ratio of paired means (Cochran, Sampling Techniques, 6.3). There is no
 * interval below three pairs. The added processor time per system call is also such a ratio, of
 * the pairs' differences to the calls of the traced passes. A tracer that does not count calls is
 * assumed to see as many as the first one that counts them.
 *
 * Number of pairs to detect 1 %: the smallest n with n >= ((t(n-1; .975) + t(n-1; .8)) v / 1
 * %)^2, for which the 95 % interval is above 0 in four of five measurements. v is the standard
 * deviation of a difference of two passes divided by their mean. It is estimated from untraced
 * passes of successive blocks, s^2 = sum (u_i+1 - u_i)^2 / (n - 1), so it includes drift within a
 * block but not drift over the run (von Neumann 1941).
 */
#ifndef CULPRIT_HARNESS_TABLE_OVERHEAD_H
#define CULPRIT_HARNESS_TABLE_OVERHEAD_H

#include <stdbool.h>
#include <stdint.h>

#include "harness/table/table.h"

struct overhead;

struct overhead *overhead_new(void);
void overhead_free(struct overhead *o);

/* Names are shown in the order of these calls; others follow in the order of their runs. */
void overhead_declare(struct overhead *o, const char *workload, const char *tracer);

/* A complete run. */
struct overhead_run {
	const char *workload, *tracer; /* "none": untraced */
	long block;
	double seconds;
	/* Processor time of the file system's, the applications' and the tracers' processes on
	 * all nodes; and of the tracers alone. 0 or less: not measured. */
	double cpu_s, tracers_s;
	int64_t records, calls, lost; /* negative: not counted by the tracer */
};

/* -EINVAL: seconds must be above 0. The names are copied. */
int overhead_add(struct overhead *o, const struct overhead_run *r, struct err *e);

/* A published figure, in percent. It is shown below the measured ones if the run has a workload
 * of this name, with or without parameters. */
void overhead_publish(struct overhead *o, const char *source, const char *workload,
	const char *tracer, double pct);

/* Adds all figures of results/NAME.csv: instrumentation,workload,overhead_pct, with the source as
 * the first comment. -EINVAL: the file does not exist or is invalid. */
int overhead_read_published(struct overhead *o, const char *name, struct err *e);

/* A figure and its interval, NAN below three pairs. */
struct overhead_ratio {
	double value, low, high;
};

struct overhead_cell {
	unsigned pairs, cpu_pairs;               /* cpu_pairs: with processor times in both */
	double mean_s, untraced_mean_s;          /* over the pairs */
	double cpu_mean_s, untraced_cpu_mean_s;  /* over the pairs that have it; otherwise NAN */
	double tracers_mean_s;                   /* part of cpu_mean_s */
	double calls;                            /* of a traced pass; NAN: unknown */
	struct overhead_ratio wall_pct, cpu_pct; /* increase, in percent */
	struct overhead_ratio call_us;           /* added processor time per call */
	int64_t records, lost;                   /* sums over all its runs; negative: not counted */
};

/* 0, or -ENOENT if there is no such run. */
int overhead_cell(const struct overhead *o, const char *workload, const char *tracer,
	struct overhead_cell *out);

/* Number of pairs to detect an increase of 1 % of the run time, or of the processor time; NAN:
 * fewer than three untraced passes. */
double overhead_pairs(const struct overhead *o, const char *workload, bool cpu);

int overhead_render(const struct overhead *o, enum table_format format,
	const struct table_notes *notes, FILE *f);

#endif
