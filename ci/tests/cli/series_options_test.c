/* The options that say how series are read become import_options. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "harness/cli/diagnose.h"

static const struct option_row rows[] = {
	{"", 0, OPTION_GROUP, 0, NULL, "reading", .group = series_rows},
	{0},
};

static int nothing(const struct call *c)
{
	(void)c;
	return 0;
}

static const struct command command = {.name = "test",
	.summary = "",
	.about = "",
	OPTIONS(rows, struct series_options),
	.run = nothing};

static int parse(struct series_options *o, int argc, const char *const words[])
{
	struct call call = {.command = &command, .options = o};
	char *argv[24] = {"test"};
	int code;

	memset(o, 0, sizeof(*o));
	memcpy(argv + 1, words, (size_t)argc * sizeof(*argv));
	assert_int_equal(options_parse(&call, argc + 1, argv, &code), 0);
	return series_options_check("test", o);
}
#define PARSE(o, ...)                                                                              \
	parse(o, sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *),                           \
		(const char *const[]){__VA_ARGS__})

static void options_are_filled(void **state)
{
	struct series_options o;

	(void)state;
	assert_int_equal(PARSE(&o, "--format=csv", "--time", "t", "--member", "disk", "--group",
				 "rack", "--group", "host", "--only", "a", "--only", "b",
				 "--metric-column=m", "--value-column=v", "--metric-name=n"),
		0);
	assert_string_equal(o.how.format, "csv");
	assert_string_equal(o.how.time, "t");
	assert_string_equal(o.how.member, "disk");
	assert_string_equal(o.how.group[0], "rack");
	assert_string_equal(o.how.group[1], "host");
	assert_null(o.how.group[2]);
	assert_string_equal(o.how.metric, "m");
	assert_string_equal(o.how.value, "v");
	assert_string_equal(o.how.only_metric, "n");
	assert_int_equal(o.how.n_metrics, 2);
	assert_string_equal(o.how.metrics[1], "b");
	assert_string_equal(series_options_given(&o), "format");
	options_clear(rows, &o);
	assert_int_equal(PARSE(&o, "--only", "a"), 0);
	assert_string_equal(series_options_given(&o), "only");
	options_clear(rows, &o);
	memset(&o, 0, sizeof(o));
	assert_int_equal(series_options_check("test", &o), 0);
	assert_null(series_options_given(&o));
}

static void wrong_options_are_refused(void **state)
{
	struct series_options o;

	(void)state;
	assert_int_not_equal(PARSE(&o, "--format=cvs"), 0);
	options_clear(rows, &o);
	assert_int_not_equal(PARSE(&o, "--metric-name", "a\nb"), 0);
	options_clear(rows, &o);
	assert_int_not_equal(
		PARSE(&o, "--group=a", "--group=b", "--group=c", "--group=d", "--group=e"), 0);
	options_clear(rows, &o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(options_are_filled),
		cmocka_unit_test(wrong_options_are_refused),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
