/* Shared by tests of detectors: builds runs, and loads, trains and runs detectors, or fails the
 * test. Include it after cmocka.h; not every test uses all of it. */
#ifndef CULPRIT_CI_TESTS_JUDGE_DETECTOR_SERIES_H
#define CULPRIT_CI_TESTS_JUDGE_DETECTOR_SERIES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <gsl/gsl_randist.h>
#include <gsl/gsl_rng.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diag/judge/detector.h"

#pragma GCC diagnostic ignored "-Wunused-function"

enum { SECONDS = 60, ONSET = 15, END = 45, SERVERS_MAX = 10 };

static const char *const names[SERVERS_MAX] = {"A", "B", "C", "D", "E", "F", "G", "H", "I", "J"};

/* Samples of one run being built. */
struct series {
	gsl_rng *rng;
	size_t servers, n;
	struct sample samples[METRIC_SERVICE_TIMES * SERVERS_MAX * SECONDS];
	struct detector_run run;
};

static struct series *series_new(size_t servers, unsigned long seed)
{
	struct series *s = calloc(1, sizeof(*s));

	s->servers = servers;
	s->rng = gsl_rng_alloc(gsl_rng_mt19937);
	gsl_rng_set(s->rng, seed);
	return s;
}

static void series_free(struct series *s)
{
	gsl_rng_free(s->rng);
	free(s);
}

static void put(struct series *s, enum metric m, size_t server, int second, double value)
{
	s->samples[s->n++] = (struct sample){
		m, (uint32_t)server, second, 2, value * 2, value * 1.5, 100};
	s->run = (struct detector_run){"r", SECONDS, names, s->servers, s->samples, s->n};
}

/* Heavy-tailed noise: lognormal, and one second in twenty is up to ten times as long. */
static double noise(struct series *s)
{
	double x = exp(gsl_ran_gaussian(s->rng, 0.3));

	return gsl_rng_uniform(s->rng) < 0.05 ? x * (1 + 9 * gsl_rng_uniform(s->rng)) : x;
}

/* Every server at about 10 ms in 'm'; the victim (or -1) 'factor' times that during the fault. */
static void fill(struct series *s, enum metric m, int victim, double factor)
{
	for (size_t server = 0; server < s->servers; server++)
		for (int t = 0; t < SECONDS; t++) {
			bool ill = (int)server == victim && t >= ONSET && t < END;

			if (gsl_rng_uniform(s->rng) < 0.1)
				continue;
			put(s, m, server, t, 0.01 * noise(s) * (ill ? factor : 1));
		}
}

static struct detector *load(const char *name, json_t *params)
{
	struct detector *d = NULL;
	struct err e;

	if (detector_load(name, params, &d, &e))
		fail_msg("%s", e.text);
	json_decref(params);
	return d;
}

static json_t *train(struct detector *d, const struct detector_run *runs, size_t n)
{
	json_t *model = NULL, *again;
	struct err e;
	char *text;

	if (detector_train(d, runs, n, &model, &e))
		fail_msg("%s", e.text);
	/* As the harness does: through a file. */
	text = json_dumps(model, JSON_COMPACT);
	again = json_loads(text, 0, NULL);
	free(text);
	json_decref(model);
	return again;
}

static json_t *diagnose(struct detector *d, const json_t *model, const struct detector_run *run)
{
	json_t *verdicts = NULL;
	struct err e;

	if (detector_diagnose(d, model, run, &verdicts, &e))
		fail_msg("%s", e.text);
	return verdicts;
}

/* The verdict on a metric as "A B", "" or "abstain"; static. */
static const char *verdict(const json_t *verdicts, const char *metric)
{
	static char text[64];
	json_t *v, *name;
	size_t i, k;

	strcpy(text, "missing");
	json_array_foreach((json_t *)verdicts, i, v) {
		if (strcmp(json_string_value(json_object_get(v, "metric")), metric))
			continue;
		strcpy(text, json_is_true(json_object_get(v, "abstain")) ? "abstain" : "");
		json_array_foreach(json_object_get(v, "indicted"), k, name) {
			if (k)
				strcat(text, " ");
			strcat(text, json_string_value(name));
		}
	}
	return text;
}

/* Trained on a fault-free write run and read run. */
static json_t *usual_training(struct detector *d, size_t servers)
{
	struct series *w = series_new(servers, 1), *r = series_new(servers, 2);
	json_t *model;

	fill(w, METRIC_DWRITE, -1, 1);
	fill(w, METRIC_NSREAD, -1, 1);
	fill(r, METRIC_DREAD, -1, 1);
	fill(r, METRIC_NSREAD, -1, 1);
	model = train(d, (struct detector_run[]){w->run, r->run}, 2);
	series_free(w);
	series_free(r);
	return model;
}

#endif
