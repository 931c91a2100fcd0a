/* Reads rows of a run's store. */
#include "harness/store/store_impl.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "harness/base/jget.h"

static json_t *read_column(sqlite3_stmt *st, int i, bool parse)
{
	const char *text = (const char *)sqlite3_column_text(st, i);

	if (parse && text)
		return json_loads(text, JSON_DECODE_ANY, NULL);
	switch (sqlite3_column_type(st, i)) {
	case SQLITE_INTEGER: return json_integer(sqlite3_column_int64(st, i));
	case SQLITE_FLOAT: return json_real(sqlite3_column_double(st, i));
	default: return text ? json_string(text) : NULL;
	}
}

static int read_row(struct store *s, sqlite3_stmt *st, json_t *rows, struct err *e)
{
	json_t *row = json_object(), *v;

	json_array_append_new(rows, row);
	for (int i = 0; i < sqlite3_column_count(st); i++) {
		const char *name = sqlite3_column_name(st, i);
		size_t len = strlen(name);
		bool parse = len > 5 && !strcmp(name + len - 5, "_json");

		v = read_column(st, i, parse);
		if (!v && parse && sqlite3_column_type(st, i) != SQLITE_NULL) {
			err_set(e, -EBADMSG, "'%s' is damaged: a %.*s is not JSON", s->path,
				(int)len - 5, name);
			return err_blame(e, ERR_DAMAGED, -EBADMSG);
		}
		json_object_setn_new(row, name, parse ? len - 5 : len, v ? v : json_null());
	}
	return 0;
}

int store_query(struct store *s, const char *sql, int64_t arg, json_t **rows, struct err *e)
{
	json_t *list = json_array();
	sqlite3_stmt *st = NULL;
	int rc = store_statement(s, &st, e, sql, strchr(sql, '?') ? "i" : "", arg),
	    step = SQLITE_DONE;

	while (!rc && (step = sqlite3_step(st)) == SQLITE_ROW)
		rc = read_row(s, st, list, e);
	if (!rc && step != SQLITE_DONE)
		rc = store_fail(s, e, "read");
	sqlite3_finalize(st);
	if (rc)
		json_decref(list);
	else
		*rows = list;
	return rc;
}

int store_rows(
	struct store *s, enum store_rows which, int64_t attempt, json_t **rows, struct err *e)
{
	static const char *const queries[] = {
		[ROWS_CONFIRMED] =
			"SELECT cell.number AS cell, training, workload, fault, resource,"
			" victims AS victims_json, repeat, attempt.id AS attempt,"
			" attempt.number AS number, seconds,"
			" start_ns, onset_ns, offset_ns"
			" FROM cell JOIN attempt ON attempt.cell = cell.number"
			" WHERE outcome = 'confirmed' ORDER BY cell.number",
		[ROWS_RUNTIMES] = "SELECT cell.number AS cell, workload, tracer, repeat,"
				  " json_extract(detail, '$.runtime_s') AS runtime_s,"
				  " json_extract(detail, '$.cpu.all_s') AS cpu_s,"
				  " json_extract(detail, '$.cpu.tracers_s') AS tracers_s,"
				  " json_extract(detail, '$.calls') AS calls,"
				  " json_extract(detail, '$.lost') AS lost,"
				  " json_extract(detail, '$.records') AS records"
				  " FROM cell JOIN attempt ON attempt.cell = cell.number"
				  " WHERE outcome = 'confirmed' ORDER BY cell.number",
		[ROWS_EVENTS] =
			"SELECT kind, server, client, time_s, detail AS detail_json FROM event"
			" WHERE attempt = ? ORDER BY number",
		[ROWS_VERDICTS] =
			"SELECT attempt, detector, metric, verdict AS verdict_json FROM verdict",
		[ROWS_ATTEMPTS] = "SELECT id, cell, number, outcome, key FROM attempt ORDER BY id",
		[ROWS_TRACED] =
			"SELECT id AS attempt, cell, attempt.number AS number, start_ns, seconds,"
			" onset_ns, offset_ns, training, workload, fault, victims AS victims_json,"
			" detail AS detail_json,"
			" (SELECT count(*) FROM file WHERE file.attempt = attempt.id) AS files"
			" FROM attempt JOIN cell ON cell.number = attempt.cell"
			" WHERE outcome = 'confirmed' ORDER BY id",
		[ROWS_UNJUDGED] = "SELECT attempt.id AS attempt, cell"
				  " FROM attempt JOIN cell ON cell.number = attempt.cell"
				  " WHERE outcome = 'confirmed' AND NOT training AND NOT EXISTS"
				  " (SELECT 1 FROM verdict WHERE verdict.attempt = attempt.id)"
				  " ORDER BY cell",
		[ROWS_FILES] =
			"SELECT path, size, sha256 FROM file WHERE attempt = ? ORDER BY path",
	};

	return store_query(s, queries[which], attempt, rows, e);
}

int store_table(struct store *s, const char *table, json_t **rows, struct err *e)
{
	char sql[96];

	sqlite3_snprintf(sizeof(sql), sql, "SELECT * FROM \"%w\" ORDER BY 1", table);
	return store_query(s, sql, 0, rows, e);
}

/* The parts of a tally, each a query. "%s" is the column of the fault or tracer. */
static const struct {
	const char *name, *sql;
} tally_parts[] = {
	{"cells",
		"SELECT number, training, workload, %s AS fault, EXISTS (SELECT 1 FROM attempt"
		" WHERE cell = cell.number AND outcome = 'confirmed') AS done FROM cell"
		" WHERE skipped IS NULL ORDER BY number"},
	{"skipped",
		"SELECT %s AS fault, skipped AS reason, count(*) AS cells FROM cell"
		" WHERE skipped IS NOT NULL GROUP BY 1"},
	{"failed",
		"SELECT cell, number, outcome, reason FROM attempt WHERE outcome <> 'confirmed'"
		" ORDER BY id"},
	{"attempts",
		"SELECT count(*) FILTER (WHERE outcome = 'confirmed') AS confirmed,"
		" count(*) FILTER (WHERE outcome = 'invalid') AS invalid,"
		" count(*) FILTER (WHERE outcome = 'error') AS error,"
		" count(*) FILTER (WHERE outcome = 'aborted') AS aborted FROM attempt"},
};

int store_tally(struct store *s, json_t **tally, struct err *e)
{
	int rc = 0, runtimes = store_has_runtimes(s, e);
	json_auto_t *all = json_object();
	json_t *missing = json_array(), *cells, *row, *rows;
	char sql[320];
	size_t i;

	json_object_set_new(all, "missing", missing);
	if (runtimes < 0)
		return runtimes;
	for (i = 0; i < sizeof(tally_parts) / sizeof(tally_parts[0]); i++) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		snprintf(sql, sizeof(sql), tally_parts[i].sql, runtimes ? "tracer" : "fault");
#pragma GCC diagnostic pop
		if ((rc = store_query(s, sql, 0, &rows, e)))
			return rc;
		json_object_set_new(all, tally_parts[i].name, rows);
	}
	cells = jget(all, "cells");
	json_array_foreach(cells, i, row)
		if (!jget_int(row, "done"))
			json_array_append(missing, row);
	json_object_set(all, "attempts", json_array_get(jget(all, "attempts"), 0));
	json_object_set_new(all, "planned", json_integer((json_int_t)json_array_size(cells)));
	json_object_set_new(all, "confirmed",
		json_integer((json_int_t)(json_array_size(cells) - json_array_size(missing))));
	*tally = json_incref(all);
	return 0;
}
