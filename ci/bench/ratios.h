/*
 * How many times as much there is on a faulty server as on a plain one (Dinh 2009, Table 6.1),
 * measured next to published.
 *
 * Of each cell: the victim's average, divided by the mean of the other servers' averages in the
 * same cell, as the thesis compares two servers of one run. Over n cells the figure is the
 * geometric mean of these ratios, and its 95 % interval that of the mean of their logarithms
 * (Student's t, n - 1): a ratio and its inverse are equally far from 1. No interval for n = 1.
 * Cells in which either side is 0 have no ratio, and are counted.
 *
 * A control has no victim: there the servers take turns, the first in the first control, so that
 * its ratio says what differs between servers when nothing is wrong.
 */
#ifndef CULPRIT_CI_BENCH_RATIOS_H
#define CULPRIT_CI_BENCH_RATIOS_H

#include "harness/table/grid.h"

struct ratios;

/* 'averages' is the text of averages_print (ci/bench/averages.h), 'name' is used in errors.
 * -EINVAL: it is none, and the error names the line. */
int ratios_parse(const char *name, const char *averages, struct ratios **out, struct err *e);
void ratios_free(struct ratios *r);

/* A ratio over cells. */
struct ratio {
	unsigned n, without;  /* cells with a ratio, and without */
	double plain, victim; /* means over these cells */
	double value;         /* NAN: n is 0 */
	double low, high;     /* NAN: n is below 2 */
};

/* Of the cells with this fault ("none": of controls). */
struct ratio ratios_of(const struct ratios *r, const char *fault, const char *component);

/* Every component under every fault; or, with the text of a published table (as
 * results/dinh09-table61.csv), its components only, each next to the published ratio.
 * -EINVAL: the table is none, or does not know the file system. */
int ratios_render(const struct ratios *r, const char *published, enum table_format format, FILE *f,
	struct err *e);

#endif
