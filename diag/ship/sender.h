/*
 * A ClickHouse database as a sink of logs (ship.h): batches become parts (schema.h), each exactly
 * once, whoever is killed.
 *
 * A shipper that begins with a log first notes a session with the block it begins at. The rows of a
 * batch are inserted under a part's number that nobody else uses, and counted; then the part is
 * committed, by one row. A part of a shipper that was taken for dead, and was not, is void: a later
 * session began at or before its block. So nothing is ever deleted, and a row is seen once.
 */
#ifndef CULPRIT_DIAG_SHIP_SENDER_H
#define CULPRIT_DIAG_SHIP_SENDER_H

#include "diag/ship/clickhouse.h"
#include "diag/ship/ship.h"

struct sender;

/* 'run_id': the logs are of this run; NULL: logs by themselves. Makes the tables where they are
 * missing. -EEXIST: the database is of another schema, or of something else. */
int sender_new(struct clickhouse *c, const char *run_id, struct sender **out, struct err *e);
void sender_free(struct sender *s); /* NULL is fine */

struct ship_sink sender_sink(struct sender *s);

/* The run's own tables, as an object of arrays of rows; they replace those that are there. */
int sender_run(struct sender *s, const json_t *tables, struct err *e);

#endif
