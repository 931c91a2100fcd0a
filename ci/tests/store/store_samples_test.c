/* Samples in the store: exact to the last bit, and compact. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants those four first */
#include <cmocka.h>
#include <errno.h>
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ci/tests/scratch.h"
#include "harness/base/file.h"
#include "harness/store/series_codec.h"
#include "harness/store/store.h"

static char *servers[] = {"s1", "s2", "s3", "s4", "s5", "s6"};

static uint64_t dice(uint64_t n)
{
	static uint64_t v = 88172645463325252;

	v ^= v << 13;
	v ^= v >> 7;
	v ^= v << 17;
	return v % n;
}

static double fraction(void)
{
	return (double)dice(1000000007) / 1000000007.0;
}

static void expect_same(const struct sample *a, const struct sample *b, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(a[i].second, b[i].second);
		assert_int_equal(a[i].count, b[i].count);
		assert_int_equal(a[i].bytes, b[i].bytes);
		/* Bits, so that -0, infinities and what is no number are distinguished. */
		assert_memory_equal(&a[i].sum_s, &b[i].sum_s, sizeof(double));
		assert_memory_equal(&a[i].max_s, &b[i].max_s, sizeof(double));
	}
}

static size_t there_and_back(const struct sample *samples, size_t n)
{
	unsigned char *data;
	struct sample *back;
	size_t size, got;
	struct err e;

	series_encode(samples, n, &data, &size);
	if (series_decode(data, size, &back, &got, &e))
		fail_msg("%s", e.text);
	assert_int_equal(got, n);
	expect_same(samples, back, n);
	free(back);
	free(data);
	return size;
}

static double drawn(int way)
{
	static const double odd[] = {0.0, -0.0, 1e300, -1e-300, INFINITY, -INFINITY,
		9007199254740992.0, 9007199254740993.0, 1e22, 0.1, 1.0 / 3, -5, 4503599627370497.5,
		123456789.123456789};

	switch (way) {
	case 0: return (double)dice(1000);
	case 1: return (double)dice(1u << 30) / 1e9;
	case 2: return (double)dice(100) / 100;
	case 3: return fraction() * 1000;
	case 4: return odd[dice(sizeof(odd) / sizeof(odd[0]))];
	case 5: return NAN;
	default: return 7.25;
	}
}

static void every_kind_of_column_survives(void **state)
{
	(void)state;
	for (int round = 0; round < 20000; round++) {
		struct sample s[40];
		size_t n = 1 + dice(40);
		int second = (int)dice(5), sum = (int)dice(8), max = (int)dice(8),
		    gaps = (int)dice(2), same = (int)dice(2);

		for (size_t i = 0; i < n; i++) {
			s[i] = (struct sample){.second = second,
				.count = dice(2) ? 1 : dice(UINT64_MAX),
				.sum_s = drawn(sum),
				.bytes = same ? 0 : dice(UINT64_MAX)};
			s[i].max_s = dice(4) ? s[i].sum_s : drawn(max);
			second += 1 + (gaps ? (int)dice(4) : 0);
		}
		there_and_back(s, n);
	}
}

static void constant_columns_take_ten_bytes(void **state)
{
	struct sample s[600];

	(void)state;
	for (int i = 0; i < 600; i++)
		s[i] = (struct sample){.second = i, .count = 1};
	assert_in_range(there_and_back(s, 600), 1, 12);
	for (int i = 0; i < 600; i++)
		s[i].sum_s = s[i].max_s = (double)(i % 7) / 100;
	assert_in_range(there_and_back(s, 600), 600, 620); /* a byte a second */
}

/* Damaged data is never accepted as valid samples. */
static void damaged_bytes_are_refused_or_read_as_samples(void **state)
{
	struct sample s[30], *back;
	unsigned char *data, copy[2000];
	size_t size, n, refused = 0;
	struct err e;

	(void)state;
	for (int i = 0; i < 30; i++)
		s[i] = (struct sample){.second = i,
			.count = dice(9),
			.sum_s = fraction(),
			.max_s = (double)dice(99),
			.bytes = dice(1 << 20)};
	series_encode(s, 30, &data, &size);
	assert_in_range(size, 1, sizeof(copy));
	for (size_t cut = 0; cut < size; cut++)
		assert_int_equal(series_decode(data, cut, &back, &n, &e), -EBADMSG);
	for (int round = 0; round < 20000; round++) {
		memcpy(copy, data, size);
		for (int k = 0; k < 3; k++)
			copy[dice(size)] = (unsigned char)dice(256);
		if (series_decode(copy, size, &back, &n, &e)) {
			refused++;
			continue;
		}
		free(back);
	}
	assert_true(refused > 1000);
	free(data);
}

