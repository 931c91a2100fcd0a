/* What the families of tables share. */
#ifndef CULPRIT_RESULTS_TABLE_IMPL_H
#define CULPRIT_RESULTS_TABLE_IMPL_H

#include "results/table.h"

/* Scores, with the names on each axis, and where they are printed. */
struct tables {
	const struct score_table *t;
	const char *const *names[SCORE_AXES];
	size_t n[SCORE_AXES];
	size_t any; /* index of the metric "any" */
	const struct table_notes *notes;
	struct sheet out;
};

void tables_init(struct tables *v, const struct score_table *t, enum table_format format,
	const struct table_notes *notes, FILE *f);
/* Every place of the table in turn, from *place = 0: its score, or NULL after the last. */
const struct score *tables_next(const struct tables *v, size_t *place);
/* The name of a detector and so on. */
const char *tables_name(const struct tables *v, const struct score *s, enum score_axis axis);
bool tables_is_null(const struct tables *v, size_t detector);
bool tables_is_page(const struct tables *v); /* text or Markdown */

/* Which run, how much of it counts, what is missing, remarks: as lines, and into an object. */
void table_footer(struct tables *v);
void table_json_notes(const struct tables *v, json_t *all);

/* table_summary.c: all cells together, and which detectors' rates of right servers are apart. */
void table_summary(struct tables *v);
json_t *table_summary_json(struct tables *v);

#endif
