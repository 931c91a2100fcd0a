/*
 * The encoded form of a timeline in a page: deflated columns of numbers, and an index in JSON
 * that describes them. unpack.js and model.js read them.
 *
 * Blocks, all LEB128 numbers except the words: starts (relative to the end of the previous slice
 * in the lane), durations, kinds (a number for name, category, flags and the shape of the
 * arguments), sums (slices and busy ns of each slice that is a sum), args (by shape and argument,
 * differences), arrows (from: difference, times 3, plus the link; to: difference), counters
 * (times, values), words (texts, each ended by a newline).
 */
#ifndef CULPRIT_HARNESS_WEB_TIMELINE_ENCODE_H
#define CULPRIT_HARNESS_WEB_TIMELINE_ENCODE_H

#include <jansson.h>

#include "harness/web/timeline/columns.h"
#include "harness/web/timeline/detail.h"

enum { STARTS, DURATIONS, KINDS, SUMS, ARGS, ARROWS, COUNTERS, WORDS, N_BLOCKS };
extern const char *const encode_names[N_BLOCKS];

/* The values of the arguments of one shape: keys and types in their order. */
struct shape {
	uint32_t depth, slices;
	struct timeline_column values[TIMELINE_ARGS_MAX];
};

struct encoder {
	struct timeline *t;
	struct detail detail;
	uint64_t points_max; /* maximum for all counters together */
	struct timeline_column blocks[N_BLOCKS], packed[N_BLOCKS];
	struct tuples kinds;      /* name, category, flags, shape: words of the page */
	struct tuples shape_tree; /* previous shape, key, type: its number + 1 is the shape */
	struct shape *shapes;
	uint32_t n_shapes;
	uint32_t *page_words, n_page_words; /* number + 1 on the page, by word */
	uint32_t *positions;                /* position on the page, by number of the slice */
	uint64_t n, n_sums, n_summed, n_arrows, counters_cut;
	json_t *lanes; /* lanes of each track */
};

void encode_init(struct encoder *c, struct timeline *t);
void encode_clear(struct encoder *c);

/* Fills 'packed' and '*index' (owned by the caller), with 'slices_max' individual slices. -EIO. */
int encode(struct encoder *c, uint64_t slices_max, json_t **index, struct err *e);

/* A word's number on the page. */
uint32_t encode_word(struct encoder *c, uint32_t word);
json_t *encode_count(uint64_t n);
/* Encodes the counters' block; returns its entry in the index. */
json_t *encode_counters(struct encoder *c);
/* Frees everything. */
json_t *encode_index(struct encoder *c);

#endif
