/* Encodes a timeline's counters. */
#include <math.h>
#include <stdlib.h>

#include "harness/base/alloc.h"
#include "harness/web/timeline/encode.h"

enum {
	POINTS_LEAST = 400, /* minimum for a counter */
	POINTS_OF_A_BIN = 4,
};

/* The samples of one counter, per bin [first, minimum, maximum, last], or unchanged. */
struct points {
	struct stored_sample *list;
	size_t n;
	uint64_t bin;
	struct stored_sample of_bin[POINTS_OF_A_BIN];
	unsigned n_of_bin;
};

static int compare_numbers(const void *pa, const void *pb)
{
	const struct stored_sample *a = pa, *b = pb;

	return (a->number > b->number) - (a->number < b->number);
}

static void end_bin(struct points *p)
{
	qsort(p->of_bin, p->n_of_bin, sizeof(*p->of_bin), compare_numbers);
	for (unsigned i = 0; i < p->n_of_bin; i++)
		if (!i || p->of_bin[i].number != p->of_bin[i - 1].number)
			p->list[p->n++] = p->of_bin[i];
	p->n_of_bin = 0;
}

static void put_in_bin(struct points *p, const struct stored_sample *s, uint64_t bin)
{
	if (bin != p->bin || !p->n_of_bin) {
		end_bin(p);
		p->bin = bin;
		for (; p->n_of_bin < POINTS_OF_A_BIN; p->n_of_bin++)
			p->of_bin[p->n_of_bin] = *s;
		return;
	}
	if (!(s->value >= p->of_bin[1].value))
		p->of_bin[1] = *s;
	if (!(s->value <= p->of_bin[2].value))
		p->of_bin[2] = *s;
	p->of_bin[3] = *s;
}

/* Integers as differences; others as the eight bytes of their IEEE 754 form. */
static void put_points(struct encoder *c, const struct points *p, json_t *about)
{
	struct timeline_column times = {0}, values = {0};
	bool whole = true;

	for (size_t i = 0; i < p->n; i++) {
		double v = p->list[i].value;

		whole = whole && v > -1e15 && v < 1e15 && v == (double)(int64_t)v;
	}
	for (size_t i = 0; i < p->n; i++) {
		column_delta(&times, (int64_t)ns_between(c->t->from_ns, p->list[i].at_ns));
		if (whole)
			column_delta(&values, (int64_t)p->list[i].value);
		else
			column_bytes(&values, &p->list[i].value, sizeof(double));
	}
	column_bytes(&c->blocks[COUNTERS], times.data, times.size);
	column_bytes(&c->blocks[COUNTERS], values.data, values.size);
	column_clear(&times);
	column_clear(&values);
	json_array_append_new(about, encode_count(p->n));
	json_array_append_new(about, json_boolean(whole));
}

json_t *encode_counters(struct encoder *c)
{
	struct timeline *t = c->t;
	json_t *list = json_array();
	struct spill_merge m;
	const struct stored_sample *s;
	uint64_t most = t->n_counters ? c->points_max / t->n_counters : 1;
	uint64_t bins = (most < POINTS_LEAST ? POINTS_LEAST : most) / POINTS_OF_A_BIN;
	uint64_t bin_ns = ns_between(t->from_ns, t->to_ns) / bins + 1;

	spill_merge_init(&m, &t->samples);
	s = spill_next(&m);
	for (uint32_t i = 0; i < t->n_counters; i++) {
		const struct counter *k = &t->counters[i];
		uint64_t room = k->samples + POINTS_OF_A_BIN, each = 0;
		bool all = k->samples <= bins * POINTS_OF_A_BIN;
		struct points p = {.list = alloc_zero(room, sizeof(*p.list))};
		json_t *about = json_pack("[i, i, i]", (int)k->track, (int)encode_word(c, k->name),
			(int)encode_word(c, k->unit));

		c->counters_cut += !all;
		for (; s && s->counter == i; s = spill_next(&m)) {
			struct stored_sample in_order = *s;

			in_order.number = (uint32_t)each;
			put_in_bin(&p, &in_order,
				all ? each : ns_between(t->from_ns, s->at_ns) / bin_ns);
			each++;
		}
		end_bin(&p);
		put_points(c, &p, about);
		json_array_append_new(list, about);
		free(p.list);
	}
	spill_merge_clear(&m);
	return list;
}
