/* Made-up fleets have the properties that their families claim. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants those four first */
#include <cmocka.h>
#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ci/bench/fleet_maker.h"

/* A fleet with all of its values. */
struct world {
	struct maker *m;
	float *v[MAKER_METRICS_MAX]; /* row by row */
};

static struct maker_spec spec_of(const char *family)
{
	int f = maker_family_find(family);

	assert_true(f >= 0);
	return (struct maker_spec){.family = (size_t)f,
		.seed = 11,
		.members = 200,
		.duration_s = 7 * 86400,
		.step_s = 300,
		.ratio = 3,
		.share = 0.1};
}

static struct world world(const struct maker_spec *s)
{
	struct world w = {.m = maker_new(s)};

	for (int k = 0; k < MAKER_METRICS_MAX; k++)
		w.v[k] = calloc((size_t)w.m->n_members * w.m->n_steps, sizeof(float));
	for (unsigned i = 0; i < w.m->n_members; i++) {
		float *row[MAKER_METRICS_MAX];

		for (int k = 0; k < MAKER_METRICS_MAX; k++)
			row[k] = w.v[k] + (size_t)i * w.m->n_steps;
		maker_series(w.m, i, row);
	}
	return w;
}

static void clear(struct world *w)
{
	for (int k = 0; k < MAKER_METRICS_MAX; k++)
		free(w->v[k]);
	maker_free(w->m);
}

static float at(const struct world *w, unsigned member, unsigned step)
{
	return w->v[0][(size_t)member * w->m->n_steps + step];
}

static double median(double *x, size_t n)
{
	gsl_sort(x, 1, n);
	return gsl_stats_median_from_sorted_data(x, 1, n);
}

static double median_of_member(const struct world *w, unsigned member)
{
	double *x = calloc(w->m->n_steps, sizeof(*x)), m;
	size_t n = 0;

	for (unsigned i = 0; i < w->m->n_steps; i++)
		if (!isnan(at(w, member, i)))
			x[n++] = (double)at(w, member, i);
	m = n ? median(x, n) : NAN;
	free(x);
	return m;
}

/* Standard deviation of the members' log medians: as drawn, and measured. */
static double spread_of_members(const struct world *w)
{
	double *x = calloc(w->m->n_members, sizeof(*x)), s;

	for (unsigned i = 0; i < w->m->n_members; i++)
		x[i] = log(median_of_member(w, i));
	s = gsl_stats_sd(x, 1, w->m->n_members);
	free(x);
	return s;
}

static void fleets_follow_from_their_seed(void **state)
{
	(void)state;
	for (size_t f = 0; f < MAKER_FAMILIES; f++) {
		struct maker_spec s = maker_draw(f, 5, true, 2, 0.1, 80);
		struct world a, b, c;
		size_t bytes;

		a = world(&s);
		b = world(&s);
		s.seed += 4;
		c = world(&s);
		bytes = sizeof(float) * a.m->n_members * a.m->n_steps;
		assert_int_equal(a.m->n_members, b.m->n_members);
		assert_memory_equal(a.v[0], b.v[0], bytes);
		assert_true(memcmp(a.v[0], c.v[0], sizeof(float) * 100));
		clear(&a);
		clear(&b);
		clear(&c);
	}
}

static void values_are_finite_and_positive(void **state)
{
	(void)state;
	for (size_t f = 0; f < MAKER_FAMILIES; f++) {
		struct maker_spec s = maker_draw(f, 5, true, 10, 1, 80);
		struct world w = world(&s);

		for (unsigned k = 0; k < w.m->n_metrics; k++)
			for (size_t i = 0; i < (size_t)w.m->n_members * w.m->n_steps; i++) {
				float v = w.v[k][i];

				assert_true(isnan(v) ? w.m->family->missing : isfinite(v));
				assert_true(isnan(v) || v > 0 || w.m->family->zeros > 0);
			}
		clear(&w);
	}
}

