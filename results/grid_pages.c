/* Grids as text and as Markdown. */
#include <stdlib.h>
#include <string.h>

#include "harness/base/text.h"
#include "results/grid_impl.h"

struct grid_line {
	char text[1024];
	size_t len;
};

/* 'width' 0: as wide as it is. */
static void put(struct grid_line *l, int gap, int width, bool right, const char *text)
{
	int n = snprintf(l->text + l->len, sizeof(l->text) - l->len, "%*s%*.*s", gap, "",
		right ? width : -width, width && !right ? width : (int)sizeof(l->text), text);

	l->len += (size_t)n < sizeof(l->text) - l->len ? (size_t)n : 0;
}

/* Prints the line without the blanks at its end. */
static void end_line(struct grid_line *l, FILE *f)
{
	while (l->len && l->text[l->len - 1] == ' ')
		l->len--;
	l->text[l->len] = '\0';
	text_print_clean(f, l->text);
	fputc('\n', f);
	*l = (struct grid_line){0};
}

/* A block shows the columns of no group, and those of the groups from 'first' to before 'last'. */
struct grid_block {
	const struct grid *g;
	size_t first, last;
	const char *group; /* of the rows that was named last */
};

static bool in_block(const struct grid_block *b, size_t column)
{
	const struct grid_place *p = &b->g->columns[column];

	return grid_is_for(p, TABLE_TEXT) && !(p->look.flags & GRID_GROUP) &&
		(!p->group || (p->group >= b->first && p->group < b->last));
}

/* The bar stands in place of the gap before each group of columns but the first. */
static int put_gap(const struct grid_block *b, size_t column, struct grid_line *l)
{
	const struct grid_place *p = &b->g->columns[column];

	if (!b->g->bar || p->group <= b->first || p[-1].group == p->group)
		return p->look.gap;
	put(l, 0, 0, false, b->g->bar);
	return 0;
}

static void text_group_heads(const struct grid_block *b, FILE *f)
{
	const struct grid *g = b->g;
	struct grid_line l = {0};

	for (size_t i = 0; i < g->n_columns; i++) {
		size_t group = g->columns[i].group;
		int gap, width = g->columns[i].look.width;

		if (!in_block(b, i))
			continue;
		gap = put_gap(b, i, &l);
		while (group && i + 1 < g->n_columns && g->columns[i + 1].group == group) {
			i++;
			if (in_block(b, i))
				width += g->columns[i].look.gap + g->columns[i].look.width;
		}
		put(&l, gap, width, false, group ? g->heads[group - 1] : "");
	}
	if (strspn(l.text, " |") < l.len)
		end_line(&l, f);
}

static void put_line(int indent, const char *text, FILE *f)
{
	struct grid_line l = {0};

	put(&l, indent, SHEET_WIDTH - indent, false, text);
	end_line(&l, f);
}

/* A row, or without 'cells' the headings. It is left out if the block has nothing of it. */
static void text_row(struct grid_block *b, const struct grid_cell *cells, FILE *f)
{
	const struct grid *g = b->g;
	const char *group = NULL, *own_line = NULL;
	struct grid_line l = {0};
	bool filled = false;
	char buf[160];
	int own_indent = 0;

	for (size_t i = 0; i < g->n_columns; i++) {
		const struct grid_column *look = &g->columns[i].look;
		const char *text = look->head;
		int indent = cells ? look->indent : 0;

		if (cells)
			text = grid_cell_text(look, &cells[i], TABLE_TEXT, buf, sizeof(buf));
		if (look->flags & GRID_GROUP && grid_is_for(&g->columns[i], TABLE_TEXT))
			group = text;
		if (!in_block(b, i))
			continue;
		if (cells ? cells[i].kind != GRID_NONE && !(look->flags & GRID_LABEL) : *text)
			filled = true;
		if (look->flags & GRID_LABEL && !(look->flags & GRID_CUT) &&
			(int)strlen(text) + indent > look->width) {
			own_line = text;
			own_indent = indent;
			text = "";
		}
		put(&l, put_gap(b, i, &l) + indent, look->width - indent,
			(look->flags & (GRID_RIGHT | GRID_LABEL)) == GRID_RIGHT, text);
	}
	if (!filled)
		return;
	if (cells && group && *group && (!b->group || strcmp(group, b->group)))
		put_line(0, group, f);
	b->group = group;
	if (own_line)
		put_line(own_indent, own_line, f);
	end_line(&l, f);
}

