/* Any calls of a timeline's builder, and both exports and the page's lanes of what they made. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "harness/web/timeline/lanes.h"

struct input {
	const uint8_t *data;
	size_t size;
};

static uint64_t take(struct input *in, size_t bytes)
{
	uint64_t value = 0;

	for (size_t i = 0; i < bytes && in->size; i++, in->size--)
		value = value << 8 | *in->data++;
	return value;
}

static const char *take_text(struct input *in, char text[64])
{
	size_t n = take(in, 1) % 63;

	n = n < in->size ? n : in->size;
	memcpy(text, in->data, n);
	text[n] = 0;
	in->data += n;
	in->size -= n;
	return text;
}

static void add_slice(struct timeline *t, struct input *in)
{
	char text[64];
	struct timeline_arg arg = {(uint32_t)take(in, 1), take(in, 1) % 2, (int64_t)take(in, 8)};
	struct timeline_slice s = {.track = (int8_t)take(in, 1),
		.name = timeline_word(t, take_text(in, text)),
		.category = (uint32_t)take(in, 1),
		.start_ns = (int64_t)take(in, 8),
		.duration_ns = (int64_t)take(in, take(in, 1) % 9),
		.flags = (uint8_t)take(in, 1),
		.args = &arg,
		.n_args = (uint8_t)(take(in, 1) % 2)};

	timeline_slice_add(t, &s);
}

static void add(struct timeline *t, struct input *in)
{
	char text[64];
	double value;
	uint64_t bits;

	switch (take(in, 1) % 6) {
	case 0: timeline_track(t, (int8_t)take(in, 1), take(in, 1) % 5, take_text(in, text)); break;
	case 1: timeline_counter(t, (int8_t)take(in, 1), take_text(in, text), text); break;
	case 2:
		bits = take(in, 8);
		memcpy(&value, &bits, sizeof(value));
		timeline_sample_add(t, (uint32_t)take(in, 1), (int64_t)take(in, 8), value);
		break;
	case 3: timeline_arrow_add(t, (uint32_t)take(in, 1), (uint32_t)take(in, 1), 0); break;
	case 4:
		timeline_mark_add(t, (unsigned)take(in, 1), (int8_t)take(in, 1),
			(int64_t)take(in, 8), (int64_t)take(in, 8), take_text(in, text));
		break;
	default: add_slice(t, in);
	}
}

/* All slices are shown or in a sum, and none overlaps the next of its lane. */
static void check_lanes(struct timeline *t, uint64_t slices_max)
{
	struct detail d;
	struct lanes l = {.detail = &d, .from_ns = t->from_ns, .window_ns = 1u << 20};
	struct spill_merge m;
	const struct stored *s;
	uint64_t n = 0;

	detail_init(&d, t);
	detail_choose(&d, slices_max);
	spill_merge_init(&m, &t->slices);
	while ((s = spill_next(&m)))
		lanes_add(&l, s);
	lanes_end(&l);
	for (size_t i = 0; i < l.n; i++) {
		n += l.list[i].n;
		if (i && l.list[i].lane == l.list[i - 1].lane && l.list[i].lane < LANES_MAX - 1 &&
			stored_end(&l.list[i - 1].s) > l.list[i].s.start_ns)
			abort();
	}
	if (n != spill_count(&t->slices))
		abort();
	spill_merge_clear(&m);
	lanes_clear(&l);
	detail_clear(&d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static FILE *null;
	struct input in = {data, size};
	struct timeline *t = NULL;

	if (!null)
		null = fopen("/dev/null", "w");
	if (!null || timeline_new(&t, NULL))
		abort();
	while (in.size)
		add(t, &in);
	if (timeline_perfetto(t, null, NULL) || timeline_otlp(t, null, NULL))
		abort();
	check_lanes(t, size / 64);
	timeline_free(t);
	return 0;
}
