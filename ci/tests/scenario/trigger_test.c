/* A Lua condition that has a flight recorder written. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "ci/tests/patience.h"
#include "harness/base/file.h"
#include "harness/scenario/trigger.h"

static char path[] = "/tmp/culprit-trigger-test-XXXXXX";

static int setup(void **state)
{
	int fd = mkstemp(path);

	(void)state;
	return fd < 0 || close(fd);
}

static int teardown(void **state)
{
	(void)state;
	return unlink(path);
}

static int open_text(const char *text, struct trigger **t, struct err *e)
{
	assert_int_equal(file_write_atomic(path, 0600, text, strlen(text), e), 0);
	return trigger_open(path, t, e);
}

static json_t *now_with(double iowait_s)
{
	return json_pack("{s:f, s:{s:{s:s, s:{s:f, s:f, s:n}}}}", "seconds", 5.0, "nodes", "s1",
		"role", "server", "load", "seconds", 1.0, "iowait_s", iowait_s, "pressure_s");
}

static int ask(struct trigger *t, double iowait_s, char why[256], struct err *e)
{
	json_t *now = now_with(iowait_s);
	int rc = trigger_ask(t, now, why, e);

	json_decref(now);
	return rc;
}

static void test_it_holds_and_pauses(void **state)
{
	struct trigger *t;
	char why[256];
	struct err e;

	(void)state;
	/* It remembers; only the third second in a row counts. */
	assert_int_equal(open_text("local n = 0\n"
				   "return { pause = '1000s', when = function(now)\n"
				   "  local l = now.nodes.s1.load\n"
				   "  n = l.iowait_s > 0.5 * l.seconds and n + 1 or 0\n"
				   "  if n >= 3 then return 'disk\\nof s1' end\n"
				   "end }\n",
				 &t, &e),
		0);
	assert_int_equal(ask(t, 0.9, why, &e), 0);
	assert_int_equal(ask(t, 0.9, why, &e), 0);
	assert_int_equal(ask(t, 0.1, why, &e), 0);
	assert_int_equal(ask(t, 0.9, why, &e), 0);
	assert_int_equal(ask(t, 0.9, why, &e), 0);
	assert_int_equal(ask(t, 0.9, why, &e), 1);
	assert_string_equal(why, "disk?of s1");
	assert_int_equal(ask(t, 0.9, why, &e), 0); /* its pause */
	trigger_close(t);
}

static void test_wrong_ones(void **state)
{
	static const char *const files[][2] = {{"return 5", "must return"}, {"return {}", "when"},
		{"return { whn = function() end }", "did you mean 'when'"},
		{"return { when = 5 }", "function"},
		{"return { when = function() end, pause = 'soon' }", "pause"}, {"return {", path}};
	static const char *const calls[][2] = {
		{"return { when = function(now) return 5 end }", "not a number"},
		{"return { when = function(now)\n return now.nodes.s9.load end }", ":2:"},
		{"return { when = function(now)\n error('no') end }", "no"}};
	struct trigger *t;
	char why[256];
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		assert_true(open_text(files[i][0], &t, &e) < 0);
		if (!strstr(e.text, files[i][1]))
			fail_msg("%s: %s", files[i][0], e.text);
	}
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		assert_int_equal(open_text(calls[i][0], &t, &e), 0);
		assert_true(ask(t, 1, why, &e) < 0);
		if (!strstr(e.text, calls[i][1]))
			fail_msg("%s: %s", calls[i][0], e.text);
		trigger_close(t);
	}
	assert_int_equal(trigger_open("/no/such/file", &t, &e), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_it_holds_and_pauses),
		cmocka_unit_test(test_wrong_ones),
	};

	patient_alarm(600);
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("trigger", tests, setup, teardown);
}
