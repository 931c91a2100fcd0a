/* Tables: what they show, how wide they are, and that programs can read them back. */
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

#include "harness/base/file.h"
#include "harness/base/home.h"
#include "harness/table/table.h"

static const char *const missing[] = {"12 receive-pktloss ddr"};
static const char *const remarks[] = {
	"a long remark that certainly does not fit on one line of eighty columns and must "
	"therefore be wrapped somewhere"};
static const char *const nulls[] = {"always-same", NULL};
static const struct table_notes notes = {
	"2026-11-21-quick", 12, 11, 2, 1, missing, 1, remarks, 1, .nulls = nulls};
static const struct table_notes detailed = {
	"2026-11-21-quick", 12, 11, 2, 1, missing, 1, remarks, 1, .details = true, .nulls = nulls};

static void add(struct score_table *t, const char *detector, const char *fault,
	const char *workload, const char *metric, const char *victim, const char *indicted,
	bool abstain)
{
	json_t *list = json_array(), *victims = victim ? json_string(victim) : NULL, *verdict;
	struct score_cell cell;
	struct err e;

	if (indicted)
		json_array_append_new(list, json_string(indicted));
	verdict = json_pack(
		"{s:s, s:o, s:b}", "metric", metric, "indicted", list, "abstain", abstain);
	cell = (struct score_cell){fault, workload, victims, "disk", 4};
	if (indicted && !strcmp(metric, "any"))
		json_object_update_new(verdict,
			json_pack("{s:{s:f}, s:s}", "time_s", indicted, 10.5, "resource", "disk"));
	assert_int_equal(score_add(t, detector, &cell, verdict, &e), 0);
	json_decref(verdict);
	json_decref(victims);
}

static struct score_table *example(size_t workloads)
{
	static const char *const names[] = {
		"ddw", "ddr", "iozonew", "a-workload-with-quite-a-long-name(record=4 MiB)", "pm"};
	struct score_table *t = score_table_new();

	for (size_t w = 0; w < workloads; w++)
		for (int i = 0; i < 5; i++) {
			add(t, "peer-threshold", "none", names[w], "any", NULL, i ? NULL : "s3",
				false);
			add(t, "peer-threshold", "disk-hog", names[w], "dread", "s1",
				w ? "s1" : NULL, !w);
			add(t, "peer-threshold", "disk-hog", names[w], "dwrite", "s1",
				i ? "s1" : NULL, w == 1 && !i);
			add(t, "peer-threshold", "disk-hog", names[w], "nsread", "s1", NULL, false);
			add(t, "peer-threshold", "disk-hog", names[w], "any", "s1", i ? "s1" : "s2",
				false);
			add(t, "always-same", "none", names[w], "any", NULL, "s1", false);
			add(t, "always-same", "disk-hog", names[w], "any", "s2", "s1", false);
		}
	return t;
}

static char *render(
	const struct score_table *t, enum table_format format, const struct table_notes *n)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	assert_int_equal(table_render(t, format, n, f), 0);
	fclose(f);
	return text;
}

static void text_fits_eighty_columns(void **state)
{
	(void)state;
	for (size_t workloads = 1; workloads <= 5; workloads++) {
		struct score_table *t = example(workloads);

		for (int i = 0; i < 2; i++) {
			char *text = render(t, TABLE_TEXT, i ? &detailed : &notes);

			for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
				assert_true(strlen(line) <= 80);
				assert_true(line[strlen(line) - 1] != ' ');
			}
			free(text);
		}
		score_table_free(t);
	}
}

static void text_has_the_measured_figures(void **state)
{
	static const char *const lines[] = {
		"peer-threshold\n",
		"          ddw                               ddr\n",
		"none (control)\n",
		"\n  any       5 -              0.20 [0,.72]     5 -              0.20 [0,.72]\n",
		"disk-hog\n",
		"\n  dread     5 -              -                5 1.00 [.47,1]   0.00 [0,.53]\n",
		"\n  dwrite    5 0.80 [.28,1]   0.00 [0,.53]     5*0.80 [.28,1]   0.00 [0,.53]\n",
		"\n  any       5 0.80 [.28,1]   0.20 [0,.72]     5 0.80 [.28,1]   0.20 [0,.72]\n",
		"run 2026-11-21-quick: 11 of 12 cells confirmed; not scored: 2 attempts invalid,\n"
		"  1 in error\n",
		"missing: cell 12 receive-pktloss ddr\n",
		"* the detector abstained",
	};
	struct score_table *t = example(2);
	char *text = render(t, TABLE_TEXT, &notes);

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
		if (!strstr(text, lines[i]))
			fail_msg("'%s' is not in:\n%s", lines[i], text);
	assert_null(strstr(text, "nsread"));        /* nothing happened in it */
	assert_null(strstr(text, "\nalways-same")); /* a null detector: in the summary */
	free(text);
	score_table_free(t);
}

