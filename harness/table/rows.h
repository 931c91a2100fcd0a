/* Prints rows of a query on standard output: as a table, as CSV, or as JSON lines. */
#ifndef CULPRIT_HARNESS_TABLE_ROWS_H
#define CULPRIT_HARNESS_TABLE_ROWS_H

#include "diag/query/query.h"

enum rows_form { ROWS_TEXT, ROWS_CSV, ROWS_JSON };

struct rows;

/* At most 'limit' rows (0: all); a further row ends the query. */
struct rows *rows_new(enum rows_form form, long limit);
struct query_sink rows_sink(struct rows *r);

/* Prints buffered rows; returns the number of rows printed. */
long rows_end(struct rows *r);
void rows_free(struct rows *r);

#endif
