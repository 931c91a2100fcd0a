/*
 * The inside of a run's store, for the files that make it (store.c: open, facts, plan;
 * store_write.c: attempts and verdicts; store_samples.c: samples; store_read.c: rows; store_keep.c:
 * what a resumed run finds and mends; store_corpus.c: packed ones).
 */
#ifndef CULPRIT_HARNESS_STORE_IMPL_H
#define CULPRIT_HARNESS_STORE_IMPL_H

#include <sqlite3.h>

#include "harness/store/store.h"

struct store {
	sqlite3 *db;
	char *folder, *run_id;
	bool packed; /* a corpus, in memory */
};

/* The samples of one metric of one server in an attempt: squeeze.h. */
#define STORE_SERIES                                                                                                     \
	"CREATE TABLE IF NOT EXISTS series (attempt INTEGER REFERENCES attempt, metric TEXT, server TEXT, samples BLOB," \
	" PRIMARY KEY (attempt, metric, server)) WITHOUT ROWID;"

bool store_has_table(struct store *s, const char *name);

/* -EIO (-ENOSPC where the disk is full) and what SQLite says. */
int store_fail(struct store *s, struct err *e, const char *doing);
int store_exec(struct store *s, const char *sql, struct err *e, const char *doing);

/* Prepares 'sql' and binds by 'types': i int64_t, d double, s text (may be NULL), j JSON (may be
 * NULL), b bytes: a pointer and a size_t (not copied: they must last as long as the statement). */
int store_statement(struct store *s, sqlite3_stmt **out, struct err *e, const char *sql,
	const char *types, ...);

/* Runs a statement that gives no rows, and finalizes it. */
int store_finish(struct store *s, sqlite3_stmt *st, struct err *e, const char *doing);

/* Every row of 'sql' as an object of its columns; columns that end in "_json" are parsed (and lose
 * that). 'arg' is bound where there is a '?'. New reference. */
int store_query(struct store *s, const char *sql, int64_t arg, json_t **rows, struct err *e);

/* Reads a corpus' run.db.gz into the open, empty, in-memory 's'; nothing can be written to it. */
int store_load_packed(struct store *s, const char *path, struct err *e);

/* Size and SHA-256 of a file; if 'sync', it is on the disk when this returns. */
int store_hash_file(const char *path, char hex[65], int64_t *size, bool sync, struct err *e);

#endif
