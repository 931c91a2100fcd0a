/* Runs detectors on series files. */
#include "harness/base/alloc.h"
#include "harness/base/jget.h"
#include "harness/cli/diagnose.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diag/judge/detector.h"
#include "diag/derive/series.h"

/* Limit of memory for the columns of one run (diag/judge/columns.h). */
enum { RUN_BYTES_MAX = 1 << 30, VECTORS = 4 };

/* A part of a file that detectors see as one run. */
struct stretch {
	const struct series *series;
	double from_s, to_s;
	char id[32], what[96];
	struct sample *samples;
	struct detector_run run;
};

struct job {
	const struct csv_options *o;
	struct series_names names;
	struct series series, *trainings;
	struct stretch *list; /* training, then windows */
	size_t n_training, n;
	double step_s;
};

static int read_file(const char *path, const struct import_options *how, struct series_names *names,
	struct series *s, struct err *e)
{
	int rc = series_read(path, how, names, s, NULL, e);

	if (!rc && !s->n) {
		rc = err_set(e, -EINVAL, "%s: it contains not one value",
			strcmp(path, "-") ? path : "standard input");
		series_clear(s);
	}
	return rc;
}

static void job_clear(struct job *j)
{
	for (size_t i = 0; i < j->n; i++)
		free(j->list[i].samples);
	for (size_t i = 0; i < j->o->n_trains; i++)
		series_clear(&j->trainings[i]);
	free(j->trainings);
	free(j->list);
	series_clear(&j->series);
	series_names_clear(&j->names);
}

/* Called when all files are read, because only then all names are known. */
static int make_run(struct job *j, struct stretch *s, struct err *e)
{
	double steps = ceil((s->to_s - s->from_s) / j->step_s - 1e-6);
	double bytes = steps * (double)(j->names.n_servers * j->names.n_metrics) * VECTORS *
		sizeof(double);
	size_t n;

	snprintf(s->what, sizeof(s->what), "%.15g .. %.15g s", s->from_s, s->to_s);
	if (bytes > RUN_BYTES_MAX)
		return err_set(e, -E2BIG,
			"%s of %g-second steps, %zu servers and %zu metrics are too much for one "
			"run; give a larger --interval, or a --window",
			s->what, j->step_s, j->names.n_servers, j->names.n_metrics);
	s->samples = series_samples(s->series, s->from_s, s->to_s, j->step_s, &n);
	if (!s->samples)
		return err_errno(e, -ENOMEM, "cannot make a run");
	snprintf(s->id, sizeof(s->id), "series-%04zu", (size_t)(s - j->list) + 1);
	s->run = (struct detector_run){.id = s->id,
		.seconds = (int32_t)steps,
		.servers = (const char *const *)j->names.servers,
		.n_servers = j->names.n_servers,
		.samples = s->samples,
		.n_samples = n,
		.metrics = (const char *const *)j->names.metrics,
		.n_metrics = j->names.n_metrics};
	return 0;
}

static void diagnose_csv_add(struct job *j, const struct series *s, double from_s, double to_s)
{
	j->list = alloc_room(j->list, j->n, sizeof(*j->list));
	j->list[j->n++] = (struct stretch){.series = s, .from_s = from_s, .to_s = to_s};
}

/* Cuts the file into training and windows. The last one ends a step after the last point. */
static int cut(struct job *j, struct err *e)
{
	const struct csv_options *o = j->o;
	double from = j->series.from_s, end = j->series.to_s + j->step_s, length;

	for (const struct series *s = j->trainings; s < j->trainings + o->n_trains; s++)
		diagnose_csv_add(j, s, s->from_s, s->to_s + j->step_s);
	if (o->has_until) {
		if (!(o->train_until_s > from && o->train_until_s <= j->series.to_s))
			return err_set(e, -EINVAL,
				"--train-until must lie within the file, after %.15g and up to "
				"%.15g",
				from, j->series.to_s);
		diagnose_csv_add(j, &j->series, from, o->train_until_s);
		from = o->train_until_s;
	}
	j->n_training = j->n;
	length = o->window_s > 0 ? o->window_s : end - from;
	if (length < j->step_s)
		return err_set(e, -EINVAL, "a window of %g s is shorter than a step of %g s",
			length, j->step_s);
	if ((end - from) / length > 1e6)
		return err_set(e, -E2BIG, "more than a million windows of %g s", length);
	for (double i = 0; i < ceil((end - from) / length - 1e-6); i++)
		diagnose_csv_add(
			j, &j->series, from + i * length, fmin(from + (i + 1) * length, end));
	return 0;
}

