/* Horizons and the life of findings, with scripted results. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/live/exposition.h"
#include "harness/live/horizons.h"
#include "harness/live/life.h"
#include "harness/live/lines.h"

enum { WEEK = 7 * 86400 };

/* --- horizons --- */

static void pace_is_the_median_distance(void **state)
{
	struct pace p = {0};

	(void)state;
	assert_true(pace_step(&p, 1) == 0);
	for (int i = 0; i < 20; i++) {
		pace_sample(&p, 0, i * 15);
		pace_sample(&p, 70000, i * 15 + (i > 10 ? 900 : 0)); /* a gap */
	}
	pace_sample(&p, 0, 3); /* a late one */
	assert_true(pace_step(&p, 30) == 15);
	assert_true(pace_step(&p, 1000) == 0);
	pace_clear(&p);
}

/* Samples of one moment, as of two files that tell the same, are no distance of 0. */
static void samples_of_the_same_time_are_no_interval(void **state)
{
	struct pace p = {0};

	(void)state;
	for (int i = 0; i < 10; i++)
		for (int k = 0; k < 3; k++)
			pace_sample(&p, 0, i * 15);
	assert_int_equal(p.n, 9);
	assert_true(pace_step(&p, 9) == 15);
	assert_true(pace_step(&p, 10) == 0);
	pace_clear(&p);
}

static void horizons_are_due_by_sixteenths(void **state)
{
	struct horizons h = {0};

	(void)state;
	horizons_default(&h, 10, 0);
	assert_int_equal(h.n, 4);
	assert_true(h.v[0].length_s == 640 && h.v[3].length_s == 327680);
	/* The shortest one at a quarter of it, the next ones when they see more than the one
	 * before. */
	assert_true(horizons_due(&h, 0, 1000) == 1160);
	assert_true(horizons_due(&h, 1, 1000) == 1640);
	assert_true(horizons_next(&h, 1000) == 1160);
	horizons_judged(&h, 0, 1160);
	assert_true(horizons_due(&h, 0, 1000) == 1200);
	horizons_judged(&h, 1, 9000);
	assert_true(horizons_due(&h, 1, 1000) == 9000 + 320);
	/* 600 cells fit: two horizons. */
	horizons_default(&h, 10, 600);
	assert_int_equal(h.n, 2);
	horizons_default(&h, 10, 5);
	assert_int_equal(h.n, 1);
	assert_false(horizons_add(&h, 640));
	assert_true(horizons_add(&h, 60));
	assert_true(h.v[0].length_s == 60);
	for (int i = 0; i < 20; i++)
		horizons_add(&h, 1000 + i);
	assert_int_equal(h.n, HORIZONS_MAX);
}

/* All looks of a week together use what was allowed; of a horizon beyond a week too. */
static void alarms_are_divided_among_looks(void **state)
{
	static const double lengths[] = {3600, 86400, WEEK, 4.0 * WEEK};
	struct horizons h = {0};
	double sum = 0;

	(void)state;
	for (size_t i = 0; i < 4; i++)
		horizons_add(&h, lengths[i]);
	for (size_t i = 0; i < 4; i++) {
		double a = horizons_alarms(&h, i, 1e-4);
		/* The detector's unit: per recording up to a week, else per week. */
		double a_look = a * fmax(1, lengths[i] / WEEK);

		sum += a_look * HORIZON_LOOKS_PAID * WEEK / lengths[i];
	}
	assert_true(fabs(sum - 1e-4) < 1e-12);
}

/* --- scripted results --- */

enum { MEMBERS = 3 };
static struct metric_model models[] = {{.name = (char *)"read_ms"}, {.name = (char *)"errors"}};
static const struct fleet_metric metrics[] = {{.model = &models[0]}, {.model = &models[1]}};
static const struct fleet_group groups[] = {
	{(char *)"", UINT32_MAX, 3}, {(char *)"host1", 0, 2}, {(char *)"ho\"st\\2\n", 0, 1}};
static struct fleet_member members[MEMBERS];
static struct fleet_finding findings[8];
static struct fleet_result result;

