/*
 * Internals of a run's store, shared by its files: store.c (open, facts, plan), store_write.c
 * (attempts, verdicts, repairs), store_read.c (rows), store_samples.c, store_requests.c,
 * store_corpus.c, store_join.c (shards).
 */
#ifndef CULPRIT_HARNESS_STORE_STORE_IMPL_H
#define CULPRIT_HARNESS_STORE_STORE_IMPL_H

#include <sqlite3.h>

#include "harness/store/store.h"

struct store {
	sqlite3 *db;
	char *folder, *run_id;
	char *path;        /* of run.db or run.db.gz, for messages */
	bool packed;       /* a corpus, in memory */
	bool joined;       /* several runs, in a private temporary file */
	bool packed_parts; /* joined from corpora that do not all have verdicts */
};

/* Sets SQLite's error of the last call: -EBADMSG (ERR_DAMAGED), -ENOSPC for a full disk,
 * otherwise -EIO. */
int store_fail(struct store *s, struct err *e, const char *doing);
int store_exec(struct store *s, const char *sql, struct err *e, const char *doing);

/* Prepares 'sql' and binds arguments by 'types': i int64_t, d double, s string (may be NULL), j
 * JSON (may be NULL), b bytes: a pointer and a size_t (not copied: they must outlive the
 * statement). */
int store_statement(struct store *s, sqlite3_stmt **out, struct err *e, const char *sql,
	const char *types, ...);

/* Prepares, binds and runs a statement that returns no rows. */
int store_do(
	struct store *s, struct err *e, const char *doing, const char *sql, const char *types, ...);

/* Returns every row of 'sql' as an object of its columns; columns that end in "_json" are parsed
 * and lose that ending. 'arg' is bound if there is a '?'. New reference. */
int store_query(struct store *s, const char *sql, int64_t arg, json_t **rows, struct err *e);

/* Makes the table 'request', which a store has only if an attempt has requests. */
int store_make_requests(struct store *s, struct err *e);

/* Does a schema ("main", or a shard's) have the table 'request'? 1, 0 or an error. */
int store_knows_requests(struct store *s, const char *schema, struct err *e);

/* An empty store for joined runs. */
int store_open_joined(struct store *const from[], size_t n, struct store **out, struct err *e);

/* Reads run.db.gz into the open, empty, in-memory store 's', read-only. */
int store_load_packed(struct store *s, struct err *e);

#endif
