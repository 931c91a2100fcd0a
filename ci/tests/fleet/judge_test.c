/* Findings and their twins: what is planted is found, where, when and how large; and what is not
 * ill is silent. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants those four first */
#include <cmocka.h>

#include "ci/tests/fleet/fed.h"

/* A fleet of hosts with disks. All that is ill lies in [from, to) of the recording (0 to 1),
 * 'every' so many samples for 'some' of them. */
struct world {
	unsigned hosts, disks, times;
	double ratio;
	unsigned ill_host, ill_disk; /* disks >= 'disks': the whole host */
	double from, to;
	unsigned every, some;
	unsigned class; /* every so many members is slower */
	double scale, shift_s, noise, lasting, hosts_differ, quantum;
	bool less, backwards, busy, load;
	unsigned per_rack; /* hosts in a rack; 0: no racks */
	bool (*gap)(unsigned host, unsigned disk, unsigned t);
	uint64_t seed;
};

static const struct world plain = {.hosts = 10,
	.disks = 8,
	.times = 1500,
	.ratio = 1,
	.to = 1,
	.every = 1,
	.some = 1,
	.scale = 1,
	.noise = 0.2,
	.lasting = 0.03,
	.hosts_differ = 0.2,
	.shift_s = 1e9,
	.ill_host = 3,
	.ill_disk = 5,
	.seed = 1};
enum { STEP = 300 };

static double level_of(const struct world *w, unsigned h, unsigned d, unsigned t)
{
	uint64_t member = h * 1000 + d;
	double at = (double)t / w->times;
	double y = w->lasting * normal(w->seed, member, 0) +
		w->hosts_differ * normal(w->seed + 1, h, 0) +
		0.5 * sin(t * 2 * M_PI * STEP / 86400) + w->noise * normal(w->seed + 2, member, t);
	bool ill = h == w->ill_host && (d == w->ill_disk || w->ill_disk >= w->disks) &&
		at >= w->from && at < w->to && t % w->every < w->some;

	if (w->less)
		y = -y;
	y = 5 * exp(y) * (ill ? w->ratio : 1);
	if (w->class && (h * w->disks + d) % w->class == 0)
		y *= w->ratio;
	if (w->quantum > 0)
		y = w->quantum * floor(y / w->quantum + 0.5);
	return y * w->scale;
}

/* What is asked of a member: log-normal around 100; four times for the busy one. Its latency grows
 * with the root. */
static double load_at(const struct world *w, unsigned h, unsigned d, unsigned t)
{
	double busy = w->busy && h == w->ill_host && d == w->ill_disk ? 4 : 1;

	return 100 * busy * exp(0.7 * normal(w->seed + 3, h * 1000 + d, t));
}

static void put_member(struct fed *x, const struct world *w, unsigned h, unsigned d)
{
	char groups[64], name[16];
	uint32_t v, l = 0;

	if (w->per_rack)
		snprintf(groups, sizeof(groups), "rack%u/host%u", h / w->per_rack, h);
	else
		snprintf(groups, sizeof(groups), "host%u", h);
	snprintf(name, sizeof(name), "sd%c", 'a' + d);
	v = fed_series(x, w->less ? "speed" : "latency", groups, name);
	if (w->load)
		l = fed_series(x, "iops", groups, name);
	for (unsigned t = 0; t < w->times; t++) {
		double load = w->load ? load_at(w, h, d, t) : 100;
		double time = w->shift_s + (double)t * STEP;

		if (w->gap && w->gap(h, d, t))
			continue;
		fed_put(x, v, time, level_of(w, h, d, t) * sqrt(load / 100));
		if (w->load)
			fed_put(x, l, time, load);
	}
}

static struct fed fed_world(const struct world *w, const struct fleet_options *o)
{
	struct fed x = fed_new("", o);

	for (unsigned i = 0; i < w->hosts * w->disks; i++) {
		unsigned k = w->backwards ? w->hosts * w->disks - 1 - i : i;

		put_member(&x, w, k / w->disks, k % w->disks);
	}
	fed_judge(&x, 0, 0);
	return x;
}

static uint32_t member(const struct fed *x, const char *path)
{
	for (size_t i = 0; i < x->r->n_members; i++)
		if (!strcmp(x->r->members[i].path, path))
			return (uint32_t)i;
	fail_msg("no member '%s'", path);
	return 0;
}

