/* Tests counts, intervals and comparisons of scores. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants those four first */
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "diag/judge/baseline.h"
#include "diag/judge/score.h"
#include "harness/base/stat.h"

/* Exact intervals as published: Newcombe, Statistics in Medicine 17 (1998), table I, method 5, for
 * 81/263, 15/148, 0/20, 1/29; and the closed forms at the ends (the rule of three's exact form). */
static void intervals_are_the_published_ones(void **state)
{
	static const struct {
		unsigned hits, n;
		double low, high;
	} known[] = {
		{81, 263, 0.2527, 0.3676},
		{15, 148, 0.0578, 0.1617},
		{0, 20, 0, 0.1684},
		{1, 29, 0.0009, 0.1776},
		{5, 5, 0.4782, 1},
		{0, 5, 0, 0.5218},
		{10, 10, 0.6915, 1},
		{5, 10, 0.1871, 0.8129},
		{0, 1, 0, 0.975},
		{1, 1, 0.025, 1},
	};
	double low, high;

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		score_interval(known[i].hits, known[i].n, 0.95, &low, &high);
		assert_float_equal(low, known[i].low, 6e-5);
		assert_float_equal(high, known[i].high, 6e-5);
	}
	score_interval(0, 0, 0.95, &low, &high);
	assert_float_equal(low, 0, 0);
	assert_float_equal(high, 1, 0);
}

/* Counts one verdict; lists are JSON text; 'victims' NULL: a control. */
static void add(struct score_table *t, const char *victims, const char *indicted, bool abstain)
{
	json_t *v = victims ? json_loads(victims, JSON_DECODE_ANY, NULL) : NULL;
	json_t *verdict = json_pack("{s:s, s:o, s:b}", "metric", "any", "indicted",
		json_loads(indicted, 0, NULL), "abstain", abstain);
	const struct score_cell cell = {
		.fault = victims ? "hog" : "none", .workload = "ddw", .victims = v, .onset_s = -1};
	struct err e;

	assert_int_equal(score_add(t, "d", &cell, verdict, &e), 0);
	json_decref(v);
	json_decref(verdict);
}

static const struct score *only(const struct score_table *t, size_t fault)
{
	const char *const *names;
	size_t any = score_names(t, SCORE_METRIC, &names) - 1;

	assert_string_equal(names[any], "any");
	return score_at(t, 0, fault, 0, any);
}

static void cells_count_as_in_kasick_2009(void **state)
{
	struct score_table *t = score_table_new();
	const struct score *s;

	(void)state;
	add(t, "\"A\"", "[\"A\"]", false);          /* hit */
	add(t, "[\"A\"]", "[\"A\", \"B\"]", false); /* hit, and a false alarm */
	add(t, "[\"A\"]", "[\"B\"]", false);        /* miss, and a false alarm */
	add(t, "[\"A\"]", "[]", false);             /* miss */
	add(t, "[\"A\"]", "[]", true);              /* abstained: a miss */
	add(t, "[\"A\", \"B\"]", "[\"A\"]", false); /* only one of two: a miss, no false alarm */
	add(t, "[\"A\", \"B\"]", "[\"B\", \"A\"]", false); /* hit */
	s = only(t, 0);
	assert_int_equal(s->n, 7);
	assert_int_equal(s->hits, 3);
	assert_int_equal(s->alarms, 2);
	assert_int_equal(s->abstained, 1);
	assert_false(s->control);
	score_table_free(t);
}

static void controls_have_alarms_but_no_hits(void **state)
{
	struct score_table *t = score_table_new();

	(void)state;
	add(t, NULL, "[\"A\"]", false);
	add(t, NULL, "[\"A\", \"B\"]", false);
	add(t, NULL, "[]", false);
	assert_true(only(t, 0)->control);
	assert_int_equal(only(t, 0)->n, 3);
	assert_int_equal(only(t, 0)->alarms, 2);
	assert_int_equal(only(t, 0)->hits, 0);
	score_table_free(t);
}

static void declared_names_keep_their_order(void **state)
{
	struct score_table *t = score_table_new();
	const char *const *names;

	(void)state;
	score_declare(t, SCORE_FAULT, "none");
	score_declare(t, SCORE_FAULT, "hog");
	score_declare(t, SCORE_FAULT, "none");
	add(t, "[\"A\"]", "[\"A\"]", false);
	assert_int_equal(score_names(t, SCORE_FAULT, &names), 2);
	assert_string_equal(names[0], "none");
	assert_null(only(t, 0));
	assert_int_equal(only(t, 1)->n, 1);
	score_table_free(t);
}

