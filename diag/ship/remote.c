/* Gives rows of shipped logs to SQLite's tables. */
#include "diag/ship/remote.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "diag/ship/rowbinary.h"
#include "diag/ship/where.h"
#include "harness/base/alloc.h"
#include "harness/base/auto.h"

/* Rows of one request: a server sorts them, and they wait until all are there. */
enum { CHUNK_ROWS = 4000000 };

struct remote {
	struct clickhouse *c;
	struct catalog catalog;
	struct query_source source;
	char **problems;
	size_t n_problems;
	bool *noted; /* by log */
	int open;    /* one answer at a time */
};

struct rows {
	struct remote *r;
	const struct query_ask *ask;
	int table; /* whose rows are read: that of 'totals' is events */
	bool bucket;
	int at[ROWBINARY_COLUMNS]; /* by column: which value of the answer it is; -1: none */
	int time_at;
	int measure_at;
	struct rowbinary answer;
	/* What is read before the answer of another cursor must begin: kept in memory. */
	FILE *kept;
	char *text;
	size_t size;
	size_t log, part; /* the next ones */
	struct query_row row;
	struct stream_item item;
	struct record record;
};

/* ---- what cannot be told ---- */

static void remote_note(struct remote *r, size_t i)
{
	const struct catalog_log *l = &r->catalog.logs[i];
	char *why;

	if (r->noted[i] || (l->ended && !l->problem))
		return;
	r->noted[i] = true;
	why = l->ended
		? alloc_copy(l->problem)
		: alloc_format("'%s' has been shipped to block %lld only; 'culprit ship' goes "
			       "on from there",
			  l->log.name, (long long)(l->n_parts ? l->parts[l->n_parts - 1].to : 0));
	r->problems = alloc_room(r->problems, r->n_problems, sizeof(*r->problems));
	r->problems[r->n_problems++] = why;
}

static const char *problem(void *ctx, size_t i)
{
	const struct remote *r = ctx;

	return i < r->n_problems ? r->problems[i] : NULL;
}

/* ---- statements ---- */

static bool is_used(const struct rows *g, int i)
{
	return g->ask->used >> (i < 63 ? i : 63) & 1;
}

static void add_value(struct rows *g, enum column_type type, bool nullable)
{
	g->answer.column[g->answer.n].type = type;
	g->answer.column[g->answer.n].nullable = nullable;
	g->answer.n++;
}

/* What is selected: the columns that are named. Those that the log tells are not, but for the ones
 * of a group's that differ inside a log. */
static void select_columns(struct rows *g, const struct catalog_log *l, FILE *out)
{
	const struct column *columns = g->ask->table->columns;

	g->answer.n = 0;
	for (int i = 0; columns[i].name && i < ROWBINARY_COLUMNS; i++) {
		const char *name = columns[i].name;
		const bool place = columns[i].needs & OF_PLACE;

		g->at[i] = -1;
		if (!is_used(g, i) || !columns[i].get ||
			(place && !(g->ask->table->summed && where_differs(name))))
			continue;
		if (g->answer.n)
			fputs(", ", out);
		g->at[i] = (int)g->answer.n;
		if (place)
			where_place(name, &l->log, &l->head, g->ask->slot_ns, out);
		else
			fprintf(out, "`%s`", name);
		add_value(g, columns[i].type, place || !schema_is_whole(&columns[i]));
	}
}

static void select_measures(struct rows *g, FILE *out)
{
	static const char *const measures[] = {"count()",
		"sum(ifNull(result < 0 AND result >= -4095, 0))", "sum(ifNull(bytes, 0))",
		"sum(ifNull(service_ns, 0))", "max(ifNull(service_ns, 0))"};
	int n = 0;

	while (g->ask->table->columns[n].name)
		n++;
	g->bucket = is_used(g, n - 2) || is_used(g, n - 1);
	g->measure_at = (int)g->answer.n;
	for (size_t i = 0; i < sizeof(measures) / sizeof(measures[0]); i++) {
		fprintf(out, "%sassumeNotNull(toInt64(%s))", g->answer.n ? ", " : "", measures[i]);
		add_value(g, COLUMN_INT, false);
	}
	if (!g->bucket)
		return;
	/* The power of two, exactly. */
	fputs(", toInt64(0", out);
	for (int k = 1; k < 40; k++)
		fprintf(out, " + (ifNull(service_ns, 0) >= %lld)", 1ll << k);
	fputs(") AS bucket", out);
	add_value(g, COLUMN_INT, false);
}

