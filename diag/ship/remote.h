/*
 * Shipped logs as the rows of a query (diag/query/source.h): SQLite asks, ClickHouse filters and
 * sums up. So the questions are the same as to logs, and so are the answers.
 */
#ifndef CULPRIT_DIAG_SHIP_REMOTE_H
#define CULPRIT_DIAG_SHIP_REMOTE_H

#include "diag/query/source.h"
#include "diag/ship/catalog.h"

struct remote;

/* Reads what the database holds. 'c' is borrowed. Errors as schema_check, catalog_load. */
int remote_new(struct clickhouse *c, struct remote **out, struct err *e);
void remote_free(struct remote *r); /* NULL is fine */

const struct query_source *remote_source(struct remote *r);
const struct catalog *remote_catalog(const struct remote *r);

#endif
