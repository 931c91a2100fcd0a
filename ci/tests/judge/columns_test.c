/* Tests columns: values are read back exactly, in every form of storage. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants those four first */
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diag/judge/columns.h"

enum { SECONDS = 50, SERVERS = 3, METRICS = 4 };

static const double kinds[][4] = {
	{0, 0, 0, 0},
	{7, 7, 7, 7},
	{1, 0, 65535, 3},
	{65536, 1, 2, 3},
	{1 << 24, 0.5, -1, 2},
	{0.1, 1e-9, 1e300, 123456789.25},
};

static void assert_same(const double *a, const double *b)
{
	for (int i = 0; i < SECONDS; i++)
		if (!(a[i] == b[i] || (isnan(a[i]) && isnan(b[i]))))
			fail_msg("second %d: %.17g, not %.17g", i, a[i], b[i]);
}

static void every_form_is_exact(void **state)
{
	double values[COLUMNS * SECONDS], out[SECONDS];
	enum { KINDS = sizeof(kinds) / sizeof(*kinds) };
	struct columns *c;

	(void)state;
	c = columns_new(METRICS, SERVERS, SECONDS);
	assert_int_equal(columns_seconds(c), SECONDS);
	for (int round = 0; round < KINDS * KINDS; round++) {
		for (int k = 0; k < COLUMNS; k++)
			for (int i = 0; i < SECONDS; i++)
				values[k * SECONDS +
					i] = kinds[(k * k + round / KINDS + k * round) % KINDS]
						  [(i * 7 + k) % 4];
		if (round % 3 == 0)
			memcpy(values + COLUMN_MAX * SECONDS, values + COLUMN_SUM * SECONDS,
				sizeof(out));
		columns_put(c, 2, 1, values);
		for (int k = 0; k < COLUMNS; k++) {
			columns_read(c, 2, 1, (enum column)k, out);
			assert_same(out, values + k * SECONDS);
		}
	}
	assert_true(columns_has(c, 2, 1));
	assert_false(columns_has(c, 2, 2));
	columns_series(c, 0, 0, COLUMN_MEAN, out);
	for (int i = 0; i < SECONDS; i++)
		assert_true(isnan(out[i]));
	columns_read(c, 0, 0, COLUMN_COUNT, out);
	for (int i = 0; i < SECONDS; i++)
		assert_true(out[i] == 0);
	columns_free(c);
}

/* Samples in any order are added up; those outside the run are left out. */
static void samples_become_columns(void **state)
{
	struct sample samples[400];
	double count[METRICS][SERVERS][SECONDS] = {0}, sum[METRICS][SERVERS][SECONDS] = {0},
	       max[METRICS][SERVERS][SECONDS];
	double bytes[METRICS][SERVERS][SECONDS] = {0}, out[SECONDS], want[SECONDS];
	struct columns *c;

	(void)state;
	srand(5);
	for (size_t i = 0; i < 400; i++) {
		struct sample *s = &samples[i];
		double x = rand() / (double)RAND_MAX - 0.2;

		*s = (struct sample){(enum metric)(rand() % (METRICS + 1)),
			(uint32_t)rand() % (SERVERS + 1), rand() % (SECONDS + 4) - 2,
			(uint64_t)rand() % 4, x, x / 2, (uint64_t)rand()};
		if (!s->count || (int)s->metric == METRICS || s->server == SERVERS ||
			s->second < 0 || s->second >= SECONDS)
			continue;
		double *n = &count[s->metric][s->server][s->second],
		       *m = &max[s->metric][s->server][s->second];

		*m = *n == 0 || s->max_s > *m ? s->max_s : *m;
		*n += (double)s->count;
		sum[s->metric][s->server][s->second] += s->sum_s;
		bytes[s->metric][s->server][s->second] += (double)s->bytes;
	}
	c = columns_from_samples(samples, 400, METRICS, SERVERS, SECONDS);
	for (size_t m = 0; m < METRICS; m++)
		for (size_t s = 0; s < SERVERS; s++) {
			columns_read(c, m, s, COLUMN_COUNT, out);
			assert_same(out, count[m][s]);
			columns_read(c, m, s, COLUMN_BYTES, out);
			assert_same(out, bytes[m][s]);
			columns_series(c, m, s, COLUMN_MEAN, out);
			for (int i = 0; i < SECONDS; i++)
				want[i] = sum[m][s][i] / count[m][s][i];
			assert_same(out, want);
			columns_series(c, m, s, COLUMN_MAX, out);
			for (int i = 0; i < SECONDS; i++)
				want[i] = count[m][s][i] > 0 ? max[m][s][i] : NAN;
			assert_same(out, want);
		}
	columns_free(c);
	c = columns_from_samples(NULL, 0, METRICS, SERVERS, 0);
	columns_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_form_is_exact),
		cmocka_unit_test(samples_become_columns),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
