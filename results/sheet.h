/* A table of text whose columns are as wide as they need to be. Zero at first. */
#ifndef CULPRIT_RESULTS_SHEET_H
#define CULPRIT_RESULTS_SHEET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum { SHEET_COLUMNS_MAX = 12 };

struct sheet_column {
	const char *head;
	bool right; /* aligned */
	bool name;  /* may be cut where a line is too long */
	int width;
};

struct sheet {
	struct sheet_column columns[SHEET_COLUMNS_MAX];
	int n;
	char **cells; /* rows of n */
	size_t rows;
};

/* 'head' is kept by reference. 'right': aligned there; 'name': may be cut in its middle. */
void sheet_column(struct sheet *g, const char *head, bool right, bool name);
/* Fills the next row from column 0 on; control characters are escaped. */
void sheet_cell(struct sheet *g, size_t column, const char *text);
/* Prints the table and frees it. Its lines have at most 'width' columns (0: any), as far as cutting
 * names suffices. */
void sheet_put(struct sheet *g, int width, FILE *out);

#endif