/* One metric's verdict, as text, on a cell with victim A, resource disk and onset at 10 s. */
static void add_timed(struct score_table *t, const char *victims, const char *verdict)
{
	json_t *v = json_loads(victims, JSON_DECODE_ANY, NULL),
	       *said = json_loads(verdict, 0, NULL);
	const struct score_cell cell = {"hog", "ddw", v, "disk", 10};
	struct err e;

	assert_non_null(said);
	assert_int_equal(score_add(t, "d", &cell, said, &e), 0);
	json_decref(v);
	json_decref(said);
}

/* Detection, localisation and resource are separate questions, which these verdicts answer
 * differently. */
static void detection_localisation_and_resource_are_scored_separately(void **state)
{
	struct score_table *t = score_table_new();
	const struct score *s;

	(void)state;
	add_timed(
		t, "\"A\"", "{\"metric\": \"any\", \"indicted\": [\"A\"], \"resource\": \"disk\"}");
	add_timed(t, "\"A\"",
		"{\"metric\": \"any\", \"indicted\": [\"A\"], \"resource\": \"network\"}");
	add_timed(t, "\"A\"", "{\"metric\": \"any\", \"indicted\": [\"A\"]}");
	add_timed(t, "\"A\"",
		"{\"metric\": \"any\", \"indicted\": [\"B\"], \"resource\": "
		/* the right               resource of the wrong server is no diagnosis */
		"\"disk\"}");
	add_timed(t, "\"A\"",
		"{\"metric\": \"any\", \"indicted\": [], \"abstain\": true, \"error\": \"it "
		"died\"}");
	s = only(t, 0);
	assert_int_equal(s->n, 5);
	assert_int_equal(s->detected, 4);
	assert_int_equal(s->hits, 3);
	assert_int_equal(s->alarms, 1);
	assert_int_equal(s->named, 2);
	assert_int_equal(s->classified, 1);
	assert_int_equal(s->abstained, 1);
	assert_int_equal(s->failed, 1);
	score_table_free(t);
}

/* How often resource and cause are right, for one verdict on a fault of that resource; and whether
 * the table shows causes. */
static void named(const char *fault, const char *verdict, unsigned resource, unsigned cause)
{
	json_t *victim = json_string("A"),
	       *said = json_pack(
		       "{s:s, s:[s], s:s}", "metric", "any", "indicted", "A", "resource", verdict);
	const struct score_cell cell = {"f", "ddw", victim, fault, 10};
	struct score_table *t = score_table_new();
	struct err e;

	assert_int_equal(score_add(t, "d", &cell, said, &e), 0);
	assert_int_equal(only(t, 0)->named, 1);
	assert_int_equal(only(t, 0)->classified, resource);
	assert_int_equal(only(t, 0)->explained, cause);
	assert_int_equal(score_causes(t), strchr(fault, '/') != NULL);
	score_table_free(t);
	json_decref(said);
	json_decref(victim);
}

static void the_resource_ends_at_the_slash_the_cause_includes_it(void **state)
{
	(void)state;
	named("network/hog", "network/hog", 1, 1);
	named("network/hog", "network/receive-loss", 1, 0);
	named("network/hog", "network", 1, 0);
	named("network/hog", "disk", 0, 0);
	named("network/hog", "net", 0, 0);
	named("network/hog", "networks/hog", 0, 0);
	named("disk", "disk", 1, 1);
	named("network", "network/hog", 1, 1); /* runs of faults that did not name a cause yet */
}

static void delays_run_from_the_onset_to_the_last_right_server(void **state)
{
	struct score_table *t = score_table_new();
	const struct score *s;
	struct score sum;

	(void)state;
	add_timed(t, "\"A\"",
		"{\"metric\": \"any\", \"indicted\": [\"A\"], \"time_s\": {\"A\": 17.5}}");
	add_timed(t, "\"A\"",
		"{\"metric\": \"any\", \"indicted\": [\"A\", \"B\"], \"time_s\": {\"A\": 12, "
		"\"B\": 1}}");
	add_timed(t, "\"A\"",
		/* before the onset */
		"{\"metric\": \"any\", \"indicted\": [\"A\"], \"time_s\": {\"A\": 9}}");
	add_timed(t, "\"A\"",
		"{\"metric\": \"any\", \"indicted\": [\"B\"], \"time_s\": {\"B\": 11}}");
	add_timed(t, "[\"A\", \"B\"]",
		"{\"metric\": \"any\", \"indicted\": [\"A\", \"B\"], \"time_s\": {\"A\": 11, "
		"\"B\": 30}}");
	add_timed(t, "[\"A\", \"B\"]",
		"{\"metric\": \"any\", \"indicted\": [\"A\", \"B\"], \"time_s\": {\"A\": 11}}");
	s = only(t, 0);
	assert_int_equal(s->early, 1);
	assert_int_equal(s->n_delays, 3);
	assert_float_equal(s->delays_s[0], 2, 1e-9);
	assert_float_equal(stat_median_sorted(s->delays_s, 3), 7.5, 1e-9);
	assert_float_equal(stat_median_sorted(s->delays_s, 2), 4.75, 1e-9);
	assert_float_equal(s->delays_s[2], 20, 1e-9);
	sum = score_sum(t, 0, s->at[SCORE_METRIC], false);
	assert_int_equal(sum.n, 6);
	assert_int_equal(sum.n_delays, 3);
	free(sum.delays_s);
	score_table_free(t);
}

