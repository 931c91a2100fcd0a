/* Tests peer-threshold and the null detectors, each with a twin: planted fault found, clean run
 * silent. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants those four first */
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>

#include "ci/tests/judge/detector_series.h"
#include "harness/base/file.h"
#include "harness/base/home.h"

static void peer_threshold_finds_the_planted_fault_only(void **state)
{
	struct detector *d = load("peer-threshold", NULL);
	int found = 0, alarms = 0;

	(void)state;
	assert_true(detector_trains(d));
	for (size_t servers = 4; servers <= 10; servers += 6) {
		json_t *model = usual_training(d, servers);

		for (unsigned seed = 10; seed < 30; seed++) {
			struct series *ill = series_new(servers, seed),
				      *well = series_new(servers, seed);
			int victim = (int)(seed % servers);
			json_t *v;

			fill(ill, METRIC_DWRITE, victim, 8);
			fill(ill, METRIC_NSREAD, -1, 1);
			v = diagnose(d, model, &ill->run);
			found += strchr(verdict(v, "dwrite"), *names[victim]) != NULL;
			alarms += strlen(verdict(v, "dwrite")) > 1;
			alarms += strcmp(verdict(v, "nsread"), "") != 0;
			assert_string_equal(
				verdict(v, "dread"), "abstain"); /* trained, but not in this run */
			assert_string_equal(verdict(v, "ncread"), "abstain"); /* never seen */
			json_decref(v);

			fill(well, METRIC_DWRITE, -1, 1);
			fill(well, METRIC_NSREAD, -1, 1);
			v = diagnose(d, model, &well->run);
			alarms += strcmp(verdict(v, "any"), "") != 0;
			json_decref(v);
			series_free(ill);
			series_free(well);
		}
		json_decref(model);
	}
	assert_int_equal(found, 40);
	assert_int_equal(alarms, 2); /* of 120: the noise is heavy, and a threshold is no proof */
	detector_free(d);
}

static void peer_threshold_gives_its_evidence(void **state)
{
	struct detector *d = load("peer-threshold", NULL);
	json_t *model = usual_training(d, 4), *v, *evidence, *server;
	struct series *s = series_new(4, 3);
	long second;

	(void)state;
	fill(s, METRIC_DREAD, 2, 10);
	v = diagnose(d, model, &s->run);
	assert_string_equal(
		json_string_value(json_object_get(json_array_get(v, 0), "metric")), "dread");
	evidence = json_object_get(json_array_get(v, 0), "evidence");
	assert_int_equal(json_integer_value(json_object_get(evidence, "seconds")), SECONDS);
	server = json_object_get(json_object_get(evidence, "servers"), "C");
	assert_true(json_number_value(json_object_get(server, "deviation_s")) >
		json_number_value(json_object_get(server, "threshold_s")));
	second = (long)json_integer_value(json_object_get(server, "worst_second"));
	assert_true(second >= ONSET && second < END + 10);
	json_decref(v);
	json_decref(model);
	series_free(s);
	detector_free(d);
}

/* Ten seconds around 'base' in 'm'; server B has 'odd' in second 5. */
static struct series *ten_seconds(enum metric m, double base, double odd)
{
	struct series *s = series_new(4, 1);

	for (size_t server = 0; server < 4; server++)
		for (int t = 0; t < 10; t++)
			put(s, m, server, t, server == 1 && t == 5 ? odd : base);
	return s;
}

/* As published: the threshold of a server is its largest single second in training, in both
 * directions. A server's own threshold counts, not its peers'. */
static void peer_threshold_can_be_the_published_algorithm(void **state)
{
	static const struct {
		double odd; /* B in second 5; B was 5 ms above its peers in training */
		const char *published;
	} cases[] = {{10e-3, ""}, {14.9e-3, ""}, {15.2e-3, "B"}, {5.2e-3, ""}, {4.8e-3, "B"}};
	struct detector *own = load("peer-threshold", NULL),
			*d = load("peer-threshold", json_pack("{s:b}", "published", true));
	struct series *t = ten_seconds(METRIC_DREAD, 10e-3, 15e-3), *s;
	json_t *model = train(d, &t->run, 1), *usual = train(own, &t->run, 1), *v;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		s = ten_seconds(METRIC_DREAD, 10e-3, cases[i].odd);
		v = diagnose(d, model, &s->run);
		assert_string_equal(verdict(v, "dread"), cases[i].published);
		json_decref(v);
		v = diagnose(own, usual, &s->run); /* a single second is no fault */
		assert_string_equal(verdict(v, "dread"), "");
		json_decref(v);
		series_free(s);
	}
	/* C was never above its peers in training: B's 5 ms are not its threshold. */
	s = ten_seconds(METRIC_DREAD, 10e-3, 10e-3);
	for (size_t i = 0; i < s->n; i++)
		if (s->samples[i].server == 2 && s->samples[i].second == 3)
			s->samples[i].sum_s += 2 * 1e-3;
	v = diagnose(d, model, &s->run);
	assert_string_equal(verdict(v, "dread"), "C");
	json_decref(v);
	series_free(s);
	series_free(t);
	json_decref(model);
	json_decref(usual);
	detector_free(d);
	detector_free(own);
}

