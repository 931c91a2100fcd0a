/* Findings as text: times, shares, windows as one line, and hostile names. */
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

#include "harness/base/alloc.h"
#include "harness/base/jget.h"
#include "harness/cli/diagnose.h"
#include "harness/table/fleet.h"

#define DAY 86400.0
#define START 1793491200.0 /* 2026-11-01, a Sunday */

enum { MEMBERS = 4 };

static struct metric_model model = {.name = (char *)"latency_ms",
	.unit = (char *)"ms",
	.worse = WORSE_MORE,
	.kind = KIND_GAUGE,
	.guessed = true};
static struct fleet_metric metric = {.model = &model,
	.step_s = 60,
	.median = 5,
	.dispersion = 1.04,
	.limit = 1.2,
	.samples = 1000,
	.judged = true};
static struct fleet_member members[MEMBERS] = {
	{.name = (char *)"sda", .path = (char *)"h1/sda", .judged = true, .severity = .5},
	{.name = (char *)"sdb",
		.path = (char *)"h1/\x1b[31m\nevil",
		.judged = true,
		.severity = 3,
		.effect = 1.62},
	{.name = (char *)"sdc", .path = (char *)"h1/sdc", .judged = true, .severity = .2},
	{.name = (char *)"sdd", .path = (char *)"h1/sdd"},
};
static struct fleet_group groups[] = {{.path = (char *)"h1", .parent = UINT32_MAX, .members = 4}};

static struct fleet_result result(double from_s, double to_s, struct fleet_finding *f, size_t n)
{
	return (struct fleet_result){.from_s = from_s,
		.to_s = to_s,
		.findings = f,
		.n_findings = n,
		.members = members,
		.n_members = MEMBERS,
		.groups = groups,
		.n_groups = 1,
		.metrics = &metric,
		.n_metrics = 1};
}

static struct fleet_finding shift(double from_s, double to_s, bool open)
{
	return (struct fleet_finding){.kind = FINDING_SHIFT,
		.member = 1,
		.severity = 3,
		.effect = 1.62,
		.over_s = 300,
		.over_share = 1,
		.since_s = from_s,
		.until_s = to_s,
		.open = open,
		.share = .96,
		.share_of_all = .5};
}

static char *text_of(const struct fleet_view *v, int width)
{
	static char *text;
	static size_t size;
	FILE *f = alloc_text(&text, &size);

	fleet_text(v, width, f);
	fclose(f);
	return text;
}

static void has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("'%s' is not in:\n%s", part, text);
}

static void words(void **state)
{
	char t[FLEET_WORD];

	(void)state;
	assert_string_equal(fleet_say_time(START + 3723, true, t), "2026-11-01 01:02:03");
	assert_string_equal(fleet_say_time(150, false, t), "150 s");
	assert_string_equal(fleet_say_time(1e300, true, t), "1e+300 s");
	assert_string_equal(fleet_say_iso(START, t), "2026-11-01T00:00:00Z");
	assert_string_equal(fleet_say_number(1.624, t), "1.62");
	assert_string_equal(fleet_say_number(9.996, t), "10.0");
	assert_string_equal(fleet_say_number(99.96, t), "100");
	assert_string_equal(fleet_say_number(.004, t), "0.004");
	assert_string_equal(fleet_say_number(INFINITY, t), "inf");
	assert_string_equal(fleet_say_share(1, t), "100 %");
	assert_string_equal(fleet_say_share(.999, t), "99 %");
	assert_string_equal(fleet_say_share(.0312, t), "3.1 %");
	assert_string_equal(fleet_say_share(.0005, t), "0.05 %");
	assert_string_equal(fleet_say_stretch(&(struct fleet_finding){.over_share = 1}, t), "all");
	assert_string_equal(
		fleet_say_stretch(&(struct fleet_finding){.over_s = 1200}, t), "20 min");
	assert_string_equal(fleet_say_alarms(1e-4, t), "1 in 10,000");
	assert_string_equal(fleet_say_alarms(1e-7, t), "1 in 10,000,000");
}

