/*
 * A published table of TP and FP (Table 1 of Kasick et al. 2009) next to the scores of a run.
 *
 * The published table is data: results/NAME.csv with the columns fault, metric, workload, tp, fp;
 * its first comment is the source. The table has parts, as the paper's has a left and a right half:
 * a comment "# cells: N" says how many cells are behind each figure; metrics whose rows have the
 * same workloads form one part. A row that the table leaves out is
 * published as 0, because the paper prints only rows that are not.
 *
 * Scores are matched by name, with any parameters: "ddw(records=2)" is ddw. A detector that judges
 * the published metrics one by one is shown by metric. Every detector but the null detectors is
 * shown with its verdict over all metrics ("any"): TP, FP, cause and delay for each fault and
 * workload, and the false alarms in controls. Where the number of published cells is known, a line
 * counts the places in which such a detector's share lies within the published one's interval.
 */
#ifndef CULPRIT_HARNESS_TABLE_PAPER_H
#define CULPRIT_HARNESS_TABLE_PAPER_H

#include "harness/table/table.h"

struct paper;

/* 'name' is that of a file in results/, without ".csv". -ENOENT: there is none; -EINVAL: it is not
 * a table of TP and FP, and the error names the line. */
int paper_read(const char *name, struct paper **out, struct err *e);
/* The text of a published table; the caller frees. -ENOENT or -EINVAL: there is none. */
int paper_text(const char *name, char **text, struct err *e);
/* The same from text; 'name' is used in errors. */
int paper_parse(const char *name, const char *text, struct paper **out, struct err *e);
void paper_free(struct paper *p);

/* Text and Markdown begin with all shares in one small table and the summary of table_render;
 * Markdown then has the paper's own layout, its parts side by side. CSV and JSON hold every cell.
 * SVG draws the first small table; -ENOENT if there is none. 0, or what outfile_flush returns. */
int paper_render(const struct paper *p, const struct score_table *t, enum table_format format,
	const struct table_notes *notes, FILE *f);

#endif