/* The columns' order: second, count and bytes are whole numbers, sum and maximum are real. */
static void columns_of_a_wrong_kind_are_refused(void **state)
{
	enum { DOUBLES = 10, SAME, COUNTING, ALIKE = 0x80 };
	static const struct {
		unsigned char second, sum;
		int rc;
	} cases[] = {{ALIKE, ALIKE, 0}, {0, 0, 0}, {0, 9, 0}, {COUNTING, 0, 0},
		{SAME, 0, -EBADMSG},             /* as the column before, and there is none */
		{1, 0, -EBADMSG},                /* decimal places of a whole number */
		{DOUBLES, 0, -EBADMSG},          /* a whole number as a double */
		{COUNTING | ALIKE, 0, -EBADMSG}, /* one after the other, and all alike */
		{COUNTING + 1, 0, -EBADMSG}, {0, COUNTING, -EBADMSG}, /* reals that count up */
		{0, SAME, -EBADMSG},                                  /* a real as a whole number */
		{0, COUNTING + 1, -EBADMSG}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		/* One sample; each number is a byte. */
		const unsigned char data[] = {
			1, cases[i].second, 6, 0, 2, cases[i].sum, 8, 0, 10, 0, 12};
		struct sample *back = NULL;
		size_t n = 77;
		struct err e;
		int rc = series_decode(data, sizeof(data), &back, &n, &e);

		if (rc != cases[i].rc)
			fail_msg("case %zu: %d is not %d", i, rc, cases[i].rc);
		if (rc) {
			assert_null(back);
			assert_int_equal(n, 77);
			assert_string_equal(e.text, "samples are corrupt");
			continue;
		}
		assert_int_equal(n, 1);
		assert_int_equal(back->second, 3);
		assert_int_equal(back->count, 1);
		assert_float_equal(back->sum_s, cases[i].sum == 9 ? 4e-9 : 4, 1e-20);
		assert_float_equal(back->max_s, 5, 0);
		assert_int_equal(back->bytes, 6);
		free(back);
	}
}

static struct store *new_store(const char *name, char folder[128])
{
	struct store *s;
	struct err e;

	snprintf(folder, 128, "%s/%s", dir, name);
	if (store_create(folder, &s, &e))
		fail_msg("%s", e.text);
	return s;
}

static struct store *reopen(struct store *s, const char *folder)
{
	struct err e;

	store_close(s);
	if (store_open(folder, &s, &e))
		fail_msg("%s", e.text);
	return s;
}

/* What store_samples hands over, held against what was put. */
struct expected {
	const struct sample *samples;
	size_t n, seen;
};

static int compare(void *ctx, const char *metric, const char *server, const struct sample *samples,
	size_t n, struct err *e)
{
	struct expected *x = ctx;
	size_t i = 0;

	(void)e;
	while (i < x->n &&
		(strcmp(metric, metric_name(x->samples[i].metric)) ||
			strcmp(server, servers[x->samples[i].server])))
		i++;
	assert_in_range(i + n, n, x->n);
	assert_int_equal(samples->metric, 0);
	expect_same(x->samples + i, samples, n);
	x->seen += n;
	return 0;
}

static void expect_samples(struct store *s, int64_t attempt, const struct sample *samples, size_t n)
{
	struct expected x = {samples, n, 0};
	struct err e;

	if (store_samples(s, attempt, compare, &x, &e))
		fail_msg("%s", e.text);
	assert_int_equal(x.seen, n);
}

static void put(struct store *s, int64_t attempt, const struct sample *samples, size_t n)
{
	struct err e;

	if (store_put_samples(s, attempt, servers, samples, n, &e))
		fail_msg("%s", e.text);
}

/* All metrics of six servers for 25 s, as a lab's cell has them: some silent, some noisy, times
 * with tails. */
