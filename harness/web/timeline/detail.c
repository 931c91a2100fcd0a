/* Chooses the slices that a page keeps individually. */
#include "harness/web/timeline/detail.h"

#include <stdlib.h>

#include "harness/base/alloc.h"

/* Classes of durations: one each below 8 ns, then eight per octave. */
enum { CLASSES = 64 * 8 };

static unsigned class_of(int64_t duration_ns)
{
	uint64_t d = (uint64_t)duration_ns;
	unsigned octave;

	if (d < 8)
		return (unsigned)d;
	octave = 63 - (unsigned)__builtin_clzll(d);
	return octave * 8 + (d >> (octave - 3) & 7);
}

static int64_t class_least(unsigned class)
{
	if (class < 8)
		return class;
	if (class < 24)
		return 8;
	return (int64_t)(8 + class % 8) << (class / 8 - 3);
}

uint32_t detail_root(const struct detail *d, uint32_t number)
{
	while (d->joined[number] != number) {
		d->joined[number] = d->joined[d->joined[number]];
		number = d->joined[number];
	}
	return number;
}

static void detail_join(struct detail *d, struct timeline *t)
{
	const struct stored_arrow *arrows = spill_map(&t->arrows);
	uint64_t n = arrows ? spill_count(&t->arrows) : 0;

	for (uint64_t i = 0; i < n; i++) {
		uint32_t a = detail_root(d, arrows[i].from), b = detail_root(d, arrows[i].to);

		/* The lower number becomes the root, so that a trace keeps its id as it grows. */
		if (a < b)
			d->joined[b] = a;
		else
			d->joined[a] = b;
	}
}

void detail_init(struct detail *d, struct timeline *t)
{
	const struct stored *slices = spill_map(&t->slices);
	uint64_t n = slices ? spill_count(&t->slices) : 0;

	*d = (struct detail){.joined = alloc_zero(n, sizeof(*d->joined)),
		.longest = alloc_zero(n, sizeof(*d->longest)),
		.requests = alloc_zero(CLASSES, sizeof(*d->requests)),
		.single = alloc_zero(CLASSES, sizeof(*d->single))};
	for (uint64_t i = 0; i < n; i++)
		d->joined[i] = (uint32_t)i;
	detail_join(d, t);
	for (uint64_t i = 0; i < n; i++) {
		uint32_t root = detail_root(d, slices[i].number);
		unsigned class = class_of(slices[i].duration_ns);

		d->single[class]++;
		if (class > d->longest[root])
			d->longest[root] = (uint16_t) class;
	}
	for (uint64_t i = 0; i < n; i++)
		d->requests[d->longest[detail_root(d, (uint32_t)i)]]++;
}

void detail_clear(struct detail *d)
{
	free(d->joined);
	free(d->longest);
	free(d->requests);
	free(d->single);
	*d = (struct detail){0};
}

/* The lowest class with at most 'most' slices in it and above. */
static unsigned class_for(const uint64_t counts[CLASSES], uint64_t most)
{
	unsigned class = CLASSES;
	uint64_t n = 0;

	while (class > 0 && n + counts[class - 1] <= most)
		n += counts[--class];
	return class;
}

static uint64_t count_from(const uint64_t counts[CLASSES], unsigned class)
{
	uint64_t n = 0;

	for (; class < CLASSES; class ++)
		n += counts[class];
	return n;
}

void detail_choose(struct detail *d, uint64_t slices_max)
{
	unsigned request = class_for(d->requests, slices_max);
	unsigned single = class_for(d->single, slices_max);

	/* Keep requests complete if they use at least half of the room. */
	d->by_request = !request || count_from(d->requests, request) > slices_max / 2 ||
		count_from(d->requests, request) >= count_from(d->single, single) / 2;
	d->least = d->by_request ? request : single;
}

bool detail_keeps(const struct detail *d, const struct stored *s)
{
	unsigned class = d->by_request ? d->longest[detail_root(d, s->number)]
				       : class_of(s->duration_ns);

	return class >= d->least;
}

int64_t detail_least_ns(const struct detail *d)
{
	return class_least(d->least < CLASSES ? d->least : CLASSES - 9);
}
