/* Clocks over long times, against planted ones: offsets of minutes, drift, asymmetric delays,
 * clocks that are set, rates that change. What is claimed without doubt must hold. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants those four first */
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>

#include "diag/flow/flow_impl.h"

#define EPOCH 1700000000000000000
#define HOUR 3600.0

enum { NODES = 3 };

struct plan {
	double seconds, every_s;    /* messages of each pair in each direction, on average */
	double offset_s, drift_ppm; /* of node 1 against node 0 */
	double there_s, back_s;     /* least delay from 0 to 1, and back */
	double jitter_s;            /* mean of what comes to it */
	double step_s, step_at_s;   /* of a clock */
	int stepper;                /* whose */
	double bend_ppm;            /* drift from the middle on; 0: as before */
	double quiet_from_s, quiet_to_s;
	bool one_way, third; /* node 2 has messages with node 1 only */
};

static uint64_t seed;

static double chance(void)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return ((double)(seed >> 11) + 1) / 9007199254740994.0;
}

static double delay(double least, double jitter)
{
	return least - jitter * log(chance());
}

/* Seconds that a node's clock is ahead of true time. */
static double ahead(const struct plan *p, int node, double t)
{
	double a = node == 1 ? p->offset_s + p->drift_ppm * 1e-6 * t
		: node == 2  ? -77 - 20e-6 * t
			     : 0;

	if (node == 1 && p->bend_ppm && t > p->seconds / 2)
		a += (p->bend_ppm - p->drift_ppm) * 1e-6 * (t - p->seconds / 2);
	if (node == p->stepper && p->step_s && t >= p->step_at_s)
		a += p->step_s;
	return a;
}

static int64_t clock_of(const struct plan *p, int node, double t)
{
	return EPOCH + (int64_t)llround((t + ahead(p, node, t)) * 1e9);
}

static double truth(const struct plan *p, int a, int b, double t)
{
	return (ahead(p, b, t) - ahead(p, a, t)) * 1e9;
}

static void edge(struct flow *f, const struct plan *p, int from, int to, double t)
{
	const double d = delay(from < to ? p->there_s : p->back_s, p->jitter_s);

	clock_edge(f, (uint32_t)from, (uint32_t)to, clock_of(p, from, t), clock_of(p, to, t + d));
}

static struct flow *run(const struct plan *p)
{
	static const struct flow_sink nothing;
	const struct flow_spec spec = {0};
	struct flow *f;

	seed = 1;
	flow_new(&spec, &nothing, &f);
	f->n_nodes = NODES;
	f->nodes = alloc_zero(NODES, sizeof(*f->nodes));
	f->pairs = alloc_zero(NODES * NODES, sizeof(*f->pairs));
	for (double t = 0; t < p->seconds; t += p->every_s * -log(chance())) {
		if (t > p->quiet_from_s && t < p->quiet_to_s)
			continue;
		edge(f, p, 0, 1, t);
		if (!p->one_way)
			edge(f, p, 1, 0, t + p->every_s / 3);
		if (p->third) {
			edge(f, p, 1, 2, t);
			edge(f, p, 2, 1, t + p->every_s / 2);
		}
	}
	return f;
}

struct seen {
	unsigned asked, wrong, rate, step;
	double widest_ns, usual_ns; /* of those without doubt */
};

