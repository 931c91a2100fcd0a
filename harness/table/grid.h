/*
 * Tables as data: columns and rows of typed cells, and one renderer for each format.
 *
 * A family of tables (scores, a published table, doses, overhead) only fills grids. Text is 80
 * columns wide, or as wide as the terminal if that is wider: groups of columns, such as those of
 * one workload, that do not fit are put below one another. No label is cut without being shown
 * whole.
 * Markdown shows each group at the side of the one before. CSV writes a rate as four fields, NAME
 * and NAME_count, NAME_low, NAME_high; JSON as an object. A grid that goes into a sheet of another
 * format than its columns are for shows only the columns that are for it.
 */
#ifndef CULPRIT_HARNESS_TABLE_GRID_H
#define CULPRIT_HARNESS_TABLE_GRID_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "harness/base/err.h"

enum table_format { TABLE_TEXT, TABLE_MARKDOWN, TABLE_CSV, TABLE_JSON, TABLE_SVG };
enum { SHEET_WIDTH = 80 };

/* Where tables are printed. The caller sets 'f' and 'format'. */
struct sheet {
	FILE *f;
	enum table_format format;
	int rc;      /* -errno once something could not be written */
	int width;   /* of text; 0: SHEET_WIDTH */
	bool colour; /* text: right green, wrong red */
};

/* If text goes to a terminal: as wide as it is, and in colour unless NO_COLOR is set or $TERM is
 * "dumb". */
void sheet_fit(struct sheet *out);
int sheet_width(const struct sheet *out);

/* Prints words, with line breaks before the sheet's width; later lines are indented by two. Control
 * characters are shown as \xNN. */
