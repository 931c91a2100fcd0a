/* The detectors that judge a run, with their names in tables. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"
#include "harness/base/jget.h"
#include "harness/judging/judge_impl.h"

void instances_clear(struct judge *j)
{
	for (size_t i = 0; i < j->n_instances; i++) {
		detector_free(j->instances[i].detector);
		json_decref(j->instances[i].model);
		free(j->instances[i].broken);
		free(j->instances[i].name);
	}
	free(j->instances);
	json_decref(j->texts);
}

/* A detector that uses random numbers gets a seed, unless the scenario gave one. */
static int load_instance(struct judge *j, const json_t *choice, struct err *e)
{
	const char *name = jget_text(choice, "name");
	json_auto_t *params = json_deep_copy(jget(choice, "params"));
	struct detector **detector = &j->instances[j->n_instances].detector;
	int rc = detector_load(name, params, detector, e);

	if (!rc && jget(detector_params(*detector), "seed") && !jget(params, "seed")) {
		detector_free(*detector);
		*detector = NULL;
		params = params ? params : json_object();
		json_object_set_new(params, "seed",
			json_integer((json_int_t)(judge_draw(j, "seed", 0) & 0x7fffffff)));
		rc = detector_load(name, params, detector, e);
	}
	j->n_instances += !rc;
	return rc;
}

/* 'detectors' plus the missing null detectors. New reference. */
static json_t *with_nulls(const json_t *detectors)
{
	json_t *all = json_array(), *choice;
	size_t i;

	json_array_extend(all, (json_t *)detectors);
	for (const char *const *null = detector_nulls(); *null; null++) {
		bool there = false;

		json_array_foreach((json_t *)detectors, i, choice)
			there = there || !strcmp(jget_text(choice, "name"), *null);
		if (!there)
			json_array_append_new(
				all, json_pack("{s:s, s:{}}", "name", *null, "params"));
	}
	return all;
}

/* "peer-threshold(margin=2,window=5)", with the values as given. */
static char *name_with_params(const char *name, const json_t *params)
{
	char *text, number[32];
	const char *key, *shown, *before = "(";
	json_t *value;
	size_t size;
	FILE *f = alloc_text(&text, &size);

	fputs(name, f);
	json_object_foreach((json_t *)params, key, value) {
		snprintf(number, sizeof(number), "%.9g", json_number_value(value));
		shown = json_is_string(value)   ? json_string_value(value)
			: json_is_number(value) ? number
			: json_is_true(value)   ? "true"
						: "false";
		fprintf(f, "%s%s=%s", before, key, shown);
		before = ",";
	}
	fputs(json_object_size(params) ? ")" : "", f);
	fclose(f);
	return text;
}

/* 'choices' has the same order as the instances. */
static int name_instances(struct judge *j, const json_t *choices, struct err *e)
{
	struct instance *all = j->instances;

	for (size_t i = 0; i < j->n_instances; i++) {
		const char *name = detector_name(all[i].detector);
		bool twice = false;

		for (size_t k = 0; k < j->n_instances; k++)
			twice = twice || (k != i && !strcmp(name, detector_name(all[k].detector)));
		all[i].name = twice
			? name_with_params(name, jget(json_array_get(choices, i), "params"))
			: alloc_copy(name);
		for (size_t k = 0; k < i; k++)
			if (!strcmp(all[k].name, all[i].name))
				return err_set(e, -EINVAL,
					"the detector '%s' is listed twice with the same "
					"parameters; if these are two files, give one of them "
					"another name",
					all[i].name);
	}
	return 0;
}

static json_t *texts_of(const struct judge *j, const json_t *detectors)
{
	json_t *texts = json_object(), *choice;
	size_t i;

	json_array_foreach((json_t *)detectors, i, choice) {
		const char *name = jget_text(choice, "name");
		json_t *params = jget(choice, "params");

		json_object_set_new(texts, jget(texts, name) ? j->instances[i].name : name,
			json_pack("{s:s, s:o}", "file", detector_digest(j->instances[i].detector),
				"params", params ? json_incref(params) : json_object()));
	}
	return texts;
}

int instances_load(struct judge *j, const json_t *detectors, struct err *e)
{
	json_auto_t *all = with_nulls(detectors);
	json_t *choice;
	size_t i;
	int rc = 0;

	j->instances = alloc_zero(json_array_size(all), sizeof(*j->instances));
	json_array_foreach(all, i, choice) {
		if (!rc)
			rc = load_instance(j, choice, e);
	}
	if (!rc)
		rc = name_instances(j, all, e);
	if (!rc)
		j->texts = texts_of(j, detectors);
	return rc;
}

#define NOT_AGAIN "; it is skipped from now on (its limit is 'time_limit_s')"

int instance_train(struct instance *in, const struct detector_run *list, size_t n, size_t planned,
	struct err *e)
{
	struct err why;
	int rc;

	if (!detector_trains(in->detector)) {
		in->model = json_object();
		return 0;
	}
	if (!n && planned && !detector_external(in->detector))
		return err_set(e, -EINVAL,
			"the detector '%s' needs training, but none of the plan's %zu training "
			"cells has a confirmed attempt; 'culprit resume' runs them",
			in->name, planned);
	if (!n && !detector_external(in->detector))
		return err_set(e, -EINVAL,
			"the detector '%s' needs training, but there is no confirmed fault-free "
			"training run; add 'training' to the scenario",
			in->name);
	rc = detector_train(in->detector, list, n, &in->model, &why);
	if (rc == -ETIMEDOUT && detector_external(in->detector))
		in->broken = alloc_format("in training: %s" NOT_AGAIN, why.text);
	else if (rc)
		in->broken = alloc_format("in training: %s", why.text);
	return 0;
}

enum { TIMEOUTS_MAX = 3 };

/* A detector that hangs in every run would delay all others, so it is given up. A program's limit
 * is wall time, half a minute per cell: it is given up after the first timeout. */
static void note_timeout(struct instance *in, struct detector_answer *a)
{
	in->timeouts = a->rc == -ETIMEDOUT ? in->timeouts + 1 : 0;
	if (in->timeouts && detector_external(in->detector)) {
		in->broken = alloc_format("%s" NOT_AGAIN, a->why.text);
		err_set(&a->why, a->rc, "%s", in->broken);
	} else if (in->timeouts == TIMEOUTS_MAX) {
		in->broken = alloc_format(
			"%s; given up after %d such runs", a->why.text, TIMEOUTS_MAX);
	}
}

int instance_ask(struct instance *in, const struct evidence *ev, size_t n,
	struct detector_answer *answers, struct err *e)
{
	const struct detector_run *runs[AT_ONCE_MAX];
	int rc;

	for (size_t i = 0; i < n; i++) {
		runs[i] = &ev[i].run;
		answers[i] = (struct detector_answer){.rc = -EPROTO};
		if (in->broken)
			err_set(&answers[i].why, -EPROTO, "%s", in->broken);
	}
	if (in->broken)
		return 0;
	rc = detector_diagnose_all(in->detector, in->model, runs, answers, n, e);
	for (size_t i = 0; i < n && !rc; i++) {
		if (!in->broken)
			note_timeout(in, &answers[i]);
		if (answers[i].rc == -EPERM ||
			answers[i].rc == -ENOMEM) /* these affect every run */
			rc = err_set(e, answers[i].rc, "%s", answers[i].why.text);
	}
	return rc;
}