static void say(const struct fed *x)
{
	for (size_t i = 0; i < x->r->n_findings; i++) {
		const struct fleet_finding *f = &x->r->findings[i];

		print_message("# %s %s severity %.2f effect %.2f share %.2f/%.2f %g..%g open %d\n",
			finding_kind_names[f->kind],
			f->kind == FINDING_GROUP ? x->r->groups[f->member].path
						 : x->r->members[f->member].path,
			f->severity, f->effect, f->share, f->share_of_all, f->since_s, f->until_s,
			f->open);
	}
}

/* There is one finding, of this kind, and it is of this path. */
static const struct fleet_finding *only(
	const struct fed *x, enum finding_kind kind, const char *path)
{
	const struct fleet_finding *f = x->r->findings;

	if (x->r->n_findings != 1 || f->kind != kind ||
		(path &&
			strcmp(path,
				kind == FINDING_GROUP ? x->r->groups[f->member].path
						      : x->r->members[f->member].path))) {
		say(x);
		fail_msg("%zu findings, not one %s of %s", x->r->n_findings,
			finding_kind_names[kind], path ? path : "any");
	}
	assert_true(f->severity >= 1 && isfinite(f->severity));
	return f;
}

static void silent(const struct world *w)
{
	struct fed x = fed_world(w, NULL);

	say(&x);
	assert_int_equal(x.r->n_findings, 0);
	for (size_t i = 0; i < x.r->n_members; i++)
		assert_true(x.r->members[i].severity < 1);
	fed_free(&x);
}

static void near(double is, double want, double error)
{
	if (!(fabs(is - want) <= error))
		fail_msg("%.9g, not %.9g +- %g", is, want, error);
}

static void a_fleet_without_ill_members_is_silent(void **state)
{
	struct world w = plain;

	(void)state;
	for (w.seed = 1; w.seed <= 10; w.seed++)
		silent(&w);
}

static void a_shift_from_the_first_day_is_found(void **state)
{
	struct world w = plain;
	struct fed x;
	const struct fleet_finding *f;

	(void)state;
	w.ratio = 1.6;
	x = fed_world(&w, NULL);
	f = only(&x, FINDING_SHIFT, "host3/sdf");
	near(f->effect, 1.6, 0.15);
	near(f->since_s, w.shift_s, 70 * STEP);
	near(f->until_s, w.shift_s + 1500 * STEP, 70 * STEP);
	assert_true(f->open && f->share > 0.85 && f->share_of_all > 0.85);
	assert_int_equal(x.r->ranking[0], f->member);
	assert_int_equal(x.r->members[f->member].finding, 0);
	assert_true(x.r->members[x.r->ranking[1]].severity < 1);
	fed_free(&x);
}

static void a_shift_has_its_begin_and_end(void **state)
{
	struct world w = plain;
	struct fed x;
	const struct fleet_finding *f;

	(void)state;
	w.ratio = 2;
	w.from = 0.4;
	x = fed_world(&w, NULL);
	f = only(&x, FINDING_SHIFT, "host3/sdf");
	near(f->effect, 2, 0.2);
	near(f->since_s, w.shift_s + 600 * STEP, 70 * STEP);
	assert_true(f->open);
	near(f->share_of_all, 0.6, 0.1);
	fed_free(&x);

	w.to = 0.7;
	x = fed_world(&w, NULL);
	f = only(&x, FINDING_SHIFT, "host3/sdf");
	near(f->since_s, w.shift_s + 600 * STEP, 70 * STEP);
	near(f->until_s, w.shift_s + 1050 * STEP, 70 * STEP);
	assert_false(f->open);
	near(f->share_of_all, 0.3, 0.1);
	fed_free(&x);
}

static void bursts_are_found(void **state)
{
	struct world w = plain;
	struct fed x;
	const struct fleet_finding *f;

	(void)state;
	w.ratio = 6;
	w.every = 50;
	w.some = 4;
	x = fed_world(&w, NULL);
	f = only(&x, FINDING_BURSTS, "host3/sdf");
	near(f->effect, 6, 2);
	near(f->share_of_all, 0.08, 0.03);
	fed_free(&x);
}