static void one_line_a_finding(void **state)
{
	struct fleet_finding f = shift(START + 2 * DAY, START + 14 * DAY, true);
	struct fleet_result r = result(START, START + 14 * DAY, &f, 1);
	struct fleet_view v = {
		.source = "a.csv", .whole = &r, .options = &fleet_defaults, .rank = 9};
	char *text;

	(void)state;
	fleet_view_finish(&v);
	text = text_of(&v, 100);
	has(text,
		"    3.00  h1/\\x1b[31m\\nevil  latency_ms     1.62   all     96 %  "
		"2026-11-03 00:00  still  "
		"lasting\n");
	has(text, "1 finding: 1 lasting\n");
	has(text, "3 of 4 members judged; the others have too few peers or samples\n");
	has(text, "worst 3 of 3 members");
	has(text, "   1      3.00  h1/\\x1b[31m\\nevil");
	has(text, "false alarms asked for: 1 in 10,000 series and weeks");
	assert_null(strchr(text, '\x1b'));
	free(text);
	fleet_view_clear(&v);
}

static void windows_are_one_line(void **state)
{
	struct fleet_finding f[] = {shift(START + DAY + 100, START + 2 * DAY, true),
		shift(START + 2 * DAY, START + 2 * DAY + 3600, false)};
	struct fleet_result whole = result(START, START + 4 * DAY, NULL, 0), none = whole,
			    one = whole, two = whole;
	struct fleet_view v = {
		.source = "a.csv", .whole = &whole, .options = &fleet_defaults, .window_s = DAY};
	char *text;

	(void)state;
	one.findings = &f[0];
	two.findings = &f[1];
	one.n_findings = two.n_findings = 1;
	f[1].severity = 4;
	fleet_view_window(&v, START, START + DAY, &none, NULL);
	fleet_view_window(&v, START + DAY, START + 2 * DAY, &one, NULL);
	fleet_view_window(&v, START + 2 * DAY, START + 3 * DAY, &two, NULL);
	fleet_view_window(&v, START + 3 * DAY, START + 4 * DAY, NULL, "there are no samples");
	fleet_view_finish(&v);
	assert_int_equal(v.n_entries, 1);
	assert_int_equal(v.entries[0].windows, 2);
	assert_int_equal(v.entries[0].first, 1);
	assert_int_equal(v.n_judged, 3);
	text = text_of(&v, 0);
	has(text,
		"    4.00  h1/\\x1b[31m\\nevil  latency_ms     1.62   all     96 %  "
		"2026-11-02 00:01  11-03 01:00  lasting  2 of 3\n");
	has(text, "3 of 4 windows judged");
	free(text);
	fleet_view_clear(&v);

	v.all_windows = true;
	fleet_view_window(&v, START, START + DAY, &one, NULL);
	fleet_view_window(&v, START + DAY, START + 2 * DAY, NULL, "there are no samples\x1b");
	fleet_view_window(&v, START + 2 * DAY, START + 3 * DAY, &two, NULL);
	fleet_view_finish(&v);
	assert_int_equal(v.n_entries, 2);
	text = text_of(&v, 100);
	has(text, "2026-11-02 00:00 to 2026-11-03 00:00: not judged: there are no samples\\x1b\n");
	free(text);
	fleet_view_clear(&v);
}

static void long_names_are_cut(void **state)
{
	static char path[400];
	struct fleet_finding f = shift(10, 20, false);
	struct fleet_result r = result(0, 100, &f, 1);
	struct fleet_view v = {.source = "a.csv", .whole = &r, .options = &fleet_defaults};
	char *old = members[1].path, *text, *line;

	(void)state;
	for (size_t i = 0; i < 99; i++)
		strcat(path, "\xc3\xa4");
	members[1].path = path;
	fleet_view_finish(&v);
	text = text_of(&v, 100);
	line = strstr(text, "\n    3.00  ") + 1;
	assert_non_null(strstr(line, "..."));
	*strchr(line, '\n') = '\0';
	for (int n = 0;; line++) {
		n += (*line & 0xc0) != 0x80;
		assert_true(n <= 101);
		if (!*line)
			break;
	}
	free(text);
	text = text_of(&v, 0);
	has(text, path);
	has(text, "10 s   20 s");
	free(text);
	fleet_view_clear(&v);
	members[1].path = old;
}

