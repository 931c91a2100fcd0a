/* Prints rows of a query as a table, CSV or JSON lines. */
#include "harness/table/rows.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/alloc.h"
#include "harness/base/outfile.h"
#include "harness/base/text.h"
#include "harness/base/json_text.h"

/* A table's columns are as wide as in its first rows. */
enum { ROWS_HELD = 200, TEXT_MOST = 20000 };

struct rows {
	enum rows_form form;
	long limit, n;
	int columns;
	bool terminal;
	char **names;
	/* For text: cells of the first rows, and their widths. */
	char **held;
	bool *numeric;
	size_t n_held, *width;
};

struct rows *rows_new(enum rows_form form, long limit)
{
	struct rows *r = alloc_zero(1, sizeof(*r));

	r->form = form;
	r->limit = limit;
	r->terminal = isatty(STDOUT_FILENO);
	return r;
}

void rows_free(struct rows *r)
{
	if (!r)
		return;
	for (int i = 0; i < r->columns; i++)
		free(r->names[i]);
	for (size_t i = 0; i < r->n_held * (size_t)r->columns; i++)
		free(r->held[i]);
	free(r->names);
	free(r->held);
	free(r->numeric);
	free(r->width);
	free(r);
}

/* Characters, not bytes. */
static size_t width_of(const char *s)
{
	size_t n = 0;

	for (; *s; s++)
		n += ((unsigned char)*s & 0xc0) != 0x80;
	return n;
}

/* The shortest exact form of a number. */
static void print_real(char *out, size_t size, double v)
{
	for (int digits = 15; digits <= 17; digits++) {
		snprintf(out, size, "%.*g", digits, v);
		if (strtod(out, NULL) == v)
			return;
	}
}

static void hex(const struct query_cell *c, char *out, size_t size)
{
	for (size_t i = 0; i < c->size && 2 * i + 2 < size; i++)
		snprintf(out + 2 * i, 3, "%02x", (unsigned char)c->text[i]);
}

/* The cell as raw text, in 'out' or in the cell. */
static const char *plain(const struct query_cell *c, char *out, size_t size)
{
	out[0] = '\0';
	switch (c->type) {
	case CELL_INT: snprintf(out, size, "%lld", (long long)c->number); break;
	case CELL_REAL: print_real(out, size, c->real); break;
	case CELL_TEXT: return c->text;
	case CELL_BLOB: hex(c, out, size); break;
	case CELL_NULL: break;
	}
	return out;
}

static int written(struct err *e)
{
	return ferror(stdout) ? outfile_flush(stdout, e) : 0;
}

/* On a terminal, control characters are escaped. */
static void csv_field(const struct rows *r, const char *s, bool quote)
{
	if (r->terminal)
		text_print_clean(stdout, s);
	else
		text_print_csv(stdout, s, quote);
}

static int csv_row(struct rows *r, const struct query_cell *cells, struct err *e)
{
	char text[TEXT_MOST];

	for (int i = 0; i < r->columns; i++) {
		if (i)
			putchar(',');
		/* "" is an empty string, an empty field is no value. */
		csv_field(r, plain(&cells[i], text, sizeof(text)),
			cells[i].type == CELL_TEXT && !cells[i].size);
	}
	putchar('\n');
	return written(e);
}

/* JSON has no infinity. */
static json_t *json_cell(const struct query_cell *c)
{
	char text[TEXT_MOST];

	switch (c->type) {
	case CELL_INT: return json_integer(c->number);
	case CELL_REAL: return isfinite(c->real) ? json_real(c->real) : json_null();
	case CELL_TEXT: return json_text(c->text);
	case CELL_BLOB: return json_text(plain(c, text, sizeof(text)));
	default: return json_null();
	}
}

static int json_row(struct rows *r, const struct query_cell *cells, struct err *e)
{
	json_t *o = json_object();

	for (int i = 0; i < r->columns; i++)
		json_object_set_new_nocheck(o, r->names[i], json_cell(&cells[i]));
	json_line(o);
	json_decref(o);
	return written(e);
}