static void overlapping_intervals_are_no_order(void **state)
{
	(void)state;
	assert_int_equal(score_order(5, 5, 0, 5), 0); /* [.47, 1] and [0, .53] */
	assert_int_equal(score_order(6, 6, 0, 6), 1); /* [.54, 1] and [0, .46] */
	assert_int_equal(score_order(0, 6, 6, 6), -1);
	assert_int_equal(score_order(0, 0, 90, 90), 0);
	assert_int_equal(score_order(43, 45, 16, 45), 1);
}

/* Closed forms: 1 / C(10, 5), 1 / C(8, 4), and Fisher's tea experiment (3 of 4 against 1 of 4:
 * 17/70). */
static void mcnemars_test_is_exact(void **state)
{
	static const struct {
		unsigned a, b;
		double p;
	} known[] = {{0, 0, 1}, {1, 0, 1}, {5, 4, 1}, {6, 0, 0.03125}, {0, 6, 0.03125},
		{10, 2, 0.03857421875}, {2, 10, 0.03857421875}, {262, 0, 2.698802673467014e-79}};

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		assert_float_equal(
			score_mcnemar(known[i].a, known[i].b), known[i].p, 1e-9 * known[i].p);
}

/* By hand: 6 cells give p = 2/64; of 9 at 0.75, 6 or more are right with 0.834, of 8 with 0.679. */
static void needed_cells_are_computed(void **state)
{
	(void)state;
	assert_int_equal(score_cells_needed(1, 0.05, 0.8), 6);
	assert_int_equal(score_cells_needed(0.75, 0.05, 0.8), 9);
	assert_int_equal(score_cells_needed(0.3, 0.005, 0.8), 37);
	assert_int_equal(score_cells_needed(0.5, 0.05, 0.9), 17);
	assert_int_equal(score_cells_needed(0, 0.05, 0.8), 0);
	assert_int_equal(score_controls_needed(0.05), 72);
}

/* Cells by their ids, in any order; the control does not count in the comparison. */
static void pairs_are_the_same_cells(void **state)
{
	static const struct {
		const char *detector;
		int64_t id;
		bool right;
	} said[] = {{"a", 1, true}, {"a", 2, true}, {"a", 3, false}, {"a", 4, true},
		{"b", 4, false}, {"b", 2, true}, {"b", 3, true}, {"b", 1, false}, {"c", 1, true},
		{"c", 2, true}, {"c", 3, true}, {"c", 5, true}};
	struct score_table *t = score_table_new();
	json_t *victim = json_string("s1");
	struct paired p;
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof(said) / sizeof(*said); i++) {
		const struct score_cell cell = {.fault = "hog",
			.workload = "ddw",
			.victims = victim,
			.onset_s = -1,
			.id = said[i].id};
		const struct score_cell control = {
			.fault = "none", .workload = "ddw", .onset_s = -1, .id = said[i].id + 100};
		json_t *v = json_pack("{s:s, s:o}", "metric", "any", "indicted",
			json_loads(said[i].right ? "[\"s1\"]" : "[]", 0, NULL));

		assert_int_equal(score_add(t, said[i].detector, &cell, v, &e), 0);
		assert_int_equal(score_add(t, said[i].detector, &control, v, &e), 0);
		json_decref(v);
	}
	assert_true(score_paired(t, 0, 1, &p));
	assert_int_equal(p.cells, 4);
	assert_int_equal(p.only_first, 2);
	assert_int_equal(p.only_second, 1);
	assert_float_equal(p.p, 1, 1e-9);
	assert_false(score_paired(t, 0, 2, &p));
	json_decref(victim);
	score_table_free(t);
}

