/* Grids as text and as Markdown. */
#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"
#include "harness/base/text.h"
#include "harness/table/grid_impl.h"

enum { PLAIN, GREEN, YELLOW, RED, MARKS = 64 };

struct grid_line {
	char text[4096];
	size_t len;
	struct mark {
		size_t from, to;
		int colour;
	} marks[MARKS]; /* in order */
	size_t n_marks;
};

/* 'width' 0: no padding. */
static void grid_pages_put(struct grid_line *l, int gap, int width, bool right, const char *text)
{
	int n = snprintf(l->text + l->len, sizeof(l->text) - l->len, "%*s%*.*s", gap, "",
		right ? width : -width, width && !right ? width : (int)sizeof(l->text), text);

	l->len += (size_t)n < sizeof(l->text) - l->len ? (size_t)n : 0;
}

/* The first 'n' of the last 'width' characters. */
static void mark(struct grid_line *l, size_t width, size_t n, int colour)
{
	if (colour && l->n_marks < MARKS && width <= l->len)
		l->marks[l->n_marks++] = (struct mark){
			l->len - width, l->len - width + (n < width ? n : width), colour};
}

static void print_part(const struct grid_line *l, size_t from, size_t to, FILE *f)
{
	char part[sizeof(l->text)];

	snprintf(part, sizeof(part), "%.*s", (int)(to - from), l->text + from);
	text_print_clean(f, part);
}

/* Prints the line without trailing blanks. */
static void end_line(struct grid_line *l, FILE *f)
{
	static const char *const codes[] = {"", "\033[32m", "\033[33m", "\033[31m"};
	size_t at = 0;

	while (l->len && l->text[l->len - 1] == ' ')
		l->len--;
	l->text[l->len] = '\0';
	for (size_t i = 0; i < l->n_marks; i++) {
		const struct mark *m = &l->marks[i];

		print_part(l, at, m->from, f);
		fputs(codes[m->colour], f);
		at = m->to < l->len ? m->to : l->len;
		print_part(l, m->from, at, f);
		fputs("\033[0m", f);
	}
	print_part(l, at, l->len, f);
	fputc('\n', f);
	*l = (struct grid_line){0};
}

static int colour_of(const struct grid_column *look, const struct grid_cell *c)
{
	if (c->kind != GRID_RATE || !c->n)
		return PLAIN;
	if (look->flags & GRID_GOOD)
		return c->count == c->n ? GREEN : c->count ? YELLOW : RED;
	return look->flags & GRID_BAD && c->count ? RED : PLAIN;
}

/* A block has the columns without a group, and the columns of the groups [first, last). */
struct grid_block {
	const struct grid *g;
	size_t first, last;
	const char *group; /* group printed last */
	char **cut;        /* cut labels */
	size_t n_cut;
};

static bool in_block(const struct grid_block *b, size_t column)
{
	const struct grid_place *p = &b->g->columns[column];

	return grid_is_for(p, TABLE_TEXT) && !(p->look.flags & GRID_GROUP) &&
		(!p->group || (p->group >= b->first && p->group < b->last));
}

/* The bar replaces the gap before each group of columns except the first. */
static int put_gap(const struct grid_block *b, size_t column, struct grid_line *l)
{
	const struct grid_place *p = &b->g->columns[column];

	if (!b->g->bar || p->group <= b->first || p[-1].group == p->group)
		return p->look.gap;
	grid_pages_put(l, 0, 0, false, b->g->bar);
	return 0;
}

/* How much of a heading fits into this line: all, or up to the last comma or bracket. */
static int head_part(const char *text, int width)
{
	int n = (int)strlen(text), at;

	if (n <= width)
		return n;
	for (at = width; at > width / 3; at--)
		if (strchr(",( ", text[at - 1]))
			return at;
	return width;
}

/* Headings of groups; long ones continue in further lines. */
static void text_group_heads(const struct grid_block *b, FILE *f)
{
	const struct grid *g = b->g;
	size_t *done = alloc_zero(g->n_heads, sizeof(*done));
	bool more = true;

	while (more) {
		struct grid_line l = {0};

		more = false;
		for (size_t i = 0; i < g->n_columns; i++) {
			size_t group = g->columns[i].group;
			int gap, width = g->columns[i].look.width, n = 0;
			const char *text = "";

			if (!in_block(b, i))
				continue;
			gap = put_gap(b, i, &l);
			while (group && i + 1 < g->n_columns && g->columns[i + 1].group == group) {
				i++;
				if (in_block(b, i))
					width += g->columns[i].look.gap + g->columns[i].look.width;
			}
			if (group) {
				text = g->heads[group - 1] + done[group - 1];
				n = head_part(text, width);
				done[group - 1] += (size_t)n;
				more = more || text[n];
			}
			grid_pages_put(&l, gap, 0, false, "");
			if (l.len + (size_t)width < sizeof(l.text))
				l.len += (size_t)snprintf(l.text + l.len, sizeof(l.text) - l.len,
					"%-*.*s", width, n, text);
		}
		if (strspn(l.text, " |") < l.len)
			end_line(&l, f);
	}
	free(done);
}