static int reset(void **state)
{
	(void)state;
	memset(findings, 0, sizeof(findings));
	members[0] = (struct fleet_member){
		.name = (char *)"sda", .path = (char *)"host1/sda", .group = 1, .judged = true};
	members[1] = (struct fleet_member){
		.name = (char *)"sdb", .path = (char *)"host1/sdb", .group = 1, .judged = true};
	members[2] = (struct fleet_member){
		.name = (char *)"sd\"c", .path = (char *)"x/sd\"c", .group = 2, .judged = true};
	result = (struct fleet_result){.findings = findings,
		.members = members,
		.n_members = MEMBERS,
		.groups = groups,
		.n_groups = 3,
		.metrics = metrics,
		.n_metrics = 2};
	return 0;
}

static void found(enum finding_kind kind, uint32_t member, uint32_t metric, double severity,
	double since_s, double until_s, bool open)
{
	findings[result.n_findings++] = (struct fleet_finding){.kind = kind,
		.member = member,
		.metric = metric,
		.severity = severity,
		.effect = 1.5,
		.since_s = since_s,
		.until_s = until_s,
		.open = open,
		.share = 0.5,
		.count = 7};
	if (kind != FINDING_GROUP)
		members[member].severity = severity;
}

static char history[4096];

static void told(void *ctx, enum life_event event, const struct life *life, double now_s)
{
	const struct life_view *v = &life->view[life->shown];
	size_t n = strlen(history);

	(void)ctx;
	snprintf(history + n, sizeof(history) - n, "%s%.0f %s/%s %s %s;",
		event == LIFE_BEGIN ? "+" : "-", now_s, life->group, life->member, v->metric,
		finding_kind_names[v->kind]);
}

/* A look of a horizon of this length, then the end's check. The result is used up. */
static void look(struct lives *l, size_t horizon, double length_s, double now_s)
{
	result.from_s = now_s - length_s;
	result.to_s = now_s;
	lives_look(l, horizon, &result, now_s, told, NULL);
	lives_end(l, now_s, told, NULL);
	reset(NULL);
}

static void expect(const char *what)
{
	assert_string_equal(history, what);
	*history = '\0';
}

static void a_finding_begins_once_and_ends(void **state)
{
	struct lives l = {0};

	(void)state;
	found(FINDING_SHIFT, 0, 0, 2, 900, 1000, true);
	look(&l, 0, 640, 1000);
	expect("+1000 host1/sda read_ms shift;");
	for (int i = 1; i < 5; i++) {
		/* Another metric, another kind, another horizon: the same life. */
		found(FINDING_BURSTS, 0, 1, 1.2, 800, 1000 + 40 * i, true);
		look(&l, (size_t)i % 2, 640, 1000 + 40 * i);
	}
	expect("");
	assert_true(l.v[0]->since_s == 800);
	/* Not found, but not low either: held for a quarter. */
	members[0].severity = 0.8;
	look(&l, 0, 640, 1200);
	members[0].severity = 0.8;
	look(&l, 1, 640, 1310);
	expect("");
	members[0].severity = 0.8;
	look(&l, 0, 640, 1330);
	expect("-1330 host1/sda errors bursts;");
	assert_int_equal(l.n, 0);
	assert_int_equal(l.begun, 1);
	assert_int_equal(l.ended, 1);
	lives_clear(&l);
}

static void low_severity_releases_in_every_horizon(void **state)
{
	struct lives l = {0};

	(void)state;
	found(FINDING_SHIFT, 1, 0, 2, 900, 1000, true);
	look(&l, 0, 640, 1000);
	found(FINDING_SHIFT, 1, 0, 3, 900, 1000, true);
	look(&l, 1, 5120, 1001);
	expect("+1000 host1/sdb read_ms shift;");
	for (int i = 1; i <= 3; i++) {
		members[1].severity = 0.1;
		look(&l, 0, 640, 1000 + 40 * i);
	}
	expect(""); /* the long horizon holds it */
	assert_true(l.v[0]->shown == 1);
	members[1].severity = 0.1;
	look(&l, 1, 5120, 1330);
	expect(""); /* one look is not enough */
	members[1].severity = 0.1;
	look(&l, 1, 5120, 1650);
	expect("-1650 host1/sdb read_ms shift;");
	lives_clear(&l);
}

