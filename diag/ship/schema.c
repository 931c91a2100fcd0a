/* Makes and checks the schema of shipped logs in a database. */
#include "diag/ship/schema.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/sha256.h"

enum { STATEMENTS = 64 };

bool schema_has_table(const struct query_table *t)
{
	return !t->summed && !t->unshipped;
}

bool schema_stores(const struct column *c)
{
	return !(c->needs & OF_PLACE);
}

bool schema_is_whole(const struct column *c)
{
	return !strcmp(c->name, "time_ns") || !strcmp(c->name, "number");
}

enum schema_form schema_form(const struct column *c)
{
	return !strcmp(c->name, "number") ? FORM_NUMBER
		: !strcmp(c->name, "seq") ? FORM_SEQ
					  : FORM_PLAIN;
}

static const char *type_of(const struct column *c)
{
	static const char *const types[] = {
		"Nullable(Int64)", "Nullable(Float64)", "LowCardinality(Nullable(String))"};

	return schema_is_whole(c) ? "Int64" : types[c->type];
}

/* How the columns that the log tells read in a view, 'l' being culprit_logs' columns. */
static const char *schema_place_of(const struct column *c)
{
	static const struct {
		const char *name, *sql;
	} places[] = {
		{"t", "(time_ns - l_start_ns) / 1e9"},
		{"cell", "l_cell"},
		{"attempt", "l_attempt"},
		{"phase",
			"multiIf(l_onset_ns = 0, NULL, time_ns < l_onset_ns, 'before', l_offset_ns "
			"!= 0 AND time_ns >= l_offset_ns, 'after', 'during')"},
		{"node", "l_node"},
		{"log", "l_name"},
		{"logs", "l_name"},
		{"owner", "l_owner"},
	};

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		if (!strcmp(places[i].name, c->name))
			return places[i].sql;
	return "NULL";
}

static char *rows_table(const char *db, const struct query_table *t)
{
	auto_free char *text = NULL;
	size_t size;
	FILE *f = alloc_text(&text, &size);

	fprintf(f, "CREATE TABLE IF NOT EXISTS %s.rows_%s (_log Int64, _batch Int64", db, t->name);
	for (const struct column *c = t->columns; c->name; c++) {
		if (schema_form(c) == FORM_NUMBER)
			fputs(", _high Int64, _low UInt8, `number` Int64 ALIAS _high * 256 + _low",
				f);
		else if (schema_form(c) == FORM_SEQ)
			fputs(", _seq Nullable(Int64), `seq` Nullable(Int64) ALIAS _seq + _high "
			      "* 256 "
			      "+ _low",
				f);
		else if (schema_stores(c))
			fprintf(f, ", `%s` %s", c->name, type_of(c));
	}
	fprintf(f, ") ENGINE = MergeTree ORDER BY (_batch, _high, _low)");
	fclose(f);
	return AUTO_TAKE(text);
}

/* Parts that count: no session that began later, at or before their first block, voids them. */
static char *parts_view(const char *db)
{
	return alloc_format(
		"CREATE VIEW IF NOT EXISTS %s.culprit_committed AS SELECT part FROM (SELECT part, "
		"max(later > session AND later_from <= from_block) AS void FROM %s.culprit_parts "
		"ALL LEFT JOIN (SELECT log, session AS later, from_block AS later_from FROM "
		"%s.culprit_sessions) USING log GROUP BY part) WHERE void = 0",
		db, db, db);
}

static char *rows_view(const char *db, const struct query_table *t)
{
	auto_free char *text = NULL;
	size_t size;
	FILE *f = alloc_text(&text, &size);

	fprintf(f, "CREATE VIEW IF NOT EXISTS %s.`%s` AS SELECT ", db, t->name);
	for (const struct column *c = t->columns; c->name; c++) {
		if (c->needs & OF_PLACE)
			fprintf(f, "%s%s AS `%s`", c == t->columns ? "" : ", ", schema_place_of(c),
				c->name);
		else
			fprintf(f, "%s`%s`", c == t->columns ? "" : ", ", c->name);
	}
	fprintf(f, " FROM (SELECT _log, _batch");
	for (const struct column *c = t->columns; c->name; c++)
		if (!(c->needs & OF_PLACE))
			fprintf(f, ", `%s`", c->name);
	fprintf(f,
		" FROM %s.rows_%s WHERE _batch IN (SELECT part FROM %s.culprit_committed)) ANY "
		"LEFT "
		"JOIN (SELECT log AS _log, start_ns AS l_start_ns, cell AS l_cell, attempt AS "
		"l_attempt, onset_ns AS l_onset_ns, offset_ns AS l_offset_ns, node AS l_node, name "
		"AS l_name, owner AS l_owner FROM %s.culprit_logs) USING _log",
		db, t->name, db, db);
	fclose(f);
	return AUTO_TAKE(text);
}