static void a_group_is_found_and_its_members_are_silent(void **state)
{
	struct world w = plain;
	float ratio[10], peak[10];
	struct fed x;

	(void)state;
	w.hosts = 20;
	w.hosts_differ = 0.05;
	w.ratio = 3;
	w.ill_disk = 99;
	x = fed_world(&w, NULL);
	near(only(&x, FINDING_GROUP, "host3")->effect, 3, 0.4);
	fleet_trace_group(x.f, x.r, x.r->findings[0].member, 0, 10, ratio, peak);
	for (int i = 0; i < 10; i++) {
		near((double)ratio[i], 3, 0.4);
		assert_true(peak[i] >= ratio[i]);
	}
	for (size_t i = 0; i < x.r->n_members; i++)
		assert_true(x.r->members[i].severity < 1);
	fed_free(&x);
	w.ratio = 1;
	silent(&w);
}

static void a_class_is_one_finding(void **state)
{
	struct world w = plain;
	struct fed x;
	const struct fleet_finding *f;

	(void)state;
	w.hosts = 12;
	w.disks = 10;
	w.ratio = 2;
	w.class = 3;
	x = fed_world(&w, NULL);
	f = only(&x, FINDING_CLASS, NULL);
	near(f->effect, 2, 0.2);
	assert_in_range(f->count, 36, 40);
	fed_free(&x);
}

static void less_is_worse_where_it_is_said(void **state)
{
	struct world w = plain;
	struct fed x;

	(void)state;
	w.less = true;
	w.ratio = 0.5;
	x = fed_world(&w, NULL);
	near(only(&x, FINDING_SHIFT, "host3/sdf")->effect, 0.5, 0.06);
	fed_free(&x);
	w.ratio = 2; /* better */
	silent(&w);
}

static void a_faster_member_accuses_nobody(void **state)
{
	struct world w = plain;

	(void)state;
	w.ratio = 0.3;
	silent(&w);
}

static void work_excuses(void **state)
{
	struct world w = plain;
	struct fed x;

	(void)state;
	w.load = w.busy = true;
	silent(&w); /* twice the latency, by four times the work */
	w.busy = false;
	w.ratio = 2;
	x = fed_world(&w, NULL);
	only(&x, FINDING_SHIFT, "host3/sdf");
	fed_free(&x);
}

static void small_hosts_are_judged_in_their_rack(void **state)
{
	struct world w = plain;
	struct fed x;

	(void)state;
	w.hosts = 40;
	w.disks = 2;
	w.per_rack = 10;
	w.hosts_differ = 0.05;
	w.ratio = 4;
	w.ill_disk = 1;
	x = fed_world(&w, NULL);
	only(&x, FINDING_SHIFT, "rack0/host3/sdb");
	for (size_t i = 0; i < x.r->n_members; i++)
		assert_true(x.r->members[i].judged);
	fed_free(&x);
	w.ratio = 1;
	silent(&w);
}

static void members_without_peers_are_said(void **state)
{
	struct world w = plain;
	struct fed x;
	bool said = false;

	(void)state;
	w.hosts = 1;
	w.disks = 2;
	x = fed_world(&w, NULL);
	assert_int_equal(x.r->n_findings, 0);
	for (size_t i = 0; i < x.r->n_notes; i++)
		said = said || strstr(x.r->notes[i], "2 of 2 members have fewer than two peers");
	assert_true(said);
	assert_false(x.r->members[0].judged || x.r->members[1].judged);
	assert_true(x.r->members[0].severity == 0);
	fed_free(&x);
}

static bool three_hours_a_day(unsigned host, unsigned disk, unsigned t)
{
	(void)host;
	(void)disk;
	return t % 288 >= 36;
}

static bool some_are_away(unsigned host, unsigned disk, unsigned t)
{
	return (host == 2 && disk == 2 && t > 200 && t < 1200) ||
		(host == 4 && disk == 4 && t < 1100);
}

static void gaps_are_gaps(void **state)
{
	bool (*const gaps[])(unsigned, unsigned, unsigned) = {three_hours_a_day, some_are_away};
	struct world w = plain;

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct fed x;
		const struct fleet_finding *f;

		w.gap = gaps[i];
		w.times = i ? 1500 : 288 * 14;
		w.ratio = 1;
		silent(&w);
		w.ratio = 2;
		w.from = 0.5;
		x = fed_world(&w, NULL);
		f = only(&x, FINDING_SHIFT, "host3/sdf");
		near(f->effect, 2, 0.2);
		near(f->since_s, w.shift_s + w.times / 2 * STEP, i ? 70 * STEP : 1.2 * 86400);
		near(f->share, 0.95, 0.1); /* of what was recorded */
		fed_free(&x);
	}
}