static void ended_faults_neither_begin_nor_hold(void **state)
{
	struct lives l = {0};

	(void)state;
	found(FINDING_SHIFT, 0, 0, 5, 100, 700, false);
	look(&l, 2, 6400, 1500);
	expect("");
	found(FINDING_SHIFT, 0, 0, 5, 100, 1500, true);
	look(&l, 2, 6400, 1600);
	expect("+1600 host1/sda read_ms shift;");
	found(FINDING_SHIFT, 0, 0, 5, 100, 1700, false);
	look(&l, 2, 6400, 2000); /* within the newest sixteenth */
	expect("");
	found(FINDING_SHIFT, 0, 0, 5, 100, 1700, false);
	look(&l, 2, 6400, 2400);
	expect("-2400 host1/sda read_ms shift;");
	/* Between two bursts it is still off. */
	found(FINDING_BURSTS, 0, 0, 5, 100, 2400, false);
	look(&l, 2, 6400, 3900);
	expect("+3900 host1/sda read_ms bursts;");
	lives_clear(&l);
}

static void a_member_that_vanishes_ends_after_the_hold(void **state)
{
	struct lives l = {0};

	(void)state;
	found(FINDING_SHIFT, 2, 0, 2, 900, 1000, true);
	look(&l, 0, 640, 1000);
	for (int i = 1; i < 5; i++) {
		members[2].judged = false;
		look(&l, 0, 640, 1000 + 40 * i);
		assert_int_equal(l.n, i < 4);
	}
	lives_clear(&l);
	*history = '\0';
}

static void groups_and_classes_have_separate_lives(void **state)
{
	struct lives l = {0};

	(void)state;
	found(FINDING_GROUP, 1, 0, 9, 900, 1000, true);
	found(FINDING_CLASS, 0, 0, 5, 900, 1000, true);
	found(FINDING_SHIFT, 0, 0, 2, 900, 1000, true);
	look(&l, 0, 640, 1000);
	expect("+1000 host1/ read_ms group;+1000 / read_ms class;+1000 host1/sda read_ms shift;");
	/* The class names another of its members: still the same. */
	found(FINDING_CLASS, 1, 0, 5, 900, 1000, true);
	look(&l, 0, 640, 1040);
	expect("");
	assert_int_equal(l.n, 3);
	lives_clear(&l);
}

/* --- state, lines, page --- */

static void state_is_restored(void **state)
{
	struct lives l = {0}, again = {0};
	json_t *saved;
	struct err e;

	(void)state;
	found(FINDING_SHIFT, 2, 0, 2, 900, 1000, true);
	found(FINDING_CLASS, 0, 1, INFINITY, 900, 1000, true);
	look(&l, 3, 640, 1000);
	*history = '\0';
	saved = lives_json(&l);
	assert_int_equal(lives_restore(&again, saved, &e), 0);
	assert_int_equal(again.n, 2);
	found(FINDING_CLASS, 0, 1, 2, 900, 1000, true);
	found(FINDING_SHIFT, 2, 0, 2, 900, 1000, true);
	look(&again, 3, 640, 1040);
	expect("");
	members[2].severity = 0.1;
	look(&again, 3, 640, 1080);
	members[2].severity = 0.1;
	look(&again, 3, 640, 1120);
	expect("-1120 ho\"st\\2\n/sd\"c read_ms shift;");
	json_decref(saved);
	lives_clear(&l);
	lives_clear(&again);
}

static void hostile_states_are_refused(void **state)
{
	static const char *const bad[] = {"null", "[]", "{}", "{\"version\":2,\"lives\":[]}",
		"{\"version\":1,\"lives\":{}}", "{\"version\":1,\"lives\":[1]}",
		"{\"version\":1,\"lives\":[{\"key\":\"x\",\"member\":\"\",\"group\":\"\","
		"\"views\":[]}]}",
		"{\"version\":1,\"lives\":[{\"key\":\"x\\ny\",\"member\":\"\",\"group\":\"\","
		"\"views\":[null]}]}",
		"{\"version\":1,\"lives\":[{\"key\":\"x\\ny\",\"member\":\"\",\"group\":\"\","
		"\"views\":[{\"metric\":\"a\",\"kind\":\"b\"}]}]}"};
	struct lives l = {0};
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		json_t *v = json_loads(bad[i], JSON_DECODE_ANY, NULL);

		assert_non_null(v);
		assert_int_equal(lives_restore(&l, v, &e), -EINVAL);
		assert_int_equal(l.n, 0);
		json_decref(v);
	}
	assert_int_equal(lives_restore(&l, NULL, &e), -EINVAL);
}