static void put_line(int indent, const char *text, FILE *f)
{
	struct grid_line l = {0};

	grid_pages_put(&l, indent, 0, false, text);
	end_line(&l, f);
}

/* The label, cut with '~' if it does not fit; it is printed in full below the grid. */
static const char *cut_label(
	struct grid_block *b, const char *text, int width, char *buf, size_t size)
{
	char *whole = alloc_copy(text);
	size_t i = 0;

	while (i < b->n_cut && strcmp(b->cut[i], whole))
		i++;
	if (i == b->n_cut) {
		b->cut = alloc_room(b->cut, b->n_cut, sizeof(*b->cut));
		b->cut[b->n_cut++] = whole;
	} else {
		free(whole);
	}
	snprintf(buf, size, "%.*s~", width - 1, b->cut[i]);
	return buf;
}

static void show_cut(struct grid_block *b)
{
	for (size_t i = 0; i < b->n_cut; i++) {
		sheet_words(b->g->out, "%s %s", i ? " " : "~ cut:", b->cut[i]);
		free(b->cut[i]);
	}
	free(b->cut);
	b->cut = NULL;
	b->n_cut = 0;
}

/* Prints a row, or the headings if 'cells' is NULL. A row without cells in the block is skipped. */
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
		if (look->flags & GRID_CUT && look->width &&
			(int)strlen(text) + indent > look->width)
			text = cut_label(b, text, look->width - indent, buf, sizeof(buf));
		grid_pages_put(&l, put_gap(b, i, &l) + indent, look->width - indent,
			(look->flags & (GRID_RIGHT | GRID_LABEL)) == GRID_RIGHT, text);
		if (cells && g->out->colour && look->width > indent)
			mark(&l, (size_t)(look->width - indent), strlen(text),
				colour_of(look, &cells[i]));
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

/* "disk-hog, ddw: detected 1.00 [.69,1], early 0": labels, then the other columns with headings. */
static void text_sentence(const struct grid *g, const struct grid_cell *cells)
{
	const char *before = "";
	struct grid_line l = {0};
	char buf[160];

	for (size_t i = 0; i < g->n_columns; i++) {
		const struct grid_column *look = &g->columns[i].look;

		if (!grid_is_for(&g->columns[i], TABLE_TEXT))
			continue;
		grid_pages_put(&l, 0, 0, false, look->flags & GRID_LABEL || !l.len ? "" : before);
		if (look->flags & GRID_LABEL)
			grid_pages_put(&l, 0, 0, false, l.len ? ", " : "");
		else
			grid_pages_put(&l, 0, 0, false, look->head);
		before = look->flags & GRID_LABEL ? ": " : ", ";
		grid_pages_put(&l, !(look->flags & GRID_LABEL), 0, false,
			grid_cell_text(look, &cells[i], TABLE_TEXT, buf, sizeof(buf)));
	}
	sheet_words(g->out, "%s", l.text);
}

/* How many groups fit side by side: the number for SHEET_WIDTH, scaled to the terminal's width. */
static size_t a_block(const struct grid *g)
{
	int own = 0, group = 0;

	for (size_t i = 0; i < g->n_columns; i++) {
		const struct grid_column *look = &g->columns[i].look;

		if (!grid_is_for(&g->columns[i], TABLE_TEXT) || look->flags & GRID_GROUP)
			continue;
		if (!g->columns[i].group)
			own += look->gap + look->width;
		else if (g->columns[i].group == 1)
			group += look->gap + look->width;
	}
	group += g->bar ? (int)strlen(g->bar) : 0;
	own = group ? (sheet_width(g->out) - own) / group : 0;
	if (sheet_width(g->out) < SHEET_WIDTH)
		return own > 1 ? (size_t)own : 1;
	return own > (int)g->a_block ? (size_t)own : g->a_block;
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
		struct grid_block b = {g, first, g->a_block ? first + a_block(g) : SIZE_MAX, NULL};

		text_group_heads(&b, g->out->f);
		text_row(&b, NULL, g->out->f);
		b.group = NULL;
		for (const struct grid_cell *r = NULL; (r = grid_next_row(g, r, TABLE_TEXT));)
			text_row(&b, r, g->out->f);
		show_cut(&b);
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
