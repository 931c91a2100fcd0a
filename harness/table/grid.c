/* Tables as data, with one renderer for each format. */
#include "harness/table/grid_impl.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "diag/judge/score.h"
#include "harness/base/alloc.h"
#include "harness/base/outfile.h"
#include "harness/base/stat.h"
#include "harness/base/text.h"

int sheet_width(const struct sheet *out)
{
	return out->width ? out->width : SHEET_WIDTH;
}

void sheet_fit(struct sheet *out)
{
	enum { WIDTH_MIN = 46, WIDTH_MAX = 500 }; /* a label and one group of columns */
	const char *no_colour = getenv("NO_COLOR"), *term = getenv("TERM");
	struct winsize ws = {0};
	int fd = out->f ? fileno(out->f) : -1;

	if (out->format != TABLE_TEXT || fd < 0 || !isatty(fd))
		return;
	if (!ioctl(fd, TIOCGWINSZ, &ws) && ws.ws_col >= WIDTH_MIN)
		out->width = ws.ws_col < WIDTH_MAX ? ws.ws_col : WIDTH_MAX;
	out->colour = !(no_colour && *no_colour) && term && *term && strcmp(term, "dumb") != 0;
}

static void put_wrapped(const char *text, size_t width, FILE *f)
{
	size_t column = 0;

	while (*text) {
		size_t len = strcspn(text, " ");

		if (column && column + 1 + len > width) {
			fputs("\n ", f);
			column = 1;
		}
		if (column) {
			fputc(' ', f);
			column++;
		}
		fprintf(f, "%.*s", (int)len, text);
		column += len;
		text += len;
		text += strspn(text, " ");
	}
	fputc('\n', f);
}

void sheet_words(struct sheet *out, const char *fmt, ...)
{
	char text[2048], clean[4096];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	text_clean(text, clean, sizeof(clean));
	put_wrapped(clean, (size_t)sheet_width(out), out->f);
}

void sheet_line(struct sheet *out, const char *fmt, ...)
{
	char text[2048];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	text_print_clean(out->f, text);
	fputc('\n', out->f);
}

void sheet_heading(struct sheet *out, const char *name, const char *more)
{
	bool markdown = out->format == TABLE_MARKDOWN;

	sheet_line(out, markdown ? "**%s**%s" : "%s%s", name, more);
	if (markdown)
		fputc('\n', out->f);
}

void sheet_blank(struct sheet *out, unsigned formats)
{
	if (!formats || formats >> out->format & 1)
		fputc('\n', out->f);
}

void sheet_json(struct sheet *out, json_t *value)
{
	if (json_dumpf(value, out->f, JSON_INDENT(2)))
		out->rc = -EIO;
	fputc('\n', out->f);
	json_decref(value);
}

int sheet_end(struct sheet *out)
{
	return outfile_flush(out->f, NULL) ?: out->rc;
}

/* Filling */

/* Makes room for one more in a list of 'n', by doubling. */
static void *grid_grow(void *list, size_t n, size_t size)
{
	return n & (n - 1) ? list : alloc_resize(list, n ? 2 * n : 1, size);
}

void grid_group(struct grid *g, const char *head)
{
	g->heads = grid_grow(g->heads, g->n_heads, sizeof(*g->heads));
	g->heads[g->n_heads++] = alloc_copy(head);
}

void grid_columns(struct grid *g, const struct grid_column *looks, size_t n)
{
	for (; n--; looks++) {
		struct grid_column look = *looks;
		const char *head = look.head ? look.head : "";

		g->columns = grid_grow(g->columns, g->n_columns, sizeof(*g->columns));
		look.title = alloc_copy(look.title ? look.title : head);
		look.head = alloc_copy(head);
		if (!(look.flags & 0xff))
			look.flags |= 0xff;
		g->columns[g->n_columns++] = (struct grid_place){look, g->n_heads};
	}
}

void grid_cell(struct grid *g, struct grid_cell cell)
{
	cell.only = g->only;
	g->cells = grid_grow(g->cells, g->n_cells, sizeof(*g->cells));
	g->cells[g->n_cells++] = cell;
}

void grid_words(struct grid *g, const char *fmt, ...)
{
	struct grid_cell c = {GRID_WORDS};
	char text[4096];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	c.words = alloc_copy(text);
	grid_cell(g, c);
}

void grid_names(struct grid *g, size_t n, const char *const names[])
{
	for (; n--; names++)
		grid_cell(g, (struct grid_cell){GRID_WORDS, .words = alloc_copy(*names)});
}

void grid_count(struct grid *g, long long count)
{
	grid_cell(g, (struct grid_cell){GRID_COUNT, .count = count});
}

void grid_number(struct grid *g, double x)
{
	grid_cell(g, (struct grid_cell){isnan(x) ? GRID_ABSENT : GRID_NUMBER, .number = x});
}