static void write_line(void *ctx, enum life_event event, const struct life *life, double now_s)
{
	line_text(ctx, event, life, now_s, false);
	line_json(ctx, event, life, now_s, false);
}

static void write_partial(void *ctx, enum life_event event, const struct life *life, double now_s)
{
	line_text(ctx, event, life, now_s, true);
	line_json(ctx, event, life, now_s, true);
}

static void partial_data_is_reported(void **state)
{
	struct lives l = {0};
	char *text;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	(void)state;
	found(FINDING_SHIFT, 2, 0, 1.5, 1.7e9, 1.7e9, true);
	result.to_s = 1.7e9;
	lives_look(&l, 0, &result, 1.7e9, write_partial, f);
	exposition_write(f, &(struct exposition){.lives = &l, .partial = true});
	fclose(f);
	assert_non_null(strstr(text, "; the data is partial\n{"));
	assert_non_null(strstr(text, ",\"partial\":true}\n"));
	assert_non_null(strstr(text, "\nculprit_source_partial 1\n"));
	free(text);
	lives_clear(&l);
	reset(NULL);
}

static void names_are_escaped(void **state)
{
	struct lives l = {0};
	char *text;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	(void)state;
	found(FINDING_SHIFT, 2, 0, INFINITY, 1.7e9, 1.7e9, true);
	result.to_s = 1.7e9;
	lives_look(&l, 0, &result, 1.7e9, write_line, f);
	exposition_write(f, &(struct exposition){.lives = &l, .last_sample_s = NAN});
	fclose(f);
	assert_non_null(
		strstr(text, "2023-11-14T22:13:20Z begin ho\"st\\2\\n/sd\"c: read_ms 1.5 "));
	assert_non_null(strstr(text, "{\"event\":\"begin\",\"time\":1700000000.0,"));
	assert_non_null(strstr(text, "\"severity\":null"));
	assert_non_null(strstr(text,
		"culprit_finding_severity{member=\"sd\\\"c\","
		"group=\"ho\\\"st\\\\2\\n\",metric=\"read_ms\","
		"kind=\"shift\"} +Inf\n"));
	assert_non_null(strstr(text, "culprit_last_sample_timestamp_seconds NaN\n"));
	free(text);
	lives_clear(&l);
	reset(NULL);
}

static void times_and_durations(void **state)
{
	char buf[40];

	(void)state;
	assert_string_equal(line_time(12.5, buf, sizeof(buf)), "12.5s");
	assert_string_equal(line_time(-1, buf, sizeof(buf)), "-1s");
	assert_string_equal(line_time(INFINITY, buf, sizeof(buf)), "infs");
	assert_string_equal(line_time(1e9, buf, sizeof(buf)), "2001-09-09T01:46:40Z");
	assert_string_equal(line_duration(90, buf, sizeof(buf)), "90 s");
	assert_string_equal(line_duration(9000, buf, sizeof(buf)), "2.5 h");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pace_is_the_median_distance),
		cmocka_unit_test(samples_of_the_same_time_are_no_interval),
		cmocka_unit_test(horizons_are_due_by_sixteenths),
		cmocka_unit_test(alarms_are_divided_among_looks),
		cmocka_unit_test_setup(a_finding_begins_once_and_ends, reset),
		cmocka_unit_test_setup(low_severity_releases_in_every_horizon, reset),
		cmocka_unit_test_setup(ended_faults_neither_begin_nor_hold, reset),
		cmocka_unit_test_setup(a_member_that_vanishes_ends_after_the_hold, reset),
		cmocka_unit_test_setup(groups_and_classes_have_separate_lives, reset),
		cmocka_unit_test_setup(state_is_restored, reset),
		cmocka_unit_test(hostile_states_are_refused),
		cmocka_unit_test_setup(names_are_escaped, reset),
		cmocka_unit_test_setup(partial_data_is_reported, reset),
		cmocka_unit_test(times_and_durations),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
