/*
 * A published table of TP and FP (001, Table 1), and ours beside it.
 *
 * The published one is data: results/NAME.csv with the columns fault, metric, workload, tp, fp; its
 * first comment says where it is from. The table has parts, as the paper's has a left and a right
 * half: metrics whose rows have the same workloads stand in one part. A row that such a table
 * leaves out is published as 0, for it shows only what is not.
 *
 * Ours are matched by name, whatever the parameters: "ddw(records=2)" is ddw. A detector with
 * verdicts of its own on the published metrics is shown so, by metric; every detector that is no
 * null detector is shown with what it says at last ("any"): TP, FP, cause and delay of each fault
 * and workload, and what it says of the controls.
 */
#ifndef CULPRIT_RESULTS_PAPER_H
#define CULPRIT_RESULTS_PAPER_H

#include "results/table.h"

struct paper;

/* 'name' is that of a file in results/, without ".csv". -ENOENT: there is none; -EINVAL: it holds
 * no TP and FP (or what is wrong with it, with the line). */
int paper_read(const char *name, struct paper **out, struct err *e);
/* The text of a published table; the caller frees. -ENOENT or -EINVAL: there is none. */
int paper_text(const char *name, char **text, struct err *e);
/* The same from text, whose name is for complaints. */
int paper_parse(const char *name, const char *text, struct paper **out, struct err *e);
void paper_free(struct paper *p);

/* Text of at most 80 columns and Markdown begin with all of it in one look (shares only, by fault
 * and workload) and the summary that table_render has; Markdown then has the paper's own layout,
 * its parts side by side. CSV and JSON hold every cell. 0, or -EIO. */
int paper_render(const struct paper *p, const struct score_table *t, enum table_format format,
	const struct table_notes *notes, FILE *f);

#endif
