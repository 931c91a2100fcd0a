/* Windows of one recording: many looks are paid for by what most members have in one of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants those four first */
#include <cmocka.h>

#include "ci/tests/fleet/fed.h"

/* 10 hosts of 8 disks, two days of a sample each 5 minutes. Where 'usual', each disk has bursts;
 * one disk is slow for the hours of [ill_from, ill_to). */
enum { HOSTS = 10, DISKS = 8, STEPS = 576, STEP = 300, HOUR = 12, ILL_HOST = 3, ILL_DISK = 5 };

struct world {
	bool usual;
	unsigned ill_from, ill_to;
	double ratio;
};

/* Bursts of 2 to 6 samples, one each 16 hours or so. */
static bool is_burst(uint32_t who, unsigned t)
{
	unsigned place = t / 24, length = 2 + (unsigned)(5 * chance(8, who, place));

	return chance(7, who, place) < 0.13 && t % 24 < length;
}

static struct fed fed_world(const struct world *w)
{
	struct fed x = fed_new("", NULL);

	for (unsigned h = 0; h < HOSTS; h++)
		for (unsigned d = 0; d < DISKS; d++) {
			char host[16], disk[16];
			uint32_t id, who = h * DISKS + d;

			snprintf(host, sizeof(host), "host%u", h);
			snprintf(disk, sizeof(disk), "disk%u", d);
			id = fed_series(&x, "latency", host, disk);
			for (unsigned t = 0; t < STEPS; t++) {
				bool burst = w->usual && is_burst(who, t);
				bool ill = h == ILL_HOST && d == ILL_DISK &&
					t >= w->ill_from * HOUR && t < w->ill_to * HOUR;

				fed_put(&x, id, 1.8e9 + t * STEP,
					5 * exp(0.1 * normal(1, who, t)) *
						(burst ? exp(1 + 0.4 * normal(9, who, t / 24))
						       : 1) *
						(ill ? w->ratio : 1));
			}
		}
	return x;
}

/* Judges windows of two hours; how many members are beyond the limit in one of them, before and
 * after paying. */
static double judge_windows(struct fed *x, unsigned *before, unsigned *after)
{
	const size_t n = (size_t)HOSTS * DISKS;
	struct fleet_windows *w = fleet_windows_new(n, 1);
	double *worst = calloc(n, sizeof(*worst)), pay;

	for (unsigned from = 0; from < STEPS; from += 2 * HOUR) {
		const struct fleet_result *r = fed_judge(
			x, 1.8e9 + from * STEP, 1.8e9 + (from + 2 * HOUR) * STEP);

		fleet_windows_add(w, r);
		for (size_t i = 0; i < n; i++)
			worst[i] = fmax(worst[i], r->members[i].severity);
	}
	pay = fleet_windows_pay(w, 0, 1e-4);
	*before = *after = 0;
	for (size_t i = 0; i < n; i++) {
		*before += worst[i] >= 1;
		*after += worst[i] >= pay;
	}
	free(worst);
	fleet_windows_free(w);
	return pay;
}

static void what_is_usual_is_no_finding_of_a_window(void **state)
{
	struct fed x = fed_world(&(struct world){.usual = true});
	unsigned before, after;
	double pay = judge_windows(&x, &before, &after);

	(void)state;
	print_message("# pay %g, %u before, %u after\n", pay, before, after);
	assert_true(pay > 1.5);
	assert_true(before > 40);
	assert_true(after <= fed_judge(&x, 0, 0)->n_findings + before / 20);
	fed_free(&x);
}

static void calm_windows_pay_nothing(void **state)
{
	struct fed x = fed_world(&(struct world){.ill_from = 20, .ill_to = 24, .ratio = 1.8});
	unsigned before, after;
	double pay = judge_windows(&x, &before, &after);

	(void)state;
	assert_true(pay == 1);
	assert_int_equal(before, 1);
	assert_int_equal(after, 1);
	fed_free(&x);
}

static void few_members_pay_nothing(void **state)
{
	struct fleet_windows *w = fleet_windows_new(3, 1);
	struct fleet_member members[3] = {{.judged = true, .severity = 9},
		{.judged = true, .severity = 8}, {.judged = true, .severity = 0.1}};
	struct fleet_result r = {.members = members, .n_members = 3};

	(void)state;
	fleet_windows_add(w, &r);
	fleet_windows_add(w, &r);
	assert_true(fleet_windows_pay(w, 0, 1e-4) == 1);
	fleet_windows_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_usual_is_no_finding_of_a_window),
		cmocka_unit_test(calm_windows_pay_nothing),
		cmocka_unit_test(few_members_pay_nothing),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
