/* Encodes a timeline for its page. */
#include "harness/web/timeline/encode.h"

#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"
#include "harness/web/timeline/lanes.h"

enum { SUM = 8 }; /* a flag after those of enum timeline_flags */
#define NOT_SHOWN UINT32_MAX

const char *const encode_names[N_BLOCKS] = {
	"starts", "durations", "kinds", "sums", "args", "arrows", "counters", "words"};

uint32_t encode_word(struct encoder *c, uint32_t word)
{
	const char *text;

	if (!c->page_words[word]) {
		text = words_text(&c->t->words, word);
		c->page_words[word] = ++c->n_page_words;
		column_bytes(&c->blocks[WORDS], text, strlen(text));
		column_bytes(&c->blocks[WORDS], "\n", 1);
	}
	return c->page_words[word] - 1;
}

/* Appends the values to the columns of the arguments' shape; returns its number. */
static uint32_t put_args(struct encoder *c, const struct stored *s)
{
	const struct stored_arg *args = spill_map(&c->t->args);
	uint32_t shape = 0;

	for (unsigned i = 0; args && i < s->n_args; i++) {
		const struct stored_arg *a = &args[s->args + i];
		uint32_t key[TUPLE] = {shape, encode_word(c, a->key), a->type, i};

		shape = tuples_number(&c->shape_tree, key) + 1;
		while (c->n_shapes <= shape) {
			c->shapes = alloc_room(c->shapes, c->n_shapes, sizeof(*c->shapes));
			c->shapes[c->n_shapes++] = (struct shape){0};
		}
	}
	for (unsigned i = 0; args && i < s->n_args; i++) {
		const struct stored_arg *a = &args[s->args + i];

		column_delta(&c->shapes[shape].values[i],
			a->type ? encode_word(c, (uint32_t)a->value) : a->value);
	}
	if (shape) {
		c->shapes[shape].depth = s->n_args;
		c->shapes[shape].slices++;
	}
	return shape;
}

static void put_slice(struct encoder *c, const struct shown *s)
{
	bool sum = s->n > 1;
	uint32_t shape = sum ? 0 : put_args(c, &s->s);
	uint32_t kind[TUPLE] = {sum ? 0 : encode_word(c, s->s.name) + 1,
		encode_word(c, s->s.category), s->s.flags | (sum ? SUM : 0u), shape};

	column_number(&c->blocks[DURATIONS], (uint64_t)s->s.duration_ns);
	column_number(&c->blocks[KINDS], tuples_number(&c->kinds, kind));
	if (sum) {
		column_number(&c->blocks[SUMS], s->n);
		column_number(&c->blocks[SUMS], s->busy_ns);
		c->n_sums++;
		c->n_summed += s->n;
	} else {
		c->positions[s->s.number] = (uint32_t)c->n;
	}
	c->n++;
}

/* Starts are relative to the end of the previous slice in the lane; in the last lane, where
 * slices may overlap, to its start. */
static void put_track(struct encoder *c, struct lanes *l, uint32_t track)
{
	json_t *counts = json_array_get(c->lanes, track);
	int64_t last = c->t->from_ns;

	lanes_end(l);
	for (size_t i = 0; i < l->n; i++) {
		const struct shown *s = &l->list[i];

		if (!i || s->lane != l->list[i - 1].lane)
			last = c->t->from_ns;
		column_number(&c->blocks[STARTS], ns_between(last, s->s.start_ns));
		last = s->lane == LANES_MAX - 1 ? s->s.start_ns : stored_end(&s->s);
		put_slice(c, s);
	}
	for (unsigned i = 0; i < l->n_lanes; i++)
		json_array_append_new(counts, json_integer(l->in_lane[i]));
	lanes_reset(l);
}

