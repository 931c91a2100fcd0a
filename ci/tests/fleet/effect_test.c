/* What a finding says of its effect: the ratio, how long and for which share of the time; and how
 * severe effects of several shares of the time are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants those four first */
#include <cmocka.h>

#include "ci/tests/fleet/fed.h"

/* Groups of members with log-normal noise. One is ill for a share of the time, in spells that are
 * drawn one by one. */
struct plan {
	unsigned groups, members, times;
	double step_s, noise, lasting;
	double ratio, share;
	unsigned spell; /* samples; 0: one stretch, from a quarter of the time on */
	double least;   /* 0: the default */
	uint64_t seed;
};

static const struct plan plain = {.groups = 60,
	.members = 8,
	.times = 672,
	.step_s = 900,
	.noise = 0.05,
	.lasting = 0.02,
	.ratio = 1,
	.spell = 4,
	.seed = 1};
enum { ILL_GROUP = 7, ILL_MEMBER = 2 };

static bool is_ill(const struct plan *p, unsigned t)
{
	if (!p->spell)
		return (t + p->times - p->times / 4) % p->times < p->share * p->times;
	return chance(p->seed + 9, t / p->spell, 0) < p->share;
}

static double level_of(const struct plan *p, unsigned g, unsigned m, unsigned t)
{
	uint64_t who = g * 1000 + m;
	bool ill = g == ILL_GROUP && m == ILL_MEMBER && is_ill(p, t);

	return 5 * (ill ? p->ratio : 1) *
		exp(p->noise * normal(p->seed, who, t) + p->lasting * normal(p->seed + 1, who, 0));
}

static struct fed fed_plan(const struct plan *p)
{
	struct fleet_options o = fleet_defaults;
	struct fed x;

	if (p->least > 0)
		o.least = p->least;
	x = fed_new("", &o);
	for (unsigned g = 0; g < p->groups; g++)
		for (unsigned m = 0; m < p->members; m++) {
			char group[16], name[16];
			uint32_t v;

			snprintf(group, sizeof(group), "host%u", g);
			snprintf(name, sizeof(name), "disk%u", m);
			v = fed_series(&x, "latency", group, name);
			for (unsigned t = 0; t < p->times; t++)
				fed_put(&x, v, 1e9 + t * p->step_s, level_of(p, g, m, t));
		}
	fed_judge(&x, 0, 0);
	return x;
}

static const struct fleet_member *ill(const struct fed *x)
{
	for (size_t i = 0; i < x->r->n_members; i++)
		if (!strcmp(x->r->members[i].path, "host7/disk2"))
			return &x->r->members[i];
	fail_msg("the ill member is none");
	return NULL;
}

/* The finding of the ill member, or NULL. */
static const struct fleet_finding *found(const struct fed *x)
{
	const struct fleet_member *m = ill(x);

	return m->finding >= 0 ? &x->r->findings[m->finding] : NULL;
}

static void what_is_printed_crossed_the_limit(void **state)
{
	static const double shares[] = {0.02, 0.05, 0.1, 0.2, 0.3, 0.45, 0.6, 0.8, 1};
	static const double ratios[] = {1.2, 1.3, 1.5, 2, 3};
	struct plan p = plain;
	unsigned seen = 0;

	(void)state;
	for (unsigned i = 0; i < sizeof(shares) / sizeof(*shares) * 10; i++) {
		struct fed x;

		p.noise = i % 2 ? 0.3 : 0.05;
		p.share = shares[i / 10];
		p.ratio = ratios[i / 2 % 5];
		p.spell = i % 3;
		p.groups = 12;
		p.seed = i;
		x = fed_plan(&p);
		for (size_t k = 0; k < x.r->n_findings; k++) {
			const struct fleet_finding *f = &x.r->findings[k];

			seen++;
			assert_true(f->effect >= fleet_defaults.least - 1e-6);
			assert_true(f->over_s >= p.step_s);
			assert_true(f->over_share > 0 && f->over_share <= 1);
			assert_true(f->share_of_all >= 0.9 * fmin(f->over_share, 0.25));
		}
		fed_free(&x);
	}
	assert_true(seen > 40);
}

static void the_least_ratio_is_that_of_what_is_printed(void **state)
{
	struct plan p = plain;

	(void)state;
	p.least = 1.5;
	p.share = 0.3;
	for (p.ratio = 1.3; p.ratio < 2; p.ratio += 0.1) {
		struct fed x = fed_plan(&p);
		const struct fleet_finding *f = found(&x);

		if (f)
			assert_true(f->effect >= 1.5 - 1e-6);
		else
			assert_true(p.ratio < 1.65);
		fed_free(&x);
	}
}