static void group(const struct rows *g, FILE *out)
{
	const struct column *columns = g->ask->table->columns;
	bool any = false;

	for (int i = 0; columns[i].name && i < ROWBINARY_COLUMNS; i++) {
		if (g->at[i] < 0)
			continue;
		fprintf(out, "%s`%s%s`", any ? ", " : " GROUP BY ",
			columns[i].needs & OF_PLACE ? "place_" : "", columns[i].name);
		any = true;
	}
	if (g->bucket)
		fputs(any ? ", bucket" : " GROUP BY bucket", out);
	if (any || g->bucket)
		fputs(" ORDER BY min(number)", out);
	else
		fputs(" HAVING count() > 0", out);
}

/* May a row of the part be asked for? */
static bool part_meets(
	const struct rows *g, const struct catalog_part *p, const struct scan_filter *f)
{
	return p->rows[g->table] && p->first_ns <= f->to_ns && p->last_ns >= f->from_ns;
}

/* The next parts of a log that are read at once, as a list; 0: there are none left. */
static int64_t take_parts(
	struct rows *g, const struct catalog_log *l, const struct scan_filter *f, FILE *out)
{
	int64_t rows = 0;

	for (; g->part < l->n_parts; g->part++) {
		const struct catalog_part *p = &l->parts[g->part];

		if (!part_meets(g, p, f))
			continue;
		if (rows && !g->ask->table->summed && rows + p->rows[g->table] > CHUNK_ROWS)
			break;
		fprintf(out, "%s%lld", rows ? ", " : "", (long long)p->part);
		rows += p->rows[g->table];
	}
	return rows;
}

static char *statement(
	struct rows *g, const struct catalog_log *l, const struct scan_filter *f, const char *parts)
{
	auto_free char *sql = NULL;
	size_t size;
	FILE *out = alloc_text(&sql, &size);

	fputs("SELECT ", out);
	select_columns(g, l, out);
	if (g->ask->table->summed) {
		select_measures(g, out);
	} else {
		g->time_at = (int)g->answer.n;
		fprintf(out, "%stime_ns, number", g->answer.n ? ", " : "");
		add_value(g, COLUMN_INT, false);
		add_value(g, COLUMN_INT, false);
	}
	fprintf(out, " FROM %s.rows_%s WHERE _batch IN (%s)", clickhouse_database(g->r->c),
		query_tables[g->table].name, parts);
	where_conditions(g->ask, f, out);
	if (g->ask->table->summed)
		group(g, out);
	else
		fputs(" ORDER BY number", out);
	fclose(out);
	return AUTO_TAKE(sql);
}

/* ---- reading ---- */

/* Takes the whole answer, so that cursors may take turns. */
static int remote_fetch(struct rows *g, const char *sql, struct err *e)
{
	char buffer[65536];
	FILE *answer, *keep;
	size_t n;
	int rc = clickhouse_begin(g->r->c, sql, &answer, e);

	if (rc)
		return rc;
	keep = tmpfile();
	if (!keep)
		rc = err_errno(e, -errno, "cannot make a temporary file");
	while (!rc && (n = fread(buffer, 1, sizeof(buffer), answer)) > 0)
		if (fwrite(buffer, 1, n, keep) != n)
			rc = err_errno(e, -errno, "cannot write to a temporary file");
	rc = clickhouse_end(g->r->c, rc, e);
	if (rc && keep)
		fclose(keep);
	if (rc)
		return rc;
	rewind(keep);
	g->kept = keep;
	return 0;
}

static void leave(struct rows *g)
{
	if (g->kept)
		fclose(g->kept);
	g->kept = NULL;
}

static bool is_asked(const struct rows *g, const struct catalog_log *l, struct scan_filter *f)
{
	const char *made_of = g->ask->table->made ? g->ask->table->name : "";

	if (strcmp(l->made_of, made_of) != 0)
		return false;
	where_filter(f);
	for (size_t i = 0; i < g->ask->n_pushes; i++)
		if (!push_apply(&g->ask->pushes[i], &l->log, &l->head, f))
			return false;
	return true;
}