static void json_is_whole(void **state)
{
	struct fleet_finding f[] = {shift(START, START + DAY, false),
		{.kind = FINDING_GROUP, .severity = 2, .effect = NAN},
		{.kind = FINDING_CLASS, .member = 2, .severity = 1.5, .effect = .8, .count = 7}};
	struct fleet_result r = result(START, START + DAY, f, 3);
	struct fleet_view v = {
		.source = "a\xff.csv", .whole = &r, .options = &fleet_defaults, .rank = 1};
	json_t *o, *list;

	(void)state;
	fleet_view_finish(&v);
	o = fleet_json(&v);
	list = jget(o, "findings");
	assert_string_equal(jget_text(jget(o, "input"), "source"), "a\\xff.csv");
	assert_int_equal(json_array_size(list), 3);
	assert_string_equal(jget_text(json_array_get(list, 0), "since"), "2026-11-01T00:00:00Z");
	assert_string_equal(jget_text(json_array_get(list, 0), "member"), members[1].path);
	assert_string_equal(jget_text(json_array_get(list, 1), "group"), "h1");
	assert_true(json_is_null(jget(json_array_get(list, 1), "effect")));
	assert_int_equal(jget_int(json_array_get(list, 2), "members"), 7);
	assert_int_equal(json_array_size(jget(o, "ranking")), 1);
	assert_int_equal(jget_int(jget(o, "summary"), "class"), 1);
	assert_true(json_is_false(jget(jget(o, "summary"), "partial")));
	assert_null(jget(json_array_get(list, 0), "partial"));
	json_decref(o);
	fleet_view_clear(&v);
}

/* Missing data is reported with and without findings. */
static void partial_data_is_reported(void **state)
{
	struct fleet_finding f = shift(START, START + DAY, true);
	struct fleet_result r = result(START, START + DAY, &f, 1);
	struct import_said said = {.partial = (char *)"the server warns: s1 is down"};
	char *text;
	json_t *o;

	(void)state;
	for (size_t n = 0; n < 2; n++) {
		struct fleet_view v = {.source = "http://p:1",
			.said = &said,
			.whole = &r,
			.options = &fleet_defaults};

		r.n_findings = n;
		fleet_view_finish(&v);
		text = text_of(&v, 0);
		has(text,
			n ? "1 finding in partial data: 1 lasting\n"
			  : "0 findings in partial data\n");
		has(text,
			"partial data: the server warns: s1 is down; this list may lack members\n");
		assert_int_equal(strstr(text, "  lasting  partial\n") != NULL, n == 1);
		free(text);
		o = fleet_json(&v);
		assert_string_equal(
			jget_text(jget(o, "input"), "partial"), "the server warns: s1 is down");
		assert_true(json_is_true(jget(jget(o, "summary"), "partial")));
		if (n)
			assert_true(json_is_true(
				jget(json_array_get(jget(o, "findings"), 0), "partial")));
		json_decref(o);
		fleet_view_clear(&v);
	}
}

static void windows_follow_the_calendar(void **state)
{
	struct windows w;
	struct err e;

	(void)state;
	assert_int_equal(windows_cut(&w, START + 3600, START + 2 * DAY, DAY, true, &e), 0);
	assert_true(windows_start(&w, 0) == START);
	assert_int_equal(w.n, 3); /* a sample at midnight is of the next day */
	assert_int_equal(windows_cut(&w, START, START + 2 * DAY, 7 * DAY, true, &e), 0);
	assert_true(windows_start(&w, 0) == START - 6 * DAY); /* Monday */
	assert_int_equal(w.n, 2);
	assert_int_equal(windows_cut(&w, 5, 25, 10, false, &e), 0);
	assert_true(windows_start(&w, 0) == 5);
	assert_int_equal(w.n, 3);
	assert_int_equal(windows_cut(&w, 0, 1e12, 1, false, &e), -E2BIG);
	assert_int_equal(windows_cut(&w, 0, INFINITY, 1, false, &e), -E2BIG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words),
		cmocka_unit_test(one_line_a_finding),
		cmocka_unit_test(windows_are_one_line),
		cmocka_unit_test(long_names_are_cut),
		cmocka_unit_test(json_is_whole),
		cmocka_unit_test(partial_data_is_reported),
		cmocka_unit_test(windows_follow_the_calendar),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
