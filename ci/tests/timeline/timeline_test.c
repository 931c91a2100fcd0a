/* The builder of timelines: sorted temporary files, words, lanes, and the slices that a page
 * keeps. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "harness/web/timeline/columns.h"
#include "harness/web/timeline/arrow_index.h"
#include "harness/web/timeline/lanes.h"

static int compare_numbers(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Records come back in order through many runs, and again after more were added. */
static void test_spill(void **state)
{
	struct spill s;
	struct spill_merge m;
	uint64_t x = 1, sum = 0, last, n;
	const uint64_t *next;

	(void)state;
	assert_int_equal(spill_init(&s, sizeof(x), 100, compare_numbers, NULL), 0);
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 4321; i++) {
			x = x * 6364136223846793005u + 1442695040888963407u;
			sum += x;
			spill_add(&s, &x);
		}
		last = n = 0;
		x = sum;
		spill_merge_init(&m, &s);
		for (; (next = spill_next(&m)); n++) {
			assert_true(*next >= last);
			last = *next;
			x -= *next;
		}
		spill_merge_clear(&m);
		assert_int_equal(n, 4321 * (round + 1));
		assert_int_equal(x, 0);
	}
	spill_clear(&s);
}

static void test_spill_errors(void **state)
{
	struct timeline *t = NULL;
	struct err e = {0};
	char *before = getenv("TMPDIR") ? strdup(getenv("TMPDIR")) : NULL;

	(void)state;
	setenv("TMPDIR", "/proc/self/none", 1);
	assert_true(timeline_new(&t, &e) < 0);
	assert_null(t);
	assert_non_null(strstr(e.text, "TMPDIR"));
	before ? setenv("TMPDIR", before, 1) : unsetenv("TMPDIR");
	free(before);
	/* A write that fails is remembered; what follows is ignored. */
	assert_int_equal(timeline_new(&t, &e), 0);
	t->slices.error = -ENOSPC;
	timeline_slice_add(
		t, &(struct timeline_slice){.track = timeline_track(t, -1, TIMELINE_NODE, "s1")});
	assert_int_equal(timeline_perfetto(t, stdout, &e), -ENOSPC);
	assert_int_equal(timeline_html(t, stdout, 0, &e), -ENOSPC);
	assert_int_equal(timeline_otlp(t, stdout, &e), -ENOSPC);
	timeline_free(t);
	timeline_free(NULL);
}

static struct timeline *made(void)
{
	struct timeline *t = NULL;

	assert_int_equal(timeline_new(&t, NULL), 0);
	return t;
}

static void test_words(void **state)
{
	struct timeline *t = made();
	uint32_t a = timeline_word(t, "read"), b = timeline_word(t, "write");
	char name[16], *huge = calloc(5000, 1);

	(void)state;
	assert_int_not_equal(a, b);
	assert_int_equal(timeline_word(t, "read"), a);
	assert_string_equal(words_text(&t->words, timeline_word(t, "a\nb\xff")), "a\\nb\\xff");
	memset(huge, 'x', 4999);
	assert_int_equal(strlen(words_text(&t->words, timeline_word(t, huge))), 1000);
	for (int round = 0; round < 2; round++)
		for (int i = 0; i < 5000; i++) {
			snprintf(name, sizeof(name), "n%d", i);
			assert_string_equal(words_text(&t->words, timeline_word(t, name)), name);
		}
	assert_int_equal(t->words.n, 5000 + 5);
	free(huge);
	timeline_free(t);
}

static uint32_t add(struct timeline *t, int32_t track, int64_t start, int64_t duration)
{
	return timeline_slice_add(t,
		&(struct timeline_slice){
			.track = track, .start_ns = start, .duration_ns = duration});
}

static void test_times(void **state)
{
	struct timeline *t = made();
	int32_t track = timeline_track(t, 99, TIMELINE_NODE, "s1");
	struct timeline_size size;
	const struct stored *s;

	(void)state;
	assert_int_equal(t->tracks[track].parent, TIMELINE_NONE);
	add(t, track, 5, -3);
	add(t, track, INT64_MAX - 2, 10);
	add(t, track, INT64_MIN, INT64_MAX);
	assert_int_equal(add(t, track + 1, 0, 1), UINT32_MAX);
	assert_int_equal(add(t, TIMELINE_NONE, 0, 1), UINT32_MAX);
	timeline_arrow_add(t, 0, 3, TIMELINE_EXACT);
	timeline_arrow_add(t, 1, 1, TIMELINE_EXACT);
	timeline_sample_add(t, 0, 0, 1);
	timeline_count(t, &size);
	assert_int_equal(size.slices, 3);
	assert_int_equal(size.mended, 2);
	assert_int_equal(size.arrows + size.samples, 0);
	assert_int_equal(t->from_ns, INT64_MIN);
	assert_int_equal(t->to_ns, INT64_MAX);
	s = spill_map(&t->slices);
	assert_int_equal(s[1].duration_ns, 0);
	assert_int_equal(stored_end(&s[2]), INT64_MAX);
	timeline_free(t);
}

