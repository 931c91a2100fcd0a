/* The comparison as text. A measure takes three columns: A, B, and the ratio of B to A. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/jget.h"
#include "harness/web/serve/compare.h"

enum { KEY_MOST = 32, CELL = 10, RATIO = 7 };

/* "1.5 ms", "12 MiB", "1234". */
static void put_value(char *out, size_t size, double v, const char *unit)
{
	static const char *const larger[] = {"", " Ki", " Mi", " Gi", " Ti"};
	int i = 0;

	if (!strcmp(unit, "s")) {
		if (v >= 1 || v == 0)
			snprintf(out, size, "%.3g s", v);
		else if (v >= 1e-3)
			snprintf(out, size, "%.3g ms", v * 1e3);
		else
			snprintf(out, size, "%.3g us", v * 1e6);
	} else if (*unit == 'B') {
		for (; v >= 1024 && i < 4; i++)
			v /= 1024;
		snprintf(out, size, "%.4g%s%s", v, larger[i], i ? "B" : " B");
	} else {
		snprintf(out, size, v < 100 && v != floor(v) ? "%.3g" : "%.0f", v);
	}
}

static const json_t *side_of(const json_t *row, int side, size_t measure)
{
	return json_array_get(json_array_get(row, (size_t)side), measure);
}

static void put_side(const json_t *v, const char *unit, FILE *f)
{
	char text[32] = "-";

	if (json_is_number(v))
		put_value(text, sizeof(text), json_number_value(v), unit);
	fprintf(f, "%*s", CELL, text);
}

static void put_ratio(const json_t *a, const json_t *b, FILE *f)
{
	const double x = json_number_value(a), y = json_number_value(b);
	char text[32] = "";

	if (!json_is_number(a) && json_is_number(b))
		snprintf(text, sizeof(text), "new");
	else if (json_is_number(a) && !json_is_number(b))
		snprintf(text, sizeof(text), "gone");
	else if (x > 0 && y / x < 1e4)
		snprintf(text, sizeof(text), "x%.*f",
			y / x >= 99.95           ? 0
				: y / x >= 9.995 ? 1
						 : 2,
			y / x);
	fprintf(f, "%*s", RATIO, text);
}

/* Counts characters, not bytes; cuts long texts at the beginning. */
static void put_key(const char *key, int width, FILE *f)
{
	size_t n = 0;
	const char *p;

	for (p = key; *p; p++)
		n += ((unsigned char)*p & 0xc0) != 0x80;
	if (n <= KEY_MOST) {
		fprintf(f, "%s%*s", key, width - (int)n, "");
		return;
	}
	for (p = key; n > KEY_MOST - 3 || ((unsigned char)*p & 0xc0) == 0x80; p++)
		n -= ((unsigned char)*p & 0xc0) != 0x80;
	fprintf(f, "...%s%*s", p, width - (int)n - 3, "");
}

static int width_of(const json_t *rows, long most, const char *head)
{
	int width = (int)strlen(head);
	const json_t *row;
	size_t i;

	json_array_foreach(rows, i, row) {
		const char *key = json_string_value(json_array_get(row, 0));
		int n = 0;

		if ((long)i == most)
			break;
		for (; *key; key++)
			n += ((unsigned char)*key & 0xc0) != 0x80;
		n = n > KEY_MOST ? KEY_MOST : n;
		width = n > width ? n : width;
	}
	return width;
}

/* "p99", "bytes/s" */
static void put_name(const json_t *measure, char *out, size_t size)
{
	const char *per = strstr(jget_text(measure, "unit"), "/s");

	snprintf(out, size, "%s%s", jget_text(measure, "name"), per ? per : "");
}

static void put_three(const json_t *row, size_t measure, const char *unit, FILE *f)
{
	const json_t *a = side_of(row, 1, measure), *b = side_of(row, 2, measure);

	put_side(a, unit, f);
	put_side(b, unit, f);
	put_ratio(a, b, f);
}

static void compare_text_put_head(const json_t *table, int width, FILE *f)
{
	const json_t *m;
	char name[32];
	size_t i;

	fprintf(f, "  %-*s", width, "");
	json_array_foreach(jget(table, "measures"), i, m) {
		if (!jget_true(m, "main"))
			continue;
		put_name(m, name, sizeof(name));
		fprintf(f, "%*s", 2 * CELL, name);
		fprintf(f, "%*s", RATIO, "");
	}
	fprintf(f, "\n  %-*s", width, jget_text(table, "key"));
	json_array_foreach(jget(table, "measures"), i, m)
		if (jget_true(m, "main"))
			fprintf(f, "%*s%*s%*s", CELL, "A", CELL, "B", RATIO, "B/A");
	fputc('\n', f);
}

static void put_rows(const json_t *table, long most, FILE *f)
{
	const json_t *rows = jget(table, "rows"), *row, *m;
	const int width = width_of(rows, most, jget_text(table, "key"));
	size_t i, k;

	compare_text_put_head(table, width, f);
	json_array_foreach(rows, i, row) {
		if ((long)i == most) {
			fprintf(f, "  ... %zu more (--limit)\n", json_array_size(rows) - i);
			break;
		}
		fputs("  ", f);
		put_key(json_string_value(json_array_get(row, 0)), width, f);
		json_array_foreach(jget(table, "measures"), k, m)
			if (jget_true(m, "main"))
				put_three(row, k, jget_text(m, "unit"), f);
		fputc('\n', f);
	}
}

/* A line per measure of one row. */
static void put_summary(const json_t *table, FILE *f)
{
	const json_t *row = json_array_get(jget(table, "rows"), 0), *m;
	char name[32];
	size_t i;

	fprintf(f, "  %-*s%*s%*s%*s\n", CELL, "", CELL, "A", CELL, "B", RATIO, "B/A");
	json_array_foreach(jget(table, "measures"), i, m) {
		put_name(m, name, sizeof(name));
		fprintf(f, "  %-*s", CELL, name);
		put_three(row, i, jget_text(m, "unit"), f);
		fputc('\n', f);
	}
}

static void compare_text_put_table(const json_t *table, long most, FILE *f)
{
	fprintf(f, "\n%s\n", jget_text(table, "title"));
	if (!json_array_size(jget(table, "rows")))
		fputs("  none\n", f);
	else if (!*jget_text(table, "key"))
		put_summary(table, f);
	else
		put_rows(table, most, f);
}

void compare_text(const json_t *compared, long rows, FILE *f)
{
	static const char *const sides[] = {"a", "b"};
	const json_t *table;
	size_t i;

	for (i = 0; i < 2; i++)
		fprintf(f, "%c: %s, %.3f s\n", 'A' + (int)i,
			jget_text(jget(compared, sides[i]), "name"),
			jget_real(jget(compared, sides[i]), "seconds"));
	json_array_foreach(jget(compared, "tables"), i, table)
		compare_text_put_table(table, rows, f);
}
