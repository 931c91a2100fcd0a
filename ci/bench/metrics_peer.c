/*
 * False and true positives of peer-threshold on synthetic series, by its margin and window and by
 * the strength of the fault. The series are lognormal means that are correlated from second to
 * second, with heavy-tailed shocks, small differences between servers, and gaps.
 *
 *     metrics_peer [CELLS]      prints FP of controls, and TP and FP by strength
 */
#include <gsl/gsl_randist.h>
#include <gsl/gsl_rng.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diag/judge/detector.h"

enum { SERVERS = 4, SECONDS = 30, ONSET = 8, END = 28 };

static const char *const names[SERVERS] = {"A", "B", "C", "D"};

struct maker {
	gsl_rng *rng;
	double base[METRIC_SERVICE_TIMES][SERVERS];
	struct sample samples[METRIC_SERVICE_TIMES * SERVERS * SECONDS];
};

/* A read or a write workload; the victim's disk metric is 'factor' times as long while the fault
 * lasts. */
static struct detector_run make_run(struct maker *m, enum metric disk, int victim, double factor)
{
	size_t n = 0;

	for (int metric = 0; metric < METRIC_SERVICE_TIMES; metric++) {
		if (metric < METRIC_NSREAD && metric != (int)disk)
			continue;
		for (int s = 0; s < SERVERS; s++) {
			double state = gsl_ran_gaussian(m->rng, 0.4);

			for (int t = 0; t < SECONDS; t++) {
				double x;

				state = 0.5 * state + gsl_ran_gaussian(m->rng, 0.35);
				x = m->base[metric][s] * exp(state);
				if (gsl_rng_uniform(m->rng) < 0.05)
					x *= 1 + gsl_ran_pareto(m->rng, 1.2, 1);
				if (s == victim && metric == (int)disk && t >= ONSET && t < END)
					x *= factor;
				if (gsl_rng_uniform(m->rng) < 0.1)
					continue;
				m->samples[n++] = (struct sample){
					(enum metric)metric, (uint32_t)s, t, 1, x, x, 1};
			}
		}
	}
	return (struct detector_run){"run", SECONDS, names, SERVERS, m->samples, n};
}

struct rates {
	double tp, fp;
};

static int score(struct detector *d, struct maker *m, int cells, double factor, struct rates *out,
	struct err *e)
{
	int tp = 0, fp = 0, rc = 0;

	for (int c = 0; c < cells && !rc; c++) {
		struct maker *other = malloc(sizeof(*other));
		struct detector_run training[2], run;
		json_t *model = NULL, *verdicts = NULL, *any, *name;
		int victim = factor > 1 ? c % SERVERS : -1;
		bool hit = false, miss = false;
		size_t i;

		for (int metric = 0; metric < METRIC_SERVICE_TIMES; metric++)
			for (int s = 0; s < SERVERS; s++)
				m->base[metric][s] = 0.01 * exp(gsl_ran_gaussian(m->rng, 0.15));
		*other = *m;
		training[0] = make_run(m, METRIC_DWRITE, -1, 1);
		training[1] = make_run(other, METRIC_DREAD, -1, 1);
		rc = detector_train(d, training, 2, &model, e);
		if (!rc) {
			run = make_run(m, c & 1 ? METRIC_DREAD : METRIC_DWRITE, victim, factor);
			rc = detector_diagnose(d, model, &run, &verdicts, e);
		}
		any = json_array_get(verdicts, json_array_size(verdicts) - 1);
		json_array_foreach(json_object_get(any, "indicted"), i, name) {
			if (victim >= 0 && !strcmp(json_string_value(name), names[victim]))
				hit = true;
			else
				miss = true;
		}
		tp += hit;
		fp += miss;
		json_decref(model);
		json_decref(verdicts);
		free(other);
	}
	*out = (struct rates){(double)tp / cells, (double)fp / cells};
	return rc;
}

int main(int argc, char **argv)
{
	static const double margins[] = {1, 2, 3, 4}, factors[] = {1, 1.5, 2, 3, 5, 10};
	static const int windows[] = {1, 5, 10};
	int cells = argc > 1 ? atoi(argv[1]) : 400;
	struct err e;

	printf("%d servers, trained on one run of %d s a workload; fault from second %d to %d; "
	       "%d cells each\n",
		SERVERS, SECONDS, ONSET, END, cells);
	printf("%-8s%-8s%-10s", "window", "margin", "FP clean");
	for (size_t f = 1; f < sizeof(factors) / sizeof(*factors); f++)
		printf("TP,FP x%-5g", factors[f]);
	putchar('\n');
	for (size_t w = 0; w < sizeof(windows) / sizeof(*windows); w++)
		for (size_t g = 0; g < sizeof(margins) / sizeof(*margins); g++) {
			json_t *params = json_pack(
				"{s:i, s:f}", "window", windows[w], "margin", margins[g]);
			struct maker m = {.rng = gsl_rng_alloc(gsl_rng_mt19937)};
			struct detector *d;
			struct rates r;

			gsl_rng_set(m.rng, 1);
			printf("%-8d%-8g", windows[w], margins[g]);
			if (detector_load("peer-threshold", params, &d, &e)) {
				fprintf(stderr, "metrics_peer: %s\n", e.text);
				return 1;
			}
			for (size_t f = 0; f < sizeof(factors) / sizeof(*factors); f++) {
				if (score(d, &m, cells, factors[f], &r, &e)) {
					fprintf(stderr, "metrics_peer: %s\n", e.text);
					return 1;
				}
				if (f)
					printf("%.2f %.2f  ", r.tp, r.fp);
				else
					printf("%-10.2f", r.fp);
			}
			putchar('\n');
			detector_free(d);
			json_decref(params);
			gsl_rng_free(m.rng);
		}
	return 0;
}
