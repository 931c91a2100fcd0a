/* A text table whose columns are as wide as their cells. Initialise with zeros. */
#ifndef CULPRIT_HARNESS_BASE_TEXT_COLUMNS_H
#define CULPRIT_HARNESS_BASE_TEXT_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum { TEXT_COLUMNS_MAX = 12 };

struct text_column {
	const char *head;
	bool right; /* right-aligned */
	bool name;  /* may be cut if a line is too long */
	int width;
};

struct text_columns {
	struct text_column columns[TEXT_COLUMNS_MAX];
	int n;
	char **cells; /* rows of n */
	size_t rows;
};

/* 'head' is kept by reference. 'right': right-aligned; 'name': may be cut in its middle. */
void text_columns_add(struct text_columns *g, const char *head, bool right, bool name);
/* Fills the next row from column 0 on; control characters are escaped. */
void text_columns_cell(struct text_columns *g, size_t column, const char *text);
/* Prints the table and frees it. Names are cut so that lines have at most 'width' columns (0: no
 * limit) where possible. */
void text_columns_put(struct text_columns *g, int width, FILE *out);

#endif
