/* A query's conditions as conditions of ClickHouse's SQL. They may let more rows through: SQLite
 * checks each again. */
#ifndef CULPRIT_DIAG_SHIP_WHERE_H
#define CULPRIT_DIAG_SHIP_WHERE_H

#include <stdio.h>

#include "diag/query/source.h"

/* A filter that push_apply narrows and that asks for nothing yet. */
void where_filter(struct scan_filter *f);

/* " AND ..." for each condition that is understood. 'f': what push_apply made of the times. */
void where_conditions(const struct query_ask *ask, const struct scan_filter *f, FILE *out);

/* A column that the log tells, and that differs from row to row: phase, second, slot. */
bool where_differs(const char *column);
/* Such a column of a log's rows, as "EXPRESSION AS `place_COLUMN`". */
void where_place(const char *column, const struct query_log *log, const struct log_head *head,
	int64_t slot_ns, FILE *out);

#endif