static void put_slices(struct encoder *c, uint64_t slices_max)
{
	struct lanes l = {.detail = &c->detail, .from_ns = c->t->from_ns};
	struct spill_merge m;
	const struct stored *s;
	uint64_t busy_tracks = 1, windows;
	int32_t track = 0;

	for (uint32_t i = 0; i < c->t->n_tracks; i++)
		busy_tracks += c->t->tracks[i].slices > 0;
	windows = slices_max / 8 / busy_tracks;
	windows = windows < 64 ? 64 : windows > 8192 ? 8192 : windows;
	l.window_ns = ns_between(c->t->from_ns, c->t->to_ns) / windows + 1;
	detail_choose(&c->detail, slices_max);
	spill_merge_init(&m, &c->t->slices);
	while ((s = spill_next(&m))) {
		if (s->track != track)
			put_track(c, &l, (uint32_t)track);
		track = s->track;
		lanes_add(&l, s);
	}
	if (l.n || l.n_sums)
		put_track(c, &l, (uint32_t)track);
	spill_merge_clear(&m);
	lanes_clear(&l);
}

static int compare_arrows(const void *pa, const void *pb)
{
	const struct stored_arrow *a = pa, *b = pb;

	if (a->from != b->from)
		return a->from < b->from ? -1 : 1;
	return (a->to > b->to) - (a->to < b->to);
}

/* Between slices that are kept individually. */
static void put_arrows(struct encoder *c)
{
	const struct stored_arrow *arrows = spill_map(&c->t->arrows);
	uint64_t n = arrows ? spill_count(&c->t->arrows) : 0;
	struct stored_arrow *list = alloc_zero(n, sizeof(*list));
	struct timeline_column *out = &c->blocks[ARROWS];
	uint32_t last_from = 0;

	for (uint64_t i = 0; i < n; i++) {
		struct stored_arrow a = {
			c->positions[arrows[i].from], c->positions[arrows[i].to], arrows[i].link};

		if (a.from != NOT_SHOWN && a.to != NOT_SHOWN)
			list[c->n_arrows++] = a;
	}
	qsort(list, c->n_arrows, sizeof(*list), compare_arrows);
	for (uint64_t i = 0; i < c->n_arrows; i++) {
		column_number(out, (uint64_t)(list[i].from - last_from) * 3 + list[i].link);
		last_from = list[i].from;
		column_delta(out, list[i].to);
	}
	free(list);
}

void encode_init(struct encoder *c, struct timeline *t)
{
	*c = (struct encoder){.t = t};
	detail_init(&c->detail, t);
}

/* Everything except the source of slices. */
static void reset(struct encoder *c)
{
	struct encoder kept = {.t = c->t, .detail = c->detail, .points_max = c->points_max};

	for (size_t i = 0; i < N_BLOCKS; i++) {
		column_clear(&c->blocks[i]);
		column_clear(&c->packed[i]);
	}
	for (uint32_t i = 0; i < c->n_shapes; i++)
		for (size_t k = 0; k < TIMELINE_ARGS_MAX; k++)
			column_clear(&c->shapes[i].values[k]);
	free(c->shapes);
	tuples_clear(&c->kinds);
	tuples_clear(&c->shape_tree);
	free(c->page_words);
	free(c->positions);
	json_decref(c->lanes);
	*c = kept;
}

void encode_clear(struct encoder *c)
{
	reset(c);
	detail_clear(&c->detail);
}

int encode(struct encoder *c, uint64_t slices_max, json_t **index, struct err *e)
{
	uint64_t n = spill_count(&c->t->slices);
	int rc = 0;

	reset(c);
	c->page_words = alloc_zero(c->t->words.n, sizeof(*c->page_words));
	c->positions = alloc_zero(n, sizeof(*c->positions));
	memset(c->positions, 0xff, n * sizeof(*c->positions));
	c->lanes = json_array();
	for (uint32_t i = 0; i < c->t->n_tracks; i++)
		json_array_append_new(c->lanes, json_array());
	put_slices(c, slices_max);
	put_arrows(c);
	*index = encode_index(c);
	for (size_t i = 0; i < N_BLOCKS && !rc; i++)
		rc = column_deflate(&c->blocks[i], &c->packed[i], e);
	return rc;
}