static char *parts_table(const char *db)
{
	auto_free char *text = NULL;
	size_t size;
	FILE *f = alloc_text(&text, &size);

	fprintf(f,
		"CREATE TABLE IF NOT EXISTS %s.culprit_parts (part Int64, log Int64, session "
		"Int64, "
		"from_block Int64, to_block Int64, first_ns Int64, last_ns Int64",
		db);
	for (const struct query_table *t = query_tables; t->name; t++)
		if (schema_has_table(t))
			fprintf(f, ", rows_%s Int64", t->name);
	fprintf(f, ") ENGINE = MergeTree ORDER BY (log, from_block)");
	fclose(f);
	return AUTO_TAKE(text);
}

/* All statements but the first two, which make the database and culprit_schema; ended by NULL. */
static char **statements(const char *db)
{
	char **v = alloc_zero(STATEMENTS, sizeof(*v));
	int n = 0;

	v[n++] = alloc_format(
		"CREATE TABLE IF NOT EXISTS %s.culprit_logs (log Int64, session Int64, ordinal "
		"Int64, made_of String, name String, node Nullable(String), owner "
		"Nullable(String), "
		"cell Nullable(Int64), attempt Nullable(Int64), start_ns Int64, onset_ns Int64, "
		"offset_ns Int64, clock_ns Int64, head_start_ns Int64, host String, arch String) "
		"ENGINE = MergeTree ORDER BY log",
		db);
	v[n++] = alloc_format(
		"CREATE TABLE IF NOT EXISTS %s.culprit_sessions (log Int64, session Int64, "
		"from_block Int64) ENGINE = MergeTree ORDER BY (log, session)",
		db);
	v[n++] = alloc_format(
		"CREATE TABLE IF NOT EXISTS %s.culprit_ends (log Int64, session Int64, blocks "
		"Int64, records Int64, lost Int64, whole Int64, problem String) ENGINE = MergeTree "
		"ORDER BY (log, session)",
		db);
	v[n++] = alloc_format(
		"CREATE TABLE IF NOT EXISTS %s.culprit_run (session Int64, id String, tables "
		"String) ENGINE = MergeTree ORDER BY session",
		db);
	v[n++] = parts_table(db);
	v[n++] = parts_view(db);
	for (const struct query_table *t = query_tables; t->name; t++) {
		if (!schema_has_table(t) || n + 3 > STATEMENTS)
			continue;
		v[n++] = rows_table(db, t);
		v[n++] = rows_view(db, t);
	}
	return v;
}

/* Of the statements for a database "d": what changes when the schema does. */
static void digest(char out[17])
{
	char **v = statements("d");
	uint8_t sum[SHA256_BYTES];
	auto_free char *all = NULL;
	size_t size;
	FILE *f = alloc_text(&all, &size);

	for (int i = 0; v[i]; i++)
		fprintf(f, "%s;\n", v[i]);
	fclose(f);
	alloc_free_list(v);
	sha256(all, size, sum);
	text_hex(sum, 8, out);
}

static int other_schema(const struct clickhouse *c, const json_t *row, struct err *e)
{
	char mine[17];

	digest(mine);
	return err_blame(e, ERR_USAGE,
		err_set(e, -EEXIST,
			"the database '%s' holds logs in schema %lld (%s), this program has schema "
			"%d (%s): use another database, or the program that made it",
			clickhouse_database(c),
			(long long)json_integer_value(json_array_get(row, 0)),
			json_string_value(json_array_get(row, 1)) ?: "?", SHIP_SCHEMA, mine));
}

