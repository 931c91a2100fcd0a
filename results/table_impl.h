/* What the parts of the tables share; not for others. */
#ifndef CULPRIT_RESULTS_TABLE_IMPL_H
#define CULPRIT_RESULTS_TABLE_IMPL_H

#include "results/table.h"

enum { TABLE_WIDTH = 80, TABLE_RATE = 14 };

/* Names of all axes, so that loops over a table stay readable. */
struct names {
	const char *const *of[SCORE_AXES];
	size_t n[SCORE_AXES];
};

struct names table_names(const struct score_table *t);

/* "0.48 [.05,.86]", the interval rounded outwards; "-" for n = 0. */
void table_rate_text(unsigned hits, unsigned n, char *out, size_t size);
/* "6.2 (5-9.5)": median and range in seconds; "-" where there is none. */
void table_delay_text(const struct score *s, char *out, size_t size);
/* Prints words, breaking lines before TABLE_WIDTH; later lines are indented by two. */
void table_wrap(const char *text, FILE *out);
/* Prints a line without the blanks at its end. */
void table_line(const char *text, FILE *out);
/* A field of CSV, quoted where it must be. */
void table_csv_text(const char *text, FILE *out);
/* Which run, how much of it counts, what is missing, remarks; nothing for NULL. */
void table_footer(const struct table_notes *notes, FILE *out);
bool table_is_any(const struct names *n, size_t metric);
bool table_is_null(const struct table_notes *notes, const char *detector);
/* {count, rate, low, high} */
json_t *table_json_rate(unsigned hits, unsigned n);
/* Which run, how much of it counts, what is missing, remarks, into an object. */
void table_json_notes(json_t *all, const struct table_notes *notes);
json_t *table_json_delay(const struct score *s); /* {n, early, median, min, max} */

/* table_details.c: detection, resource, cause, delays and abstentions of each place of a
 * detector. */
void table_details_text(const struct score_table *t, const struct names *n, size_t d, FILE *out);
void table_details_markdown(
	const struct score_table *t, const struct names *n, size_t d, FILE *out);

/* table_summary.c: all cells together, and who can be told from whom. */
void table_summary_text(const struct score_table *t, const struct names *n,
	const struct table_notes *notes, FILE *out);
void table_summary_markdown(const struct score_table *t, const struct names *n,
	const struct table_notes *notes, FILE *out);
json_t *table_summary_json(
	const struct score_table *t, const struct names *n, const struct table_notes *notes);
/* Sentences: which detectors' rates of right servers are apart, abstentions, failures. */
void table_comparisons(const struct score_table *t, const struct names *n,
	const struct table_notes *notes, FILE *out);

#endif