static void the_summary_names_distinguishable_detectors(void **state)
{
	static const char *const lines[] = {
		"all cells            detected       right server   wrong server   false alarm\n",
		"\n                     10 faulty                                    10 controls\n",
		"\npeer-threshold       1.00 [.69,1]   0.80 [.44,.98] 0.20 [.02,.56] 0.20 "
		"[.02,.56]\n",
		"\nnull detectors\n  always-same        1.00 [.69,1]   0.00 [0,.31]   1.00 "
		"[.69,1]   1.00 [.69,1]\n",
		"\nright server: peer-threshold is above always-same\n",
	};
	struct score_table *t = example(2), *few = example(1);
	char *text = render(t, TABLE_TEXT, &notes), *one = render(few, TABLE_TEXT, &notes);

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
		if (!strstr(text, lines[i]))
			fail_msg("'%s' is not in:\n%s", lines[i], text);
	assert_non_null(strstr(
		one, "\nright server: peer-threshold is not distinguishable from always-same\n"));
	free(text);
	free(one);
	score_table_free(t);
	score_table_free(few);
}

static void details_give_resource_and_delay(void **state)
{
	struct score_table *t = example(1);
	char *text = render(t, TABLE_TEXT, &detailed),
	     *markdown = render(t, TABLE_MARKDOWN, &detailed);

	(void)state;
	assert_non_null(strstr(text, "\nalways-same (null)\n"));
	if (!strstr(text,
		    "\ndisk-hog, ddw, any: detected 1.00 [.47,1], resource 0.80 [.28,1], delay "
		    "6.5\n"
		    "  (6.5-6.5; n=4), early 0, abstained 0 of 5\n"))
		fail_msg("%s", text);
	assert_non_null(strstr(markdown,
		"\n| disk-hog | ddw | any | 5 | 1.00 [.47,1] | 0.80 [.28,1] | 6.5 (6.5-6.5; n=4) "
		"| 0 | 0 |\n"));
	free(text);
	free(markdown);
	score_table_free(t);
}

/* Where a fault's resource has two parts, there is a figure for both together; else there is
 * none. */
static void causes_are_shown_where_faults_have_them(void **state)
{
	static const char *const verdicts[] = {"network/hog", "network/hog", "network", "disk"};
	struct score_table *t = example(1);
	char *without = render(t, TABLE_TEXT, &detailed), *text, *markdown, *csv;
	json_t *victim = json_string("s1");
	struct err e;

	(void)state;
	for (int i = 0; i < 4; i++) {
		const struct score_cell cell = {
			"write-network-hog", "ddw", victim, "network/hog", 4};
		json_t *verdict = json_pack("{s:s, s:[s], s:s}", "metric", "any", "indicted", "s1",
			"resource", verdicts[i]);

		assert_int_equal(score_add(t, "finder", &cell, verdict, &e), 0);
		json_decref(verdict);
	}
	text = render(t, TABLE_TEXT, &detailed);
	markdown = render(t, TABLE_MARKDOWN, &detailed);
	csv = render(t, TABLE_CSV, &detailed);
	assert_null(strstr(without, "cause"));
	assert_non_null(strstr(text,
		"\nof the 4 right servers of finder, the resource is right for 0.75 [.19,1], the\n"
		"  cause for 0.50 [.06,.94]\n"));
	assert_non_null(strstr(text,
		"\nwrite-network-hog, ddw, any: detected 1.00 [.39,1], resource 0.75 [.19,1], "
		"cause\n"
		"  0.50 [.06,.94], delay -, early 0, abstained 0 of 4\n"));
	assert_non_null(strstr(markdown,
		"\n| write-network-hog | ddw | any | 4 | 1.00 [.39,1] | 0.75 [.19,1] | 0.50 "
		"[.06,.94] | - "
		"| 0 | 0 |\n"));
	assert_non_null(strstr(markdown,
		"| finder | 4 | 1.00 [.39,1] | 1.00 [.39,1] | 0.00 [0,.61] | 0.75 [.19,1] | 0.50 "
		"[.06,.94] "
		"| - | 0 | - | 0 |\n"));
	assert_non_null(strstr(csv, ",,,,2,0.500000,0.067586,0.932414\n"));
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
		assert_true(strlen(line) <= 80);
	free(without);
	free(text);
	free(markdown);
	free(csv);
	json_decref(victim);
	score_table_free(t);
}