/* Single outliers are no fault: the statistic is a median over a window. */
static void peer_threshold_ignores_single_outliers(void **state)
{
	struct detector *d = load("peer-threshold", NULL);
	json_t *model = usual_training(d, 4), *v;
	struct series *s = series_new(4, 5);

	(void)state;
	for (size_t server = 0; server < 4; server++)
		for (int t = 0; t < SECONDS; t++)
			put(s, METRIC_DREAD, server, t, server == 1 && t % 4 == 0 ? 30 : 0.01);
	v = diagnose(d, model, &s->run);
	assert_string_equal(verdict(v, "dread"), "");
	json_decref(v);
	json_decref(model);
	series_free(s);
	detector_free(d);
}

/* One message in a thousand that waits occurs in few seconds, and changes only the mean of all. */
static void peer_threshold_sees_rare_events_in_a_mean(void **state)
{
	struct detector *median = load("peer-threshold", NULL),
			*mean = load("peer-threshold", json_pack("{s:b}", "mean", true));
	struct series *t = series_new(4, 1), *s = series_new(4, 2);
	json_t *of_median, *of_mean, *v;

	(void)state;
	for (size_t server = 0; server < 4; server++)
		for (int k = 0; k < SECONDS; k++) {
			double wild = 1 + 0.5 * gsl_rng_uniform(t->rng);

			put(t, METRIC_NCREAD, server, k, 0.03e-3 * wild);
			put(s, METRIC_NCREAD, server, k,
				server == 2 && k % 12 == 3 ? 5e-3 : 0.03e-3 * wild);
		}
	of_median = train(median, &t->run, 1);
	of_mean = train(mean, &t->run, 1);
	v = diagnose(median, of_median, &s->run);
	assert_string_equal(verdict(v, "ncread"), "");
	json_decref(v);
	v = diagnose(mean, of_mean, &s->run);
	assert_string_equal(verdict(v, "ncread"), "C");
	json_decref(v);
	v = diagnose(mean, of_mean, &t->run);
	assert_string_equal(verdict(v, "ncread"), "");
	json_decref(v);
	json_decref(of_median);
	json_decref(of_mean);
	series_free(t);
	series_free(s);
	detector_free(median);
	detector_free(mean);
}

/* B is always slow: its usual level is no fault, more is; and it does not shift its peers'
 * median. */
static void peer_threshold_allows_for_a_saturated_server(void **state)
{
	struct detector *d = load("peer-threshold", NULL);
	struct series *t = series_new(4, 6), *well = series_new(4, 7), *ill = series_new(4, 8);
	struct series *all[] = {t, well, ill};
	json_t *model, *v;

	(void)state;
	for (int i = 0; i < 3; i++)
		for (size_t server = 0; server < 4; server++)
			for (int k = 0; k < SECONDS; k++)
				put(all[i], METRIC_DWRITE, server, k,
					(server == 1 ? 0.03 : 0.01) *
						(1 + 0.1 * gsl_rng_uniform(all[i]->rng)) *
						(i == 2 && server == 1 && k > ONSET ? 5 : 1));
	model = train(d, &t->run, 1);
	v = json_object_get(
		json_object_get(json_object_get(model, "metrics"), "dwrite"), "saturated");
	assert_true(json_is_true(json_object_get(v, "B")));
	assert_int_equal(json_object_size(v), 1);
	v = diagnose(d, model, &well->run);
	assert_string_equal(verdict(v, "any"), "");
	json_decref(v);
	v = diagnose(d, model, &ill->run);
	assert_string_equal(verdict(v, "any"), "B");
	json_decref(v);
	json_decref(model);
	for (int i = 0; i < 3; i++)
		series_free(all[i]);
	detector_free(d);
}

static void peer_threshold_abstains_if_it_cannot_judge(void **state)
{
	struct detector *d = load("peer-threshold", NULL);
	struct series *two = series_new(2, 1), *gone = series_new(4, 2), *none = series_new(4, 3);
	json_t *model, *v;

	(void)state;
	/* Two servers: neither can be identified as the slow one. */
	fill(two, METRIC_DREAD, 0, 10);
	model = train(d, &two->run, 1);
	v = diagnose(d, model, &two->run);
	assert_string_equal(verdict(v, "any"), "abstain");
	json_decref(v);
	json_decref(model);

	/* No training at all, and a run without samples. */
	model = train(d, NULL, 0);
	fill(gone, METRIC_DREAD, 0, 10);
	v = diagnose(d, model, &gone->run);
	assert_string_equal(verdict(v, "any"), "abstain");
	json_decref(v);
	json_decref(model);
	model = usual_training(d, 4);
	none->run = (struct detector_run){"r", SECONDS, names, 4, none->samples, 0};
	v = diagnose(d, model, &none->run);
	assert_string_equal(verdict(v, "any"), "abstain");
	json_decref(v);

	/* One server stops having samples: it is not judged, the others are. */
	gone->n = 0;
	for (size_t server = 0; server < 4; server++)
		for (int t = 0; t < (server == 3 ? 2 : SECONDS); t++)
			put(gone, METRIC_DREAD, server, t, server == 0 && t > ONSET ? 0.5 : 0.01);
	v = diagnose(d, model, &gone->run);
	assert_string_equal(verdict(v, "dread"), "A");
	json_decref(v);
	json_decref(model);
	series_free(two);
	series_free(gone);
	series_free(none);
	detector_free(d);
}

