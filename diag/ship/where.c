/* Translates a query's conditions to ClickHouse's SQL. */
#include "diag/ship/where.h"

#include <string.h>

#include "diag/ship/clickhouse.h"
#include "diag/ship/schema.h"

void where_filter(struct scan_filter *f)
{
	scan_filter_all(f, 1u << RECORD_CALL);
	memset(f->calls, 0xff, sizeof(f->calls));
}

static bool all_are(const struct push *p, int type)
{
	for (size_t i = 0; i < p->n; i++)
		if ((int)p->values[i].type != type)
			return false;
	return p->n;
}

static bool is_one(const struct push *p)
{
	return p->op == PUSH_EQ || p->op == PUSH_IN;
}

static void among(const struct push *p, const char *column, bool text, FILE *out)
{
	fprintf(out, " AND `%s` IN (", column);
	for (size_t i = 0; i < p->n; i++) {
		if (i)
			fputs(", ", out);
		if (text)
			clickhouse_quote(out, p->values[i].text);
		else
			fprintf(out, "toInt64(%lld)", (long long)p->values[i].number);
	}
	fputc(')', out);
}

/* The lowest number has no literal. */
static void bound(const char *column, const char *op, int64_t n, FILE *out)
{
	if (n != INT64_MIN && n != INT64_MAX)
		fprintf(out, " AND `%s` %s %lld", column, op, (long long)n);
}

static void condition(const struct push *p, const struct column *c, FILE *out)
{
	int64_t low, high;

	if (p->op == PUSH_NOT_NULL)
		fprintf(out, " AND `%s` IS NOT NULL", c->name);
	else if (c->type == COLUMN_TEXT && is_one(p) && all_are(p, PUSH_TEXT))
		among(p, c->name, true, out);
	else if (c->type == COLUMN_INT && p->op == PUSH_IN && all_are(p, PUSH_INT))
		among(p, c->name, false, out);
	else if (c->type == COLUMN_INT && push_range(p, &low, &high)) {
		bound(c->name, ">=", low, out);
		bound(c->name, "<=", high, out);
	}
}

void where_conditions(const struct query_ask *ask, const struct scan_filter *f, FILE *out)
{
	for (size_t i = 0; i < ask->n_pushes; i++) {
		const struct column *c = &ask->table->columns[ask->pushes[i].column];

		/* A measure of a group is no column of its rows. */
		if (!(c->needs & OF_PLACE) && c->get)
			condition(&ask->pushes[i], c, out);
	}
	bound("time_ns", ">=", f->from_ns, out);
	bound("time_ns", "<=", f->to_ns, out);
}

bool where_differs(const char *column)
{
	return !strcmp(column, "phase") || !strcmp(column, "second") || !strcmp(column, "slot");
}

/* Times since the start in whole units, rounded down. */
static void units(int64_t start, int64_t unit, int64_t times, FILE *out)
{
	fprintf(out,
		"toNullable(toInt64((intDiv(time_ns - %lld, %lld) - (time_ns < %lld AND "
		"(time_ns - %lld) %% %lld != 0)) * %lld))",
		(long long)start, (long long)unit, (long long)start, (long long)start,
		(long long)unit, (long long)times);
}

void where_place(const char *column, const struct query_log *log, const struct log_head *head,
	int64_t slot_ns, FILE *out)
{
	const int64_t ahead = log->spec.clock_offset_ns, start = query_start_ns(log, head);

	if (!strcmp(column, "second"))
		units(start, 1000000000, 1, out);
	else if (!strcmp(column, "slot"))
		units(start, slot_ns, slot_ns, out);
	else if (!log->onset_ns)
		fputs("CAST(NULL AS Nullable(String))", out);
	else
		fprintf(out,
			"CAST(multiIf(time_ns < %lld, 'before', %d AND time_ns >= %lld, 'after', "
			"'during') AS Nullable(String))",
			(long long)(log->onset_ns + ahead), log->offset_ns != 0,
			(long long)(log->offset_ns + ahead));
	fprintf(out, " AS `place_%s`", column);
}
