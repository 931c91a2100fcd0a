/* The builder's data, for the files that write exports. */
#ifndef CULPRIT_HARNESS_WEB_TIMELINE_TIMELINE_IMPL_H
#define CULPRIT_HARNESS_WEB_TIMELINE_TIMELINE_IMPL_H

#include <stdbool.h>

#include "harness/web/timeline/spill.h"
#include "harness/web/timeline/timeline.h"

/* Texts by number, kept once. */
struct words {
	char *text; /* consecutive, each ended by a NUL */
	size_t size, room;
	size_t *starts; /* offsets in 'text', by number */
	uint32_t n;
	uint32_t *table; /* number + 1 by hash; 0: empty */
	size_t slots;    /* a power of two */
};
void words_clear(struct words *w);
/* Cleans and stores 'text'; UINT32_MAX if there are already TIMELINE_WORDS_MAX. */
uint32_t words_number(struct words *w, const char *text);
static inline const char *words_text(const struct words *w, uint32_t number)
{
	return w->text + w->starts[number];
}

struct track {
	int32_t parent;
	enum timeline_kind kind;
	uint32_t name;
	uint64_t slices;
};

struct counter {
	int32_t track;
	uint32_t name, unit;
	uint64_t samples;
};

struct mark {
	enum timeline_mark kind;
	int32_t track;
	int64_t start_ns, end_ns;
	uint32_t text;
};

struct note {
	uint32_t term, text;
};

struct row {
	uint32_t n, cells[TIMELINE_COLUMNS_MAX];
};

/* A slice on disk, sorted by track, start, longest first, number. */
struct stored {
	int64_t start_ns, duration_ns;
	uint64_t args; /* index of the first argument */
	uint32_t number, name, category;
	int32_t track;
	uint8_t flags, n_args;
};

struct stored_arg {
	int64_t value;
	uint32_t key;
	uint32_t type;
};

struct stored_arrow {
	uint32_t from, to, link;
};

struct stored_sample {
	int64_t at_ns;
	double value;
	uint32_t counter;
	uint32_t number; /* modulo 2^32: orders samples with the same time */
};

struct timeline {
	struct words words;
	uint32_t title, run;
	struct note *notes;
	struct row *rows; /* rows of the table */
	struct track *tracks;
	struct counter *counters;
	struct mark *marks;
	uint32_t categories[TIMELINE_CATEGORIES_MAX], n_categories; /* with fixed colours */
	uint32_t n_rows, n_notes, n_tracks, n_counters, n_marks;
	struct spill slices, args, arrows, samples;
	unsigned view;    /* enum timeline_view, ORed */
	int32_t panes[2]; /* initial panes; TIMELINE_NONE: the page decides */
	uint64_t mended;
	bool any;               /* something has a time */
	int64_t from_ns, to_ns; /* range of all times */
	struct err error;       /* the first error */
	int failed;             /* its code, or 0 */
};

/* The first error so far, including errors of the temporary files. */
int timeline_failed(struct timeline *t, struct err *e);
/* Flushes the export. */
int timeline_written(FILE *f, struct err *e);

/* Nanoseconds from 'from' to 'to', which must not be earlier. */
static inline uint64_t ns_between(int64_t from, int64_t to)
{
	return (uint64_t)to - (uint64_t)from;
}

static inline int64_t stored_end(const struct stored *s)
{
	return s->start_ns + s->duration_ns;
}

#endif