static void groups_and_draws_are_within_bounds(void **state)
{
	unsigned kinds[3] = {0}, whens[2] = {0}, recordings = 0;

	(void)state;
	for (uint64_t seed = 0; seed < 64; seed++) {
		struct maker_spec s = maker_draw(
			seed % MAKER_FAMILIES, seed, seed >= 32, 2, 0.1, 500);
		struct maker *m = maker_new(&s);

		assert_in_range(m->n_members, 40, 540);
		assert_in_range(m->n_steps, 360, 2688);
		recordings |= 1u << (m->n_steps % 7);
		kinds[s.who]++;
		whens[s.when]++;
		for (unsigned g = 0; g < m->n_groups; g++)
			assert_in_range(m->groups[g].n, 4, 40);
		maker_free(m);
	}
	assert_int_equal(kinds[WHO_NONE], 32);
	assert_int_equal(kinds[WHO_ONE], 16);
	assert_int_equal(whens[WHEN_EPISODE], 32);
	assert_true(recordings & (recordings - 1));
}

/* In its ill steps, and only there, an ill member has 'ratio' times the value of its twin in the
 * same fleet without ill members. */
static void illness_is_the_ratio_in_the_share(void **state)
{
	static const double shares[] = {0.01, 0.03, 0.1, 0.3, 1};
	uint8_t *ill = calloc(4096, 1);

	(void)state;
	for (int i = 0; i < 20; i++) {
		struct maker_spec s = spec_of("lognormal"), none;
		struct world a, b;
		unsigned sick = 0;

		s.seed = (uint64_t)i;
		s.share = shares[i / 4];
		s.who = i % 2 ? WHO_THIRD : WHO_ONE;
		s.when = i / 2 % 2 ? WHEN_EPISODE : WHEN_SHORT_ONES;
		none = s;
		none.who = WHO_NONE;
		a = world(&s);
		b = world(&none);
		for (unsigned k = 0; k < a.m->n_members; k++) {
			unsigned n = maker_ill_steps(a.m, k, ill), changed = 0;

			sick += a.m->members[k].ill;
			for (unsigned t = 0; t < a.m->n_steps; t++) {
				double r = (double)(at(&a, k, t) / at(&b, k, t));

				assert_float_equal(r, ill[t] ? 3 : 1, 1e-5);
				assert_true(!ill[t] ||
					t * s.step_s >= a.m->members[k].onset_s - s.step_s);
				changed += ill[t];
			}
			assert_int_equal(changed, n);
			assert_float_equal(n, a.m->members[k].ill ? s.share * a.m->n_steps : 0, 1);
		}
		assert_true(s.who == WHO_ONE ? sick == 1 : sick > 1);
		clear(&a);
		clear(&b);
	}
	free(ill);
}

static void at_most_a_third_of_a_group_is_ill(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 20; seed++) {
		struct maker_spec s = spec_of("groups");
		struct maker *m;
		unsigned ill[200] = {0}, with = 0;

		s.seed = seed;
		s.who = WHO_THIRD;
		m = maker_new(&s);
		for (unsigned i = 0; i < m->n_members; i++)
			ill[m->members[i].group] += m->members[i].ill;
		for (unsigned g = 0; g < m->n_groups; g++) {
			assert_true(ill[g] * 3 <= m->groups[g].n);
			with += ill[g] > 0;
		}
		assert_true(with >= 1 && with <= m->n_groups / 4 + 1);
		maker_free(m);
	}
}

static void healthy_members_differ_by_the_dispersion(void **state)
{
	static const char *const names[] = {"lognormal", "pareto", "bursts", "throughput"};

	(void)state;
	for (int i = 0; i < 4; i++) {
		struct maker_spec s = spec_of(names[i]);
		struct world w = world(&s);
		double got = spread_of_members(&w), drawn = w.m->dispersion;

		assert_in_range(w.m->dispersion * 1000, 20, 80);
		assert_true(got > 0.7 * drawn && got < 1.5 * drawn + 0.01);
		clear(&w);
	}
}