void sheet_words(struct sheet *out, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* A line as it is. */
void sheet_line(struct sheet *out, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The heading of what follows, in Markdown with a blank line below it; 'more' may be "". */
void sheet_heading(struct sheet *out, const char *name, const char *more);
/* A blank line in these formats (GRID_TEXT, GRID_MARKDOWN); 0: in both. */
void sheet_blank(struct sheet *out, unsigned formats);
/* The value, which is released. */
void sheet_json(struct sheet *out, json_t *value);
/* 0, or a negative errno when something did not get to 'f'. */
int sheet_end(struct sheet *out);

/* What a column is for; none of the first five: every format. */
enum {
	GRID_TEXT = 1 << TABLE_TEXT,
	GRID_MARKDOWN = 1 << TABLE_MARKDOWN,
	GRID_CSV = 1 << TABLE_CSV,
	GRID_JSON = 1 << TABLE_JSON,
	GRID_SVG = 1 << TABLE_SVG,
	GRID_RIGHT = 1 << 8,   /* aligned to the right */
	GRID_STARS = 1 << 9,   /* text leaves room for the star of a cell */
	GRID_GROUP = 1 << 10,  /* the rows' group: in text a line above the first of them */
	GRID_LABEL = 1 << 11,  /* the rows' name: in text, one that is too long has its own line */
	GRID_CUT = 1 << 12,    /* one that is too long ends in '~', and is shown whole below */
	GRID_RATES = 1 << 13,  /* CSV: of rates, which have four fields */
	GRID_BOUNDS = 1 << 14, /* CSV: of rates, but only their count and interval */
	GRID_GOOD = 1 << 15,   /* colour: rates of what should be */
	GRID_BAD = 1 << 16     /* colour: rates of what should not */
};

struct grid_column {
	const char *key;   /* in CSV and JSON; "faulty.n" is "n" of the object "faulty" */
	const char *head;  /* heading of pages */
	const char *title; /* heading in Markdown, if it is another */
	unsigned flags;
	int gap, width;     /* text: blanks before it, and its width; 0: as wide as the cell */
	int indent;         /* text: blanks within it */
	const char *number; /* printf format of numbers */
	int of;             /* what of a score it shows, if it does (enum score_field) */
};

enum grid_kind {
	GRID_NONE,   /* there is no such cell */
	GRID_ABSENT, /* nothing was measured: "-" on pages, empty in CSV, null in JSON */
	GRID_WORDS,
	GRID_COUNT,
	GRID_FLAG,
	GRID_NUMBER,
	GRID_RATE,  /* 0.48 [.05,.86]: 'count' of 'n', with the exact 95 % interval */
	GRID_SHARE, /* .48: a number from 0 to 1 */
	GRID_DELAY, /* 6.2 (5-9.5; n=3): seconds, with median and range */
	GRID_VALUE  /* JSON as it is */
};

struct grid_cell {
	enum grid_kind kind;
	bool star;     /* the detector abstained from some of it */
	bool wrong;    /* a share of what should not be: another colour */
	unsigned only; /* set by grid_cell */
	char *words;   /* malloced; the grid's */
	long long count;
	unsigned n;
	double number, low, high;
	json_t *value; /* the grid's */
};

/* To be used as {.out = ...}; what the functions take for it is copied. */
struct grid {
	struct sheet *out;
	const char *bar;  /* text: between groups of columns, in place of the gap */
	size_t a_block;   /* text: groups of columns side by side in SHEET_WIDTH, more where there
			 * is room; 0: all */
	bool sentences;   /* text: a sentence for each row, "LABEL, LABEL: HEAD cell, HEAD cell" */
	bool blank;       /* text: a blank line after each block */
	bool groups_once; /* Markdown: a group of rows is named in its first row only */
	unsigned only;    /* formats that show the rows which follow, as GRID_TEXT; 0: all */
	struct grid_place { /* a column, and which group of columns it is in (0: in none) */
		struct grid_column look;
		size_t group;
	} * columns;
	size_t n_columns;
	char **heads; /* of groups of columns */
	size_t n_heads;
	struct grid_cell *cells;
	size_t n_cells;
};

/* The columns that follow are a group, whose heading in text is 'head' ("": none). */
void grid_group(struct grid *g, const char *head);
void grid_columns(struct grid *g, const struct grid_column *looks, size_t n);
/* All columns of an array; one column, by the members of struct grid_column. */
#define GRID_COLUMNS(g, list) grid_columns(g, list, sizeof(list) / sizeof(*(list)))
#define GRID_COLUMN(g, ...) grid_columns(g, &(struct grid_column){__VA_ARGS__}, 1)

/* The next cell, from left to right; a row is complete when each column has one. */
void grid_cell(struct grid *g, struct grid_cell cell);
void grid_words(struct grid *g, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void grid_names(struct grid *g, size_t n, const char *const names[]); /* a cell each */
void grid_count(struct grid *g, long long count);
void grid_number(struct grid *g, double x); /* NAN: nothing was measured */
void grid_flag(struct grid *g, bool flag);
void grid_rate(struct grid *g, bool applies, unsigned hits, unsigned n);
/* Of 'n' sorted delays; 'early': how many more were before the onset. */
void grid_delay(struct grid *g, const double *delays_s, size_t n, unsigned early);
void grid_none(struct grid *g, size_t n);

/* Renders the grid to its sheet (not JSON) and frees what it holds. */
void grid_print(struct grid *g);
/* The same as JSON, an object for each row; new reference. */
json_t *grid_json(struct grid *g);
/* grid_svg.c: the same as a picture 800 wide, with a line above and two below; columns without a
 * label are shares. The key names the columns of a group by their 'key', which stays borrowed. */
void grid_svg(struct grid *g, const char *head, const char *const foot[2]);
void grid_clear(struct grid *g);

/* What a cell looks like in text, in 'buf' or where it is kept. */
const char *grid_cell_text(const struct grid_column *look, const struct grid_cell *cell,
	enum table_format format, char *buf, size_t size);
/* "0.48 [.05,.86]", the interval rounded outwards; "-" for n = 0. */
void grid_rate_text(unsigned hits, unsigned n, char *out, size_t size);
/* {count, rate, low, high} */
json_t *grid_rate_json(unsigned hits, unsigned n);

#endif
