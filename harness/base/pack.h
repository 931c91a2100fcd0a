/*
 * Packs rows of numbers into a few bytes, column by column, for the store.
 *
 * The number of rows, then the columns. Each column begins with a byte that gives its encoding:
 *
 *   0 .. 9    decimal fractions with this many places, as integers, each minus the previous one
 *   DOUBLES   eight bytes each, if they are not such fractions
 *   SAME      equal to the previous column
 *   COUNTING  each is one more than the previous one: only the first is written
 *   + ALIKE   all are equal: only the first is written
 *
 * Integers are varints (seven bits per byte, lowest first), signed ones zigzag. Values are exact.
 */
#ifndef CULPRIT_HARNESS_BASE_PACK_H
#define CULPRIT_HARNESS_BASE_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A member of a row, which is a struct: an integer of 1, 2, 4 or 8 bytes, a bool, a double. */
struct pack_field {
	uint16_t at;
	uint8_t size;
	bool is_bool, is_real;
};

#define PACK_FIELD(type, member)                                                                   \
	{                                                                                          \
		offsetof(type, member), sizeof(((type *)0)->member),                               \
			_Generic(((type *)0)->member, bool                                         \
				 : true, default                                                   \
				 : false),                                                         \
			_Generic(((type *)0)->member, double                                       \
				 : true, default                                                   \
				 : false)                                                          \
	}

/* What a row consists of. Members that no field names are not written. */
struct pack_kind {
	const struct pack_field *fields;
	size_t n_fields, row_size;
};

#define PACK_KIND(type, fields)                                                                    \
	{                                                                                          \
		fields, sizeof(fields) / sizeof((fields)[0]), sizeof(type)                         \
	}

/* '*out' is malloced. */
void pack_rows(const struct pack_kind *kind, const void *rows, size_t n, unsigned char **out,
	size_t *size);

/* Unpacks '*n' rows, at most 'most', into '*rows', which is malloced; members that no field names
 * are 0. false: not written by pack_rows. */
bool pack_read(const struct pack_kind *kind, size_t most, const void *data, size_t size,
	void **rows, size_t *n);

#endif
