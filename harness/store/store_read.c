#include "harness/store/store_impl.h"

#include <errno.h>
#include <string.h>

int store_query(struct store *s, const char *sql, int64_t arg, json_t **rows, struct err *e)
{
	json_t *list = json_array();
	sqlite3_stmt *st;
	int rc = store_statement(s, &st, e, sql, strchr(sql, '?') ? "i" : "", arg), step;

	if (rc)
		goto out;
	while ((step = sqlite3_step(st)) == SQLITE_ROW) {
		json_t *row = json_object();

		for (int i = 0; i < sqlite3_column_count(st); i++) {
			const char *name = sqlite3_column_name(st, i), *text;
			size_t len = strlen(name);
			json_t *v = NULL;

			text = (const char *)sqlite3_column_text(st, i);
			if (len > 5 && !strcmp(name + len - 5, "_json") && text)
				v = json_loads(text, JSON_DECODE_ANY, NULL);
			else if (sqlite3_column_type(st, i) == SQLITE_INTEGER)
				v = json_integer(sqlite3_column_int64(st, i));
			else if (sqlite3_column_type(st, i) == SQLITE_FLOAT)
				v = json_real(sqlite3_column_double(st, i));
			else if (text)
				v = json_string(text);
			json_object_setn_new(row, name,
				len > 5 && !strcmp(name + len - 5, "_json") ? len - 5 : len,
				v ? v : json_null());
		}
		json_array_append_new(list, row);
	}
	if (step != SQLITE_DONE)
		rc = store_fail(s, e, "read");
	sqlite3_finalize(st);
out:
	if (rc)
		json_decref(list);
	else
		*rows = list;
	return rc;
}

int store_confirmed(struct store *s, json_t **rows, struct err *e)
{
	return store_query(s,
		"SELECT cell.number AS cell, training, workload, fault, resource, victims AS victims_json, repeat, attempt.id AS attempt, seconds,"
		" start_ns, onset_ns, offset_ns FROM cell JOIN attempt ON attempt.cell = cell.number"
		" WHERE outcome = 'confirmed' ORDER BY cell.number",
		0, rows, e);
}

int store_runtimes(struct store *s, json_t **rows, struct err *e)
{
	return store_query(s,
		"SELECT cell.number AS cell, workload, tracer, repeat, json_extract(detail, '$.runtime_s') AS runtime_s,"
		" json_extract(detail, '$.lost') AS lost, json_extract(detail, '$.records') AS records"
		" FROM cell JOIN attempt ON attempt.cell = cell.number WHERE outcome = 'confirmed' ORDER BY cell.number",
		0, rows, e);
}

int store_events(struct store *s, int64_t attempt, json_t **rows, struct err *e)
{
	return store_query(s,
		"SELECT kind, server, client, time_s, detail AS detail_json FROM event WHERE attempt = ?"
		" ORDER BY number",
		attempt, rows, e);
}

int store_verdicts(struct store *s, json_t **rows, struct err *e)
{
	return store_query(s,
		"SELECT attempt, detector, metric, verdict AS verdict_json FROM verdict", 0, rows,
		e);
}

int store_table(struct store *s, const char *table, json_t **rows, struct err *e)
{
	char *sql = sqlite3_mprintf("SELECT * FROM \"%w\" ORDER BY 1", table);
	int rc = sql ? store_query(s, sql, 0, rows, e)
		     : err_errno(e, -ENOMEM, "cannot read '%s'", table);

	sqlite3_free(sql);
	return rc;
}

int store_tally(struct store *s, json_t **tally, struct err *e)
{
	json_t *cells = NULL, *attempts = NULL, *reasons = NULL, *skipped = NULL, *row, *result,
	       *missing;
	char *measure = store_get(s, "measure"), sql[256];
	/* What is done to a workload: where run times are measured, a tracer. */
	const char *treatment = measure && !strcmp(measure, "runtime") ? "tracer" : "fault";
	json_int_t confirmed = 0;
	size_t i;
	int rc;

	free(measure);
	snprintf(sql, sizeof(sql),
		"SELECT number, training, workload, %s AS fault, EXISTS (SELECT 1 FROM attempt WHERE cell = cell.number AND"
		" outcome = 'confirmed') AS done FROM cell WHERE skipped IS NULL ORDER BY number",
		treatment);
	rc = store_query(s, sql, 0, &cells, e);
	if (!rc)
		rc = store_query(s, "SELECT outcome, count(*) AS n FROM attempt GROUP BY outcome",
			0, &attempts, e);
	if (!rc)
		rc = store_query(s,
			"SELECT cell, number, outcome, reason FROM attempt WHERE outcome <> 'confirmed' ORDER BY id",
			0, &reasons, e);
	if (rc)
		goto out;
	snprintf(sql, sizeof(sql),
		"SELECT %s AS fault, skipped AS reason, count(*) AS cells FROM cell WHERE skipped IS NOT NULL GROUP BY %s",
		treatment, treatment);
	if (store_query(s, sql, 0, &skipped, e))
		skipped = json_array();
	missing = json_array();
	json_array_foreach(cells, i, row)
	{
		if (json_integer_value(json_object_get(row, "done")))
			confirmed++;
		else
			json_array_append(missing, row);
	}
	result = json_pack("{s:I, s:I, s:o, s:O}", "planned", (json_int_t)json_array_size(cells),
		"confirmed", confirmed, "missing", missing, "failed", reasons);
	json_object_set(result, "cells", cells);
	json_object_set_new(result, "skipped", skipped);
	row = json_pack("{s:i, s:i, s:i}", "confirmed", 0, "invalid", 0, "error", 0);
	for (i = 0; i < json_array_size(attempts); i++) {
		json_t *a = json_array_get(attempts, i);

		json_object_set(row, json_string_value(json_object_get(a, "outcome")),
			json_object_get(a, "n"));
	}
	json_object_set_new(result, "attempts", row);
	*tally = result;
out:
	json_decref(cells);
	json_decref(attempts);
	json_decref(reasons);
	return rc;
}
