/* Tests scores of a ranking: curves, areas and intervals, against values computed by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants those four first */
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diag/judge/ranking.h"

/* One letter for each member: i ill, h healthy, u unknown; capitals are indicted. */
static struct ranking_score score(
	const char *members, const double *severity, struct ranked *out, uint64_t seed)
{
	size_t n = strlen(members);

	for (size_t i = 0; i < n; i++) {
		char c = members[i] | 32;

		out[i] = (struct ranked){.path = "h1/sda",
			.severity = severity[i],
			.indicted = c != members[i],
			.truth = c == 'i'  ? TRUTH_ILL
				: c == 'h' ? TRUTH_HEALTHY
					   : TRUTH_UNKNOWN};
	}
	return ranking_score(out, n, seed);
}

static void counts_and_areas_by_hand(void **state)
{
	/* Worst first: i h i i h h. Pairs in order: 3 + 2 + 2 of 9. AP: (1 + 2/3 + 3/4) / 3. */
	const double severity[] = {6, 5, 4, 3, 2, 1, 9};
	struct ranked members[7];
	struct ranking_score s = score("IHIihhu", severity, members, RANKING_SEED);

	(void)state;
	assert_int_equal(s.ill, 3);
	assert_int_equal(s.healthy, 3);
	assert_int_equal(s.unknown, 1);
	assert_int_equal(s.tp, 2);
	assert_int_equal(s.fp, 1);
	assert_int_equal(s.fn, 1);
	assert_int_equal(s.tn, 2);
	assert_float_equal(s.precision.value, 2 / 3.0, 1e-12);
	assert_float_equal(s.recall.value, 2 / 3.0, 1e-12);
	assert_float_equal(s.false_alarms.value, 1 / 3.0, 1e-12);
	assert_float_equal(s.auc.value, 7 / 9.0, 1e-12);
	assert_float_equal(s.average_precision.value, (1 + 2 / 3.0 + 3 / 4.0) / 3, 1e-12);
	/* Corners: none accused, i, ih, ihii, all. */
	assert_int_equal(s.n_points, 5);
	assert_float_equal(s.points[0].precision, 1, 0);
	assert_true(isinf(s.points[0].severity));
	assert_float_equal(s.points[1].severity, 6, 0);
	assert_int_equal(s.points[3].tp, 3);
	assert_int_equal(s.points[3].fp, 1);
	assert_float_equal(s.points[4].recall, 1, 0);
	assert_float_equal(s.points[4].false_alarms, 1, 0);
	ranking_score_clear(&s);
}

static void ties_are_one_step(void **state)
{
	/* 9: one ill; 5: one ill and two healthy; 0: one healthy. Pairs: 3 + (1/2 + 1/2 + 1) of
	 * 6. */
	const double severity[] = {5, 9, 5, 5, 0}, same[] = {1, 1, 1, 1, 1};
	struct ranked members[5];
	struct ranking_score s = score("iihhh", severity, members, RANKING_SEED);

	(void)state;
	assert_float_equal(s.auc.value, 5 / 6.0, 1e-12);
	assert_float_equal(s.average_precision.value, 0.5 * 1 + 0.5 * 2 / 4.0, 1e-12);
	assert_int_equal(s.n_points, 4);
	ranking_score_clear(&s);
	s = score("iihhh", same, members, RANKING_SEED);
	assert_float_equal(s.auc.value, 0.5, 1e-12);
	assert_float_equal(s.average_precision.value, 2 / 5.0, 1e-12);
	assert_int_equal(s.n_points, 2);
	ranking_score_clear(&s);
}

/* The bounds of Newcombe's method 5 solve |A - x| = z sqrt(V(x)), with any solver. */
static void area_bounds_solve_their_equation(void **state)
{
	const double severity[] = {9, 8, 7, 6, 5, 4, 3, 2, 1, 0};
	struct ranked members[10];
	struct ranking_score s = score("iihihhhhih", severity, members, RANKING_SEED);
	double bounds[2] = {s.auc.low, s.auc.high}, m = 4, n = 6, common = (m + n) / 2 - 1;

	(void)state;
	assert_true(s.auc.low < s.auc.value && s.auc.value < s.auc.high);
	for (int i = 0; i < 2; i++) {
		double x = bounds[i];
		double v = x * (1 - x) * (1 + common * (1 - x) / (2 - x) + common * x / (1 + x)) /
			(m * n);

		assert_float_equal(fabs(s.auc.value - x), 1.959963985 * sqrt(v), 1e-6);
	}
	ranking_score_clear(&s);
}

