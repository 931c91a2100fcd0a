/*
 * A ClickHouse database over HTTP: statements, questions, rows inserted and read. Only what
 * versions from 18.16 on have in common is used. Each wait has a limit.
 */
#ifndef CULPRIT_DIAG_SHIP_CLICKHOUSE_H
#define CULPRIT_DIAG_SHIP_CLICKHOUSE_H

#include <jansson.h>
#include <signal.h>
#include <stdio.h>

#include "harness/base/err.h"

struct clickhouse_options {
	/* clickhouse://HOST[:PORT]/DATABASE, clickhouses:// for TLS; without user and password */
	const char *url;
	double timeout_s;          /* of one request with its answer */
	const char *password_file; /* holds USER:PASSWORD; NULL: the environment's
				    * CULPRIT_CLICKHOUSE_USER and CULPRIT_CLICKHOUSE_PASSWORD */
	const char *ca_file;       /* certificates that may sign the server's; NULL: the system's */
	const volatile sig_atomic_t *stop;
};

struct clickhouse;

/* Checks the address, and asks the server for one of its settings. -EINVAL: a wrong address; else
 * as the functions below. */
int clickhouse_open(const struct clickhouse_options *o, struct clickhouse **out, struct err *e);
void clickhouse_close(struct clickhouse *c); /* NULL is fine */

const char *clickhouse_database(const struct clickhouse *c); /* a plain name: needs no quotes */
const char *clickhouse_url(const struct clickhouse *c);

/* The functions below fail with the server's own words: -EACCES: it does not let the user in;
 * -ENOSPC: it is full; -EREMOTEIO: it refuses; else as http_end. */

/* A statement without an answer. */
int clickhouse_do(struct clickhouse *c, const char *sql, struct err *e);

/* A question: an array of rows, each an array. New reference. */
int clickhouse_ask(struct clickhouse *c, const char *sql, json_t **rows, struct err *e);

/* 'into': "TABLE (COLUMN, ...)"; 'body' in the format RowBinary. Nothing is known of what was
 * inserted if it fails. */
int clickhouse_insert(
	struct clickhouse *c, const char *into, const void *body, size_t size, struct err *e);

/* A question whose rows are read in the format RowBinary; until clickhouse_end, whose 'rc' is what
 * the reader says. */
int clickhouse_begin(struct clickhouse *c, const char *sql, FILE **answer, struct err *e);
int clickhouse_end(struct clickhouse *c, int rc, struct err *e);

/* 's' as a literal of SQL, with its quotes, appended to 'out'. */
void clickhouse_quote(FILE *out, const char *s);

#endif