/* "disk-hog, ddw: detected 1.00 [.69,1], early 0": labels, then the other columns by heading. */
static void text_sentence(const struct grid *g, const struct grid_cell *cells)
{
	const char *before = "";
	struct grid_line l = {0};
	char buf[160];

	for (size_t i = 0; i < g->n_columns; i++) {
		const struct grid_column *look = &g->columns[i].look;

		if (!grid_is_for(&g->columns[i], TABLE_TEXT))
			continue;
		put(&l, 0, 0, false, look->flags & GRID_LABEL || !l.len ? "" : before);
		if (look->flags & GRID_LABEL)
			put(&l, 0, 0, false, l.len ? ", " : "");
		else
			put(&l, 0, 0, false, look->head);
		before = look->flags & GRID_LABEL ? ": " : ", ";
		put(&l, !(look->flags & GRID_LABEL), 0, false,
			grid_cell_text(look, &cells[i], TABLE_TEXT, buf, sizeof(buf)));
	}
	sheet_words(g->out, "%s", l.text);
}

void grid_print_text(const struct grid *g)
{
	size_t first = 1;

	if (g->sentences) {
		for (const struct grid_cell *r = NULL; (r = grid_next_row(g, r, TABLE_TEXT));)
			text_sentence(g, r);
		return;
	}
	do {
		struct grid_block b = {g, first, g->a_block ? first + g->a_block : SIZE_MAX, NULL};

		text_group_heads(&b, g->out->f);
		text_row(&b, NULL, g->out->f);
		b.group = NULL;
		for (const struct grid_cell *r = NULL; (r = grid_next_row(g, r, TABLE_TEXT));)
			text_row(&b, r, g->out->f);
		if (g->blank)
			fputc('\n', g->out->f);
		first = b.last;
	} while (first <= g->n_heads);
}

/* Markdown */

static void markdown_row(const struct grid *g, const struct grid_cell *cells,
	const struct grid_cell *before, FILE *f)
{
	char buf[160], other[160];

	fputc('|', f);
	for (size_t i = 0; i < g->n_columns; i++) {
		const struct grid_column *look = &g->columns[i].look;
		const char *text = grid_cell_text(
			look, &cells[i], TABLE_MARKDOWN, buf, sizeof(buf));

		if (!grid_is_for(&g->columns[i], TABLE_MARKDOWN))
			continue;
		if (look->flags & GRID_GROUP && g->groups_once && before &&
			!strcmp(text,
				grid_cell_text(
					look, &before[i], TABLE_MARKDOWN, other, sizeof(other))))
			text = "";
		if (cells[i].kind != GRID_NONE) {
			fputc(' ', f);
			text_print_clean(f, text);
		}
		fputs(" |", f);
	}
	fputc('\n', f);
}

void grid_print_markdown(const struct grid *g)
{
	const struct grid_cell *row = NULL, *before = NULL;
	FILE *f = g->out->f;

	fputc('|', f);
	for (size_t i = 0; i < g->n_columns; i++)
		if (grid_is_for(&g->columns[i], TABLE_MARKDOWN)) {
			fputc(' ', f);
			text_print_clean(f, g->columns[i].look.title);
			fputs(" |", f);
		}
	fputs("\n|", f);
	for (size_t i = 0; i < g->n_columns; i++)
		if (grid_is_for(&g->columns[i], TABLE_MARKDOWN))
			fputs(g->columns[i].look.flags & GRID_RIGHT ? "--:|" : "---|", f);
	fputc('\n', f);
	for (; (row = grid_next_row(g, row, TABLE_MARKDOWN)); before = row)
		markdown_row(g, row, before, f);
}
