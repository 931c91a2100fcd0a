/* Runs the queries of findings and explains their rows. */
#include "harness/judging/findings.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/lua/library.h"

/* A finding's file, and the current row. */
struct search {
	struct luax_source src;
	char *name, *about, *severity, *sql, *text, *todo, *evidence;
	findings_fn *fn;
	void *ctx;
	int n;
	char **columns;
};

static const char *const severities[] = {"error", "warning", "note"};
enum { SEVERITIES = sizeof(severities) / sizeof(severities[0]) };

static int findings_check(struct search *s, struct err *e)
{
	for (size_t i = 0; i < SEVERITIES; i++)
		if (!strcmp(s->severity, severities[i]))
			return 0;
	return luax_complain(&s->src, "severity", e,
		"'severity' must be error, warning or note, not '%s'", s->severity);
}

static int findings_load(struct search *s, lua_State *L, const char *name, struct err *e)
{
	const struct luax_field fields[] = {
		{"about", LUAX_STRING, true, .out = &s->about},
		{"severity", LUAX_STRING, true, .out = &s->severity},
		{"sql", LUAX_STRING, true, .out = &s->sql},
		{"text", LUAX_STRING, true, .out = &s->text},
		{"todo", LUAX_STRING, true, .out = &s->todo},
		{"evidence", LUAX_STRING, .out = &s->evidence},
		{0},
	};
	int rc = library_open(L, LIBRARY_FINDING, name, NULL, fields, &s->src, e);

	if (rc)
		return rc;
	rc = luax_read(L, -1, &s->src, "finding", fields, false, e);
	return rc ?: library_name(LIBRARY_FINDING, s->src.path, &s->name, e)
		?: findings_check(s, e);
}

static void findings_clear(struct search *s)
{
	luax_source_clear(&s->src);
	free(s->name);
	free(s->about);
	free(s->severity);
	free(s->sql);
	free(s->text);
	free(s->todo);
	free(s->evidence);
	for (int i = 0; i < s->n; i++)
		free(s->columns[i]);
	free(s->columns);
}

static int findings_begin(void *ctx, int n, const char *const names[], struct err *e)
{
	struct search *s = ctx;

	(void)e;
	s->columns = alloc_zero((size_t)n, sizeof(*s->columns));
	for (; s->n < n; s->n++)
		s->columns[s->n] = alloc_copy(names[s->n]);
	return 0;
}

static void print_cell(FILE *f, const struct query_cell *c, bool as_sql)
{
	switch (c->type) {
	case CELL_INT: fprintf(f, "%lld", (long long)c->number); return;
	case CELL_REAL: fprintf(f, "%.9g", c->real); return;
	case CELL_TEXT: break;
	default: fputs(as_sql ? "null" : "?", f); return;
	}
	if (!as_sql) {
		fputs(c->text, f);
		return;
	}
	putc('\'', f);
	for (const char *p = c->text; *p; p++) {
		if (*p == '\'')
			putc('\'', f);
		putc(*p, f);
	}
	putc('\'', f);
}

static const struct query_cell *findings_find(
	const struct search *s, const struct query_cell *cells, const char *name, size_t n)
{
	for (int i = 0; i < s->n; i++)
		if (!strncmp(s->columns[i], name, n) && !s->columns[i][n])
			return &cells[i];
	return NULL;
}

/* 'form' with each {column} replaced; the caller frees. */
static int findings_fill(struct search *s, const char *form, bool as_sql,
	const struct query_cell *cells, char **out, struct err *e)
{
	const struct query_cell *c;
	size_t size, n;
	FILE *f = alloc_text(out, &size);
	int rc = 0;

	for (; *form && !rc; form++) {
		n = *form == '{' ? strcspn(form + 1, "{} ") : 0;
		if (!n || form[n + 1] != '}') {
			putc(*form, f);
			continue;
		}
		c = findings_find(s, cells, form + 1, n);
		if (c)
			print_cell(f, c, as_sql);
		else
			rc = luax_complain(&s->src, NULL, e,
				"'%.*s' is not a column of the finding's query", (int)n, form + 1);
		form += n + 1;
	}
	fclose(f);
	return rc;
}