static void print_cell(const struct rows *r, int i, const char *s)
{
	const bool last = i + 1 == r->columns;
	size_t n = width_of(s), pad = n < r->width[i] ? r->width[i] - n : 0;

	if (i)
		fputs("  ", stdout);
	if (r->numeric[i])
		printf("%*s", (int)pad, "");
	fputs(s, stdout);
	if (!r->numeric[i] && !last)
		printf("%*s", (int)pad, "");
}

static void release(struct rows *r)
{
	for (int i = 0; i < r->columns; i++)
		print_cell(r, i, r->names[i]);
	putchar('\n');
	for (size_t k = 0; k < r->n_held; k++) {
		for (int i = 0; i < r->columns; i++) {
			char **s = &r->held[k * (size_t)r->columns + (size_t)i];

			print_cell(r, i, *s);
			free(*s);
		}
		putchar('\n');
	}
	r->n_held = 0;
}

static char *clean(const char *s)
{
	size_t n = text_clean(s, (char[1]){0}, 1) + 1;
	char *out = alloc_zero(n, 1);

	text_clean(s, out, n);
	return out;
}

static void hold(struct rows *r, int i, char *s, bool numeric)
{
	r->held = alloc_resize(r->held, (r->n_held + 1) * (size_t)r->columns, sizeof(*r->held));
	r->held[r->n_held * (size_t)r->columns + (size_t)i] = s;
	if (width_of(s) > r->width[i])
		r->width[i] = width_of(s);
	r->numeric[i] = r->numeric[i] && numeric;
}

static int text_row(struct rows *r, const struct query_cell *cells, struct err *e)
{
	const bool holds = r->n < ROWS_HELD;
	char text[TEXT_MOST];

	for (int i = 0; i < r->columns; i++) {
		char *s = clean(plain(&cells[i], text, sizeof(text)));

		if (holds) {
			hold(r, i, s, cells[i].type != CELL_TEXT && cells[i].type != CELL_BLOB);
			continue;
		}
		print_cell(r, i, s);
		free(s);
	}
	if (!holds)
		putchar('\n');
	else if (++r->n_held == ROWS_HELD)
		release(r);
	return written(e);
}

/* Makes names unique, because JSON objects need that. */
static char *rows_name_of(const struct rows *r, const char *name)
{
	json_auto_t *valid = json_text(name);
	char *out = alloc_copy(json_string_value(valid));

	for (int i = 0, again = 0; i < r->columns; i++) {
		if (strcmp(r->names[i], out) != 0)
			continue;
		free(out);
		out = alloc_format("%s:%d", json_string_value(valid), ++again);
		i = -1;
	}
	return out;
}

static int rows_begin(void *ctx, int n, const char *const names[], struct err *e)
{
	struct rows *r = ctx;

	r->names = alloc_zero((size_t)n, sizeof(*r->names));
	r->numeric = alloc_zero((size_t)n, sizeof(*r->numeric));
	r->width = alloc_zero((size_t)n, sizeof(*r->width));
	for (; r->columns < n; r->columns++) {
		char *name = rows_name_of(r, names[r->columns]);

		r->names[r->columns] = r->form == ROWS_TEXT ? clean(name) : alloc_copy(name);
		free(name);
		r->width[r->columns] = width_of(r->names[r->columns]);
		r->numeric[r->columns] = true;
	}
	for (int i = 0; r->form == ROWS_CSV && i < n; i++) {
		if (i)
			putchar(',');
		csv_field(r, r->names[i], false);
	}
	if (r->form == ROWS_CSV)
		putchar('\n');
	return written(e);
}

static int rows_row(void *ctx, int n, const struct query_cell *cells, struct err *e)
{
	struct rows *r = ctx;
	int rc;

	(void)n;
	if (r->limit && r->n == r->limit)
		return 1;
	rc = r->form == ROWS_CSV       ? csv_row(r, cells, e)
		: r->form == ROWS_JSON ? json_row(r, cells, e)
				       : text_row(r, cells, e);
	r->n++;
	return rc;
}

struct query_sink rows_sink(struct rows *r)
{
	return (struct query_sink){.begin = rows_begin, .row = rows_row, .ctx = r};
}

long rows_end(struct rows *r)
{
	if (r->form == ROWS_TEXT && r->columns && r->n < ROWS_HELD)
		release(r);
	return r->n;
}