static size_t a_cell(struct sample *out)
{
	size_t n = 0;

	for (int m = 0; m < METRIC_COUNT; m++)
		for (uint32_t server = 0; server < 6; server++) {
			int kind = m < METRIC_SERVICE_TIMES ? 0 : m % 4;
			double level = (double)dice(1000000);

			for (int32_t second = 0; second < 25; second++) {
				struct sample s = {.metric = (enum metric)m,
					.server = server,
					.second = second,
					.count = 3};

				if (kind == 0 && m < METRIC_SERVICE_TIMES) {
					s.count = 20 + dice(200);
					s.sum_s = fraction() + fraction();
					s.max_s = (double)dice(300000000) / 1e9;
					s.bytes = s.count * 131072;
				} else if (kind == 1) {
					s.sum_s = level + (double)dice(20000);
					s.max_s = floor(s.sum_s / 2);
				} else if (kind == 2) {
					s.sum_s = s.max_s = (double)dice(2000) / 1000;
				} else if (kind == 3) {
					s.sum_s = (double)dice(300000) / 1e6;
					s.max_s = (double)dice(100000) / 1e6;
				}
				out[n++] = s;
			}
		}
	return n;
}

static void samples_come_back_and_a_cell_is_small(void **state)
{
	static struct sample samples[METRIC_COUNT * 6 * 25];
	char folder[128], packed[160], path[192];
	struct store *s = new_store("small", folder);
	enum { CELLS = 20 };
	struct stat st;
	struct err e;
	size_t n = 0;

	(void)state;
	assert_int_equal(store_begin(s, &e), 0);
	for (int64_t cell = 1; cell <= CELLS; cell++) {
		n = a_cell(samples);
		put(s, cell, samples, n);
	}
	assert_int_equal(store_end(s, 0, &e), 0);
	s = reopen(s, folder);
	expect_samples(s, CELLS, samples, n);
	expect_samples(s, CELLS + 1, samples, 0);
	snprintf(packed, sizeof(packed), "%s/packed", dir);
	snprintf(path, sizeof(path), "%s/run.db.gz", packed);
	if (store_pack(s, packed, false, &e))
		fail_msg("%s", e.text);
	assert_int_equal(stat(path, &st), 0);
	print_message("# %ld bytes a cell packed\n", (long)st.st_size / CELLS);
	assert_in_range(st.st_size / CELLS, 1, 650 * METRIC_COUNT);
	store_close(s);
	if (store_open(packed, &s, &e))
		fail_msg("%s", e.text);
	expect_samples(s, CELLS, samples, n);
	store_close(s);
}

static void samples_can_be_dropped(void **state)
{
	struct sample samples[] = {{METRIC_DREAD, 2, 5, 7, 0.25, 0.1, 4096}};
	char folder[128];
	struct store *s = new_store("dropped", folder);
	struct err e;

	(void)state;
	put(s, 1, samples, 1);
	put(s, 2, samples, 1);
	assert_int_equal(store_drop(s, "series", 1, &e), 0);
	expect_samples(s, 1, samples, 0);
	expect_samples(s, 2, samples, 1);
	store_close(s);
}

static void sql(const char *folder, const char *text)
{
	char path[192], *why = NULL;
	sqlite3 *db;

	snprintf(path, sizeof(path), "%s/run.db", folder);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	if (sqlite3_exec(db, text, NULL, NULL, &why) != SQLITE_OK)
		fail_msg("%s", why);
	sqlite3_close(db);
}

static void damaged_samples_are_named(void **state)
{
	struct sample samples[] = {{METRIC_DREAD, 2, 5, 7, 0.25, 0.1, 4096}};
	struct expected x = {samples, 1, 0};
	char folder[128];
	struct store *s = new_store("damaged", folder);
	struct err e;

	(void)state;
	put(s, 1, samples, 1);
	store_close(s);
	sql(folder, "UPDATE series SET samples = x'05ff'");
	assert_int_equal(store_open(folder, &s, &e), 0);
	assert_int_equal(store_samples(s, 1, compare, &x, &e), -EBADMSG);
	assert_non_null(strstr(e.text, "dread of s3"));
	assert_int_equal(e.class, ERR_DAMAGED);
	store_close(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind_of_column_survives),
		cmocka_unit_test(constant_columns_take_ten_bytes),
		cmocka_unit_test(damaged_bytes_are_refused_or_read_as_samples),
		cmocka_unit_test(columns_of_a_wrong_kind_are_refused),
		cmocka_unit_test(samples_come_back_and_a_cell_is_small),
		cmocka_unit_test(samples_can_be_dropped),
		cmocka_unit_test(damaged_samples_are_named),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
