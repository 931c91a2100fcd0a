/* Grids as pictures: shares as shaded cells that are legible on light and dark pages. */
#include <string.h>

#include "harness/base/text.h"
#include "harness/table/grid_impl.h"

enum {
	WIDTH = 800,
	LABELS = 146,
	TOP = 86, /* top of the first row */
	CELL = 40,
	ROW = 34,
	GROUP_GAP = 10,
	SHADES = 5
};

static void grid_svg_put_text(
	FILE *f, double x, double y, const char *style, const char *anchor, const char *text)
{
	char clean[256];

	text_clean(text, clean, sizeof(clean));
	fprintf(f, "<text x=\"%g\" y=\"%g\" class=\"%s\" text-anchor=\"%s\">", x, y, style, anchor);
	for (const char *c = clean; *c; c++)
		if (strchr("<>&", *c))
			fprintf(f, "&#%d;", *c);
		else
			fputc(*c, f);
	fputs("</text>\n", f);
}

static void grid_svg_put_cell(FILE *f, double x, double y, const struct grid_cell *c)
{
	const struct grid_column plain = {0};
	int shade = c->number <= 0 ? 0 : 1 + (int)(c->number * (SHADES - 1));
	char style[16], text[16];

	snprintf(style, sizeof(style),
		c->kind != GRID_SHARE ? "none"
			: c->wrong    ? "w%d"
				      : "s%d",
		shade);
	fprintf(f, "<rect x=\"%g\" y=\"%g\" width=\"%d\" height=\"%d\" rx=\"3\" class=\"%s\"/>\n",
		x, y, CELL - 2, ROW - 4, style);
	snprintf(style, sizeof(style),
		c->kind != GRID_SHARE ? "faint"
			: !shade      ? "t0"
			: shade > 2   ? "t2"
				      : "t1");
	grid_svg_put_text(f, x + CELL / 2.0 - 1, y + 20, style, "middle",
		grid_cell_text(&plain, c, TABLE_SVG, text, sizeof(text)));
}

/* Shows which column of a group a cell belongs to: small boxes, one of them filled. */
static void put_key(const struct grid *g, FILE *f)
{
	double x = LABELS;
	size_t n = 0;

	for (size_t i = 0; i < g->n_columns; i++)
		n += grid_is_for(&g->columns[i], TABLE_SVG) && g->columns[i].group == 1 &&
			g->columns[i].look.key;
	for (size_t i = 0, k = 0; i < g->n_columns && k < n; i++) {
		const char *key = g->columns[i].look.key;

		if (!grid_is_for(&g->columns[i], TABLE_SVG) || !key)
			continue;
		for (size_t m = 0; m < n; m++)
			fprintf(f,
				"<rect x=\"%g\" y=\"35\" width=\"11\" height=\"12\" rx=\"2\" "
				"class=\"%s\"/>\n",
				x + (double)m * 13, m == k ? "key" : "s0");
		grid_svg_put_text(f, x + (double)n * 13 + 5, 46, "small", "start", key);
		x += (double)n * 13 + 32 + 7.3 * (double)strlen(key);
		k++;
	}
}

static void put_style(FILE *f)
{
	fputs("<style>\n"
	      "text { font: 15px 'Liberation Sans', Arial, Helvetica, sans-serif; fill: #1b1f24 }\n"
	      ".head { font-size: 17px; font-weight: bold } .small { font-size: 14px }\n"
	      ".faint { fill: #57606a; font-size: 13px } .t1 { fill: #1b1f24 } .t2 { fill: "
	      "#ffffff }\n"
	      ".none { fill: none; stroke: #8c959f; stroke-dasharray: 2 3 } .key { fill: #0f4a7d "
	      "}\n"
	      ".s0, .w0 { fill: #e7ebef }\n"
	      ".s1 { fill: #c6dff3 } .s2 { fill: #93c1e6 } .s3 { fill: #3479b5 } .s4 { fill: "
	      "#22639a }\n"
	      ".s5 { fill: #0f4a7d }\n"
	      ".w1 { fill: #f8d9c4 } .w2 { fill: #f2b48a } .w3 { fill: #bd5a1c } .w4 { fill: "
	      "#a94a12 }\n"
	      ".w5 { fill: #873607 }\n"
	      "@media (prefers-color-scheme: dark) {\n"
	      "text { fill: #e6edf3 } .faint { fill: #9ea7b3 } .key { fill: #58a6ff }\n"
	      ".t1 { fill: #e6edf3 } .t2 { fill: #08121d } .s0, .w0 { fill: #2b323b }\n"
	      ".s1 { fill: #1c3d5a } .s2 { fill: #1f588a } .s3 { fill: #3f8fd4 } .s4 { fill: "
	      "#5ea8e8 }\n"
	      ".s5 { fill: #8cc8fb }\n"
	      ".w1 { fill: #4a2a14 } .w2 { fill: #6e3a17 } .w3 { fill: #d4762f } .w4 { fill: "
	      "#e8924f }\n"
	      ".w5 { fill: #f7b27b }\n"
	      "}\n</style>\n",
		f);
}

void grid_svg(struct grid *g, const char *head, const char *const foot[2])
{
	const struct grid_cell *row = NULL;
	FILE *f = g->out->f;
	double y = TOP;
	int height = TOP + 48;

	while ((row = grid_next_row(g, row, TABLE_SVG)))
		height += ROW;
	fprintf(f,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" "
		"height=\"%d\" role=\"img\">\n<title>%s</title>\n",
		WIDTH, height, WIDTH, height, head);
	put_style(f);
	grid_svg_put_text(f, 8, 20, "head", "start", head);
	put_key(g, f);
	for (row = NULL; (row = grid_next_row(g, row, TABLE_SVG)); y += ROW) {
		double x = LABELS;

		for (size_t i = 0; i < g->n_columns; i++) {
			const struct grid_place *p = &g->columns[i];

			if (!grid_is_for(p, TABLE_SVG))
				continue;
			if (p->look.flags & GRID_LABEL) {
				grid_svg_put_text(
					f, LABELS - 10, y + 20, "small", "end", row[i].words);
				continue;
			}
			if (p->group > 1 && p[-1].group != p->group)
				x += GROUP_GAP;
			if (y == TOP && p[-1].group != p->group)
				grid_svg_put_text(
					f, x, TOP - 10, "", "start", g->heads[p->group - 1]);
			if (row[i].kind != GRID_NONE) {
				grid_svg_put_cell(f, x, y, &row[i]);
				x += CELL;
			}
		}
	}
	grid_svg_put_text(f, 8, height - 28, "faint", "start", foot[0]);
	grid_svg_put_text(f, 8, height - 10, "faint", "start", foot[1]);
	fputs("</svg>\n", f);
	grid_clear(g);
}
