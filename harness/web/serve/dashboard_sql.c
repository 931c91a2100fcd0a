/* Converts a view's SQL for ClickHouse and Grafana. Copies tokens, except tables, parameters and
 * positions in GROUP BY and ORDER BY, which ClickHouse would treat as constants. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "diag/ship/schema.h"
#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/web/serve/dashboard_impl.h"

#define SLOT_NS "($__interval_ms * 1000000)"

/* The aggregates in a row of totals; the names are the last columns of totals. */
static const struct {
	const char *name, *sql;
} measures[] = {
	{"calls", "count()"},
	{"errors", "countIf(errno IS NOT NULL)"},
	{"bytes", "sum(bytes)"},
	{"total_ns", "sum(service_ns)"},
	{"max_ns", "max(service_ns)"},
	{"p50_ns", "quantileExact(0.5)(service_ns)"},
	{"p99_ns", "quantileExact(0.99)(service_ns)"},
};

static const struct {
	const char *name, *sql;
} params[] = {
	{":slot_s", "($__interval_ms / 1000)"},
	{":attempt", "$attempt"},
	{":from_s", "($__from / 1000 - " DASHBOARD_START ")"},
	{":to_s", "($__to / 1000 - " DASHBOARD_START ")"},
};

struct token {
	const char *text;
	size_t size;
	enum { T_END, T_SPACE, T_WORD, T_NUMBER, T_PARAM, T_QUOTED, T_OTHER } type;
};

static size_t quoted(const char *s)
{
	const char *end = s + 1;

	while (*end && (*end != *s || end[1] == *s))
		end += *end == *s ? 2 : 1;
	return (size_t)(end - s) + (*end != '\0');
}

static bool in_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

static struct token dashboard_sql_next(const char **at)
{
	const char *s = *at;
	struct token t = {.text = s, .size = 1, .type = T_OTHER};

	if (!*s) {
		t = (struct token){s, 0, T_END};
	} else if (!strncmp(s, "--", 2)) {
		t.size = strcspn(s, "\n");
		t.type = T_SPACE;
	} else if (isspace((unsigned char)*s)) {
		t.size = strspn(s, " \t\r\n\v\f");
		t.type = T_SPACE;
	} else if (strchr("'\"`", *s)) {
		t.size = quoted(s);
		t.type = T_QUOTED;
	} else if (in_word(*s) || (*s == ':' && in_word(s[1]))) {
		while (in_word(s[t.size]))
			t.size++;
		t.type = *s == ':' ? T_PARAM : isdigit((unsigned char)*s) ? T_NUMBER : T_WORD;
	}
	*at += t.size;
	return t;
}

static bool is(const struct token *t, const char *word)
{
	return strlen(word) == t->size && !strncasecmp(t->text, word, t->size);
}

static bool names(const char *sql, const char *column)
{
	struct token t;

	while ((t = dashboard_sql_next(&sql)).type != T_END)
		if (t.type == T_WORD && is(&t, column))
			return true;
	return false;
}

static void scope(FILE *f, const char *table)
{
	fprintf(f,
		" FROM ${database}.`%s` WHERE ifNull(attempt, 0) = $attempt AND time_ns >= "
		"toInt64($__from) * 1000000 AND time_ns < toInt64($__to) * 1000000)",
		table);
}

static void dashboard_sql_put_table(FILE *f, const struct query_table *t, const char *sql)
{
	const char *comma = "";

	fputs("(SELECT ", f);
	for (const struct column *c = t->columns; c->name; c++)
		if (names(sql, c->name)) {
			fprintf(f, "%s`%s`", comma, c->name);
			comma = ", ";
		}
	if (!*comma)
		fputs("time_ns", f);
	scope(f, t->name);
}

static const char *measure_of(const char *column)
{
	for (size_t i = 0; i < sizeof(measures) / sizeof(measures[0]); i++)
		if (!strcmp(measures[i].name, column))
			return measures[i].sql;
	return NULL;
}

/* Sums events by those event columns that the view uses. */
static void put_totals(FILE *f, const struct query_table *t, const char *sql)
{
	auto_free char *keys = NULL;
	const char *comma = "";
	size_t size;
	FILE *by = alloc_text(&keys, &size);

	fputs("(SELECT ", f);
	for (const struct column *c = t->columns; c->name; c++) {
		if (!names(sql, c->name))
			continue;
		if (measure_of(c->name)) {
			fprintf(f, "%s%s AS `%s`", comma, measure_of(c->name), c->name);
		} else {
			fprintf(f, "%s`%s`", comma, c->name);
			fprintf(by, "%s`%s`", ftell(by) ? ", " : " GROUP BY ", c->name);
		}
		comma = ", ";
	}
	fclose(by);
	fprintf(f, "%s FROM (SELECT service_ns, bytes, errno", *comma ? "" : "1");
	for (const struct column *c = t->columns; c->name; c++) {
		if (!names(sql, c->name) || measure_of(c->name) || !strcmp(c->name, "errno"))
			continue;
		if (!strcmp(c->name, "second"))
			fputs(", toInt64(floor(t)) AS second", f);
		else if (!strcmp(c->name, "slot"))
			fputs(", toInt64(floor(t * 1e9 / " SLOT_NS ")) * " SLOT_NS " AS slot", f);
		else
			fprintf(f, ", `%s`", c->name);
	}
	scope(f, "events");
	fprintf(f, "%s)", keys);
}

