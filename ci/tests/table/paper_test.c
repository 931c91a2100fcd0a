/* A published table next to ours: which cells belong together, and how cells are handled that
 * only one of them has. */
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

#include "harness/table/paper.h"

static const char
	published[] = "# A paper, its Table 1.\n# more\n# cells: 10\nfault,metric,workload,tp,fp\n"
		      "disk-hog,dread,ddr,1,0\ndisk-hog,dread,postmark,0.9,0.1\n"
		      "disk-hog,dwrite,ddw,0.4,0\ndisk-hog,dwrite,postmark,1,0.1\n"
		      "send-pktloss,nsread,ddw,0,0\nsend-pktloss,nsread,postmark,0.8,0\n";
static const char *const nulls[] = {"always-same", NULL};
static const char *const environment[] = {"ten servers and ten clients"};
static const struct table_notes notes = {
	"the-run", 12, 11, 2, 1, .nulls = nulls, .environment = environment, .n_environment = 1};

static struct paper *paper(void)
{
	struct paper *p;
	struct err e;

	if (paper_parse("made-up", published, &p, &e))
		fail_msg("%s", e.text);
	return p;
}

/* 'times' cells alike. */
static void add(struct score_table *t, const char *detector, const char *fault,
	const char *workload, const char *metric, const char *indicted, const char *resource,
	int times)
{
	bool control = !strcmp(fault, "none");
	json_t *victim = control ? NULL : json_string("s1"), *list = json_array(), *verdict;
	const struct score_cell cell = {fault, workload, victim,
		strncmp(fault, "disk", 4) ? "network/send-loss" : "disk", 4};
	struct err e;

	if (indicted && strcmp(indicted, "abstain"))
		json_array_append_new(list, json_string(indicted));
	verdict = json_pack("{s:s, s:o, s:b}", "metric", metric, "indicted", list, "abstain",
		indicted && !strcmp(indicted, "abstain"));
	if (resource)
		json_object_update_new(verdict,
			json_pack("{s:s, s:{s:f}}", "resource", resource, "time_s", indicted, 7.5));
	while (times--)
		assert_int_equal(score_add(t, detector, &cell, verdict, &e), 0);
	json_decref(verdict);
	json_decref(victim);
}

static struct score_table *example(void)
{
	struct score_table *t = score_table_new();

	/* 5 cells: 4 found, 1 a healthy server. */
	add(t, "by-metric", "disk-hog", "ddr(records=2)", "dread", "s1", NULL, 4);
	add(t, "by-metric", "disk-hog", "ddr(records=2)", "dread", "s2", NULL, 1);
	/* Another strength of the same, and only 2 of 5 cells, one of them abstained from. */
	add(t, "by-metric", "disk-hog(block=1 MiB)", "postmark", "dread", "s1", NULL, 1);
	add(t, "by-metric", "disk-hog", "postmark", "dread", "abstain", NULL, 1);
	/* Published as 0 by being left out, measured as more; and what that table has no place
	 * for. */
	add(t, "by-metric", "send-pktloss", "ddw", "dwrite", "s1", NULL, 1);
	add(t, "by-metric", "send-pktloss", "ddw", "nsread", NULL, NULL, 3);
	add(t, "by-metric", "disk-hog", "ddw", "dread", "s1", NULL, 2);
	add(t, "by-metric", "disk-hog", "ddw", "nsread", NULL, NULL, 2);
	add(t, "by-metric", "disk-hog", "ddr(records=2)", "any", "s1", "disk", 5);
	add(t, "at-last", "send-pktloss", "ddw", "any", "s1", "network/send-loss", 3);
	add(t, "at-last", "send-pktloss", "ddw", "any", "s1", "network/hog", 1);
	add(t, "at-last", "cpu-hog", "mine", "any", "s2", NULL, 2);
	add(t, "at-last", "none", "ddw", "any", NULL, NULL, 20);
	add(t, "always-same", "none", "ddw", "any", "s1", NULL, 20);
	return t;
}

static char *render(enum table_format format)
{
	struct score_table *t = example();
	struct paper *p = paper();
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	assert_int_equal(paper_render(p, t, format, &notes, f), 0);
	fclose(f);
	paper_free(p);
	score_table_free(t);
	return text;
}

static void must_have(const char *text, const char *const *lines)
{
	for (; *lines; lines++)
		if (!strstr(text, *lines))
			fail_msg("'%s' is not in:\n%s", *lines, text);
}