static int by_value(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Asks all along, and counts the claims without doubt that do not hold. */
static struct seen ask(const struct flow *f, const struct plan *p, int a, int b)
{
	static double widths[1000];
	struct seen s = {0};
	struct flow_offset o;
	size_t n = 0;

	for (double t = 0; t < p->seconds; t += p->seconds / 997) {
		const double is = truth(p, a, b, t);

		s.asked++;
		if (!flow_clock_at(f, (uint32_t)a, (uint32_t)b, clock_of(p, a, t), &o))
			continue;
		s.rate += o.doubt == FLOW_DOUBT_RATE;
		s.step += o.doubt == FLOW_DOUBT_STEP;
		if (o.doubt)
			continue;
		widths[n++] = (double)(o.highest_ns - o.lowest_ns);
		if (is < (double)o.lowest_ns - 1 || is > (double)o.highest_ns + 1) {
			s.wrong++;
			print_message("at %.1f s: %.0f is not in %lld to %lld\n", t, is,
				(long long)o.lowest_ns, (long long)o.highest_ns);
		}
	}
	qsort(widths, n, sizeof(*widths), by_value);
	s.widest_ns = n ? widths[n - 1] : 0;
	s.usual_ns = n ? widths[n / 2] : 0;
	if (getenv("CLOCKS_SHOW"))
		print_message(
			"# %u asked, %u rate, %u step, width usually %.3f ms, at most %.3f ms\n",
			s.asked, s.rate, s.step, s.usual_ns * 1e-6, s.widest_ns * 1e-6);
	return s;
}

static const struct plan hour = {.seconds = HOUR,
	.every_s = 0.1,
	.offset_s = 240,
	.drift_ppm = 50,
	.there_s = 100e-6,
	.back_s = 2e-3,
	.jitter_s = 300e-6};

/* No interval can be narrower than the shortest way there and back; most should be little wider.
 * Seeds are fixed, so these are no measurements. */
#define ROUND_TRIP_NS 2.1e6

static void an_hour_of_drift(void **state)
{
	struct flow *f = run(&hour);
	struct flow_clock_summary over;
	const struct flow_step *steps;
	struct flow_offset o;

	(void)state;
	for (int back = 0; back < 2; back++) {
		struct seen s = ask(f, &hour, back, !back);

		assert_int_equal(s.wrong, 0);
		assert_int_equal(s.rate + s.step, 0);
		assert_true(s.usual_ns < 1.25 * ROUND_TRIP_NS && s.widest_ns < 2.5 * ROUND_TRIP_NS);
	}
	assert_int_equal(flow_clock_steps(f, 0, 1, &steps), 0);
	assert_true(
		flow_clock_over(f, 0, 1, clock_of(&hour, 0, 0), clock_of(&hour, 0, HOUR), &over));
	assert_true(over.least_ppm <= 50 && over.most_ppm >= 50);
	assert_true(over.most_ppm - over.least_ppm < 2);
	assert_true(over.narrowest_ns > 0.9 * ROUND_TRIP_NS && over.narrowest_ns <= over.widest_ns);
	assert_int_equal(over.rate + over.step, 0);
	/* The delays differ by 1.9 ms, and nobody can know: the middle is off by half of that. */
	assert_true(flow_clock_at(f, 0, 1, clock_of(&hour, 0, 1000), &o));
	assert_true(o.least_ppm <= 50 && o.most_ppm >= 50);
	assert_true(fabs((double)(o.lowest_ns / 2 + o.highest_ns / 2) - truth(&hour, 0, 1, 1000)) >
		0.5e6);
	flow_free(f);
}

static void clocks_that_are_set(void **state)
{
	static const double steps[] = {3, -3, 0.1, -0.1, 3600, -3600};

	(void)state;
	for (int stepper = 0; stepper < 2; stepper++)
		for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
			struct plan p = hour;
			const struct flow_step *found;
			struct flow *f;
			struct seen s;
			double by;

			p.step_s = steps[i];
			p.step_at_s = 1800.4;
			p.stepper = stepper;
			f = run(&p);
			by = (stepper ? 1 : -1) * steps[i] * 1e9;
			/* Node 0's clock has gone back to before its first message: in the order of
			 * its times, what came later comes first. */
			if (!stepper && steps[i] < -1800.4)
				by = -by - hour.drift_ppm * 1e3 * HOUR; /* an hour passed */
			/* Told once, with the moment and how much it was. */
			assert_int_equal(flow_clock_steps(f, 0, 1, &found), 1);
			assert_true(found->known);
			if (by < found->least_ns - 1e6 || by > found->most_ns + 1e6)
				fail_msg("node %d by %g s: told as %lld to %lld ns", stepper,
					steps[i], (long long)found->least_ns,
					(long long)found->most_ns);
			if (stepper)
				assert_true(found->from_ns <= clock_of(&p, 0, 1800.5) &&
					found->to_ns >= clock_of(&p, 0, 1800.3));
			s = ask(f, &p, 0, 1);
			assert_int_equal(s.wrong, 0);
			/* What is known before and after is as good as without. */
			assert_true(s.step + s.rate > 0);
			assert_true(s.usual_ns < 1.25 * ROUND_TRIP_NS &&
				s.widest_ns < 2.5 * ROUND_TRIP_NS);
			if (fabs(steps[i]) < 60)
				assert_true(s.step + s.rate < s.asked / 10);
			flow_free(f);
		}
}

/* Too small to be told from a change of rate: in doubt, and not claimed away. */
static void small_steps(void **state)
{
	static const double steps[] = {5e-3, -5e-3, 10e-3, -10e-3};

	(void)state;
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		struct plan p = hour;
		struct seen s;
		struct flow *f;

		p.step_s = steps[i];
		p.step_at_s = 1800.4;
		p.stepper = 1;
		f = run(&p);
		s = ask(f, &p, 0, 1);
		assert_int_equal(s.wrong, 0);
		assert_true(s.rate + s.step > 0);
		assert_true(s.rate + s.step < s.asked / 5);
		flow_free(f);
	}
}

