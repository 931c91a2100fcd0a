/* Inputs that nobody means, and the options' effects. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants those four first */
#include <cmocka.h>
#include <errno.h>
#include <float.h>

#include "ci/tests/fleet/fed.h"

/* What every result must keep. */
static void sound(const struct fed *x)
{
	const struct fleet_result *r = x->r;

	for (size_t i = 0; i < r->n_findings; i++) {
		const struct fleet_finding *f = &r->findings[i];

		assert_true(f->severity >= 1 && isfinite(f->severity));
		assert_true(isfinite(f->effect) && f->effect > 0);
		assert_true(f->share >= 0 && f->share <= 1);
		assert_true(f->share_of_all >= 0 && f->share_of_all <= 1);
		assert_true(f->since_s <= f->until_s);
		assert_true(f->member < (f->kind == FINDING_GROUP ? r->n_groups : r->n_members));
		assert_true(f->metric < r->n_metrics);
	}
	for (size_t i = 0; i < r->n_members; i++) {
		assert_true(isfinite(r->members[i].severity));
		assert_true(r->members[i].finding < (int64_t)r->n_findings);
		assert_true(r->ranking[i] < r->n_members);
		if (i)
			assert_true(r->members[r->ranking[i - 1]].severity >=
				r->members[r->ranking[i]].severity);
	}
}

static uint32_t number(struct fed *x, const char *metric, const char *group, unsigned i)
{
	char name[16];

	snprintf(name, sizeof(name), "m%u", i);
	return fed_series(x, metric, group, name);
}

static void nothing_is_refused(void **state)
{
	struct fed x = fed_new("", NULL);
	struct fleet_result *r = NULL;
	double from, to;
	struct err e;

	(void)state;
	assert_int_equal(fleet_judge(x.f, 0, 0, &r, &e), -EINVAL);
	assert_false(fleet_extent(x.f, &from, &to));
	for (unsigned i = 0; i < 10; i++)
		for (int t = 0; t < 100; t++)
			fed_put(&x, number(&x, "latency", "", i), t, NAN);
	assert_int_equal(fleet_judge(x.f, 0, 0, &r, &e), -EINVAL);
	assert_non_null(strstr(e.text, "not one value"));
	assert_int_equal(err_exit_code(&e), 2);
	assert_null(r);
	fed_free(&x);
	x = fed_new("latency worse=none", NULL);
	fed_put(&x, number(&x, "latency", "", 0), 1, 1);
	assert_int_equal(fleet_judge(x.f, 0, 0, &r, &e), -EINVAL);
	assert_non_null(strstr(e.text, "worse=none"));
	fed_free(&x);
	fleet_free(NULL);
	fleet_result_free(NULL);
}

static void one_sample_and_one_series_find_nothing(void **state)
{
	(void)state;
	for (int n = 1; n <= 1000; n *= 10) {
		struct fed x = fed_new("", NULL);
		float ratio[3], peak[3];

		for (int t = 0; t < n; t++)
			fed_put(&x, number(&x, "latency", "", 0), t, 1 + t % 3);
		fed_judge(&x, 0, 0);
		sound(&x);
		assert_int_equal(x.r->n_findings, 0);
		fleet_trace(x.f, x.r, 0, 0, 3, ratio, peak);
		for (int i = 0; i < 3; i++)
			assert_true(isnan(ratio[i]) && isnan(peak[i]));
		fleet_trace_group(x.f, x.r, 0, 0, 3, ratio, peak);
		for (int i = 0; i < 3; i++)
			assert_true(isnan(ratio[i]) && isnan(peak[i]));
		fed_free(&x);
	}
}