static int diagnose_csv_prepare(struct job *j, struct err *e)
{
	const struct csv_options *o = j->o;
	int rc = read_file(o->csv, o->how, &j->names, &j->series, e);

	j->trainings = alloc_zero(o->n_trains, sizeof(*j->trainings));
	for (size_t i = 0; i < o->n_trains && !rc; i++)
		rc = read_file(o->trains[i], o->how, &j->names, &j->trainings[i], e);
	j->step_s = o->step_s > 0 ? o->step_s : j->series.step_s > 1 ? j->series.step_s : 1;
	if (!rc)
		rc = cut(j, e);
	for (size_t i = 0; i < j->n && !rc; i++)
		rc = make_run(j, &j->list[i], e);
	return rc;
}

/* Adds a verdict, its times converted from steps since the start of the run to the file's. */
static void diagnose_csv_put(
	json_t *list, const struct stretch *s, const char *detector, json_t *verdict, double step_s)
{
	json_t *times = jget(verdict, "time_s"), *v;
	const char *server;
	void *next;

	json_object_foreach_safe(times, next, server, v) json_object_set_new(
		times, server, json_real(s->from_s + json_number_value(v) * step_s));
	json_array_append_new(list,
		json_pack("{s:s, s:f, s:f, s:s, s:O}", "what", s->what, "from_s", s->from_s, "to_s",
			s->to_s, "detector", detector, "verdict", verdict));
}

static int diagnose_csv_ask(
	const struct job *j, struct detector *d, json_t *list, unsigned *failed, struct err *e)
{
	struct detector_run *runs = alloc_zero(j->n_training, sizeof(*runs));
	json_t *model = NULL;
	struct err why;
	int rc = 0;

	if (detector_trains(d) && !detector_external(d) && !j->n_training)
		rc = err_set(e, -EINVAL,
			"the detector '%s' must be trained; give fault-free times: --train FILE "
			"or --train-until TIME",
			detector_name(d));
	for (size_t i = 0; i < j->n_training && !rc; i++)
		runs[i] = j->list[i].run;
	if (!rc)
		rc = detector_train(d, runs, j->n_training, &model, e);
	for (const struct stretch *s = j->list + j->n_training; s < j->list + j->n && !rc; s++) {
		json_t *verdicts = NULL, *v;
		size_t k;
		int bad = detector_diagnose(d, model, &s->run, &verdicts, &why);
		if (bad == -EPERM || bad == -ENOMEM) {
			rc = err_set(e, bad, "%s", why.text);
		} else if (bad) {
			++*failed;
			verdicts = json_pack("[{s:s, s:[], s:b, s:s}]", "metric", "any", "indicted",
				"abstain", 1, "error", why.text);
		}
		json_array_foreach(verdicts, k, v)
			diagnose_csv_put(list, s, detector_name(d), v, j->step_s);
		json_decref(verdicts);
	}
	json_decref(model);
	free(runs);
	return rc;
}

int diagnose_csv(const struct csv_options *o, json_t **verdicts, unsigned *failed, struct err *e)
{
	bool training = o->n_trains || o->has_until;
	json_t *usual = json_pack(
		"[{s:s, s:{}}]", "name", training ? "peer-threshold" : "peer-robust", "params");
	json_t *list = json_array(), *choice;
	const json_t *detectors = json_array_size(o->detectors) ? o->detectors : usual;
	struct job j = {.o = o};
	size_t i;
	int rc = diagnose_csv_prepare(&j, e);

	*failed = 0;
	json_array_foreach((json_t *)detectors, i, choice) {
		struct detector *d = NULL;

		if (!rc)
			rc = detector_load(
				jget_text(choice, "name"), jget(choice, "params"), &d, e);
		if (!rc)
			rc = diagnose_csv_ask(&j, d, list, failed, e);
		detector_free(d);
	}
	job_clear(&j);
	json_decref(usual);
	if (rc)
		json_decref(list);
	else
		*verdicts = list;
	return rc;
}
