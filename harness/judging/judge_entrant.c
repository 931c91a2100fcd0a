/* Seats: the detectors that judge a run, under the names that tables have for them. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/judging/judge_impl.h"

void entrants_clear(struct judge *j)
{
	for (size_t i = 0; i < j->n_entrants; i++) {
		detector_free(j->entrants[i].detector);
		json_decref(j->entrants[i].model);
		free(j->entrants[i].broken);
		free(j->entrants[i].name);
	}
	free(j->entrants);
	j->entrants = NULL;
	j->n_entrants = 0;
}

/* A detector that draws gets a seed of its own, unless the scenario gave one. */
static int load_entrant(struct judge *j, const json_t *choice, struct err *e)
{
	const char *name = json_string_value(json_object_get(choice, "name"));
	json_t *params = json_deep_copy(json_object_get(choice, "params"));
	struct entrant *seat = &j->entrants[j->n_entrants];
	int rc;

	rc = detector_load(name, params, &seat->detector, e);
	if (!rc && json_object_get(detector_params(seat->detector), "seed") &&
		!json_object_get(params, "seed")) {
		detector_free(seat->detector);
		seat->detector = NULL;
		if (!params)
			params = json_object();
		json_object_set_new(params, "seed",
			json_integer((json_int_t)(judge_draw(j, "seed", 0) & 0x7fffffff)));
		rc = detector_load(name, params, &seat->detector, e);
	}
	json_decref(params);
	if (!rc)
		j->n_entrants++;
	return rc;
}

/* The null detectors that are not among them. New reference. */
static json_t *with_nulls(const json_t *detectors)
{
	json_t *all = json_array(), *choice;
	size_t i;

	json_array_extend(all, (json_t *)detectors);
	for (const char *const *null = detector_nulls(); *null; null++) {
		bool there = false;

		json_array_foreach((json_t *)detectors, i, choice) there = there ||
			!strcmp(json_string_value(json_object_get(choice, "name")), *null);
		if (!there)
			json_array_append_new(
				all, json_pack("{s:s, s:{}}", "name", *null, "params"));
	}
	return all;
}

/* "peer-threshold(margin=2,window=5)", with values as they were given. */
static char *name_with_params(const char *name, const json_t *params)
{
	char *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);
	const char *key, *before = "(";
	json_t *value;

	if (!f)
		return NULL;
	fputs(name, f);
	json_object_foreach((json_t *)params, key, value)
	{
		fprintf(f, "%s%s=", before, key);
		before = ",";
		if (json_is_string(value))
			fputs(json_string_value(value), f);
		else if (json_is_number(value))
			fprintf(f, "%.9g", json_number_value(value));
		else
			fputs(json_is_true(value) ? "true" : "false", f);
	}
	if (*before == ',')
		fputc(')', f);
	if (fclose(f)) {
		free(text);
		return NULL;
	}
	return text;
}

/* Seats have the order of 'choices'. */
static int name_entrants(struct judge *j, const json_t *choices, struct err *e)
{
	for (size_t i = 0; i < j->n_entrants; i++) {
		const char *name = detector_name(j->entrants[i].detector);
		bool twice = false;

		for (size_t k = 0; k < j->n_entrants; k++)
			twice = twice ||
				(k != i && !strcmp(name, detector_name(j->entrants[k].detector)));
		j->entrants[i].name = twice
			? name_with_params(
				  name, json_object_get(json_array_get(choices, i), "params"))
			: strdup(name);
		if (!j->entrants[i].name)
			return err_errno(e, -ENOMEM, "cannot judge");
		for (size_t k = 0; k < i; k++)
			if (!strcmp(j->entrants[k].name, j->entrants[i].name))
				return err_set(e, -EINVAL,
					"the detector '%s' stands twice with the same parameters (of two files, give "
					"one's table another name)",
					j->entrants[i].name);
	}
	return 0;
}

int entrants_load(struct judge *j, const json_t *detectors, struct err *e)
{
	json_t *all = with_nulls(detectors), *choice;
	size_t i;
	int rc;

	j->entrants = calloc(json_array_size(all) + 1, sizeof(*j->entrants));
	rc = j->entrants ? 0 : err_errno(e, -ENOMEM, "cannot judge");
	json_array_foreach(all, i, choice)
	{
		if (!rc)
			rc = load_entrant(j, choice, e);
	}
	if (!rc)
		rc = name_entrants(j, all, e);
	json_decref(all);
	return rc;
}

int entrant_train(struct entrant *s, const struct detector_run *list, size_t n, struct err *e)
{
	struct err why;
	int rc;

	if (!detector_trains(s->detector)) {
		s->model = json_object();
		return s->model ? 0 : err_errno(e, -ENOMEM, "cannot train");
	}
	if (!n && !detector_external(s->detector))
		return err_set(e, -EINVAL,
			"the detector '%s' must be trained, and there is no confirmed fault-free "
			"training run; add 'training' to the scenario",
			s->name);
	rc = detector_train(s->detector, list, n, &s->model, &why);
	if (rc && asprintf(&s->broken, "in training: %s", why.text) < 0)
		return err_errno(e, -ENOMEM, "cannot train");
	return 0;
}

enum { TIMEOUTS_MAX = 3 };

/* One that hangs and hangs again would hold up a night's run: it is not asked again. */
static void note_timeout(struct entrant *s, int failed, const struct err *why)
{
	s->timeouts = failed == -ETIMEDOUT ? s->timeouts + 1 : 0;
	if (s->timeouts == TIMEOUTS_MAX &&
		asprintf(&s->broken, "%s; given up after %d such runs", why->text, TIMEOUTS_MAX) <
			0)
		s->broken = NULL;
}

int entrant_ask(struct entrant *s, const struct evidence *ev, size_t n,
	struct detector_answer *answers, struct err *e)
{
	const struct detector_run *runs[AT_ONCE_MAX];
	int rc;

	for (size_t i = 0; i < n; i++) {
		runs[i] = &ev[i].run;
		answers[i] = (struct detector_answer){.rc = -EPROTO};
		if (s->broken)
			err_set(&answers[i].why, -EPROTO, "%s", s->broken);
	}
	if (s->broken)
		return 0;
	rc = detector_diagnose_all(s->detector, s->model, runs, answers, n, e);
	for (size_t i = 0; i < n && !rc; i++) {
		if (!s->broken)
			note_timeout(s, answers[i].rc, &answers[i].why);
		if (answers[i].rc == -EPERM ||
			answers[i].rc == -ENOMEM) /* no verdict of any run could be had */
			rc = err_set(e, answers[i].rc, "%s", answers[i].why.text);
	}
	return rc;
}
