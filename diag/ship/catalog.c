/* Reads which logs and parts a ClickHouse database holds. */
#include "diag/ship/catalog.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"
#include "harness/base/auto.h"

static int64_t catalog_number(const json_t *row, size_t i)
{
	return json_integer_value(json_array_get(row, i));
}

/* NULL where it is null. */
static const char *catalog_text(const json_t *row, size_t i)
{
	return json_string_value(json_array_get(row, i));
}

static char *catalog_copy(const json_t *row, size_t i)
{
	const char *s = catalog_text(row, i);

	return s ? alloc_copy(s) : NULL;
}

static enum stream_owner owner_of(const char *name)
{
	struct query_log log = {.path = NULL};

	for (int i = OWNER_UNKNOWN + 1; name && i <= OWNER_APP; i++) {
		log.spec.owner = (enum stream_owner)i;
		if (!strcmp(query_owner(&log), name))
			return log.spec.owner;
	}
	return OWNER_UNKNOWN;
}

static struct catalog_log *catalog_find(struct catalog *t, int64_t id)
{
	for (size_t i = 0; i < t->n; i++)
		if (t->logs[i].id == id)
			return &t->logs[i];
	return NULL;
}

/* start, onset and offset are kept on the node's clock. */
static void catalog_add_log(struct catalog *t, const json_t *row)
{
	struct catalog_log *l;
	int64_t clock_ns = catalog_number(row, 12);

	if (catalog_find(t, catalog_number(row, 0)))
		return; /* two shippers began with it at once */
	t->logs = alloc_room(t->logs, t->n, sizeof(*t->logs));
	l = &t->logs[t->n++];
	*l = (struct catalog_log){.id = catalog_number(row, 0),
		.session = catalog_number(row, 1),
		.ordinal = catalog_number(row, 2),
		.made_of = catalog_copy(row, 3)};
	l->log = (struct query_log){.path = "",
		.name = catalog_copy(row, 4),
		.node = catalog_copy(row, 5),
		.in_attempt = json_is_integer(json_array_get(row, 7)),
		.cell = catalog_number(row, 7),
		.attempt = catalog_number(row, 8),
		.start_ns = catalog_number(row, 9) - clock_ns,
		.onset_ns = catalog_number(row, 10) ? catalog_number(row, 10) - clock_ns : 0,
		.offset_ns = catalog_number(row, 11) ? catalog_number(row, 11) - clock_ns : 0};
	l->log.spec.owner = owner_of(catalog_text(row, 6));
	l->log.spec.clock_offset_ns = clock_ns;
	l->head.start_ns = catalog_number(row, 13);
	snprintf(l->head.host, sizeof(l->head.host), "%s", catalog_text(row, 14) ?: "");
	snprintf(l->head.arch, sizeof(l->head.arch), "%s", catalog_text(row, 15) ?: "");
}

static int load_logs(struct clickhouse *c, const char *only, struct catalog *t, struct err *e)
{
	auto_free char *sql = alloc_format(
		"SELECT log, session, ordinal, made_of, name, node, owner, cell, attempt, "
		"start_ns, "
		"onset_ns, offset_ns, clock_ns, head_start_ns, host, arch FROM %s.culprit_logs%s "
		"ORDER BY session, ordinal",
		clickhouse_database(c), only);
	json_auto_t *rows = NULL;
	const json_t *row;
	size_t i;
	int rc = clickhouse_ask(c, sql, &rows, e);

	if (rc)
		return rc;
	json_array_foreach(rows, i, row)
		catalog_add_log(t, row);
	return 0;
}

/* Is the part void: has a shipper begun later, at or before its first block? */
static bool is_void(const struct catalog_part *p, int64_t log, const json_t *sessions)
{
	const json_t *s;
	size_t i;

	json_array_foreach(sessions, i, s)
		if (catalog_number(s, 0) == log && catalog_number(s, 1) > p->session &&
			catalog_number(s, 2) <= p->from)
			return true;
	return false;
}

static int add_part(struct clickhouse *c, struct catalog_log *l, const json_t *row,
	const json_t *sessions, struct err *e)
{
	struct catalog_part p = {.part = catalog_number(row, 1),
		.session = catalog_number(row, 2),
		.from = catalog_number(row, 3),
		.to = catalog_number(row, 4),
		.first_ns = catalog_number(row, 5),
		.last_ns = catalog_number(row, 6)};
	const int64_t want = l->n_parts ? l->parts[l->n_parts - 1].to : 0;

	if (is_void(&p, l->id, sessions))
		return 0;
	if (p.from != want)
		return err_blame(e, ERR_DAMAGED,
			err_set(e, -EBADMSG,
				"the database '%s' is damaged: of '%s' it has a part that "
				"begins at "
				"block %lld, and before it %lld blocks",
				clickhouse_database(c), l->log.name, (long long)p.from,
				(long long)want));
	for (size_t i = 0, k = 7; query_tables[i].name; i++)
		if (schema_has_table(&query_tables[i]))
			p.rows[i] = catalog_number(row, k++);
	l->parts = alloc_room(l->parts, l->n_parts, sizeof(*l->parts));
	l->parts[l->n_parts++] = p;
	return 0;
}