void grid_flag(struct grid *g, bool flag)
{
	grid_cell(g, (struct grid_cell){GRID_FLAG, .count = flag});
}

void grid_rate(struct grid *g, bool applies, unsigned hits, unsigned n)
{
	grid_cell(g, (struct grid_cell){applies ? GRID_RATE : GRID_ABSENT, .count = hits, .n = n});
}

void grid_delay(struct grid *g, const double *delays_s, size_t n, unsigned early)
{
	struct grid_cell c = {GRID_DELAY, .n = (unsigned)n, .count = early};

	if (n) {
		c.number = stat_median_sorted(delays_s, n);
		c.low = delays_s[0];
		c.high = delays_s[n - 1];
	}
	grid_cell(g, c);
}

void grid_none(struct grid *g, size_t n)
{
	while (n--)
		grid_cell(g, (struct grid_cell){GRID_NONE});
}

void grid_clear(struct grid *g)
{
	for (size_t i = 0; i < g->n_columns; i++) {
		free((char *)g->columns[i].look.head);
		free((char *)g->columns[i].look.title);
	}
	for (size_t i = 0; i < g->n_heads; i++)
		free(g->heads[i]);
	for (size_t i = 0; i < g->n_cells; i++) {
		free(g->cells[i].words);
		json_decref(g->cells[i].value);
	}
	free(g->columns);
	free(g->heads);
	free(g->cells);
	*g = (struct grid){.out = g->out};
}

/* Cells in human-readable form */

/* ".48", "0", "1": rounded outwards, so that the interval never looks narrower than it is. */
static void bound_text(double x, bool up, char *out, size_t size)
{
	double hundredths = up ? ceil(x * 100 - 1e-9) : floor(x * 100 + 1e-9);

	if (hundredths <= 0 || hundredths >= 100)
		snprintf(out, size, "%d", hundredths > 0);
	else
		snprintf(out, size, ".%02d", (int)hundredths);
}

void grid_rate_text(unsigned hits, unsigned n, char *out, size_t size)
{
	char low[8], high[8];
	double l, h;

	if (!n) {
		snprintf(out, size, "-");
		return;
	}
	score_interval(hits, n, 0.95, &l, &h);
	bound_text(l, false, low, sizeof(low));
	bound_text(h, true, high, sizeof(high));
	snprintf(out, size, "%.2f [%s,%s]", (double)hits / n, low, high);
}

/* "0", ".05", "1": 0 and 1 only for exactly none and all. */
static void share_text(double share, char *out, size_t size)
{
	int hundredths = share < 0.015 ? 1 : share > 0.985 ? 99 : (int)(share * 100 + 0.5);

	if (share <= 0 || share >= 1)
		snprintf(out, size, "%d", share >= 1);
	else
		snprintf(out, size, ".%02d", hundredths);
}

const char *grid_cell_text(const struct grid_column *look, const struct grid_cell *c,
	enum table_format format, char *buf, size_t size)
{
	const char *star = format == TABLE_MARKDOWN ? "\\*" : "*";

	switch (c->kind) {
	case GRID_NONE:
	case GRID_VALUE: return "";
	case GRID_ABSENT: return "-";
	case GRID_WORDS: return c->words;
	case GRID_COUNT:
	case GRID_FLAG:
		if (!c->star)
			star = format == TABLE_TEXT && look->flags & GRID_STARS ? " " : "";
		snprintf(buf, size, "%lld%s", c->count, star);
		break;
	case GRID_NUMBER: snprintf(buf, size, look->number ? look->number : "%g", c->number); break;
	case GRID_RATE: grid_rate_text((unsigned)c->count, c->n, buf, size); break;
	case GRID_SHARE: share_text(c->number, buf, size); break;
	case GRID_DELAY:
		if (!c->n)
			return "-";
		snprintf(buf, size, "%.1f (%.1f-%.1f; n=%u)", c->number, c->low, c->high, c->n);
		break;
	}
	return buf;
}

bool grid_is_for(const struct grid_place *p, enum table_format format)
{
	return p->look.flags >> format & 1;
}

const struct grid_cell *grid_next_row(
	const struct grid *g, const struct grid_cell *row, enum table_format format)
{
	row = row ? row + g->n_columns : g->cells;
	while (row && row < g->cells + g->n_cells && row->only && !(row->only >> format & 1))
		row += g->n_columns;
	return row < g->cells + g->n_cells ? row : NULL;
}

void grid_print(struct grid *g)
{
	switch (g->out->format) {
	case TABLE_TEXT: grid_print_text(g); break;
	case TABLE_MARKDOWN: grid_print_markdown(g); break;
	case TABLE_CSV: grid_print_csv(g); break;
	case TABLE_JSON:
	case TABLE_SVG: break;
	}
	grid_clear(g);
}
