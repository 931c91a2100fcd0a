/* Scores by strength: which faults are sweeps, in what order, and from where on they are found. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants those four first */
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/table/dose.h"

static const char *const nulls[] = {"always-same", NULL};
static const struct table_notes notes = {
	.run_id = "made-up", .planned = 3, .confirmed = 3, .nulls = nulls};
static const char *const workloads[] = {"ddw(per_server=1 MiB,records=8)", "ddr", "postmark"};

/* 'n' cells of which 'right' have the victim indicted, and 'wrong' of the others a healthy
 * server. */
static void add(struct score_table *t, const char *detector, const char *fault,
	const char *workload, unsigned n, unsigned right, unsigned wrong)
{
	for (unsigned i = 0; i < n; i++) {
		json_t *victim = json_string("s1"),
		       *verdict = json_pack(
			       "{s:s, s:[], s:b}", "metric", "any", "indicted", "abstain", 0);
		struct score_cell cell = {fault, workload, victim, "disk", 5};
		struct err e;

		if (i < right + wrong)
			json_array_append_new(json_object_get(verdict, "indicted"),
				json_string(i < right ? "s1" : "s2"));
		assert_int_equal(score_add(t, detector, &cell, verdict, &e), 0);
		json_decref(victim);
		json_decref(verdict);
	}
}

/* disk-hog comes as the plan has it, in no order, with its default among them; postmark is found at
 * 25 % and 100 %, but not at 50 %. loss has values below one. kill comes once, hang differs in two
 * parameters. */
static struct score_table *example(json_t **params)
{
	static const struct {
		const char *fault;
		unsigned right[3];
	} rows[] = {{"disk-hog(share=50%)", {10, 10, 4}}, {"disk-hog", {10, 10, 10}},
		{"disk-hog(block=4 KiB)", {0, 0, 0}}, {"disk-hog(share=10%)", {0, 10, 0}},
		{"disk-hog(share=25%)", {9, 10, 10}}};
	struct score_table *t = score_table_new();

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		for (int w = 0; w < 3; w++)
			if (!strstr(rows[i].fault, "block"))
				add(t, "finder", rows[i].fault, workloads[w], 10, rows[i].right[w],
					i == 3 && w == 2 ? 3 : 0);
	add(t, "always-same", "disk-hog", workloads[0], 10, 3, 7);
	add(t, "finder", "loss(loss=0.5%)", workloads[0], 2, 0, 0);
	add(t, "finder", "loss", workloads[0], 2, 1, 0);
	add(t, "finder", "kill", workloads[0], 2, 2, 0);
	add(t, "finder", "hang(a=1,b=2)", workloads[0], 1, 0, 0);
	add(t, "finder", "hang", workloads[0], 1, 0, 0);
	*params = json_loads(
		"{\"disk-hog\": {\"block\": 268435456, \"share\": 100}, \"kill\": {\"x\": 1},"
		"\"disk-hog(share=50%)\": {\"block\": 268435456, \"share\": 50},"
		"\"disk-hog(share=10%)\": {\"block\": 268435456, \"share\": 10},"
		"\"disk-hog(share=25%)\": {\"block\": 268435456, \"share\": 25},"
		"\"loss(loss=0.5%)\": {\"loss\": 0.5}, \"loss\": {\"loss\": 5},"
		"\"hang\": {\"a\": 3, \"b\": 4}, \"hang(a=1,b=2)\": {\"a\": 1, \"b\": 2}}",
		0, NULL);
	assert_non_null(*params);
	return t;
}

static char *render(enum table_format format, double level)
{
	json_t *params;
	struct score_table *t = example(&params);
	char *text = NULL;
	struct err e;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	assert_int_equal(dose_render(t, NULL, params, level, format, &notes, f, &e), 0);
	fclose(f);
	json_decref(params);
	score_table_free(t);
	return text;
}

static void has(const char *text, const char *part)
{
	if (strstr(text, part))
		return;
	puts(text); /* longer than a message of cmocka's may be */
	fail_msg("'%s' is not in it", part);
}

static void text_goes_from_weak_to_strong(void **state)
{
	char *text = render(TABLE_TEXT, 0.95);

	(void)state;
	has(text,
		"finder\n"
		"                 n ddw                n ddr                n postmark\n"
		"disk-hog, share\n"
		"  10%           10 0.00 [0,.31]      10 1.00 [.69,1]      10 0.00 [0,.31]\n"
		"  25%           10 0.90 [.55,1]      10 1.00 [.69,1]      10 1.00 [.69,1]\n"
		"  50%           10 1.00 [.69,1]      10 1.00 [.69,1]      10 0.40 [.12,.74]\n"
		"  100%          10 1.00 [.69,1]      10 1.00 [.69,1]      10 1.00 [.69,1]\n"
		"  found from       50% (-)              10% (-)              100% (-)\n"
		"loss, loss\n"
		"  0.5%           2 0.00 [0,.85]       0 -                  0 -\n"
		"  5%             2 0.50 [.01,.99]     0 -                  0 -\n"
		"  found from       - (-)                - (-)                - (-)\n"
		"                 n all                n wrong server\n"
		"disk-hog, share\n"
		"  10%           30 0.33 [.17,.53]    30 0.10 [.02,.27]\n");
	has(text, "\nrun made-up: 3 of 3 cells");
	assert_null(strstr(text, "kill"));
	assert_null(strstr(text, "hang"));
	assert_null(strstr(text, "always-same"));
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
		assert_true(strlen(line) <= 80 && line[strlen(line) - 1] != ' ');
	free(text);
}