static int load_parts(struct clickhouse *c, const char *only, struct catalog *t, struct err *e)
{
	const char *db = clickhouse_database(c);
	auto_free char *sessions_sql = alloc_format(
		"SELECT log, session, from_block FROM %s.culprit_sessions%s", db, only);
	json_auto_t *sessions = NULL, *rows = NULL;
	auto_free char *sql = NULL;
	struct catalog_log *l;
	const json_t *row;
	size_t size, i;
	FILE *f = alloc_text(&sql, &size);
	int rc;

	fprintf(f, "SELECT log, part, session, from_block, to_block, first_ns, last_ns");
	for (const struct query_table *q = query_tables; q->name; q++)
		if (schema_has_table(q))
			fprintf(f, ", rows_%s", q->name);
	fprintf(f, " FROM %s.culprit_parts%s ORDER BY log, from_block, session", db, only);
	fclose(f);
	/* Sessions last: a part that was committed before one began is seen with it. */
	rc = clickhouse_ask(c, sql, &rows, e) ?: clickhouse_ask(c, sessions_sql, &sessions, e);
	json_array_foreach(sessions, i, row) {
		l = catalog_find(t, catalog_number(row, 0));
		if (l && catalog_number(row, 1) > l->newest)
			l->newest = catalog_number(row, 1);
	}
	json_array_foreach(rows, i, row) {
		l = catalog_find(t, catalog_number(row, 0));
		if (!rc && l)
			rc = add_part(c, l, row, sessions, e);
	}
	return rc;
}

static int load_ends(struct clickhouse *c, const char *only, struct catalog *t, struct err *e)
{
	auto_free char *sql = alloc_format("SELECT log, blocks, records, lost, whole, problem FROM "
					   "%s.culprit_ends%s ORDER BY session",
		clickhouse_database(c), only);
	json_auto_t *rows = NULL;
	struct catalog_log *l;
	const json_t *row;
	size_t i;
	int rc = clickhouse_ask(c, sql, &rows, e);

	json_array_foreach(rows, i, row) {
		l = catalog_find(t, catalog_number(row, 0));
		if (!l)
			continue;
		l->ended = true;
		l->blocks = catalog_number(row, 1);
		l->records = catalog_number(row, 2);
		l->lost = catalog_number(row, 3);
		free(l->problem);
		l->problem = catalog_number(row, 4) ? NULL : catalog_copy(row, 5);
	}
	return rc;
}

static int load_run(struct clickhouse *c, struct catalog *t, struct err *e)
{
	auto_free char *sql = alloc_format("SELECT id, tables FROM %s.culprit_run ORDER BY session "
					   "DESC LIMIT 1",
		clickhouse_database(c));
	json_auto_t *rows = NULL;
	const json_t *row;
	int rc = clickhouse_ask(c, sql, &rows, e);

	row = rc ? NULL : json_array_get(rows, 0);
	if (!row)
		return rc;
	t->run_id = catalog_copy(row, 0);
	t->run = json_loads(catalog_text(row, 1) ?: "", JSON_ALLOW_NUL, NULL);
	return t->run
		? 0
		: err_blame(e, ERR_DAMAGED,
			  err_set(e, -EBADMSG,
				  "the database '%s' is damaged: the run's tables are no JSON",
				  clickhouse_database(c)));
}

static int by_order(const void *a, const void *b)
{
	const struct catalog_log *x = a, *y = b;

	return x->ordinal < y->ordinal ? -1 : x->ordinal > y->ordinal;
}

int catalog_load(struct clickhouse *c, int64_t id, struct catalog *out, struct err *e)
{
	auto_free char *only = id ? alloc_format(" WHERE log = %lld", (long long)id)
				  : alloc_copy("");
	int rc = load_logs(c, only, out, e) ?: load_parts(c, only, out, e)
		?: load_ends(c, only, out, e)
		?: id ? 0
		      : load_run(c, out, e);

	/* Logs by themselves stand in the order in which they came. */
	if (!rc && out->run_id)
		qsort(out->logs, out->n, sizeof(*out->logs), by_order);
	return rc;
}

void catalog_clear(struct catalog *t)
{
	for (size_t i = 0; i < t->n; i++) {
		free((char *)t->logs[i].log.name);
		free((char *)t->logs[i].log.node);
		free(t->logs[i].made_of);
		free(t->logs[i].parts);
		free(t->logs[i].problem);
	}
	free(t->logs);
	free(t->run_id);
	json_decref(t->run);
}