static void text_and_markdown_begin_with_the_small_table(void **state)
{
	static const char text_grid[] =
		"share of faulty servers found: published (best metric), by-metric, at-last; of 2\n"
		"  to 5 cells each\n"
		"                  ddr        |postmark   |ddw        |mine\n"
		"disk-hog          1   1   -  |1   -   -  |.40 -   -  |0   -   -\n"
		"send-pktloss      0   -   -  |.80 -   -  |0   -   1  |0   -   -\n"
		"cpu-hog           -   -   -  |-   -   -  |-   -   -  |-   -   0\n"
		"false alarms      -   -   -  |-   -   -  |-   -   0  |-   -   -\n"
		"\n"
		"by-metric: in 1 of 1 places within the published figure's 95 % interval, of 10\n"
		"  cells each\n"
		"\n";
	static const char *const rows[] = {
		"by-metric, at-last; of 2\n  to 5 cells each\n\n| fault | ddr | postmark | ddw | "
		"mine |\n|---|---|---|---|---|\n"
		"| disk-hog | *1* 1 - | *1* - - | *.40* - - | *0* - - |\n",
		"\n| false alarms | *-* - - | *-* - - | *-* - 0 | *-* - - |\n",
		NULL,
	};
	char *text = render(TABLE_TEXT), *markdown = render(TABLE_MARKDOWN);

	(void)state;
	if (strncmp(text, text_grid, strlen(text_grid)))
		fail_msg("not what it begins with:\n%s", text);
	must_have(markdown, rows);
	free(text);
	free(markdown);
}

static void text_has_both_halves_and_names_missing_cells(void **state)
{
	static const char *const lines[] = {
		"\nby-metric by metric, as published\n"
		"                    ddr                 postmark\n"
		"                    TP        FP        TP        FP\n"
		"disk-hog\n"
		"  dread   published 1         0         0.9       0.1\n"
		"          measured  0.80      0.20      0.50*     0.00*\n"
		"          95 %      [.28,1]   [0,.72]   [.01,.99] [0,.85]\n"
		"          n         5                   2\n"
		"\n",
		"\n                    ddw                 postmark\n",
		"disk-hog\n"
		"  dwrite  published 0.4       0         1         0.1\n"
		"          measured  -         -         -         -\n"
		"          95 %\n"
		"          n         0                   0\n",
		"send-pktloss\n"
		"  dwrite  published (0)       (0)       (0)       (0)\n"
		"          measured  1.00      0.00      -         -\n",
		"  nsread  published 0         0         0.8       0\n"
		"          measured  0.00      0.00      -         -\n",
		"\nnot in the paper: disk-hog, dread, ddw: TP 1.00 [.15,1], FP 0.00 "
		"[0,.85], n=2\n",
		"\nat-last              n TP             FP             cause          delay (s)\n",
		"\nsend-pktloss\n  ddw                4 1.00 [.39,1]   0.00 [0,.61]   0.75 "
		"[.19,1]   3.5\n",
		"\ncpu-hog\n  mine               2 0.00 [0,.85]   1.00 [.15,1]   -              "
		"-\n",
		"\nnone (control)\n  ddw               20 -              0.00 [0,.17]   -         "
		"     -\n",
		"\n  always-same        -              -              -              1.00 "
		"[.83,1]\n",
		"\nA paper, its Table 1.\n",
		"\n* the detector abstained in some",
		"\nten servers and ten clients\nrun the-run: 11 of 12 cells confirmed; not "
		"scored: 2 attempts invalid, 1 in\n  error\n",
		NULL,
	};
	char *text = render(TABLE_TEXT);

	(void)state;
	must_have(text, lines);
	assert_null(strstr(text, "at-last by metric")); /* it has no verdicts on metrics */
	assert_null(strstr(text, "\nalways-same"));     /* a null detector: in the summary */
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		assert_true(strlen(line) <= 80);
		assert_true(line[strlen(line) - 1] != ' ');
	}
	free(text);
}

static void markdown_has_the_halves_side_by_side(void **state)
{
	static const char *const lines[] = {
		"\n| fault | metric | ddr TP | ddr FP | postmark TP | postmark FP | metric | ddw "
		"TP | ddw FP | postmark TP | postmark FP |\n",
		"\n| disk-hog | dread | *1*<br>**0.80**<br>[.28,1]<br>n=5 | "
		"*0*<br>**0.20**<br>[0,.72] | "
		"*0.9*<br>**0.50**\\*<br>[.01,.99]<br>n=2 | *0.1*<br>**0.00**<br>[0,.85] | dwrite "
		"| *0.4*<br>- | *0*<br>- |",
		"\n| send-pktloss |  | | | | | dwrite | *(0)*<br>**1.00**<br>[.02,1]<br>n=1 |",
		"\n|  |  | | | | | nsread | *0*<br>**0.00**<br>[0,.71]<br>n=3 |",
		"\n| send-pktloss | ddw | 4 | 1.00 [.39,1] | 0.00 [0,.61] | 0.75 [.19,1] | 3.5 |\n",
		"\n| none (control) | ddw | 20 | - | 0.00 [0,.17] | - | - |\n",
		"\n- ten servers and ten clients\n",
		NULL,
	};
	char *text = render(TABLE_MARKDOWN), *rest = text, *line;
	unsigned bars = 0, head = 0;

	(void)state;
	must_have(text, lines);
	while ((line = strsep(&rest, "\n"))) { /* every row is as wide as its head */
		bool row = *line == '|';

		bars = 0;
		for (char *c = line; *c; c++)
			bars += *c == '|';
		if (row && head)
			assert_int_equal(bars, head);
		head = row ? bars : 0;
	}
	free(text);
}