static const char *findings_text_of(
	const struct search *s, const struct query_cell *cells, const char *name)
{
	const struct query_cell *c = findings_find(s, cells, name, strlen(name));

	return c && c->type == CELL_TEXT ? c->text : NULL;
}

static int64_t findings_number_of(
	const struct search *s, const struct query_cell *cells, const char *name)
{
	const struct query_cell *c = findings_find(s, cells, name, strlen(name));

	return c && c->type == CELL_INT ? c->number : 0;
}

static double time_of(const struct search *s, const struct query_cell *cells)
{
	const struct query_cell *c = findings_find(s, cells, "t", 1);

	if (c && c->type == CELL_INT)
		return (double)c->number;
	return c && c->type == CELL_REAL ? c->real : NAN;
}

static int findings_row(void *ctx, int n, const struct query_cell *cells, struct err *e)
{
	struct search *s = ctx;
	auto_free char *text = NULL, *evidence = NULL;
	struct finding found = {.name = s->name,
		.severity = s->severity,
		.about = s->about,
		.todo = s->todo,
		.log = findings_text_of(s, cells, "log"),
		.node = findings_text_of(s, cells, "node"),
		.cell = findings_number_of(s, cells, "cell"),
		.number = findings_number_of(s, cells, "number"),
		.t_s = time_of(s, cells)};
	int rc = findings_fill(s, s->text, false, cells, &text, e);

	(void)n;
	if (!rc && s->evidence)
		rc = findings_fill(s, s->evidence, true, cells, &evidence, e);
	found.text = text;
	found.evidence = evidence;
	return rc ?: s->fn(s->ctx, &found, e);
}

/* 'severity': only findings of this severity; NULL: all. */
static int search_one(struct query *q, const char *name, const char *severity, findings_fn *fn,
	void *ctx, struct err *e)
{
	struct search s = {.fn = fn, .ctx = ctx};
	const struct query_sink sink = {.begin = findings_begin, .row = findings_row, .ctx = &s};
	lua_State *L = luax_new();
	int rc = findings_load(&s, L, name, e);

	if (!rc && (!severity || !strcmp(s.severity, severity))) {
		rc = query_run(q, s.sql, &sink, e);
		if (rc == -EINVAL && !s.n)
			rc = err_blame(e, ERR_SCENARIO, err_prefix(e, rc, "%s", s.src.path));
	}
	lua_close(L);
	findings_clear(&s);
	return rc;
}

int findings_search(struct query *q, const char *name, findings_fn *fn, void *ctx, struct err *e)
{
	char **names;
	int rc = 0;

	if (name)
		return search_one(q, name, NULL, fn, ctx, e);
	names = library_names(LIBRARY_FINDING);
	for (size_t k = 0; k < SEVERITIES; k++)
		for (size_t i = 0; !rc && names && names[i]; i++) {
			rc = search_one(q, names[i], severities[k], fn, ctx, e);
			if (rc == -ENODATA)
				rc = 0;
		}
	alloc_free_list(names);
	return rc;
}

static int findings_tell(const char *name, findings_fn *fn, void *ctx, struct err *e)
{
	struct search s = {0};
	lua_State *L = luax_new();
	int rc = findings_load(&s, L, name, e);
	const struct finding of = {
		.name = s.name, .severity = s.severity, .about = s.about, .todo = s.todo};

	if (!rc)
		rc = fn(ctx, &of, e);
	lua_close(L);
	findings_clear(&s);
	return rc;
}

int findings_each(findings_fn *fn, void *ctx, struct err *e)
{
	char **names = library_names(LIBRARY_FINDING);
	int rc = 0;

	for (size_t i = 0; !rc && names && names[i]; i++)
		rc = findings_tell(names[i], fn, ctx, e);
	alloc_free_list(names);
	return rc;
}
