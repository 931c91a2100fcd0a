/*
 * Columns of numbers for the page: growing byte arrays, integers in LEB128 (seven bits per byte,
 * lowest first), and numbers for tuples.
 */
#ifndef CULPRIT_HARNESS_WEB_TIMELINE_COLUMNS_H
#define CULPRIT_HARNESS_WEB_TIMELINE_COLUMNS_H

#include <stddef.h>
#include <stdint.h>

#include "harness/base/err.h"
#include "harness/base/map.h"

struct timeline_column {
	uint8_t *data;
	size_t size, room;
	int64_t last;  /* previous value of column_delta */
	uint64_t most; /* the greatest magnitude passed to column_delta */
};
void column_clear(struct timeline_column *c);
void column_bytes(struct timeline_column *c, const void *data, size_t size);
void column_number(struct timeline_column *c, uint64_t number);
/* Appends the difference to the previous value, modulo 2^64, with its sign in the lowest bit. */
void column_delta(struct timeline_column *c, int64_t number);

/* Deflates the column (zlib) into '*out', which starts empty; the caller owns it. -EIO. */
int column_deflate(const struct timeline_column *c, struct timeline_column *out, struct err *e);

enum { TUPLE = 4 };

/* Tuples by number. */
struct tuples {
	uint32_t (*list)[TUPLE];
	uint32_t n;
	struct map index; /* by hash: number + 1 */
};
uint32_t tuples_number(struct tuples *t, const uint32_t tuple[TUPLE]);
void tuples_clear(struct tuples *t);

#endif