static void programs_get_every_cell(void **state)
{
	static const char *const rows[] = {
		"\nby-metric,disk-hog,ddr,dread,1,0.691503,1,0,5,0,4,0.800000,",
		"\nby-metric,disk-hog,postmark,dread,0.9,0.554984,0.997471,0.1,2,1,1,0.500000,",
		/* published, not measured */
		"\nby-metric,disk-hog,ddw,dwrite,0.4,0.121552,0.737622,0,0,0,,,,,,,,,,,,,,,,,0,\n",
		/* published as 0 */
		"\nby-metric,disk-hog,ddw,nsread,0,0,0.308497,0,2,0,0,0.000000,",
		"\nby-metric,disk-hog,ddw,dread,,,,,2,0,2,1.000000,",
		"\nat-last,send-pktloss,ddw,any,,,,,4,0,4,1.000000,",
		"\nat-last,none,ddw,any,,,,,20,0,,,,,0,0.000000,",
		NULL,
	};
	char *csv = render(TABLE_CSV), *text = render(TABLE_JSON), *save = NULL;
	json_t *all = json_loads(text, 0, NULL), *cells = json_object_get(all, "scores"), *row;
	unsigned commas = 0;
	size_t i, lines = 0;

	(void)state;
	must_have(csv, rows);
	for (char *line = strtok_r(csv, "\n", &save); line;
		line = strtok_r(NULL, "\n", &save), lines++) {
		unsigned n = 0;

		for (char *c = line; *c; c++)
			n += *c == ',';
		commas = lines ? commas : n;
		assert_int_equal(n, commas);
	}
	assert_int_equal(json_array_size(cells), lines - 1);
	json_array_foreach(cells, i, row) {
		const json_t *theirs = json_object_get(row, "published");
		const char *metric = json_string_value(json_object_get(row, "metric"));

		assert_int_equal(json_is_null(json_object_get(row, "tp")),
			json_is_true(json_object_get(row, "control")) ||
				!json_integer_value(json_object_get(row, "n")));
		if (!strcmp(metric, "any"))
			assert_true(json_is_null(theirs));
	}
	assert_string_equal(
		json_string_value(json_object_get(json_object_get(all, "published"), "source")),
		"A paper, its Table 1.");
	json_decref(all);
	free(text);
	free(csv);
}

/* A run without any of these must not crash it. */
static void an_empty_run_has_tables_in_every_format(void **state)
{
	struct score_table *t = score_table_new();
	struct paper *p = paper();

	(void)state;
	for (int format = TABLE_TEXT; format <= TABLE_JSON; format++) {
		char *text = NULL;
		size_t size;
		FILE *f = open_memstream(&text, &size);

		assert_int_equal(paper_render(p, t, (enum table_format)format, NULL, f), 0);
		fclose(f);
		free(text);
	}
	paper_free(p);
	score_table_free(t);
}

static void invalid_tables_are_refused_with_the_line(void **state)
{
	static const struct {
		const char *text, *said;
	} bad[] = {
		{"tracer,workload,overhead_pct\nsyscap,ddr,0.2\n", "x:1: not a table of TP and FP"},
		{"fault,metric,workload,tp,fp\na,b,c,1\n",
			"x:2: a row must be fault,metric,workload,tp,fp"},
		{"fault,metric,workload,tp,fp\na,b,c,1,0,0\n", "x:2: a row must be"},
		{"fault,metric,workload,tp,fp\na,b,c,1.5,0\n",
			"x:2: TP and FP must be from 0 to 1"},
		{"fault,metric,workload,tp,fp\na,b,c,nan,0\n",
			"x:2: TP and FP must be from 0 to 1"},
		{"fault,metric,workload,tp,fp\na,b,c,1,0\n\na,b,c,1,0\n", "x:4: duplicate cell"},
		{"fault,metric,workload,tp,fp\n", "x:1: the table has no rows"},
		{"", "x:0: the table has no rows"},
	};
	struct paper *p = NULL;
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		assert_int_equal(paper_parse("x", bad[i].text, &p, &e), -EINVAL);
		if (strncmp(e.text, bad[i].said, strlen(bad[i].said)))
			fail_msg("%s", e.text);
	}
	assert_int_equal(paper_read("../secret", &p, &e), -EINVAL);
	assert_int_equal(paper_read("nothing", &p, &e), -ENOENT);
	assert_int_equal(paper_read("hotdep09-table2", &p, &e), -EINVAL);
	assert_int_equal(paper_read("hotdep09-table1", &p, &e), 0);
	paper_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_and_markdown_begin_with_the_small_table),
		cmocka_unit_test(text_has_both_halves_and_names_missing_cells),
		cmocka_unit_test(markdown_has_the_halves_side_by_side),
		cmocka_unit_test(programs_get_every_cell),
		cmocka_unit_test(an_empty_run_has_tables_in_every_format),
		cmocka_unit_test(invalid_tables_are_refused_with_the_line),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("paper", tests, NULL, NULL);
}
