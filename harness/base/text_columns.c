/* Lays out a text table whose columns are as wide as their cells. */
#include "harness/base/text_columns.h"

#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"
#include "harness/base/text.h"

enum { GAP = 2, NAME_LEAST = 12 };

/* Characters, not bytes. */
static int width_of(const char *text)
{
	int n = 0;

	for (; *text; text++)
		n += (*text & 0xc0) != 0x80;
	return n;
}

void text_columns_add(struct text_columns *g, const char *head, bool right, bool name)
{
	g->columns[g->n++] = (struct text_column){head, right, name, width_of(head)};
}

void text_columns_cell(struct text_columns *g, size_t column, const char *text)
{
	size_t size = 4 * strlen(text) + 1;
	char *clean = alloc_zero(size, 1);
	struct text_column *c = &g->columns[column];

	text_clean(text, clean, size);
	if (!column)
		g->cells = alloc_resize(g->cells, ++g->rows * (size_t)g->n, sizeof(*g->cells));
	g->cells[(g->rows - 1) * (size_t)g->n + column] = clean;
	if (width_of(clean) > c->width)
		c->width = width_of(clean);
}

/* Cuts the widest name until a line fits or no name can be cut further. */
static void fit(struct text_columns *g, int width)
{
	int all = -GAP;

	for (int i = 0; i < g->n; i++)
		all += g->columns[i].width + GAP;
	while (width && all > width) {
		struct text_column *widest = NULL;

		for (struct text_column *c = g->columns; c < g->columns + g->n; c++)
			if (c->name && (!widest || c->width > widest->width))
				widest = c;
		if (!widest || widest->width <= NAME_LEAST)
			return;
		widest->width--;
		all--;
	}
}

/* The byte offset of character 'n'. */
static const char *character(const char *text, int n)
{
	for (; *text && (n > 0 || (*text & 0xc0) == 0x80); text++)
		n -= (text[1] & 0xc0) != 0x80;
	return text;
}

static void text_columns_put_cell(
	const char *text, const struct text_column *c, bool last, FILE *out)
{
	int length = width_of(text), tail;

	if (length > c->width) {
		tail = (c->width - 3) / 2;
		fprintf(out, "%.*s...%s", (int)(character(text, c->width - 3 - tail) - text), text,
			character(text, length - tail));
		length = c->width;
	} else {
		fprintf(out, "%*s%s", c->right ? c->width - length : 0, "", text);
		length = c->right ? c->width : length;
	}
	if (!last)
		fprintf(out, "%*s", c->width - length + GAP, "");
}

static void put_line(const struct text_columns *g, char *const *cells, FILE *out)
{
	int last = g->n - 1;

	while (last > 0 && !*(cells ? cells[last] : g->columns[last].head))
		last--;
	for (int i = 0; i <= last; i++)
		text_columns_put_cell(
			cells ? cells[i] : g->columns[i].head, &g->columns[i], i == last, out);
	fputc('\n', out);
}

void text_columns_put(struct text_columns *g, int width, FILE *out)
{
	fit(g, width);
	put_line(g, NULL, out);
	for (size_t i = 0; i < g->rows; i++)
		put_line(g, g->cells + i * (size_t)g->n, out);
	for (size_t i = 0; i < g->rows * (size_t)g->n; i++)
		free(g->cells[i]);
	free(g->cells);
}
