/* Rows in ClickHouse's format RowBinary, read from a stream that a server wrote. */
#ifndef CULPRIT_DIAG_SHIP_ROWBINARY_H
#define CULPRIT_DIAG_SHIP_ROWBINARY_H

#include <stdio.h>

#include "diag/query/columns.h"

enum { ROWBINARY_COLUMNS = 64, ROWBINARY_TEXT = 1 << 20 };

/* What the rows are made of, and the row at hand. Zero before use. */
struct rowbinary {
	size_t n;
	struct {
		enum column_type type;
		bool nullable;
	} column[ROWBINARY_COLUMNS];
	struct column_value value[ROWBINARY_COLUMNS]; /* texts: valid until the next row */
	char *texts;
	size_t size, room;
};

/* 1: a row; 0: there are no more; -EPROTO: what came is no such row. A text with a NUL ends
 * there. */
int rowbinary_next(struct rowbinary *r, FILE *f, struct err *e);
void rowbinary_clear(struct rowbinary *r);

#endif