static bool put_source(FILE *f, const struct token *name, const char *sql)
{
	for (const struct query_table *t = query_tables; t->name; t++) {
		if (!is(name, t->name))
			continue;
		if (!t->summed && !schema_has_table(t))
			return false;
		if (t->summed)
			put_totals(f, t, sql);
		else
			dashboard_sql_put_table(f, t, sql);
		return true;
	}
	return false;
}

static bool put_param(FILE *f, const struct token *t)
{
	for (size_t i = 0; i < sizeof(params) / sizeof(params[0]); i++)
		if (is(t, params[i].name)) {
			fputs(params[i].sql, f);
			return true;
		}
	return false;
}

/* --- the columns of a SELECT --- */

enum { COLUMNS = 32 };

struct columns {
	char *sql[COLUMNS]; /* without its alias */
	size_t n;
	const char *list, *after; /* in the view's SQL: the list; the text after column 1 */
};

static void add_column(struct columns *c, const char *from, const char *alias, const char *to)
{
	if (c->n < COLUMNS)
		c->sql[c->n++] = alloc_format("%.*s", (int)((alias ? alias : to) - from), from);
	if (!c->after)
		c->after = to;
}

static void read_columns(const char *sql, struct columns *c)
{
	const char *from, *alias = NULL, *at = sql;
	struct token t;
	int depth = 0;

	while ((t = dashboard_sql_next(&at)).type != T_END && !is(&t, "select"))
		;
	c->list = from = at;
	for (; (t = dashboard_sql_next(&at)).type != T_END;) {
		depth += *t.text == '(' ? 1 : *t.text == ')' ? -1 : 0;
		if (depth)
			continue;
		if (is(&t, "as"))
			alias = t.text;
		if (!is(&t, ",") && !is(&t, "from"))
			continue;
		add_column(c, from, alias, t.text);
		from = at;
		alias = NULL;
		if (is(&t, "from"))
			return;
	}
	add_column(c, from, alias, at);
}

/* --- the whole query --- */

struct translation {
	const char *sql;
	struct columns columns;
	int depth;
	bool from, by, ordered; /* after FROM or JOIN; in a list of GROUP BY or ORDER BY */
	struct token last;      /* other than a space */
};

/* Converts 'from' up to the end of the text, or to 'to'. -1, and the token that is not
 * available. */
static int dashboard_sql_put(
	FILE *f, struct translation *r, const char *from, const char *to, struct token *bad)
{
	struct token t;

	while ((!to || from < to) && (t = dashboard_sql_next(&from)).type != T_END) {
		const bool after = r->from && t.type == T_WORD;
		const bool place = r->by && !r->depth && t.type == T_NUMBER &&
			(is(&r->last, "by") || is(&r->last, ","));
		const long n = place ? strtol(t.text, NULL, 10) : 0;

		r->depth += *t.text == '(' ? 1 : *t.text == ')' ? -1 : 0;
		if (after || t.type == T_PARAM) {
			*bad = t;
			if (after ? !put_source(f, &t, r->sql) : !put_param(f, &t))
				return -1;
		} else if (n > 0 && (size_t)n <= r->columns.n) {
			if (dashboard_sql_put(f, &(struct translation){.sql = r->sql},
				    r->columns.sql[n - 1], NULL, bad))
				return -1;
		} else {
			fwrite(t.text, 1, t.size, f);
		}
		if (t.type == T_SPACE)
			continue;
		r->from = is(&t, "from") || is(&t, "join");
		r->by = is(&t, "by") || (r->by && t.type != T_WORD) || (r->by && place);
		r->ordered |= !r->depth && is(&t, "order");
		r->last = t;
	}
	return 0;
}

static bool begins_with_select(const char *sql)
{
	struct token t;

	while ((t = dashboard_sql_next(&sql)).type == T_SPACE)
		;
	return is(&t, "select");
}

char *dashboard_sql(const struct view *v, bool timed, char **why)
{
	struct translation r = {.sql = v->sql};
	auto_free char *text = NULL;
	struct token bad = {0};
	size_t size;
	FILE *f = alloc_text(&text, &size);
	int rc;

	if (!begins_with_select(v->sql)) {
		fclose(f);
		*why = alloc_copy("its query does not begin with SELECT");
		return NULL;
	}
	read_columns(v->sql, &r.columns);
	rc = dashboard_sql_put(f, &r, v->sql, timed ? r.columns.list : NULL, &bad);
	if (timed && !rc) {
		fputs(" toDateTime(toInt64(floor(" DASHBOARD_START " + (", f);
		rc = dashboard_sql_put(f, &r, r.columns.sql[0], NULL, &bad);
		fputs(")))) AS time", f);
		rc = rc ? rc : dashboard_sql_put(f, &r, r.columns.after, NULL, &bad);
		if (!r.ordered)
			fputs("\nORDER BY time", f);
	}
	fclose(f);
	for (size_t i = 0; i < r.columns.n; i++)
		free(r.columns.sql[i]);
	if (rc)
		*why = alloc_format("'%.*s' is not shipped", (int)bad.size, bad.text);
	return rc ? NULL : AUTO_TAKE(text);
}
