#include "harness/store/store_impl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int store_attempts(struct store *s, json_t **rows, struct err *e)
{
	return store_query(
		s, "SELECT id, cell, number, outcome, key FROM attempt ORDER BY id", 0, rows, e);
}

int store_traced(struct store *s, json_t **rows, struct err *e)
{
	return store_query(s,
		"SELECT id AS attempt, cell, number, start_ns, seconds, detail AS detail_json,"
		" (SELECT count(*) FROM file WHERE file.attempt = attempt.id) AS files"
		" FROM attempt WHERE outcome = 'confirmed' ORDER BY id",
		0, rows, e);
}

int store_check_files(struct store *s, int64_t attempt, struct err *why)
{
	json_t *rows = NULL, *row;
	size_t i;
	int rc = store_query(s,
		"SELECT path, size, sha256 FROM file WHERE attempt = ? ORDER BY path", attempt,
		&rows, why);

	json_array_foreach(rows, i, row)
	{
		const char *path = json_string_value(json_object_get(row, "path"));
		char hex[65] = "", *full;
		int64_t size;

		if (rc)
			break;
		if (asprintf(&full, "%s/%s", s->folder, path) < 0) {
			rc = err_errno(why, -ENOMEM, "cannot check '%s'", path);
			break;
		}
		if (store_hash_file(full, hex, &size, false, why))
			rc = err_set(
				why, -EBADMSG, "its file '%s' is missing or cannot be read", path);
		else if (size != json_integer_value(json_object_get(row, "size")) ||
			strcmp(hex, json_string_value(json_object_get(row, "sha256"))))
			rc = err_set(why, -EBADMSG,
				"its file '%s' is not what was written: its checksum is another",
				path);
		free(full);
	}
	json_decref(rows);
	return rc;
}

int store_spoil(struct store *s, int64_t cell, int64_t number, const char *reason, struct err *e)
{
	sqlite3_stmt *st;
	int rc = store_begin(s, e);

	if (!rc)
		rc = store_statement(s, &st, e,
			"DELETE FROM verdict WHERE attempt = (SELECT id FROM attempt WHERE cell = ? AND number = ?)",
			"ii", cell, number);
	if (!rc)
		rc = store_finish(s, st, e, "drop verdicts");
	if (!rc)
		rc = store_statement(s, &st, e,
			"UPDATE attempt SET outcome = 'invalid', reason = ? WHERE cell = ? AND number = ?",
			"sii", reason, cell, number);
	if (!rc)
		rc = store_finish(s, st, e, "spoil an attempt");
	if (!rc)
		rc = store_commit(s, e);
	if (rc)
		store_rollback(s);
	return rc;
}

int store_drop_attempt(struct store *s, int64_t attempt, struct err *e)
{
	static const char *const tables[] = {"verdict", "event", "file"};
	int rc = store_begin(s, e);

	if (!rc)
		rc = store_drop_samples(s, attempt, e);
	for (size_t i = 0; i <= sizeof(tables) / sizeof(tables[0]) && !rc; i++) {
		bool last = i == sizeof(tables) / sizeof(tables[0]);
		char sql[96];
		sqlite3_stmt *st;

		snprintf(sql, sizeof(sql), "DELETE FROM %s WHERE %s = ?",
			last ? "attempt" : tables[i], last ? "id" : "attempt");
		rc = store_statement(s, &st, e, sql, "i", attempt);
		if (!rc)
			rc = store_finish(s, st, e, "drop an attempt");
	}
	if (!rc)
		rc = store_commit(s, e);
	if (rc)
		store_rollback(s);
	return rc;
}

int store_unskip(struct store *s, struct err *e)
{
	return store_exec(s, "UPDATE cell SET skipped = NULL", e, "take skips back");
}

int store_unjudged(struct store *s, json_t **rows, struct err *e)
{
	return store_query(s,
		"SELECT attempt.id AS attempt, cell FROM attempt JOIN cell ON cell.number = attempt.cell"
		" WHERE outcome = 'confirmed' AND NOT training"
		" AND NOT EXISTS (SELECT 1 FROM verdict WHERE verdict.attempt = attempt.id) ORDER BY cell",
		0, rows, e);
}
