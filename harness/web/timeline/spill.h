/*
 * Fixed-size records that do not fit into memory: appended to an unnamed temporary file, and read
 * back sorted. The first error is kept; records added after it are ignored.
 */
#ifndef CULPRIT_HARNESS_WEB_TIMELINE_SPILL_H
#define CULPRIT_HARNESS_WEB_TIMELINE_SPILL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "harness/base/err.h"

/* Compares like qsort's function. Equal records have no defined order. */
typedef int spill_compare(const void *a, const void *b);

struct spill {
	int fd;
	int error; /* 0, or the -errno of the first write that failed */
	size_t record, room, n;
	char *buffer;     /* the last 'n' of 'room' records */
	uint64_t written; /* records in the file */
	spill_compare *compare;
	uint64_t *ends; /* ends of the sorted runs in the file; only with 'compare' */
	size_t n_runs;
	void *map;
	size_t map_size;
};

/* 'room' records are kept in memory and, with 'compare', sorted together. */
int spill_init(struct spill *s, size_t record, size_t room, spill_compare *compare, struct err *e);
void spill_clear(struct spill *s);

void spill_add(struct spill *s, const void *record);
static inline uint64_t spill_count(const struct spill *s)
{
	return s->written + s->n;
}

/* All records in the order of the file: as added, or the sorted runs one after the other. The map
 * is valid until the next addition. NULL: no records, or 's->error'. */
const void *spill_map(struct spill *s);

/* All records, in order. */
struct spill_merge {
	const char *base;
	size_t record;
	spill_compare *compare;
	struct spill_run {
		uint64_t at, end;
	} * heap; /* the run with the smallest record first */
	size_t n;
};
void spill_merge_init(struct spill_merge *m, struct spill *s);
/* The next record, or NULL at the end; valid as long as the map. */
const void *spill_next(struct spill_merge *m);
void spill_merge_clear(struct spill_merge *m);

#endif
