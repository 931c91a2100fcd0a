/* Requests: what was found of an attempt's, in blocks that diag/flow/table.c packs. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"
#include "harness/store/store_impl.h"

int store_make_requests(struct store *s, struct err *e)
{
	return store_exec(s,
		"CREATE TABLE IF NOT EXISTS request (attempt INTEGER REFERENCES attempt,"
		" recording INTEGER, block INTEGER, data BLOB,"
		" PRIMARY KEY (attempt, recording, block)) WITHOUT ROWID",
		e, "make the table of requests");
}

/* Is there a row? 1, 0 or an error. Finalises 'st'. */
static int store_any(struct store *s, sqlite3_stmt *st, struct err *e)
{
	const int step = sqlite3_step(st);
	const int rc = step == SQLITE_ROW ? 1 : step == SQLITE_DONE ? 0 : store_fail(s, e, "read");

	sqlite3_finalize(st);
	return rc;
}

int store_knows_requests(struct store *s, const char *schema, struct err *e)
{
	sqlite3_stmt *st = NULL;
	char sql[96];

	snprintf(sql, sizeof(sql),
		"SELECT 1 FROM %s.sqlite_schema WHERE type = 'table' AND name = 'request'", schema);
	return store_statement(s, &st, e, sql, "") ?: store_any(s, st, e);
}

int store_put_requests(struct store *s, int64_t attempt, int64_t recording, uint32_t block,
	const void *data, size_t size, struct err *e)
{
	return store_make_requests(s, e)
		?: store_do(s, e, "write requests", "INSERT INTO request VALUES (?, ?, ?, ?)",
			   "iiib", attempt, recording, (int64_t)block, data, size);
}

int store_get_requests(struct store *s, int64_t attempt, int64_t recording, uint32_t block,
	unsigned char **data, size_t *size, struct err *e)
{
	sqlite3_stmt *st;
	int rc = store_knows_requests(s, "main", e), step;

	if (rc <= 0)
		return rc;
	rc = store_statement(s, &st, e,
		"SELECT data FROM request WHERE attempt = ? AND recording = ? AND block = ?", "iii",
		attempt, recording, (int64_t)block);
	if (rc)
		return rc;
	step = sqlite3_step(st);
	if (step == SQLITE_ROW) {
		*size = (size_t)sqlite3_column_bytes(st, 0);
		*data = alloc_zero(*size, 1);
		if (*size)
			memcpy(*data, sqlite3_column_blob(st, 0), *size);
		rc = 1;
	} else if (step != SQLITE_DONE) {
		rc = store_fail(s, e, "read requests");
	}
	sqlite3_finalize(st);
	return rc;
}

int store_has_requests(struct store *s, int64_t attempt, struct err *e)
{
	sqlite3_stmt *st = NULL;
	const int rc = store_knows_requests(s, "main", e);

	if (rc <= 0)
		return rc;
	return store_statement(s, &st, e,
		       "SELECT 1 FROM request WHERE block = 0 AND ?1 IN (0, attempt) LIMIT 1", "i",
		       attempt)
		?: store_any(s, st, e);
}

int store_drop_requests(struct store *s, int64_t attempt, int64_t recording, struct err *e)
{
	const int rc = store_knows_requests(s, "main", e);

	if (rc <= 0)
		return rc;
	return store_do(s, e, "delete the requests of an attempt",
		"DELETE FROM request WHERE attempt = ?1 AND (?2 < 0 OR recording = ?2)", "ii",
		attempt, recording);
}