static void null_detectors_ignore_the_measurements(void **state)
{
	struct series *s = series_new(4, 9);
	int counts[5] = {0};
	struct detector *d;
	json_t *model, *v;
	char id[16];

	(void)state;
	fill(s, METRIC_DREAD, 2, 50);
	d = load("always-healthy", NULL);
	assert_false(detector_trains(d));
	model = train(d, NULL, 0);
	v = diagnose(d, model, &s->run);
	assert_int_equal(json_array_size(v), 1);
	assert_string_equal(verdict(v, "any"), "");
	json_decref(v);
	detector_free(d);

	d = load("always-same", json_pack("{s:i}", "server", 2));
	v = diagnose(d, model, &s->run);
	assert_string_equal(verdict(v, "any"), "B");
	json_decref(v);
	detector_free(d);

	d = load("seeded-random", json_pack("{s:i}", "seed", 7));
	for (int i = 0; i < 1000; i++) {
		const char *said;
		char first[8];

		snprintf(id, sizeof(id), "run-%d", i);
		s->run.id = id;
		v = diagnose(d, model, &s->run);
		said = verdict(v, "any");
		snprintf(first, sizeof(first), "%s", said);
		counts[*said ? *said - 'A' + 1 : 0]++;
		json_decref(v);
		if (i < 10) { /* the same run gives the same verdict */
			v = diagnose(d, model, &s->run);
			assert_string_equal(verdict(v, "any"), first);
			json_decref(v);
		}
	}
	assert_in_range(counts[0], 440, 560);
	for (int i = 1; i < 5; i++)
		assert_in_range(counts[i], 85, 165);
	json_decref(model);
	detector_free(d);
	series_free(s);
}

/* Samples of recorded run 'number' in ci/tests/data/lab-samples.csv. */
static void recorded(struct series *s, int number)
{
	char *file, *text, *save = NULL;
	struct err e;

	assert_int_equal(home_path("ci/tests/data/lab-samples.csv", &file, &e), 0);
	assert_int_equal(file_read(file, &text, NULL, &e), 0);
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		struct sample *x = &s->samples[s->n];
		unsigned long long count, bytes;
		char metric[16];
		int run;

		if (sscanf(line, "%d,%15[^,],%u,%d,%llu,%lf,%lf,%llu", &run, metric, &x->server,
			    &x->second, &count, &x->sum_s, &x->max_s, &bytes) != 8 ||
			run != number)
			continue;
		assert_int_equal(metric_from_name(metric, &x->metric), 0);
		x->count = count;
		x->bytes = bytes;
		s->n++;
	}
	assert_true(s->n > 100);
	s->run = (struct detector_run){"r", 30, names, 4, s->samples, s->n};
	free(file);
	free(text);
}

/* Real GlusterFS servers, a real fault, real controls; see ci/tests/data/README.md. */
static void recorded_lab_runs_are_judged_correctly(void **state)
{
	struct detector *d = load("peer-threshold", NULL);
	struct series *s[5];
	json_t *model, *v;

	(void)state;
	for (int i = 0; i < 5; i++) {
		s[i] = series_new(4, 1);
		recorded(s[i], i + 1);
	}
	model = train(d, (struct detector_run[]){s[0]->run, s[1]->run}, 2);
	v = diagnose(d, model, &s[2]->run);
	assert_string_equal(verdict(v, "nsread"), "D");
	assert_string_equal(verdict(v, "dwrite"), "");
	assert_string_equal(verdict(v, "dread"), "abstain");
	assert_string_equal(verdict(v, "any"), "D");
	json_decref(v);
	for (int i = 3; i < 5; i++) {
		v = diagnose(d, model, &s[i]->run);
		assert_string_equal(verdict(v, "any"), "");
		json_decref(v);
	}
	json_decref(model);
	for (int i = 0; i < 5; i++)
		series_free(s[i]);
	detector_free(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(peer_threshold_finds_the_planted_fault_only),
		cmocka_unit_test(peer_threshold_gives_its_evidence),
		cmocka_unit_test(peer_threshold_can_be_the_published_algorithm),
		cmocka_unit_test(peer_threshold_ignores_single_outliers),
		cmocka_unit_test(peer_threshold_sees_rare_events_in_a_mean),
		cmocka_unit_test(peer_threshold_allows_for_a_saturated_server),
		cmocka_unit_test(peer_threshold_abstains_if_it_cannot_judge),
		cmocka_unit_test(null_detectors_ignore_the_measurements),
		cmocka_unit_test(recorded_lab_runs_are_judged_correctly),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("peer-threshold", tests, NULL, NULL);
}
