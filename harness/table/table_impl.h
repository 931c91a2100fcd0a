/* Shared by the families of tables. */
#ifndef CULPRIT_HARNESS_TABLE_TABLE_IMPL_H
#define CULPRIT_HARNESS_TABLE_TABLE_IMPL_H

#include "harness/table/table.h"

/* Scores with the names of each axis, and their output. */
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
/* Iterates over the table, starting with *place = 0: returns the next score, or NULL after the
 * last. */
const struct score *tables_next(const struct tables *v, size_t *place);
bool tables_is_null(const struct tables *v, size_t detector);
bool tables_is_page(const struct tables *v); /* text or Markdown */

/* The field of a score in a column: a count, a rate, or the delays. */
enum score_field {
	OF_CONTROL = 1,
	OF_N,
	OF_N_STARRED, /* with a star if the detector abstained in some cells */
	OF_ABSTAINED,
	OF_ABSTAINED_OF, /* "1 of 12" */
	OF_FAILED,
	OF_EARLY,
	OF_RIGHT, /* unless it is a control */
	OF_WRONG,
	OF_DETECTED, /* unless it is a control */
	OF_RESOURCE, /* this and the next two: if the detector named any */
	OF_CAUSE,    /* if the fault has one */
	OF_EXPLAINED,
	OF_DELAYS, /* number of delays */
	OF_MEDIAN,
	OF_MIN,
	OF_MAX,
	OF_DELAY
};

/* Fills the next 'n' columns according to their field; NULL: not scored. */
void tables_score(struct grid *g, const struct score *s, size_t n);

/* The scores in 'g' as CSV, or as JSON below the members of 'all' (which is released) and the
 * summary; returns 0 or the result of outfile_flush. */
int tables_data(struct tables *v, struct grid *g, json_t *all);

/* Prints one detector by fault, metric and workload. Returns true if a cell has a star. */
bool table_detector(struct tables *v, size_t detector);

/* The run's id, its progress, missing cells and remarks: as lines, and as an object. */
void table_footer(struct tables *v);
json_t *table_json_notes(const struct tables *v);
json_t *json_lines(const char *const *lines, size_t n); /* as an array */

/* table_summary.c: all cells together, and which detectors' rates of right servers differ. */
void table_summary(struct tables *v);
json_t *table_summary_json(struct tables *v);

#endif