/* The next answer, of the next parts of the next log. 1; 0: there is none. */
static int next_chunk(struct rows *g, struct err *e)
{
	const struct catalog *all = &g->r->catalog;
	struct scan_filter f;

	for (; g->log < all->n; g->log++, g->part = 0) {
		const struct catalog_log *l = &all->logs[g->log];
		auto_free char *parts = NULL, *sql = NULL;
		size_t size;
		int64_t n;
		FILE *out;
		int rc;

		if (!is_asked(g, l, &f))
			continue;
		out = alloc_text(&parts, &size);
		n = take_parts(g, l, &f, out);
		fclose(out);
		remote_note(g->r, g->log);
		if (!n)
			continue;
		sql = statement(g, l, &f, parts);
		rc = remote_fetch(g, sql, e);
		g->row.log = &l->log;
		g->row.head = &l->head;
		return rc ? rc : 1;
	}
	return 0;
}

static int remote_next(void *rows, struct err *e)
{
	struct rows *g = rows;
	int rc;

	for (;;) {
		if (!g->kept) {
			rc = next_chunk(g, e);
			if (rc != 1)
				return rc;
		}
		rc = rowbinary_next(&g->answer, g->kept, e);
		if (rc)
			break;
		leave(g);
	}
	if (rc != 1)
		return rc;
	g->record = (struct record){.type = RECORD_CALL};
	if (!g->ask->table->summed) {
		g->record.call.start_ns = g->answer.value[g->time_at].number;
		g->record.number = (uint64_t)g->answer.value[g->time_at + 1].number;
	}
	g->item = (struct stream_item){.record = &g->record};
	g->row.item = &g->item;
	return 1;
}

static void remote_get(void *rows, int column, struct column_value *out)
{
	struct rows *g = rows;
	const struct column *c = &g->ask->table->columns[column];

	if (column < ROWBINARY_COLUMNS && g->at[column] >= 0)
		*out = g->answer.value[g->at[column]];
	else if (c->needs & OF_PLACE && c->get)
		c->get(&g->row, out);
}

static int64_t rowid(void *rows)
{
	const struct rows *g = rows;

	return query_rowid(g->log, g->record.number);
}

static void part(void *rows, struct query_part *out)
{
	const struct rows *g = rows;

	*out = (struct query_part){.bucket = 0};
	for (int i = 0; i < COLUMN_P50_NS; i++)
		out->measure[i] = g->answer.value[g->measure_at + i].number;
	if (g->bucket)
		out->bucket = (unsigned)g->answer.value[g->measure_at + COLUMN_P50_NS].number;
}

static bool remote_has(void *ctx, const struct query_table *table)
{
	const struct remote *r = ctx;

	return !table->unshipped && (!table->made || r->catalog.run_id);
}

static int open_rows(void *ctx, const struct query_ask *ask, void **out, struct err *e)
{
	struct rows *g = alloc_zero(1, sizeof(*g));

	(void)e;
	g->r = ctx;
	g->ask = ask;
	while (strcmp(
		query_tables[g->table].name, ask->table->summed ? "events" : ask->table->name))
		g->table++;
	*out = g;
	return 0;
}

static void close_rows(void *rows)
{
	struct rows *g = rows;

	leave(g);
	rowbinary_clear(&g->answer);
	free(g);
}

const struct query_source *remote_source(struct remote *r)
{
	r->source = (struct query_source){.ctx = r,
		.has = remote_has,
		.open = open_rows,
		.next = remote_next,
		.get = remote_get,
		.part = part,
		.rowid = rowid,
		.close = close_rows,
		.problem = problem};
	return &r->source;
}

const struct catalog *remote_catalog(const struct remote *r)
{
	return &r->catalog;
}

int remote_new(struct clickhouse *c, struct remote **out, struct err *e)
{
	struct remote *r = alloc_zero(1, sizeof(*r));
	int rc;

	r->c = c;
	rc = schema_check(c, e) ?: catalog_load(c, 0, &r->catalog, e);
	r->noted = alloc_zero(r->catalog.n + 1, sizeof(*r->noted));
	if (rc)
		remote_free(r);
	else
		*out = r;
	return rc;
}

void remote_free(struct remote *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->n_problems; i++)
		free(r->problems[i]);
	catalog_clear(&r->catalog);
	free(r->problems);
	free(r->noted);
	free(r);
}