static void declared_but_unscored_faults_are_shown(void **state)
{
	struct score_table *t = example(1);
	char *text;

	(void)state;
	score_declare(t, SCORE_FAULT, "receive-pktloss");
	text = render(t, TABLE_TEXT, NULL);
	assert_non_null(strstr(text, "receive-pktloss\n  any       0 -              -\n"));
	free(text);
	score_table_free(t);
}

static int commas(const char *line)
{
	int n = 0;

	for (; *line; line++)
		n += *line == ',';
	return n;
}

/* The rates that JSON and CSV give are those of the table, cell by cell. */
static void json_and_csv_hold_everything(void **state)
{
	struct score_table *t = example(3);
	char *text = render(t, TABLE_JSON, &notes), *csv = render(t, TABLE_CSV, &notes),
	     *save = NULL;
	json_t *all = json_loads(text, 0, NULL), *rows = json_object_get(all, "scores"), *row;
	const char *const *names[SCORE_AXES];
	size_t i, n_scores = 0;
	char *line = strtok_r(csv, "\n", &save);

	(void)state;
	assert_non_null(all);
	assert_string_equal(json_string_value(json_object_get(all, "run")), "2026-11-21-quick");
	assert_int_equal(json_array_size(json_object_get(all, "missing")), 1);
	for (int a = 0; a < SCORE_AXES; a++)
		score_names(t, (enum score_axis)a, &names[a]);
	assert_int_equal(
		strncmp(line, "detector,fault,workload,metric,control,n,abstained,tp_count", 59),
		0);
	json_array_foreach(rows, i, row) {
		static const char *const keys[SCORE_AXES] = {
			"detector", "fault", "workload", "metric"};
		size_t at[SCORE_AXES];
		char expected[256];
		const struct score *s;
		double low, high;

		for (int a = 0; a < SCORE_AXES; a++)
			for (at[a] = 0; strcmp(names[a][at[a]],
				     json_string_value(json_object_get(row, keys[a])));)
				at[a]++;
		s = score_at(t, at[0], at[1], at[2], at[3]);
		assert_non_null(s);
		n_scores++;
		assert_int_equal(json_integer_value(json_object_get(row, "n")), s->n);
		assert_int_equal(
			json_integer_value(json_object_get(row, "abstained")), s->abstained);
		assert_int_equal(
			json_integer_value(json_object_get(json_object_get(row, "fp"), "count")),
			s->alarms);
		assert_int_equal(json_is_null(json_object_get(row, "tp")), s->control);
		score_interval(s->alarms, s->n, 0.95, &low, &high);
		assert_float_equal(
			json_number_value(json_object_get(json_object_get(row, "fp"), "high")),
			high, 1e-12);

		line = strtok_r(NULL, "\n", &save);
		assert_non_null(line);
		snprintf(expected, sizeof(expected), "%s,%s,%s,%s,%d,%u,%u,", names[0][at[0]],
			names[1][at[1]], names[2][at[2]], names[3][at[3]], s->control, s->n,
			s->abstained);
		assert_int_equal(strncmp(line, expected, strlen(expected)), 0);
		snprintf(expected, sizeof(expected), ",%u,%.6f,%.6f,%.6f,", s->alarms,
			(double)s->alarms / s->n, low, high);
		assert_non_null(strstr(line, expected));
		assert_int_equal(commas(line), commas(csv));
	}
	assert_int_equal(n_scores, 3 * (1 + 4 + 1 + 1));
	assert_null(strtok_r(NULL, "\n", &save));
	json_decref(all);
	free(text);
	free(csv);
	score_table_free(t);
}