static void families_have_what_sets_them_apart(void **state)
{
	struct maker_spec s = spec_of("dispersion");
	struct world w = world(&s);
	unsigned narrow = 0, wide = 0;

	(void)state;
	for (unsigned g = 0; g < w.m->n_groups; g++) {
		narrow += w.m->groups[g].dispersion < 0.03;
		wide += w.m->groups[g].dispersion > 0.3;
	}
	assert_true(narrow && wide && narrow + wide == w.m->n_groups);
	clear(&w);

	s = spec_of("models-unknown");
	w = world(&s);
	assert_true(spread_of_members(&w) > 0.1);
	narrow = 0;
	for (unsigned i = 0; i < w.m->n_members; i++)
		narrow += w.m->members[i].second_model;
	assert_in_range(narrow * 100 / w.m->n_members, 20, 47);
	clear(&w);
	s = spec_of("models");
	w = world(&s);
	assert_string_equal(maker_group_column(w.m, 0), "model");
	clear(&w);

	s = spec_of("group-off");
	w = world(&s);
	narrow = 0;
	for (unsigned g = 0; g < w.m->n_groups; g++)
		narrow += w.m->groups[g].off >= 1.5;
	assert_true(narrow >= 1 && narrow <= w.m->n_groups / 10 + 1);
	clear(&w);
}

/* Share of a member's samples above 'times' its median. */
static double above(const struct world *w, double times)
{
	double n = 0, all = 0;

	for (unsigned i = 0; i < w->m->n_members; i++) {
		double m = median_of_member(w, i);

		for (unsigned t = 0; t < w->m->n_steps; t++) {
			n += (double)at(w, i, t) > times * m;
			all++;
		}
	}
	return n / all;
}

static void noise_has_the_tail_of_its_family(void **state)
{
	struct maker_spec s = spec_of("lognormal");
	struct world w = world(&s);

	(void)state;
	assert_true(above(&w, 8) < 1e-5);
	clear(&w);
	s = spec_of("pareto");
	w = world(&s);
	/* A twentieth times 10^-1.5, and somewhat more by the body's width. */
	assert_true(above(&w, 10) > 0.05 * 0.03 * 0.9 && above(&w, 10) < 0.05 * 0.03 * 2);
	clear(&w);
}

static double correlation(const struct world *w, unsigned a, unsigned b)
{
	unsigned n = w->m->n_steps / 12;
	double *x = calloc(n, sizeof(*x)), *y = calloc(n, sizeof(*y)), c;

	/* Of hourly sums. */
	for (unsigned i = 0; i < n * 12; i++) {
		x[i / 12] += (double)at(w, a, i);
		y[i / 12] += (double)at(w, b, i);
	}
	c = gsl_stats_correlation(x, 1, y, 1, n);
	free(x);
	free(y);
	return c;
}

static void load_and_bursts_are_shared(void **state)
{
	struct maker_spec s = spec_of("diurnal");
	struct world w = world(&s);

	(void)state;
	assert_true(correlation(&w, 0, w.m->n_members - 1) > 0.8);
	clear(&w);
	s = spec_of("bursts");
	w = world(&s);
	assert_true(correlation(&w, 0, 1) > correlation(&w, 0, w.m->n_members - 1) + 0.2);
	clear(&w);
	s = spec_of("lognormal");
	w = world(&s);
	assert_true(fabs(correlation(&w, 0, 1)) < 0.4);
	clear(&w);
}

static void recordings_have_gaps_only_where_told(void **state)
{
	struct maker_spec s = spec_of("missing");
	double part[2] = {1, 0};

	(void)state;
	for (uint64_t seed = 0; seed < 8; seed++) {
		struct world w;
		double missing = 0;

		s.seed = seed;
		w = world(&s);
		for (size_t i = 0; i < (size_t)w.m->n_members * w.m->n_steps; i++)
			missing += isnan(w.v[0][i]) != 0;
		missing /= (double)w.m->n_members * w.m->n_steps;
		part[0] = fmin(part[0], missing);
		part[1] = fmax(part[1], missing);
		for (unsigned t = 1; t < w.m->n_steps; t++)
			assert_true(maker_time(w.m, 3, t) > maker_time(w.m, 3, t - 1));
		assert_true(maker_time(w.m, 3, 5) != maker_time(w.m, 4, 5));
		clear(&w);
	}
	/* Some with a shift of eight hours a day, some without. */
	assert_true(part[0] > 0.02 && part[0] < 0.4);
	assert_true(part[1] > 0.6 && part[1] < 0.9);
}