static void a_rate_that_changes(void **state)
{
	struct plan p = hour;
	const struct flow_step *found;
	struct flow *f;
	struct seen s;

	(void)state;
	p.bend_ppm = -30;
	f = run(&p);
	assert_int_equal(flow_clock_steps(f, 0, 1, &found), 0);
	s = ask(f, &p, 0, 1);
	assert_int_equal(s.wrong, 0);
	assert_true(s.rate < s.asked / 5);
	assert_true(s.usual_ns < 1.25 * ROUND_TRIP_NS && s.widest_ns < 2.5 * ROUND_TRIP_NS);
	flow_free(f);
}

static void silence(void **state)
{
	struct plan p = hour;
	struct flow *f;
	struct seen s;

	(void)state;
	p.every_s = 10;
	p.quiet_from_s = 1000;
	p.quiet_to_s = 1600;
	f = run(&p);
	s = ask(f, &p, 0, 1);
	assert_int_equal(s.wrong, 0);
	assert_int_equal(s.rate + s.step, 0);
	flow_free(f);
}

/* As long as anybody runs: windows become longer, memory does not. */
static void days(void **state)
{
	struct plan p = hour;
	struct flow *f;
	struct seen s;

	(void)state;
	p.seconds = 100 * HOUR;
	p.every_s = 2;
	f = run(&p);
	s = ask(f, &p, 0, 1);
	assert_int_equal(s.wrong, 0);
	assert_int_equal(s.rate + s.step, 0);
	assert_true(s.usual_ns < 1.25 * ROUND_TRIP_NS && s.widest_ns < 2.5 * ROUND_TRIP_NS);
	flow_free(f);
}

static void over_another_node(void **state)
{
	struct plan p = hour;
	struct flow_offset all[NODES];
	bool known[NODES];
	struct flow *f;
	struct seen s;

	(void)state;
	p.third = true;
	p.step_s = 3;
	p.step_at_s = 1800.4;
	p.stepper = 1;
	f = run(&p);
	for (int a = 0; a < NODES; a++)
		for (int b = 0; b < NODES; b++) {
			if (a == b)
				continue;
			s = ask(f, &p, a, b);
			assert_int_equal(s.wrong, 0);
			assert_true(s.step > 0);
		}
	flow_clocks_at(f, 2, clock_of(&p, 2, 600), all, known);
	assert_true(known[0] && known[1]);
	assert_int_equal(all[0].hops, 2);
	assert_int_equal(all[1].hops, 1);
	flow_free(f);
}

static void one_direction_tells_nothing(void **state)
{
	struct plan p = hour;
	struct flow_clock_summary over;
	struct flow_offset o;
	struct flow *f;

	(void)state;
	p.one_way = true;
	p.seconds = 60;
	f = run(&p);
	assert_false(flow_clock_at(f, 0, 1, clock_of(&p, 0, 30), &o));
	assert_false(flow_clock_over(f, 0, 1, clock_of(&p, 0, 0), clock_of(&p, 0, 60), &over));
	assert_false(flow_clock_at(f, 0, 0, 0, &o));
	assert_false(flow_clock_at(f, 0, 99, 0, &o));
	flow_free(f);
}

/* Any numbers, as hostile logs have them. */
static void hostile_times(void **state)
{
	static const int64_t times[] = {0, 1, -1, EPOCH, -EPOCH, INT64_MAX / 2, -(INT64_MAX / 2),
		INT64_MAX / 4, 1000000000};
	const size_t n = sizeof(times) / sizeof(times[0]);
	const struct flow_spec spec = {0};
	static const struct flow_sink nothing;
	const struct flow_step *steps;
	struct flow_offset o;
	struct flow *f;

	(void)state;
	flow_new(&spec, &nothing, &f);
	f->n_nodes = 2;
	f->nodes = alloc_zero(2, sizeof(*f->nodes));
	f->pairs = alloc_zero(4, sizeof(*f->pairs));
	seed = 7;
	for (int i = 0; i < 20000; i++) {
		const int64_t sent = times[(size_t)(chance() * (double)n) % n],
			      got = times[(size_t)(chance() * (double)n) % n] +
			(int64_t)(chance() * 1e12);

		clock_edge(f, i & 1, !(i & 1), sent, got > INT64_MAX / 2 ? INT64_MAX / 2 : got);
	}
	for (size_t i = 0; i < n; i++)
		if (flow_clock_at(f, i & 1, !(i & 1), times[i], &o))
			assert_true(o.lowest_ns <= o.highest_ns);
	assert_true(flow_clock_steps(f, 0, 1, &steps) > 0);
	flow_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_hour_of_drift),
		cmocka_unit_test(clocks_that_are_set),
		cmocka_unit_test(small_steps),
		cmocka_unit_test(a_rate_that_changes),
		cmocka_unit_test(silence),
		cmocka_unit_test(days),
		cmocka_unit_test(over_another_node),
		cmocka_unit_test(one_direction_tells_nothing),
		cmocka_unit_test(hostile_times),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("clocks", tests, NULL, NULL);
}