static void dull_values_are_silent(void **state)
{
	struct world w = plain;
	struct fed x;

	(void)state;
	w.noise = w.lasting = 0;
	silent(&w); /* all of a host alike */
	w.hosts_differ = 0;
	silent(&w); /* all of the fleet */
	w.quantum = 4;
	silent(&w);
	w = plain;
	w.quantum = 2;
	silent(&w);
	w.ratio = 3;
	x = fed_world(&w, NULL);
	only(&x, FINDING_SHIFT, "host3/sdf");
	fed_free(&x);
}

static void one_of_four_servers_is_found(void **state)
{
	struct world w = plain;
	struct fed x;

	(void)state;
	w.hosts = 1;
	w.disks = 4;
	w.ill_host = 0;
	w.ill_disk = 2;
	silent(&w);
	w.ratio = 3;
	x = fed_world(&w, NULL);
	only(&x, FINDING_SHIFT, "host0/sdc");
	fed_free(&x);
}

/* The worst difference of severity between two judgements of the same members. */
static double unlike(const struct fed *x, const struct fed *y)
{
	double worst = 0;

	assert_int_equal(x->r->n_members, y->r->n_members);
	assert_int_equal(x->r->n_findings, y->r->n_findings);
	for (size_t i = 0; i < x->r->n_members; i++) {
		const struct fleet_member *a = &x->r->members[i],
					  *b = &y->r->members[member(y, a->path)];

		worst = fmax(worst, fabs(a->severity - b->severity) / fmax(1, a->severity));
	}
	return worst;
}

static void unit_time_and_order_change_nothing(void **state)
{
	struct world w = plain;
	struct fed x, y;

	(void)state;
	w.ratio = 1.8;
	w.from = 0.3;
	x = fed_world(&w, NULL);
	w.backwards = true;
	y = fed_world(&w, NULL);
	assert_true(unlike(&x, &y) < 1e-4);
	fed_free(&y);
	w = plain;
	w.ratio = 1.8;
	w.from = 0.3;
	w.shift_s = -12345678; /* nothing of windows is aligned to the clock */
	y = fed_world(&w, NULL);
	assert_true(unlike(&x, &y) < 1e-6);
	near(y.r->findings[0].since_s - x.r->findings[0].since_s, -12345678 - 1e9, 1e-3);
	fed_free(&y);
	w.shift_s = 1e9;
	for (w.scale = 1e-6; w.scale < 1e10; w.scale *= 1e6) {
		y = fed_world(&w, NULL);
		/* Quantiles are counted in classes of half a per cent. */
		assert_true(unlike(&x, &y) < 0.03);
		fed_free(&y);
	}
	fed_free(&x);
}

/* Also of levels that may be 0, and of counters. */
static void rates_have_no_unit(void **state)
{
	static const char *const declarations[] = {"v worse=more kind=gauge zero=value",
		"v worse=more kind=counter", "v worse=more per=n zero=value"};

	(void)state;
	for (size_t d = 0; d < 3; d++) {
		struct fed x[2];

		for (int k = 0; k < 2; k++) {
			double scale = k ? 1e-6 : 1;

			x[k] = fed_new(declarations[d], NULL);
			for (unsigned i = 0; i < 12; i++) {
				char name[2] = {(char)('a' + i)};
				uint32_t v = fed_series(&x[k], "v", "", name),
					 n = fed_series(&x[k], "n", "", name);
				double sum = 0;

				for (unsigned t = 0; t < 600; t++) {
					double y = exp(0.3 * normal(7, i, t)) * (i == 4 ? 3 : 1);

					sum += y;
					fed_put(&x[k], v, t * STEP, scale * (d == 1 ? sum : y));
					fed_put(&x[k], n, t * STEP, 10);
				}
			}
			fed_judge(&x[k], 0, 0);
			only(&x[k], FINDING_SHIFT, "e");
		}
		assert_true(unlike(&x[0], &x[1]) < 0.02);
		fed_free(&x[0]);
		fed_free(&x[1]);
	}
}

/* Ten servers, 24 s, 2400 segments a second: six single retransmissions of one, two of each
 * other. */