static void fishers_test_is_exact(void **state)
{
	(void)state;
	assert_float_equal(fisher_p(5, 5, 0, 5, false), 1.0 / 252, 1e-12);
	assert_float_equal(fisher_p(0, 4, 4, 4, true), 1.0 / 70, 1e-12);
	assert_float_equal(fisher_p(1, 4, 3, 4, true), 17.0 / 70, 1e-12);
	assert_float_equal(fisher_p(3, 4, 1, 4, false), 17.0 / 70, 1e-12);
	assert_float_equal(fisher_p(5, 5, 4, 5, false), 0.5, 1e-12);
	assert_float_equal(fisher_p(0, 0, 3, 5, true), 1, 0);
	assert_float_equal(fisher_p(7, 9, 0, 3, true), 1, 1e-12);
}

/* A table in which 'right' of n cells of "hog" are found, and 'alarms' of n controls accuse a
 * server. */
static struct score_table *scored(unsigned n, unsigned right, unsigned alarms)
{
	struct score_table *t = score_table_new();

	for (unsigned i = 0; i < n; i++) {
		add(t, "\"A\"", i < right ? "[\"A\"]" : "[]", false);
		add(t, NULL, i < alarms ? "[\"B\"]" : "[]", false);
	}
	return t;
}

static void a_regression_is_worse_than_chance(void **state)
{
	static const struct {
		unsigned n, right, alarms;
		size_t regressions;
	} cases[] = {
		/* right: of hog, and of all */
		{5, 5, 0, 0}, {5, 4, 1, 0}, {5, 2, 0, 0}, {5, 0, 0, 2},
		/* wrong: of no fault, and of all */
		{20, 20, 12, 0}, {20, 20, 20, 2}, {5, 0, 5, 3}, /* half of all cells: p = 0.016 */
	};
	struct score_table *before = scored(5, 5, 0);
	json_t *baseline = baseline_make(before, "a run", NULL);
	struct comparisons c;
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct score_table *now = scored(cases[i].n, cases[i].right, cases[i].alarms);

		assert_int_equal(baseline_compare(now, baseline, "b.json", &c, &e), 0);
		assert_int_equal(
			/* right and wrong of hog, wrong of no fault, right and wrong of all */
			c.n, 5);
		assert_int_equal(c.regressions, cases[i].regressions);
		comparisons_clear(&c);
		score_table_free(now);
	}
	json_decref(baseline);
	baseline = json_pack("{s:i, s:{s:{s:{s:i, s:i}}}}", "culprit_baseline", 1, "detectors", "d",
		"hog", "n", -1, "wrong", 0);
	assert_int_equal(baseline_compare(before, baseline, "b.json", &c, &e), -EINVAL);
	json_decref(baseline);
	score_table_free(before);
}

static void malformed_verdicts_are_refused(void **state)
{
	static const char *const bad[] = {"{}", "{\"metric\": \"any\"}",
		"{\"metric\": 3, \"indicted\": []}", "{\"metric\": \"any\", \"indicted\": \"A\"}",
		"{\"metric\": \"any\", \"indicted\": [1]}"};
	struct score_table *t = score_table_new();
	json_t *good = json_pack("{s:s, s:[s]}", "metric", "any", "indicted", "A");
	struct score_cell cell = {.fault = "f", .workload = "w", .onset_s = -1};
	const char *const *names;
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		json_t *v = json_loads(bad[i], 0, NULL);

		assert_int_equal(score_add(t, "d", &cell, v, &e), -EINVAL);
		json_decref(v);
	}
	assert_int_equal(score_names(t, SCORE_FAULT, &names), 0);
	assert_int_equal(score_add(t, "d", &cell, good, &e), 0);
	cell.victims = json_object_get(good, "indicted");
	assert_int_equal(score_add(t, "d", &cell, good, &e), -EINVAL);
	json_decref(good);
	score_table_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(intervals_are_the_published_ones),
		cmocka_unit_test(cells_count_as_in_kasick_2009),
		cmocka_unit_test(controls_have_alarms_but_no_hits),
		cmocka_unit_test(declared_names_keep_their_order),
		cmocka_unit_test(detection_localisation_and_resource_are_scored_separately),
		cmocka_unit_test(the_resource_ends_at_the_slash_the_cause_includes_it),
		cmocka_unit_test(delays_run_from_the_onset_to_the_last_right_server),
		cmocka_unit_test(overlapping_intervals_are_no_order),
		cmocka_unit_test(mcnemars_test_is_exact),
		cmocka_unit_test(needed_cells_are_computed),
		cmocka_unit_test(pairs_are_the_same_cells),
		cmocka_unit_test(fishers_test_is_exact),
		cmocka_unit_test(a_regression_is_worse_than_chance),
		cmocka_unit_test(malformed_verdicts_are_refused),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("score", tests, NULL, NULL);
}