static void any_value_is_survived(void **state)
{
	static const double values[] = {0, -0.0, 1, -1, DBL_MAX, -DBL_MAX, DBL_MIN, DBL_TRUE_MIN,
		NAN, INFINITY, -INFINITY, 1e30, 1e-30, 3};
	static const char *const declarations[] = {"v kind=gauge zero=value",
		"v kind=gauge worse=less zero=missing", "v kind=counter worse=more",
		"v per=n worse=more zero=value", "v per=n worse=more counter=yes"};
	enum { N = sizeof(values) / sizeof(*values) };

	(void)state;
	for (size_t d = 0; d < 5; d++) {
		struct fed x = fed_new(declarations[d], NULL);

		for (uint64_t t = 0; t < 800; t++)
			for (unsigned i = 0; i < 8; i++) {
				fed_put(&x, number(&x, "v", "", i), (double)t * 10,
					values[mix(t * 8 + i) % N]);
				fed_put(&x, number(&x, "n", "", i), (double)t * 10,
					values[mix(t * 8 + i + 99) % N]);
			}
		fed_judge(&x, 0, 0);
		sound(&x);
		fed_free(&x);
	}
}

static void any_time_is_survived_or_refused(void **state)
{
	static const double times[] = {0, -1, 1e-9, 2e-9, 1e9, -1e9, 1e12, -1e12, 5, 5, 5, 1e-300};
	static const double too_far[] = {1.1e12, -1e13, 1e300, INFINITY, -INFINITY, NAN};
	struct fed x = fed_new("", NULL);
	struct err e;

	(void)state;
	for (uint64_t k = 0; k < 5000; k++)
		fed_put(&x, number(&x, "latency", "", k % 6), times[mix(k) % 12],
			1 + (double)(mix(k + 7) % 5));
	for (int i = 0; i < 6; i++) {
		assert_int_equal(x.sink.sample(x.sink.ctx, 0, too_far[i], 1, &e), -ERANGE);
		assert_non_null(strstr(e.text, "in which unit"));
	}
	fed_judge(&x, 0, 0);
	sound(&x);
	fed_judge(&x, -1e12, 3);
	sound(&x);
	fed_judge(&x, 1e9, 1e12);
	sound(&x);
	fed_judge(&x, 7e8, 8e8); /* nothing is in it */
	assert_int_equal(x.r->n_findings, 0);
	fleet_forget(x.f, 1e12);
	fed_judge(&x, 0, 0);
	sound(&x);
	fed_free(&x);
}

static void equal_times_are_one_cell(void **state)
{
	struct fed x = fed_new("", NULL);

	(void)state;
	for (unsigned i = 0; i < 6; i++)
		for (int k = 0; k < 5000; k++)
			fed_put(&x, number(&x, "latency", "", i), 1e9, i ? 1 : 9);
	fed_judge(&x, 0, 0);
	sound(&x);
	assert_int_equal(x.r->n_findings, 0);
	fed_free(&x);
}

static void many_groups_of_one_are_one_set(void **state)
{
	struct fed x = fed_new("", NULL);
#ifdef __SANITIZE_ADDRESS__
	enum { GROUPS = 10000 }; /* its realloc always copies */
#else
	enum { GROUPS = 100000 };
#endif

	(void)state;
	for (unsigned g = 0; g < GROUPS; g++) {
		char group[16];
		uint32_t s;

		snprintf(group, sizeof(group), "g%u", g);
		s = fed_series(&x, "latency", group, "only");
		for (unsigned t = 0; t < 9; t++)
			fed_put(&x, s, 60 * t, 5 + chance(1, g, t));
	}
	fed_judge(&x, 0, 0);
	sound(&x);
	assert_true(x.r->members[77].judged);
	assert_int_equal(x.r->n_findings, 0);
	fed_free(&x);
}

/* 40 members; of 'ratio', member 3 from the first day; member 4 for a hundredth of the time. */
static struct fed small(const struct fleet_options *o, double ratio, double burst, unsigned times)
{
	struct fed x = fed_new("latency worse=more kind=gauge zero=missing", o);