/* 1: this schema is there; 0: none is. */
static int schema_look(struct clickhouse *c, struct err *e)
{
	const char *db = clickhouse_database(c);
	auto_free char *exists = alloc_format("SELECT count() FROM system.tables WHERE database = "
					      "'%s' AND name = 'culprit_schema'",
		db);
	auto_free char *versions = alloc_format(
		"SELECT DISTINCT version, digest FROM %s.culprit_schema", db);
	json_auto_t *rows = NULL, *found = NULL;
	char mine[17];
	const json_t *row;
	size_t i;
	int rc = clickhouse_ask(c, exists, &rows, e);

	if (rc || !json_integer_value(json_array_get(json_array_get(rows, 0), 0)))
		return rc;
	rc = clickhouse_ask(c, versions, &found, e);
	if (rc)
		return rc;
	digest(mine);
	json_array_foreach(found, i, row)
		if (json_integer_value(json_array_get(row, 0)) != SHIP_SCHEMA ||
			strcmp(json_string_value(json_array_get(row, 1)) ?: "", mine) != 0)
			return other_schema(c, row, e);
	return json_array_size(found) > 0;
}

int schema_check(struct clickhouse *c, struct err *e)
{
	int rc = schema_look(c, e);

	if (rc == 0)
		return err_blame(e, ERR_USAGE,
			err_set(e, -ENOENT,
				"there are no shipped logs in the database '%s'; 'culprit ship LOG "
				"--to %s' sends some",
				clickhouse_database(c), clickhouse_url(c)));
	return rc < 0 ? rc : 0;
}

/* 1: all tables are there. */
static int is_whole(struct clickhouse *c, char **all, struct err *e)
{
	auto_free char *sql = alloc_format(
		"SELECT count() FROM system.tables WHERE database = '%s'", clickhouse_database(c));
	json_auto_t *rows = NULL;
	json_int_t n = 1; /* culprit_schema */
	int rc = clickhouse_ask(c, sql, &rows, e);

	while (all[n - 1])
		n++;
	return rc ?: json_integer_value(json_array_get(json_array_get(rows, 0), 0)) == n;
}

int schema_make(struct clickhouse *c, struct err *e)
{
	const char *db = clickhouse_database(c);
	char mine[17];
	char **v;
	int rc = schema_look(c, e);

	if (rc < 0)
		return rc;
	digest(mine);
	if (rc == 0) {
		auto_free char *make = alloc_format("CREATE DATABASE IF NOT EXISTS %s", db);
		auto_free char *table = alloc_format(
			"CREATE TABLE IF NOT EXISTS %s.culprit_schema (version Int64, digest "
			"String) ENGINE = MergeTree ORDER BY version",
			db);
		auto_free char *row = alloc_format(
			"INSERT INTO %s.culprit_schema VALUES (%d, '%s')", db, SHIP_SCHEMA, mine);

		rc = clickhouse_do(c, make, e) ?: clickhouse_do(c, table, e)
			?: clickhouse_do(c, row, e);
		if (rc)
			return rc;
	}
	v = statements(db);
	rc = rc == 1 ? is_whole(c, v, e) : 0;
	if (rc) {
		alloc_free_list(v);
		return rc < 0 ? rc : 0;
	}
	for (int i = 0; !rc && v[i]; i++)
		rc = clickhouse_do(c, v[i], e);
	alloc_free_list(v);
	return rc;
}

char *schema_into(const struct clickhouse *c, const struct query_table *t)
{
	auto_free char *text = NULL;
	size_t size;
	FILE *f = alloc_text(&text, &size);

	fprintf(f, "%s.rows_%s (_log, _batch", clickhouse_database(c), t->name);
	for (const struct column *col = t->columns; col->name; col++)
		if (schema_form(col) == FORM_NUMBER)
			fputs(", _high, _low", f);
		else if (schema_form(col) == FORM_SEQ)
			fputs(", _seq", f);
		else if (schema_stores(col))
			fprintf(f, ", `%s`", col->name);
	fputc(')', f);
	fclose(f);
	return AUTO_TAKE(text);
}