static void rare_events_accuse_nobody(void **state)
{
	struct fed x = fed_new("v worse=more kind=amount zero=value per=n\nn worse=load", NULL);

	(void)state;
	for (unsigned i = 0; i < 10; i++) {
		char name[2] = {(char)('a' + i)};
		uint32_t v = fed_series(&x, "v", "", name), n = fed_series(&x, "n", "", name);

		for (unsigned t = 0; t < 24; t++) {
			fed_put(&x, v, t, (t + i) % (i == 4 ? 4 : 12) == 0);
			fed_put(&x, n, t, 2400 + 100 * normal(7, i, t));
		}
	}
	fed_judge(&x, 0, 0);
	assert_int_equal(x.r->n_findings, 0);
	fed_free(&x);
}

static void severity_grows_with_the_ratio(void **state)
{
	struct world w = plain;
	double before = 0;

	(void)state;
	for (w.ratio = 1.2; w.ratio < 20; w.ratio *= 1.4) {
		struct fed x = fed_world(&w, NULL);
		double severity = x.r->members[member(&x, "host3/sdf")].severity;

		assert_true(severity > before);
		before = severity;
		fed_free(&x);
	}
	assert_true(before > 5);
}

static void a_trace_shows_what_was_planted(void **state)
{
	struct world w = plain;
	struct fed x;
	float ratio[10], peak[10];

	(void)state;
	w.ratio = 3;
	w.from = 0.5;
	w.to = 0.8;
	x = fed_world(&w, NULL);
	fleet_trace(x.f, x.r, member(&x, "host3/sdf"), 0, 10, ratio, peak);
	for (int i = 0; i < 10; i++) {
		near((double)ratio[i], i >= 5 && i < 8 ? 3 : 1, i >= 5 && i < 8 ? 0.35 : 0.15);
		/* The worst of 150 samples with noise of 0.2. */
		near(log((double)(peak[i] / ratio[i])), 0.6, 0.35);
	}
	fleet_trace(x.f, x.r, member(&x, "host3/sda"), 0, 10, ratio, peak);
	for (int i = 0; i < 10; i++)
		near((double)ratio[i], 1, 0.15);
	fed_free(&x);
}

static void judging_again_is_the_same(void **state)
{
	struct world w = plain;
	struct fed x, part;
	double severity, since;

	(void)state;
	w.ratio = 2;
	w.from = 0.6;
	x = fed_world(&w, NULL);
	severity = x.r->findings[0].severity;
	since = x.r->findings[0].since_s;
	fed_judge(&x, 0, 0);
	assert_true(only(&x, FINDING_SHIFT, "host3/sdf")->severity == severity);
	assert_true(x.r->findings[0].since_s == since);

	/* The first part alone, in a fleet that has all of it, and in one that has no more. */
	fed_judge(&x, w.shift_s, w.shift_s + 899 * STEP);
	assert_int_equal(x.r->n_findings, 0);
	w = plain;
	w.times = 900;
	part = fed_world(&w, NULL);
	assert_true(x.r->to_s == part.r->to_s);
	/* The times of the day differ (level_of), the samples do not. */
	assert_true(unlike(&x, &part) < 0.5);
	fed_free(&part);

	/* What is forgotten is not judged. */
	fleet_forget(x.f, w.shift_s + 1000 * STEP);
	fed_judge(&x, 0, 0);
	near(x.r->from_s, w.shift_s + 1000 * STEP, 1);
	assert_true(only(&x, FINDING_SHIFT, "host3/sdf")->share_of_all > 0.9);
	fed_free(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_fleet_without_ill_members_is_silent),
		cmocka_unit_test(a_shift_from_the_first_day_is_found),
		cmocka_unit_test(a_shift_has_its_begin_and_end),
		cmocka_unit_test(bursts_are_found),
		cmocka_unit_test(a_group_is_found_and_its_members_are_silent),
		cmocka_unit_test(a_class_is_one_finding),
		cmocka_unit_test(less_is_worse_where_it_is_said),
		cmocka_unit_test(a_faster_member_accuses_nobody),
		cmocka_unit_test(work_excuses),
		cmocka_unit_test(small_hosts_are_judged_in_their_rack),
		cmocka_unit_test(members_without_peers_are_said),
		cmocka_unit_test(gaps_are_gaps),
		cmocka_unit_test(dull_values_are_silent),
		cmocka_unit_test(one_of_four_servers_is_found),
		cmocka_unit_test(unit_time_and_order_change_nothing),
		cmocka_unit_test(rates_have_no_unit),
		cmocka_unit_test(rare_events_accuse_nobody),
		cmocka_unit_test(severity_grows_with_the_ratio),
		cmocka_unit_test(a_trace_shows_what_was_planted),
		cmocka_unit_test(judging_again_is_the_same),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
