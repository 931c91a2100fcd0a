/* Shared by labels*.c: the series seen so far, and the labels that make their keys. */
#ifndef CULPRIT_DIAG_IMPORT_LABELS_IMPL_H
#define CULPRIT_DIAG_IMPORT_LABELS_IMPL_H

#include "diag/import/labels.h"
#include "diag/import/repeats.h"
#include "harness/base/map.h"

/* A set of labels: 'text' is the metric, then names and values in turn, each with a NUL at its
 * end. */
struct labels_series {
	char *text;
	size_t size;
	uint32_t key;        /* UINT32_MAX: not requested yet; UINT32_MAX - 1: none */
	double from_s, to_s; /* from labels_seen; from > to: not called */
};

/* One series for the sink. */
struct labels_key {
	char *text; /* as struct series_key: metric, member, groups */
	size_t size;
	uint32_t id, owner;            /* id: of the sink; owner: the present set of labels */
	uint32_t first;                /* the first set of labels */
	double from_s, to_s;           /* range of the present owner's samples */
	double before_from, before_to; /* range of earlier owners' samples; from > to if none */
};

struct labels {
	const struct import_options *how;
	struct labels_series *series;
	size_t n_series;
	struct labels_key *keys;
	size_t n_keys;
	struct map series_index, key_index; /* by hash of the text: number + 1 */
	bool decided;
	char *member, *group[IMPORT_GROUPS_MAX]; /* 'member' NULL: the metric itself */
	size_t n_groups;
	/* Samples given to the sink, and those left out because another set has the time. */
	uint64_t given, beside;
	uint64_t nameless; /* sets of labels without a usable member */
	char beside_example[256];
	char beside_label[IMPORT_NAME_MAX]; /* distinguishes the example from the first series */
	struct repeats repeats;
	unsigned long line; /* of the current samples; 0: unknown */
	const char *remedy; /* for repeated samples */
	char *scratch;      /* the metric and labels of the series to find */
	size_t scratch_size, scratch_room;
};

/* The value of a label of a series, or NULL. */
const char *labels_value(const struct labels_series *s, const char *name);
/* 'metric{label="value",...}' */
void labels_print(const struct labels_series *s, char *out, size_t size);
/* The label with the fewest values in which two series differ. */
const char *labels_differ(
	const struct labels *l, const struct labels_series *a, const struct labels_series *b);
/* Adds groups until series that were seen at the same time have different keys. */
int labels_separate(struct labels *l, struct import_said *said, struct err *e);

#endif
