/*
 * Tables as data: columns and rows of typed cells, and one renderer for each format.
 *
 * A family of tables (scores, a published table, doses, overhead) only fills grids. Text is 80
 * columns wide, or as wide as the terminal if that is wider: groups of columns (such as those of
 * one workload) that do not fit are placed below one another. A label that is cut is printed in
 * full below. Markdown places groups side by side. CSV writes a rate as four fields, NAME and
 * NAME_count, NAME_low, NAME_high; JSON as an object. A column restricted to certain formats is
 * hidden in sheets of other formats.
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

/* The output of tables. The caller sets 'f' and 'format'. */
struct sheet {
	FILE *f;
	enum table_format format;
	int rc;      /* -errno after a write error */
	int width;   /* width of text; 0: SHEET_WIDTH */
	bool colour; /* text: right green, wrong red */
};

/* If text goes to a terminal: use its width, and colour unless NO_COLOR is set or $TERM is
 * "dumb". */
void sheet_fit(struct sheet *out);
int sheet_width(const struct sheet *out);

/* Prints text wrapped at the sheet's width; continuation lines are indented by two. Control
 * characters are shown as \xNN. */
void sheet_words(struct sheet *out, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Prints a line unchanged. */
void sheet_line(struct sheet *out, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Prints a heading, in Markdown with a blank line below; 'more' may be "". */
void sheet_heading(struct sheet *out, const char *name, const char *more);
/* Prints a blank line in these formats (GRID_TEXT, GRID_MARKDOWN); 0: in both. */
void sheet_blank(struct sheet *out, unsigned formats);
/* Prints the value and releases it. */
void sheet_json(struct sheet *out, json_t *value);
/* Returns 0, or a negative errno after a write error on 'f'. */
int sheet_end(struct sheet *out);

/* The formats of a column; without any of the first five flags: every format. */
enum {
	GRID_TEXT = 1 << TABLE_TEXT,
	GRID_MARKDOWN = 1 << TABLE_MARKDOWN,
	GRID_CSV = 1 << TABLE_CSV,
	GRID_JSON = 1 << TABLE_JSON,
	GRID_SVG = 1 << TABLE_SVG,
	GRID_RIGHT = 1 << 8,   /* aligned to the right */
	GRID_STARS = 1 << 9,   /* text: leaves room for a cell's star */
	GRID_GROUP = 1 << 10,  /* name of a group of rows: in text a line above the first */
	GRID_LABEL = 1 << 11,  /* name of the row: in text, a long one gets a separate line */
	GRID_CUT = 1 << 12,    /* a long one ends in '~' and is printed in full below */
	GRID_RATES = 1 << 13,  /* CSV: rates with four fields */
	GRID_BOUNDS = 1 << 14, /* CSV: rates, but only count and interval */
	GRID_GOOD = 1 << 15,   /* colour: a high rate is good */
	GRID_BAD = 1 << 16     /* colour: a high rate is bad */
};

struct grid_column {
	const char *key;   /* in CSV and JSON; "faulty.n" is "n" of the object "faulty" */
	const char *head;  /* heading on pages */
	const char *title; /* heading in Markdown, if different */
	unsigned flags;
	int gap, width;     /* text: blanks before it, and its width; 0: as wide as the cell */
	int indent;         /* text: blanks within it */
	const char *number; /* printf format of numbers */
	int of;             /* the field of a score to show (enum score_field) */
};

enum grid_kind {
	GRID_NONE,   /* no cell */
	GRID_ABSENT, /* not measured: "-" on pages, empty in CSV, null in JSON */
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
	bool star;     /* the detector abstained in some cells */
	bool wrong;    /* a high share is bad: another colour */
	unsigned only; /* set by grid_cell */
	char *words;   /* malloced; owned by the grid */
	long long count;
	unsigned n;
	double number, low, high;
	json_t *value; /* owned by the grid */
};

/* Use as {.out = ...}; functions copy their arguments. */
struct grid {
	struct sheet *out;
	const char *bar;  /* text: separator between groups of columns, instead of the gap */
	size_t a_block;   /* text: groups of columns per SHEET_WIDTH, more if there is room;
				   * 0: all */
	bool sentences;   /* text: a sentence for each row, "LABEL, LABEL: HEAD cell, HEAD cell" */
	bool blank;       /* text: a blank line after each block */
	bool groups_once; /* Markdown: a group's name appears only in its first row */
	unsigned only;    /* formats of the following rows (GRID_TEXT ...); 0: all */
	struct grid_place { /* a column and its group of columns (0: no group) */
		struct grid_column look;
		size_t group;
	} * columns;
	size_t n_columns;
	char **heads; /* headings of groups of columns */
	size_t n_heads;
	struct grid_cell *cells;
	size_t n_cells;
};

/* Starts a group of columns with this heading in text ("": none). */
void grid_group(struct grid *g, const char *head);
void grid_columns(struct grid *g, const struct grid_column *looks, size_t n);
/* Adds all columns of an array, or one column given by the members of struct grid_column. */
#define GRID_COLUMNS(g, list) grid_columns(g, list, sizeof(list) / sizeof(*(list)))
#define GRID_COLUMN(g, ...) grid_columns(g, &(struct grid_column){__VA_ARGS__}, 1)

/* Fill the next cell, from left to right; a row is complete when each column has a cell. */
void grid_cell(struct grid *g, struct grid_cell cell);
void grid_words(struct grid *g, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void grid_names(struct grid *g, size_t n, const char *const names[]); /* one cell per name */
void grid_count(struct grid *g, long long count);
void grid_number(struct grid *g, double x); /* NAN: not measured */
void grid_flag(struct grid *g, bool flag);
void grid_rate(struct grid *g, bool applies, unsigned hits, unsigned n);
/* 'n' sorted delays; 'early': number of indictments before the onset. */
void grid_delay(struct grid *g, const double *delays_s, size_t n, unsigned early);
void grid_none(struct grid *g, size_t n);

/* Renders the grid to its sheet (not JSON) and frees its contents. */
void grid_print(struct grid *g);
/* Returns the grid as JSON, one object per row; new reference. */
json_t *grid_json(struct grid *g);
/* grid_svg.c: renders the grid as a picture 800 wide, with a line above and two below; columns
 * without a label are shares. The key lists the columns of a group by 'key', which stays
 * borrowed. */
void grid_svg(struct grid *g, const char *head, const char *const foot[2]);
void grid_clear(struct grid *g);

/* A cell as text, in 'buf' or in its own storage. */
const char *grid_cell_text(const struct grid_column *look, const struct grid_cell *cell,
	enum table_format format, char *buf, size_t size);
/* "0.48 [.05,.86]", the interval rounded outwards; "-" for n = 0. */
void grid_rate_text(unsigned hits, unsigned n, char *out, size_t size);
/* {count, rate, low, high} */
json_t *grid_rate_json(unsigned hits, unsigned n);

#endif
