/* Ratios of a faulty server to plain ones, and the table next to a published one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants those four first */
#include <cmocka.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/file.h"
#include "ci/bench/ratios.h"

#define HEAD                                                                                       \
	"# run: made-up\n# file system: orangefs\n# window: all\n"                                 \
	"cell,fault,server,victim,component,average\n"

static const char example[] = HEAD "1,unbalanced,s1,0,Trove,1\n"
				   "1,unbalanced,s2,1,Trove,20\n"
				   "1,unbalanced,s3,0,Trove,3\n"
				   "1,unbalanced,s1,0,BMI,0\n"
				   "1,unbalanced,s2,1,BMI,1\n"
				   "# a remark\n"
				   "2,none,s1,0,Trove,4\n"
				   "2,none,s2,0,Trove,2\n"
				   "3,unbalanced,s1,1,Trove,40\n"
				   "3,unbalanced,s2,0,Trove,2\n"
				   "4,none,s1,0,Trove,4\n"
				   "4,none,s2,0,Trove,2\n";

static bool near(double a, double b)
{
	return fabs(a - b) < 1e-9 * fabs(b);
}

static struct ratios *parsed(const char *text)
{
	struct ratios *r;
	struct err e;

	assert_int_equal(ratios_parse("made-up.csv", text, &r, &e), 0);
	return r;
}

static void ratios_and_their_intervals(void **state)
{
	struct ratios *r = parsed(example);
	struct ratio x = ratios_of(r, "unbalanced", "Trove");
	/* Cells 10 and 20: logarithms half of log 2 from their mean; t(1; .975) = tan(.475 pi). */
	const double half = tan(0.475 * M_PI) * log(2) / 2;

	(void)state;
	assert_int_equal(x.n, 2);
	assert_true(near(x.value, sqrt(200)));
	assert_true(near(log(x.high / x.value), half) && near(log(x.value / x.low), half));
	assert_true(near(x.plain, 2) && near(x.victim, 30));
	ratios_free(r);
}

static void servers_take_turns_in_controls(void **state)
{
	struct ratios *r = parsed(example);
	struct ratio x = ratios_of(r, "none", "Trove");

	(void)state;
	assert_int_equal(x.n, 2);
	assert_true(near(x.value, 1)); /* 4 / 2, then 2 / 4 */
	ratios_free(r);
}

static void a_zero_denominator_has_no_ratio(void **state)
{
	struct ratios *r = parsed(example);
	struct ratio x = ratios_of(r, "unbalanced", "BMI");

	(void)state;
	assert_int_equal(x.n, 0);
	assert_int_equal(x.without, 2); /* cell 3 has none at all */
	assert_true(isnan(x.value) && isnan(x.low) && isnan(x.high));
	ratios_free(r);
}

static char *rendered(const struct ratios *r, const char *published, enum table_format format)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	struct err e;

	assert_int_equal(ratios_render(r, published, format, f, &e), 0);
	fclose(f);
	return text;
}

static void the_table_of_the_thesis(void **state)
{
	struct ratios *r = parsed(example);
	char *published, *text;
	struct err e;

	(void)state;
	assert_int_equal(file_read("results/dinh09-table61.csv", &published, NULL, &e), 0);
	text = rendered(r, published, TABLE_MARKDOWN);
	assert_non_null(strstr(text, "| Trove | unbalanced | 37.39 | 14.14 |"));
	assert_non_null(strstr(text, "| REQ | unbalanced | 11.26 | - |"));
	assert_non_null(strstr(text, "| HDD_WRITE (disk_written_bytes) | unbalanced | 0.96 |"));
	assert_non_null(strstr(text, "| Trove | control | - | 1.00 |"));
	free(text);
	text = rendered(r, NULL, TABLE_TEXT);
	assert_non_null(strstr(text, "Trove"));
	free(text);
	free(published);
	ratios_free(r);
}

static void wrong_tables_are_refused(void **state)
{
	static const char *const wrong[] = {"", "# only remarks\n", HEAD, "cell,fault\n1,2\n",
		HEAD "1,none,s1,0,Trove\n", HEAD "1,none,s1,0,Trove,1,2\n",
		HEAD "1,none,s1,2,Trove,1\n", HEAD "x,none,s1,0,Trove,1\n",
		HEAD "1,none,s1,0,Trove,nan\n", HEAD "1,none,s1,0,Trove,\n",
		HEAD "1,none,,0,Trove,1\n", HEAD "1e30,none,s1,0,Trove,1\n",
		HEAD "1,none,a-name-of-more-than-sixty-three-characters-is-no-name-of-a-server-"
		     "here,0,Trove,1\n"};
	struct ratios *r = NULL;
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		assert_int_equal(ratios_parse("made-up.csv", wrong[i], &r, &e), -EINVAL);
	ratios_parse("made-up.csv", HEAD "1,none,s1,0\n", &r, &e);
	assert_non_null(strstr(e.text, "made-up.csv:5: "));
	r = parsed(example);
	assert_int_equal(ratios_render(r, "a,b\n", TABLE_TEXT, f, &e), -EINVAL);
	assert_int_equal(
		ratios_render(r, "component,unit,plain,unbalanced,a,b\n", TABLE_TEXT, f, &e),
		-EINVAL);
	assert_int_equal(
		ratios_render(r, "component,unit,plain,unbalanced,orangefs,b\nBMI,x,0,1,BMI,-\n",
			TABLE_TEXT, f, &e),
		-EINVAL);
	assert_int_equal(
		ratios_render(r, "component,unit,plain,unbalanced,orangefs,b\n", TABLE_TEXT, f, &e),
		-EINVAL);
	fclose(f);
	free(text);
	ratios_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(ratios_and_their_intervals),
		cmocka_unit_test(servers_take_turns_in_controls),
		cmocka_unit_test(a_zero_denominator_has_no_ratio),
		cmocka_unit_test(the_table_of_the_thesis),
		cmocka_unit_test(wrong_tables_are_refused)};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