static void csv_quotes_fields_if_necessary(void **state)
{
	struct score_table *t = score_table_new();
	char *csv;

	(void)state;
	add(t, "d", "loss(a=1,b=\"x\")", "w", "any", "s1", "s1", false);
	csv = render(t, TABLE_CSV, NULL);
	assert_non_null(strstr(csv, "\nd,\"loss(a=1,b=\"\"x\"\")\",w,any,0,1,0,1,1.000000,"));
	free(csv);
	score_table_free(t);
}

static void markdown_rows_have_as_many_cells_as_their_head(void **state)
{
	struct score_table *t = example(3);
	char *text = render(t, TABLE_MARKDOWN, &notes);
	size_t rows = 0;

	(void)state;
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		size_t bars = 0;

		for (char *c = line; *c; c++)
			bars += *c == '|';
		if (*line == '|') {
			assert_int_equal(bars, rows < 4 ? 11 : 3 + 3 * 3); /* the summary first */
			rows++;
		}
	}
	assert_int_equal(rows, 4 + 2 * (2 + 2) + 2);
	free(text);
	score_table_free(t);
}

/* The published tables: every row has all its fields, and its figures are in range. */
static void published_tables_are_whole(void **state)
{
	static const struct {
		const char *name;
		int rows, commas;
		double least, most;
	} files[] = {{"results/hotdep09-table1.csv", 33, 4, 0, 1},
		{"results/hotdep09-table2.csv", 15, 2, -4, 139}};

	(void)state;
	for (int i = 0; i < 2; i++) {
		char *file, *text, *save = NULL;
		struct err e;
		int rows = -1; /* the head */

		assert_int_equal(home_path(files[i].name, &file, &e), 0);
		assert_int_equal(file_read(file, &text, NULL, &e), 0);
		for (char *line = strtok_r(text, "\n", &save); line;
			line = strtok_r(NULL, "\n", &save)) {
			int commas = 0;
			double x;

			if (*line == '#')
				continue;
			for (char *c = line; *c; c++)
				commas += *c == ',';
			assert_int_equal(commas, files[i].commas);
			if (++rows) {
				x = strtod(strrchr(line, ',') + 1, NULL);
				assert_true(x >= files[i].least && x <= files[i].most);
			}
		}
		assert_int_equal(rows, files[i].rows);
		free(file);
		free(text);
	}
}

static void a_full_disk_is_noticed(void **state)
{
	struct score_table *t = example(2);
	FILE *f = fopen("/dev/full", "w");

	(void)state;
	assert_non_null(f);
	assert_int_equal(table_render(t, TABLE_TEXT, &notes, f), -ENOSPC);
	fclose(f);
	score_table_free(t);
}

static void a_cut_label_is_printed_in_full_below(void **state)
{
	static const struct grid_column list[] = {
		{.head = "fault", .flags = GRID_LABEL | GRID_CUT, .width = 12},
		{.head = "n", .flags = GRID_RIGHT, .gap = 1, .width = 4}};
	char *text;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	struct sheet sheet = {.f = f};
	struct grid g = {.out = &sheet};

	(void)state;
	GRID_COLUMNS(&g, list);
	for (int i = 0; i < 2; i++) {
		grid_words(&g, "disk-hog(strength=50 %%)");
		grid_count(&g, 3);
	}
	grid_words(&g, "hang");
	grid_count(&g, 4);
	grid_print(&g);
	fclose(f);
	assert_string_equal(text,
		"fault           n\n"
		"disk-hog(st~    3\n"
		"disk-hog(st~    3\n"
		"hang            4\n"
		"~ cut: disk-hog(strength=50 %)\n");
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_fits_eighty_columns),
		cmocka_unit_test(text_has_the_measured_figures),
		cmocka_unit_test(the_summary_names_distinguishable_detectors),
		cmocka_unit_test(details_give_resource_and_delay),
		cmocka_unit_test(causes_are_shown_where_faults_have_them),
		cmocka_unit_test(declared_but_unscored_faults_are_shown),
		cmocka_unit_test(json_and_csv_hold_everything),
		cmocka_unit_test(csv_quotes_fields_if_necessary),
		cmocka_unit_test(markdown_rows_have_as_many_cells_as_their_head),
		cmocka_unit_test(published_tables_are_whole),
		cmocka_unit_test(a_full_disk_is_noticed),
		cmocka_unit_test(a_cut_label_is_printed_in_full_below),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("table", tests, NULL, NULL);
}
