/*
 * What shipped logs are in a ClickHouse database: made from the columns' declaration
 * (diag/query/columns.h).
 *
 *   rows_TABLE        rows: _log, _batch (the part), then the columns that are stored. Those that
 *                     the log tells (enum column_needs, OF_PLACE) are not; derived ones are
 *                     computed.
 *   TABLE             a view with all columns as 'culprit query' has them, of committed parts only
 *   culprit_schema    version and digest of this schema
 *   culprit_logs      logs, and where they stand in their run
 *   culprit_sessions  a shipper began with a log, at a block: later parts of earlier ones are void
 *   culprit_parts     parts: blocks of a log of which all rows are there
 *   culprit_ends      logs that were read to their end, or to where they are damaged
 *   culprit_run       the run's own tables, as JSON
 *
 * A part counts once its row is in culprit_parts, and unless it is void. Rows of other parts are
 * left from shippers that were killed; nobody sees them.
 */
#ifndef CULPRIT_DIAG_SHIP_SCHEMA_H
#define CULPRIT_DIAG_SHIP_SCHEMA_H

#include "diag/query/columns.h"
#include "diag/ship/clickhouse.h"

enum { SHIP_SCHEMA = 1 };

/* Is the table one of a store, and the column one that its rows keep? */
bool schema_has_table(const struct query_table *t);
bool schema_stores(const struct column *c);
/* Columns that are never NULL. */
bool schema_is_whole(const struct column *c);

/* How a column is kept. LZ4 does not see that numbers follow each other. */
enum schema_form {
	FORM_PLAIN,
	FORM_NUMBER, /* 'number': _high Int64 and _low UInt8, 256 * _high + _low */
	FORM_SEQ,    /* 'seq': _seq, less the number */
};
enum schema_form schema_form(const struct column *c);

/* Makes the database and its tables as far as they are missing. -EEXIST: it holds another
 * schema. */
int schema_make(struct clickhouse *c, struct err *e);
/* -ENOENT: there are no shipped logs; -EEXIST: of another schema. */
int schema_check(struct clickhouse *c, struct err *e);

/* "DB.rows_events (_log, _batch, time_ns, ...)"; the caller frees. */
char *schema_into(const struct clickhouse *c, const struct query_table *t);

#endif
