/* The share of the time that a hog works: the time is made up, so that no machine is too busy. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants those first */
#include <cmocka.h>

#include "harness/base/clock.h"

static double the_time_s, late_s;

static double made_up_mono(void)
{
	return the_time_s;
}

/* Until that time, and later than that by 'late_s'. */
static void made_up_sleep(double at)
{
	the_time_s = at + late_s;
}

#define clock_mono_s made_up_mono
#define clock_sleep_until made_up_sleep
#include "harness/agent/duty.c"
#undef clock_mono_s
#undef clock_sleep_until

/* Works in pieces for 100 s. The share that was worked. */
static double share_worked(const char *text, double piece_s)
{
	const double begin_s = the_time_s;
	double worked_s = 0;
	struct duty d = {0};

	assert_true(duty_option(text, &d));
	while (the_time_s < begin_s + 100) {
		duty_begin(&d);
		the_time_s += piece_s;
		worked_s += piece_s;
		duty_end(&d);
	}
	return worked_s / (the_time_s - begin_s);
}

/* With pieces shorter than the period, and longer ones. */
static void a_share_of_the_time_is_kept(void **state)
{
	static const struct {
		const char *text;
		double share, piece_s;
	} cases[] = {{"50%", 0.5, 0.007}, {"10%", 0.1, 0.007}, {"25%", 0.25, 0.09},
		{"25%", 0.25, 0.9}, {"100%", 1, 0.007}};

	(void)state;
	the_time_s = 1000;
	for (int late = 0; late < 2; late++)
		for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
			double worked;

			late_s = late ? 0.06 : 0;
			worked = share_worked(cases[i].text, cases[i].piece_s);
			/* 100 s end within a piece, or within a rest. */
			if (worked < cases[i].share * 0.95 || worked > cases[i].share * 1.05)
				fail_msg("%s in pieces of %g s, %g s late: %.3f of the time",
					cases[i].text, cases[i].piece_s, late_s, worked);
		}
}

/* A rest that was far too long is made up for within limits. */
static void what_is_made_up_for_is_bounded(void **state)
{
	double begin_s;
	struct duty d = {0};

	(void)state;
	late_s = 100;
	assert_true(duty_option("50%", &d));
	duty_begin(&d);
	the_time_s += DUTY_PERIOD_S;
	duty_end(&d);
	late_s = 0;
	begin_s = the_time_s;
	duty_begin(&d);
	while (!duty_is_over(&d))
		the_time_s += 0.001;
	assert_true(the_time_s - begin_s < CATCH_UP_S * 0.5 + DUTY_PERIOD_S);
}

static void what_is_no_share_is_refused(void **state)
{
	struct duty d = {0};

	(void)state;
	for (const char *const *bad =
			(const char *const[]){"0", "0%", "101%", "-5%", "5", "x", "", "nan%", NULL};
		*bad; bad++)
		assert_false(duty_option(*bad, &d));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_share_of_the_time_is_kept),
		cmocka_unit_test(what_is_made_up_for_is_bounded),
		cmocka_unit_test(what_is_no_share_is_refused),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("duty", tests, NULL, NULL);
}