static void a_perfect_ranking_is_not_certain(void **state)
{
	const double severity[] = {9, 8, 7, 1, 1, 1};
	struct ranked members[6];
	struct ranking_score s = score("IIIhhh", severity, members, RANKING_SEED);

	(void)state;
	assert_float_equal(s.auc.value, 1, 0);
	assert_float_equal(s.auc.high, 1, 1e-9);
	assert_true(s.auc.low < 0.8 && s.auc.low > 0.3);
	assert_float_equal(s.average_precision.value, 1, 1e-12);
	assert_float_equal(s.average_precision.low, pow(0.025, 1 / 3.0), 1e-9);
	assert_float_equal(s.average_precision.high, 1, 1e-12);
	ranking_score_clear(&s);
}

static void without_ill_or_healthy_members_the_area_is_undefined(void **state)
{
	const double severity[] = {2, 1};
	struct ranked members[2];
	const char *kinds[] = {"ii", "hh", "uu", "", "Hh"};

	(void)state;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		struct ranking_score s = score(kinds[i], severity, members, RANKING_SEED);
		json_t *v = ranking_score_json(&s, members, strlen(kinds[i]));
		char *text = NULL;
		size_t size;
		FILE *f = open_memstream(&text, &size);

		assert_true(isnan(s.auc.value) && isnan(s.average_precision.low));
		assert_true(json_is_null(json_object_get(json_object_get(v, "auc"), "value")));
		ranking_score_print(f, &s, members, strlen(kinds[i]), 5);
		fclose(f);
		assert_null(strstr(text, "nan"));
		free(text);
		json_decref(v);
		ranking_score_clear(&s);
	}
}

static void bootstrap_is_reproducible_and_contains_the_value(void **state)
{
	static double severity[400];
	static struct ranked members[400];
	char kinds[401] = "";
	struct ranking_score a, b, c;

	(void)state;
	for (int i = 0; i < 400; i++) {
		kinds[i] = i % 20 ? 'h' : 'i';
		severity[i] = (i * 7919 % 997) / 997.0 + (i % 20 ? 0 : 0.4);
	}
	a = score(kinds, severity, members, RANKING_SEED);
	b = score(kinds, severity, members, RANKING_SEED);
	c = score(kinds, severity, members, 0);
	assert_float_equal(a.average_precision.low, b.average_precision.low, 0);
	assert_true(a.average_precision.low < a.average_precision.value &&
		a.average_precision.value < a.average_precision.high);
	assert_true(a.average_precision.high - a.average_precision.low > 0.1);
	assert_true(isnan(c.average_precision.low));
	assert_float_equal(c.average_precision.value, a.average_precision.value, 0);
	ranking_score_clear(&a);
	ranking_score_clear(&b);
	ranking_score_clear(&c);
}

static void large_rankings_are_scored(void **state)
{
	size_t n = 100000;
	struct ranked *members = calloc(n, sizeof(*members));
	struct ranking_score s;

	(void)state;
	for (size_t i = 0; i < n; i++)
		members[i] = (struct ranked){.path = "a",
			.severity = (double)(i * 31 % 9973),
			.indicted = i % 20000 == 3,
			.truth = i % 5000 ? TRUTH_HEALTHY : TRUTH_ILL};
	s = ranking_score(members, n, RANKING_SEED);
	assert_int_equal(s.fp, 5);
	assert_true(s.false_alarms.low > 0 && s.false_alarms.high < 2e-4);
	assert_true(s.n_points <= 2 * 20 + 2 + 40);
	ranking_score_clear(&s);
	free(members);
}

static void json_and_text_name_wrong_members(void **state)
{
	const double severity[] = {3, 2, 1};
	struct ranked members[3];
	struct ranking_score s = score("Hih", severity, members, RANKING_SEED);
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	json_t *v;

	(void)state;
	members[0].path = "r1/good";
	members[1].path = "r1/bad";
	v = ranking_score_json(&s, members, 3);
	assert_string_equal(
		json_string_value(json_array_get(json_object_get(v, "missed"), 0)), "r1/bad");
	assert_string_equal(
		json_string_value(json_array_get(json_object_get(v, "accused"), 0)), "r1/good");
	assert_int_equal(json_array_size(json_object_get(v, "points")), s.n_points);
	ranking_score_print(f, &s, members, 3, 5);
	fclose(f);
	assert_non_null(strstr(text, "TP 0, FP 1, FN 1, TN 1"));
	assert_non_null(strstr(text, "missed: r1/bad\n"));
	assert_non_null(strstr(text, "accused: r1/good\n"));
	json_decref(v);
	free(text);
	ranking_score_clear(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_and_areas_by_hand),
		cmocka_unit_test(ties_are_one_step),
		cmocka_unit_test(area_bounds_solve_their_equation),
		cmocka_unit_test(a_perfect_ranking_is_not_certain),
		cmocka_unit_test(without_ill_or_healthy_members_the_area_is_undefined),
		cmocka_unit_test(bootstrap_is_reproducible_and_contains_the_value),
		cmocka_unit_test(large_rankings_are_scored),
		cmocka_unit_test(json_and_text_name_wrong_members),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("ranking", tests, NULL, NULL);
}
