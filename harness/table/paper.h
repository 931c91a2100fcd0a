/*
 * A published table of TP and FP (Table 1 of Kasick et al. 2009) next to the scores of a run.
 *
 * The published table is data: results/NAME.csv with the columns fault, metric, workload, tp, fp;
 * its first comment is the source. A comment "# cells: N" gives the number of cells behind each
 * figure. The table has parts, like the left and right half in the paper: metrics whose rows have
 * the same workloads form one part. A missing row counts as published 0, because the paper prints
 * only rows that are not 0.
 *
 * Scores are matched by name, with any parameters: "ddw(records=2)" is ddw. A detector that
 * judges the published metrics separately is shown by metric. All detectors except null detectors
 * are shown with their verdict over all metrics ("any"): TP, FP, cause and delay for each fault
 * and workload, and the false alarms in controls. If the number of published cells is known, a
 * line counts the places in which such a detector's share is within the published share's
 * interval.
 */
#ifndef CULPRIT_HARNESS_TABLE_PAPER_H
#define CULPRIT_HARNESS_TABLE_PAPER_H

#include "harness/table/table.h"

struct paper;

/* 'name' is the name of a file in results/, without ".csv". -ENOENT: it does not exist; -EINVAL:
 * it is not a table of TP and FP, and the error names the line. */
int paper_read(const char *name, struct paper **out, struct err *e);
/* The text of a published table; the caller frees. -ENOENT or -EINVAL: there is no such table. */
int paper_text(const char *name, char **text, struct err *e);
/* The same from text; 'name' is used in errors. */
int paper_parse(const char *name, const char *text, struct paper **out, struct err *e);
void paper_free(struct paper *p);

/* Text and Markdown begin with all shares in one small table and the summary of table_render;
 * Markdown then has the paper's layout with its parts side by side. CSV and JSON have every cell.
 * SVG draws the first small table; -ENOENT if there is none. Returns 0, or the result of
 * outfile_flush. */
int paper_render(const struct paper *p, const struct score_table *t, enum table_format format,
	const struct table_notes *notes, FILE *f);

#endif