/* Overlapping slices are in lanes, in which they follow each other; short ones become sums. */
static void test_lanes(void **state)
{
	struct timeline *t = made();
	int32_t track = timeline_track(t, -1, TIMELINE_NODE, "s1");
	struct detail d;
	struct lanes l = {.detail = &d, .window_ns = 1000};
	const struct stored *s;
	uint64_t n = 0, busy = 0;

	(void)state;
	add(t, track, 0, 100);
	add(t, track, 10, 20);
	add(t, track, 30, 20);
	add(t, track, 90, 50);
	add(t, track, 140, 1);
	detail_init(&d, t);
	detail_choose(&d, 5);
	s = spill_map(&t->slices);
	for (int i = 0; i < 5; i++)
		lanes_add(&l, &s[i]);
	lanes_end(&l);
	assert_int_equal(l.n, 5);
	assert_int_equal(l.n_lanes, 2);
	assert_int_equal(l.in_lane[0], 2);
	assert_int_equal(l.list[1].s.start_ns, 140);
	assert_int_equal(l.list[4].s.start_ns, 90);
	lanes_reset(&l);
	detail_choose(&d, 2); /* 100 and 50 stay */
	assert_false(d.by_request && detail_least_ns(&d) == 0);
	for (int i = 0; i < 5; i++)
		lanes_add(&l, &s[i]);
	lanes_end(&l);
	for (size_t i = 0; i < l.n; i++) {
		n += l.list[i].n;
		busy += l.list[i].busy_ns;
	}
	assert_int_equal(l.n, 3);
	assert_int_equal(n, 5);
	assert_int_equal(busy, 191);
	lanes_clear(&l);
	detail_clear(&d);
	timeline_free(t);
}

/* A request is kept whole for its longest slice; one that joins all is not. */
static void test_detail(void **state)
{
	struct timeline *t = made();
	int32_t track = timeline_track(t, -1, TIMELINE_NODE, "s1");
	const struct stored *s;
	struct detail d;
	int kept = 0;

	(void)state;
	for (int i = 0; i < 100; i++) {
		uint32_t a = add(t, track, i * 1000, i == 40 ? 900 : 100 + i);

		timeline_arrow_add(t, a, add(t, track, i * 1000, 1), TIMELINE_EXACT);
	}
	detail_init(&d, t);
	detail_choose(&d, 3);
	assert_true(d.by_request);
	s = spill_map(&t->slices);
	for (int i = 0; i < 200; i++)
		if (detail_keeps(&d, &s[i])) {
			assert_int_equal(s[i].start_ns, 40000);
			kept++;
		}
	assert_int_equal(kept, 2);
	assert_true(detail_least_ns(&d) > 199 && detail_least_ns(&d) <= 900);
	assert_int_equal(detail_root(&d, 81), 80);
	detail_clear(&d);
	for (uint32_t i = 1; i < 200; i++)
		timeline_arrow_add(t, i - 1, i, TIMELINE_BY_THREAD);
	detail_init(&d, t);
	detail_choose(&d, 100);
	assert_false(d.by_request);
	assert_int_equal(detail_root(&d, 199), 0);
	for (int i = kept = 0; i < 200; i++)
		kept += detail_keeps(&d, &s[i]);
	assert_in_range(kept, 50, 100);
	detail_clear(&d);
	timeline_free(t);
}

static void test_columns(void **state)
{
	static const uint8_t expected[] = {
		127, 128, 1, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1, 10, 9, 0};
	struct timeline_column c = {0};
	struct tuples tuples = {0};

	(void)state;
	column_number(&c, 127);
	column_number(&c, 128);
	column_number(&c, UINT64_MAX);
	column_delta(&c, 5);
	column_delta(&c, 0);
	column_delta(&c, 0);
	assert_int_equal(c.size, sizeof(expected));
	assert_memory_equal(c.data, expected, c.size);
	assert_int_equal(c.most, 5);
	column_delta(&c, INT64_MIN);
	assert_true(c.most == 1ull << 63);
	column_clear(&c);
	for (uint32_t round = 0; round < 2; round++)
		for (uint32_t i = 0; i < 1000; i++)
			assert_int_equal(
				tuples_number(&tuples, (uint32_t[]){i, i / 2, 0, i % 7}), i);
	tuples_clear(&tuples);
}

static void test_joints(void **state)
{
	struct timeline *t = made();
	int32_t track = timeline_track(t, -1, TIMELINE_NODE, "s1");
	struct arrow_index j;

	(void)state;
	for (int i = 0; i < 3; i++)
		add(t, track, 10 - i, 1);
	timeline_arrow_add(t, 0, 2, TIMELINE_EXACT);
	timeline_arrow_add(t, 2, 1, TIMELINE_EXACT);
	timeline_arrow_add(t, 2, 0, TIMELINE_EXACT);
	assert_int_equal(arrow_index_init(&j, t, NULL), 0);
	assert_int_equal(j.out_first[0 + 2] - j.out_first[0 + 1], 1);
	assert_int_equal(j.out_first[1 + 2] - j.out_first[1 + 1], 0);
	assert_int_equal(j.out_first[2 + 2] - j.out_first[2 + 1], 2);
	assert_int_equal(j.out[j.out_first[2 + 1]], 1);
	assert_int_equal(j.into[j.into_first[0 + 1]], 2);
	assert_false(arrow_index_leads_on(&j, 0));
	assert_true(arrow_index_leads_on(&j, 1));
	arrow_index_clear(&j);
	timeline_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_spill),
		cmocka_unit_test(test_spill_errors),
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_times),
		cmocka_unit_test(test_lanes),
		cmocka_unit_test(test_detail),
		cmocka_unit_test(test_columns),
		cmocka_unit_test(test_joints),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
