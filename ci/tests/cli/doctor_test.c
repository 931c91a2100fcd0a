/* What culprit doctor says of a clock: what keeps a run from beginning is noted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "harness/base/jget.h"
#include "harness/cli/doctor.h"

/* The level and the text of a clock's check. */
static void judged(double offset_s, double error_s, const char *level, const char *text)
{
	json_auto_t *checks = json_array();
	struct report r = {.checks = checks, .where = "s1"};
	const json_t *one;

	doctor_add_clock(&r, offset_s, error_s);
	one = json_array_get(checks, 0);
	assert_string_equal(jget_text(one, "level"), level);
	assert_string_equal(jget_text(one, "text"), text);
	assert_false(r.bad);
}

static void clocks_that_a_run_would_refuse_are_noted(void **state)
{
	(void)state;
	judged(0.088, 0.002, "note",
		"+0.088 s from ours, where runs allow 0.050 s (gates: 'clock'): let chrony or "
		"ntpd set it");
	judged(-0.088, 0.002, "note",
		"-0.088 s from ours, where runs allow 0.050 s (gates: 'clock'): let chrony or "
		"ntpd set it");
	judged(0.049, 0.002, "ok", "+49.000 ms from ours, to within 2.000 ms");
	/* It may be less than the limit: the gate would let it pass. */
	judged(0.088, 0.040, "ok", "+88.000 ms from ours, to within 40.000 ms");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(clocks_that_a_run_would_refuse_are_noted)};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("doctor", tests, NULL, NULL);
}