	for (unsigned t = 0; t < times; t++)
		for (unsigned i = 0; i < 40; i++)
			fed_put(&x, number(&x, "latency", "", i), 60.0 * t,
				exp(0.02 * normal(9, i, 0) + 0.1 * normal(10, i, t)) *
					(i == 3                                   ? ratio
							: i == 4 && t % 1000 < 10 ? burst
										  : 1));
	fed_judge(&x, 0, 0);
	sound(&x);
	return x;
}

static void options_have_their_effects(void **state)
{
	struct fleet_options o = fleet_defaults;
	struct fed x, y;

	(void)state;
	/* least: a ratio below it is no finding. */
	x = small(&o, 1.5, 1, 2000);
	assert_int_equal(x.r->n_findings, 1);
	assert_int_equal(x.r->findings[0].member, 3);
	o.least = 1.7;
	y = small(&o, 1.5, 1, 2000);
	assert_int_equal(y.r->n_findings, 0);
	assert_true(y.r->metrics[0].limit >= 1.7 && x.r->metrics[0].limit < 1.5);
	fed_free(&y);
	/* alarms: fewer of them, a wider limit. */
	o = fleet_defaults;
	o.alarms = 1e-12;
	y = small(&o, 1.5, 1, 2000);
	assert_true(y.r->metrics[0].limit > x.r->metrics[0].limit);
	fed_free(&y);
	fed_free(&x);
	/* shortest: a shorter share of the time is no finding. */
	o = fleet_defaults;
	x = small(&o, 1, 9, 4000);
	assert_int_equal(x.r->n_findings, 1);
	assert_int_equal(x.r->findings[0].member, 4);
	assert_int_equal(x.r->findings[0].kind, FINDING_BURSTS);
	fed_free(&x);
	o.shortest = 0.2;
	x = small(&o, 1, 9, 4000);
	assert_int_equal(x.r->n_findings, 0);
	fed_free(&x);
	/* step: cells are as wide as that; the step of the samples is not made finer. */
	o = fleet_defaults;
	o.step_s = 600;
	x = small(&o, 1.5, 1, 2000);
	assert_true(x.r->metrics[0].step_s == 600);
	assert_int_equal(x.r->n_findings, 1);
	fed_free(&x);
	o.step_s = 1;
	x = small(&o, 1.5, 1, 2000);
	assert_true(x.r->metrics[0].step_s == 60);
	fed_free(&x);
}

static void memory_is_kept_by_wider_cells(void **state)
{
	struct fleet_options o = fleet_defaults;
	struct fed x;
	bool said = false;

	(void)state;
	o.memory_bytes = 40 * 1024;
	x = small(&o, 2, 1, 4000);
	assert_true(panel_pool_bytes(x.f->pool) <= o.memory_bytes);
	assert_true(x.r->metrics[0].step_s >= 240);
	assert_int_equal(x.r->n_findings, 1);
	assert_int_equal(x.r->findings[0].member, 3);
	assert_true(fabs(x.r->findings[0].effect - 2) < 0.2);
	for (size_t i = 0; i < x.r->n_notes; i++)
		said = said || strstr(x.r->notes[i], "samples share a cell");
	assert_true(said);
	/* And on it goes. */
	for (unsigned t = 4000; t < 6000; t++)
		for (unsigned i = 0; i < 40; i++)
			fed_put(&x, number(&x, "latency", "", i), 60.0 * t, i == 3 ? 2 : 1);
	fed_judge(&x, 0, 0);
	sound(&x);
	assert_true(panel_pool_bytes(x.f->pool) <= o.memory_bytes);
	assert_int_equal(x.r->findings[0].member, 3);
	fed_free(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_refused),
		cmocka_unit_test(one_sample_and_one_series_find_nothing),
		cmocka_unit_test(any_value_is_survived),
		cmocka_unit_test(any_time_is_survived_or_refused),
		cmocka_unit_test(equal_times_are_one_cell),
		cmocka_unit_test(many_groups_of_one_are_one_set),
		cmocka_unit_test(options_have_their_effects),
		cmocka_unit_test(memory_is_kept_by_wider_cells),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