/* At a level that the interval reaches as well; 25 % does not count where 50 % falls back. */
static void the_level_sets_the_strength_found(void **state)
{
	char *text = render(TABLE_TEXT, 0.6), *low = render(TABLE_TEXT, 0.5);

	(void)state;
	has(text, "  found from       25% (50%)            10% (10%)            100% (100%)\n");
	has(low, "  found from       25% (25%)            10% (10%)            100% (100%)\n");
	free(text);
	free(low);
}

static void json_gives_numbers(void **state)
{
	char *text = render(TABLE_JSON, 0.95);
	json_t *all = json_loads(text, 0, NULL), *sweeps = json_object_get(all, "sweeps"),
	       *sweep = NULL, *one;
	double value;
	int n, hits;
	size_t i;

	(void)state;
	assert_int_equal(json_array_size(sweeps),
		4); /* two faults of two detectors: programs get the null ones, too */
	json_array_foreach(sweeps, i, sweep)
		if (!strcmp(json_string_value(json_object_get(sweep, "detector")), "finder"))
			break;
	assert_string_equal(json_string_value(json_object_get(sweep, "fault")), "disk-hog");
	assert_int_equal(json_unpack(sweep, "{s:{s:{s:F, s:n}}}", "found_from", workloads[0], "tp",
				 &value, "tp_low"),
		0);
	assert_true(value == 50);
	assert_int_equal(
		json_unpack(sweep, "{s:{s:{s:n, s:n}}}", "found_from", "all", "tp", "tp_low"), -1);
	one = json_array_get(json_object_get(sweep, "strengths"), 1);
	assert_string_equal(json_string_value(json_object_get(one, "strength")), "25%");
	assert_int_equal(json_unpack(one, "{s:{s:{s:i, s:{s:i}}}}", "scores", "all", "n", &n, "tp",
				 "count", &hits),
		0);
	assert_int_equal(n, 30);
	assert_int_equal(hits, 29);
	json_decref(all);
	free(text);
}

static void markdown_and_csv_are_regular(void **state)
{
	char *text = render(TABLE_MARKDOWN, 0.95), *csv = render(TABLE_CSV, 0.95), *save = NULL;
	size_t rows = 0, lines = 0;

	(void)state;
	has(text,
		"| disk-hog | share | 25% | 10 | 0.90 [.55,1] | 10 | 1.00 [.69,1] | 10 | 1.00 "
		"[.69,1] | 30 | 0.97 [.82,1] | 30 | 0.00 [0,.12] |\n");
	has(csv, "\nfinder,loss,loss,0.5%,0.5,\"ddw(per_server=1 MiB,records=8)\",2,0,");
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		size_t bars = 0;

		for (char *c = line; *c; c++)
			bars += *c == '|';
		if (*line == '|') {
			assert_int_equal(bars, 14);
			rows++;
		}
	}
	assert_int_equal(rows, 2 + 5 + 3);
	for (char *line = strtok_r(csv, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		size_t commas = 0;

		for (char *c = line; *c; c++)
			commas += *c == ',';
		assert_int_equal(commas - (strchr(line, '"') != NULL), 20);
		lines++;
	}
	assert_int_equal(lines, 1 + 4 * 3 + 2 + 1);
	free(text);
	free(csv);
}

static void no_sweep_no_table(void **state)
{
	struct score_table *t = score_table_new();
	struct err e;

	(void)state;
	add(t, "finder", "kill", "ddw", 2, 2, 0);
	assert_int_equal(dose_render(t, NULL, NULL, 0.95, TABLE_TEXT, &notes, stderr, &e), -ENOENT);
	assert_non_null(strstr(e.text, "several strengths"));
	score_table_free(t);
}

static void a_full_disk_is_noticed(void **state)
{
	json_t *params;
	struct score_table *t = example(&params);
	FILE *f = fopen("/dev/full", "w");
	struct err e;

	(void)state;
	assert_int_equal(dose_render(t, NULL, params, 0.95, TABLE_TEXT, &notes, f, &e), -ENOSPC);
	fclose(f);
	json_decref(params);
	score_table_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_goes_from_weak_to_strong),
		cmocka_unit_test(the_level_sets_the_strength_found),
		cmocka_unit_test(json_gives_numbers),
		cmocka_unit_test(markdown_and_csv_are_regular),
		cmocka_unit_test(no_sweep_no_table),
		cmocka_unit_test(a_full_disk_is_noticed),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("dose", tests, NULL, NULL);
}
