/* Tables of the caller's: rows that are copied. */
#include <stdlib.h>
#include <string.h>

#include "diag/query/query_impl.h"

static int bind_json(sqlite3_stmt *st, int i, const json_t *v)
{
	switch (json_typeof(v)) {
	case JSON_INTEGER: return sqlite3_bind_int64(st, i, json_integer_value(v));
	case JSON_REAL: return sqlite3_bind_double(st, i, json_real_value(v));
	case JSON_TRUE:
	case JSON_FALSE: return sqlite3_bind_int(st, i, json_is_true(v));
	case JSON_STRING: return sqlite3_bind_text(st, i, json_string_value(v), -1, SQLITE_STATIC);
	case JSON_NULL: return sqlite3_bind_null(st, i);
	default: return sqlite3_bind_text(st, i, json_dumps(v, JSON_COMPACT), -1, free);
	}
}

static int insert(sqlite3_stmt *st, const char *const columns[], const json_t *rows)
{
	const json_t *row, *v;
	size_t k;

	json_array_foreach(rows, k, row) {
		for (int i = 0; columns[i]; i++) {
			v = json_object_get(row, columns[i]);
			if (v && bind_json(st, i + 1, v) != SQLITE_OK)
				return SQLITE_ERROR;
		}
		if (sqlite3_step(st) != SQLITE_DONE)
			return SQLITE_ERROR;
		sqlite3_reset(st);
		sqlite3_clear_bindings(st);
	}
	return SQLITE_OK;
}

static int create(struct query *q, const char *name, const char *const columns[], struct err *e)
{
	sqlite3_str *make = sqlite3_str_new(q->db);
	char *sql;
	int rc;

	sqlite3_str_appendf(make, "CREATE TABLE \"%w\"(", name);
	for (int i = 0; columns[i]; i++)
		sqlite3_str_appendf(make, "%s\"%w\"", i ? ", " : "", columns[i]);
	sqlite3_str_appendall(make, ")");
	sql = sqlite3_str_finish(make);
	rc = sqlite3_exec(q->db, sql, NULL, NULL, NULL);
	sqlite3_free(sql);
	return rc == SQLITE_OK ? 0 : query_fail(q, "make a table", e);
}

static int copied_fill(struct query *q, const char *name, const char *const columns[],
	const json_t *rows, struct err *e)
{
	sqlite3_str *into = sqlite3_str_new(q->db);
	sqlite3_stmt *st = NULL;
	char *sql;
	int rc;

	sqlite3_str_appendf(into, "INSERT INTO \"%w\" VALUES (", name);
	for (int i = 0; columns[i]; i++)
		sqlite3_str_appendall(into, i ? ", ?" : "?");
	sqlite3_str_appendall(into, ")");
	sql = sqlite3_str_finish(into);
	rc = sqlite3_prepare_v2(q->db, sql, -1, &st, NULL);
	if (rc == SQLITE_OK)
		rc = insert(st, columns, rows);
	sqlite3_finalize(st);
	sqlite3_free(sql);
	return rc == SQLITE_OK ? 0 : query_fail(q, "make a table", e);
}

int query_add_table(struct query *q, const char *name, const char *const columns[],
	const json_t *rows, struct err *e)
{
	return create(q, name, columns, e) ?: copied_fill(q, name, columns, rows, e);
}