static bool noted(const struct fed *x, const char *part)
{
	for (size_t i = 0; i < x->r->n_notes; i++)
		if (strstr(x->r->notes[i], part))
			return true;
	return false;
}

/* Levels of two modes, which each member changes between: no limit means anything. */
static void several_modes_cannot_be_judged(void **state)
{
	struct fed x = fed_new("", NULL);

	(void)state;
	for (unsigned i = 0; i < 96; i++) {
		char group[16], name[16];
		uint32_t modes, latency;

		snprintf(group, sizeof(group), "host%u", i / 8);
		snprintf(name, sizeof(name), "disk%u", i % 8);
		modes = fed_series(&x, "queue_depth", group, name);
		latency = fed_series(&x, "latency", group, name);
		for (unsigned t = 0; t < 400; t++) {
			double level = exp(0.1 * normal(1, i, t));
			bool full = chance(2, i, 0) < 0.3 || chance(3, i, t / 40) < 0.2;

			fed_put(&x, modes, 1e9 + t * 300., level * (full ? 2e4 : 1));
			fed_put(&x, latency, 1e9 + t * 300., level);
		}
	}
	fed_judge(&x, 0, 0);
	assert_int_equal(x.r->n_findings, 0);
	for (size_t i = 0; i < x.r->n_metrics; i++) {
		const struct fleet_metric *m = &x.r->metrics[i];
		bool modes = !strcmp(m->model->name, "queue_depth");

		assert_true(m->judged);
		assert_int_equal(m->unlike, modes);
		assert_true(modes ? isnan(m->limit) : m->limit < 1.3);
	}
	for (size_t i = 0; i < x.r->n_members; i++)
		assert_true(x.r->members[i].judged);
	assert_true(noted(&x, "queue_depth: lasting differences cannot be judged"));
	fed_free(&x);
}

/* One server works for 1.5 times as long, the others wait three times as long for it as usual in
 * one of them. */
static void who_works_longer_comes_before_who_waits(void **state)
{
	struct fed x = fed_new("", NULL);

	(void)state;
	for (unsigned i = 0; i < 24; i++) {
		char name[16];
		uint32_t work, wait;

		snprintf(name, sizeof(name), "rank%u", i);
		work = fed_series(&x, "compute_ms", "", name);
		wait = fed_series(&x, "barrier_wait_ms", "", name);
		for (unsigned t = 0; t < 400; t++) {
			double level = exp(0.1 * normal(1, i, t));

			fed_put(&x, work, 1e9 + t * 60., 9 * level * (i == 5 ? 1.8 : 1));
			fed_put(&x, wait, 1e9 + t * 60., 9 * level * (i == 6 ? 6 : 1));
		}
	}
	fed_judge(&x, 0, 0);
	assert_int_equal(x.r->n_findings, 2);
	assert_string_equal(x.r->members[x.r->findings[0].member].path, "rank5");
	assert_false(x.r->findings[0].waits);
	assert_string_equal(x.r->members[x.r->findings[1].member].path, "rank6");
	assert_true(x.r->findings[1].waits);
	assert_true(x.r->findings[1].severity > x.r->findings[0].severity);
	assert_true(noted(&x, "barrier_wait_ms measures waiting"));
	fed_free(&x);
}

/* An effect for half of the time is as severe as one for a quarter, though it is in the member's
 * own middle. The shares and the ratio are those at which severity once fell. */
static void half_of_the_time_is_no_less_severe_than_a_quarter(void **state)
{
	static const double shares[] = {0.25, 0.3, 0.4, 0.5, 0.6, 0.8, 1};
	struct plan p = plain;

	(void)state;
	p.ratio = 1.3;
	for (p.seed = 1; p.seed <= 2; p.seed++)
		for (p.spell = 0; p.spell <= 8; p.spell += 4) {
			double before = 0;

			for (unsigned i = 0; i < sizeof(shares) / sizeof(*shares); i++) {
				struct fed x;
				double severity;

				p.share = shares[i];
				x = fed_plan(&p);
				severity = ill(&x)->severity;
				print_message(
					"# seed %u, spells of %u, share %.2f: severity %.2f\n",
					(unsigned)p.seed, p.spell, p.share, severity);
				if (p.share >= 0.4)
					assert_true(severity >= 1);
				assert_true(severity > 0.85 * before);
				before = fmax(before, severity);
				fed_free(&x);
			}
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_printed_crossed_the_limit),
		cmocka_unit_test(the_least_ratio_is_that_of_what_is_printed),
		cmocka_unit_test(half_of_the_time_is_no_less_severe_than_a_quarter),
		cmocka_unit_test(several_modes_cannot_be_judged),
		cmocka_unit_test(who_works_longer_comes_before_who_waits),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