static void coarse_values_have_few_steps_and_zeros(void **state)
{
	struct maker_spec s = spec_of("quantised");
	struct world w = world(&s);
	double seen[4096];
	size_t n = 0, zeros = 0, all = w.m->n_steps;

	(void)state;
	for (unsigned t = 0; t < w.m->n_steps; t++) {
		double v = (double)at(&w, 0, t);
		size_t k = 0;

		zeros += v == 0;
		while (k < n && seen[k] != v)
			k++;
		if (k == n)
			seen[n++] = v;
	}
	assert_true(n < all / 8);
	assert_true(zeros > 0.12 * (double)all && zeros < 0.3 * (double)all);
	clear(&w);
}

static void load_explains_latency_and_less_is_worse(void **state)
{
	struct maker_spec s = spec_of("load-closed"), none;
	struct world a, b;

	(void)state;
	s.who = WHO_ONE;
	s.share = 1;
	none = s;
	none.who = WHO_NONE;
	a = world(&s);
	b = world(&none);
	assert_int_equal(a.m->n_metrics, 2);
	for (unsigned i = 0; i < a.m->n_members; i++) {
		size_t row = (size_t)i * a.m->n_steps;

		/* A closed loop: the slow one gets less to do. */
		assert_float_equal((double)(a.v[1][row] / b.v[1][row]),
			a.m->members[i].ill ? 1 / 3.0 : 1, 1e-4);
	}
	clear(&a);
	clear(&b);
	s = spec_of("throughput");
	s.who = WHO_ONE;
	s.share = 1;
	a = world(&s);
	for (unsigned i = 0; i < a.m->n_members; i++)
		assert_int_equal(a.m->members[i].ill,
			median_of_member(&a, i) < 0.5 * median_of_member(&a, i ? 0 : 1));
	clear(&a);
}

struct seen {
	unsigned series, metrics;
	size_t samples;
	double last;
	uint32_t id;
};

static int on_series(void *ctx, const struct series_key *key, uint32_t *id, struct err *e)
{
	struct seen *s = ctx;

	(void)e;
	assert_true(*key->member && key->n_groups >= 1);
	*id = s->series++;
	return 0;
}

static int on_sample(void *ctx, uint32_t id, double time_s, double value, struct err *e)
{
	struct seen *s = ctx;

	(void)e;
	assert_true(id < s->series && isfinite(value));
	assert_true(id != s->id || time_s > s->last);
	s->id = id;
	s->last = time_s;
	s->samples++;
	return s->samples == 500000 ? -5 : 0;
}

static int on_metric(void *ctx, const char *declaration, struct err *e)
{
	(void)declaration;
	(void)e;
	((struct seen *)ctx)->metrics++;
	return 0;
}

static void a_sink_gets_everything(void **state)
{
	struct maker_spec s = spec_of("load-open");
	struct seen seen = {0};
	struct import_sink sink = {&seen, on_series, on_sample, on_metric};
	struct err e;
	struct maker *m;

	(void)state;
	s.members = 50;
	s.duration_s = 86400;
	m = maker_new(&s);
	assert_int_equal(maker_run(m, &sink, &e), 0);
	assert_int_equal(seen.metrics, 2);
	assert_int_equal(seen.series, 2 * m->n_members);
	assert_int_equal(seen.samples, 2 * m->n_members * 288);
	seen.samples = 499990;
	seen.last = 0;
	assert_int_equal(maker_run(m, &sink, &e), -5);
	maker_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fleets_follow_from_their_seed),
		cmocka_unit_test(values_are_finite_and_positive),
		cmocka_unit_test(groups_and_draws_are_within_bounds),
		cmocka_unit_test(illness_is_the_ratio_in_the_share),
		cmocka_unit_test(at_most_a_third_of_a_group_is_ill),
		cmocka_unit_test(healthy_members_differ_by_the_dispersion),
		cmocka_unit_test(families_have_what_sets_them_apart),
		cmocka_unit_test(noise_has_the_tail_of_its_family),
		cmocka_unit_test(load_and_bursts_are_shared),
		cmocka_unit_test(recordings_have_gaps_only_where_told),
		cmocka_unit_test(coarse_values_have_few_steps_and_zeros),
		cmocka_unit_test(load_explains_latency_and_less_is_worse),
		cmocka_unit_test(a_sink_gets_everything),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("fleet maker", tests, NULL, NULL);
}
