#include "harness/run/judge.h"

#include <errno.h>
#include <gsl/gsl_randist.h>
#include <gsl/gsl_rng.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diag/detectors/detector.h"

struct seat {
	struct detector *detector;
	json_t *model;
};

struct judge {
	struct seat *seats;
	size_t n_seats;
	const char **names;    /* alias i belongs to the server names[i]; borrowed from 'servers' */
	char (*aliases)[24];
	const char **alias_list;
	size_t n_servers;
	json_t *servers;
	uint64_t seed;
	struct store *store;
	json_t *file_system;   /* what its errors mean; NULL: not known */
	bool trained;
};

/* An attempt's samples as a detector gets them. */
struct evidence {
	struct detector_run run;
	struct sample *samples;
	json_t *events;
	char id[32];
};

void judge_free(struct judge *j)
{
	if (!j)
		return;
	for (size_t i = 0; i < j->n_seats; i++) {
		detector_free(j->seats[i].detector);
		json_decref(j->seats[i].model);
	}
	free(j->seats);
	free(j->names);
	free(j->aliases);
	free(j->alias_list);
	json_decref(j->servers);
	json_decref(j->file_system);
	free(j);
}

/* A generator for 'purpose', so that no draw here repeats one of the plan's. */
static gsl_rng *rng_new(uint64_t seed, unsigned long purpose)
{
	gsl_rng *rng = gsl_rng_alloc(gsl_rng_mt19937);

	if (rng)
		gsl_rng_set(rng, (unsigned long)((seed + 1) * 2654435761u + purpose * 40503u));
	return rng;
}

static int give_aliases(struct judge *j, struct err *e)
{
	gsl_rng *rng = rng_new(j->seed, 1);
	size_t n = json_array_size(j->servers);

	j->names = calloc(n + 1, sizeof(*j->names));
	j->aliases = calloc(n + 1, sizeof(*j->aliases));
	j->alias_list = calloc(n + 1, sizeof(*j->alias_list));
	if (!rng || !j->names || !j->aliases || !j->alias_list) {
		gsl_rng_free(rng);
		return err_errno(e, -ENOMEM, "cannot judge");
	}
	j->n_servers = n;
	for (size_t i = 0; i < n; i++) {
		j->names[i] = json_string_value(json_array_get(j->servers, i));
		snprintf(j->aliases[i], sizeof(j->aliases[i]), "server-%04zu", i + 1);
		j->alias_list[i] = j->aliases[i];
	}
	gsl_ran_shuffle(rng, j->names, n, sizeof(*j->names));
	gsl_rng_free(rng);
	return 0;
}

/* A detector that draws gets a seed of its own, unless the scenario gave one. */
static int load_seat(struct judge *j, const json_t *choice, struct err *e)
{
	const char *name = json_string_value(json_object_get(choice, "name"));
	json_t *params = json_deep_copy(json_object_get(choice, "params"));
	struct seat *seat = &j->seats[j->n_seats];
	int rc;

	rc = detector_load(name, params, &seat->detector, e);
	if (!rc && json_object_get(detector_params(seat->detector), "seed") && !json_object_get(params, "seed")) {
		gsl_rng *rng = rng_new(j->seed, 2);

		detector_free(seat->detector);
		seat->detector = NULL;
		if (!params)
			params = json_object();
		json_object_set_new(params, "seed", json_integer(rng ? (json_int_t)(gsl_rng_get(rng) & 0x7fffffff) : 1));
		gsl_rng_free(rng);
		rc = detector_load(name, params, &seat->detector, e);
	}
	json_decref(params);
	if (!rc)
		j->n_seats++;
	return rc;
}

int judge_new(const json_t *detectors, const json_t *servers, uint64_t seed, struct store *store, struct judge **out,
	      struct err *e)
{
	struct judge *j = calloc(1, sizeof(*j));
	const json_t *choice;
	size_t i;
	int rc;

	if (!j)
		return err_errno(e, -ENOMEM, "cannot judge");
	*j = (struct judge){.servers = json_deep_copy(servers), .seed = seed, .store = store,
			    .seats = calloc(json_array_size(detectors) + 1, sizeof(*j->seats))};
	rc = j->seats ? give_aliases(j, e) : err_errno(e, -ENOMEM, "cannot judge");
	json_array_foreach(detectors, i, choice) {
		if (!rc)
			rc = load_seat(j, choice, e);
	}
	for (i = 0; i + 1 < j->n_seats && !rc; i++)
		for (size_t k = i + 1; k < j->n_seats && !rc; k++)
			if (!strcmp(detector_name(j->seats[i].detector), detector_name(j->seats[k].detector)))
				rc = err_set(e, -EINVAL, "the detector '%s' stands twice; give one file's table another name",
					     detector_name(j->seats[i].detector));
	if (rc)
		judge_free(j);
	else
		*out = j;
	return rc;
}

static void evidence_clear(struct evidence *ev)
{
	free(ev->samples);
	json_decref(ev->events);
}

/* The name by which a detector knows the client 'name': numbered as they come, in this run only. */
static void client_alias(json_t *aliases, const char *name, char *text, size_t size)
{
	if (!json_object_get(aliases, name))
		json_object_set_new(aliases, name, json_integer((json_int_t)json_object_size(aliases) + 1));
	snprintf(text, size, "client-%04lld", (long long)json_integer_value(json_object_get(aliases, name)));
}

/* The events of an attempt as detectors get them: flat, and without the cluster's names. */
static int events_read(struct judge *j, int64_t attempt, json_t **out, struct err *e)
{
	json_t *rows = NULL, *row, *list = json_array(), *aliases = json_object();
	size_t i;
	int rc = store_events(j->store, attempt, &rows, e);

	json_array_foreach(rows, i, row) {
		const char *server = json_string_value(json_object_get(row, "server"));
		const char *client = json_string_value(json_object_get(row, "client"));
		json_t *v = json_deep_copy(json_object_get(row, "detail"));
		char alias[32];
		size_t k = 0;

		while (server && k < j->n_servers && strcmp(j->names[k], server))
			k++;
		json_object_set(v, "kind", json_object_get(row, "kind"));
		json_object_set(v, "time_s", json_object_get(row, "time_s"));
		if (server && k < j->n_servers)
			json_object_set_new(v, "server", json_string(j->aliases[k]));
		if (client) {
			client_alias(aliases, client, alias, sizeof(alias));
			json_object_set_new(v, "client", json_string(alias));
		}
		if (!server || k < j->n_servers)
			json_array_append(list, v);
		json_decref(v);
	}
	json_decref(rows);
	json_decref(aliases);
	if (rc)
		json_decref(list);
	else
		*out = list;
	return rc;
}

static int evidence_read(struct judge *j, int64_t attempt, int32_t seconds, struct evidence *ev, struct err *e)
{
	json_t *rows = NULL, *row;
	gsl_rng *rng = rng_new(j->seed, 3 + (unsigned long)attempt);
	size_t i, n = 0;
	int rc = store_samples(j->store, attempt, &rows, e);

	if (!rc)
		rc = events_read(j, attempt, &ev->events, e);
	if (!rc) {
		ev->samples = calloc(json_array_size(rows) + 1, sizeof(*ev->samples));
		if (!ev->samples || !rng)
			rc = err_errno(e, -ENOMEM, "cannot judge");
	}
	json_array_foreach(rows, i, row) {
		const char *server = json_string_value(json_object_get(row, "server"));
		struct sample *s;
		uint32_t k;

		if (rc)
			break;
		s = &ev->samples[n];
		for (k = 0; k < j->n_servers && strcmp(j->names[k], server); k++)
			;
		if (k == j->n_servers || metric_from_name(json_string_value(json_object_get(row, "metric")), &s->metric))
			continue;
		s->server = k;
		s->second = (int32_t)json_integer_value(json_object_get(row, "second"));
		s->count = (uint64_t)json_integer_value(json_object_get(row, "count"));
		s->sum_s = json_number_value(json_object_get(row, "sum_s"));
		s->max_s = json_number_value(json_object_get(row, "max_s"));
		s->bytes = (uint64_t)json_integer_value(json_object_get(row, "bytes"));
		n++;
	}
	if (!rc) {
		snprintf(ev->id, sizeof(ev->id), "%08lx", gsl_rng_get(rng));
		ev->run = (struct detector_run){.id = ev->id, .seconds = seconds, .servers = j->alias_list,
						.n_servers = j->n_servers, .samples = ev->samples, .n_samples = n,
						.events = ev->events, .file_system = j->file_system};
	}
	gsl_rng_free(rng);
	json_decref(rows);
	return rc;
}

static void read_file_system(struct judge *j)
{
	char *text = store_get(j->store, "file_system");

	if (text && !j->file_system)
		j->file_system = json_loads(text, 0, NULL);
	free(text);
}

static int train(struct judge *j, struct err *e)
{
	json_t *rows = NULL, *row;
	struct evidence *runs = NULL;
	struct detector_run *list = NULL;
	size_t i, n = 0;
	int rc = store_confirmed(j->store, &rows, e);

	read_file_system(j);
	if (!rc) {
		runs = calloc(json_array_size(rows) + 1, sizeof(*runs));
		list = calloc(json_array_size(rows) + 1, sizeof(*list));
		if (!runs || !list)
			rc = err_errno(e, -ENOMEM, "cannot train");
	}
	json_array_foreach(rows, i, row) {
		if (rc || !json_integer_value(json_object_get(row, "training")))
			continue;
		rc = evidence_read(j, json_integer_value(json_object_get(row, "attempt")),
				   (int32_t)json_integer_value(json_object_get(row, "seconds")), &runs[n], e);
		list[n] = runs[n].run;
		n++;
	}
	for (i = 0; i < j->n_seats && !rc; i++) {
		struct seat *s = &j->seats[i];

		if (!detector_trains(s->detector)) {
			s->model = json_object();
			continue;
		}
		if (!n) {
			rc = err_set(e, -EINVAL, "the detector '%s' must be trained, and there is no confirmed fault-free "
				     "training run; add 'training' to the scenario", detector_name(s->detector));
			break;
		}
		rc = detector_train(s->detector, list, n, &s->model, e);
		if (!rc)
			rc = store_put_model(j->store, detector_name(s->detector), detector_params(s->detector), s->model,
					     e);
	}
	for (i = 0; i < n; i++)
		evidence_clear(&runs[i]);
	free(runs);
	free(list);
	json_decref(rows);
	j->trained = !rc;
	return rc;
}

/* Aliases back to names, in values and keys, however deep. New reference. */
static json_t *unmask(const struct judge *j, const json_t *v)
{
	const char *key;
	json_t *item, *copy;
	size_t i;

	switch (json_typeof(v)) {
	case JSON_OBJECT:
		copy = json_object();
		json_object_foreach((json_t *)v, key, item) {
			for (i = 0; i < j->n_servers && strcmp(j->aliases[i], key); i++)
				;
			json_object_set_new(copy, i < j->n_servers ? j->names[i] : key, unmask(j, item));
		}
		return copy;
	case JSON_ARRAY:
		copy = json_array();
		json_array_foreach(v, i, item)
			json_array_append_new(copy, unmask(j, item));
		return copy;
	case JSON_STRING:
		for (i = 0; i < j->n_servers; i++)
			if (!strcmp(j->aliases[i], json_string_value(v)))
				return json_string(j->names[i]);
		/* fall through */
	default:
		return json_deep_copy(v);
	}
}

static void describe(const json_t *verdict, const char *detector, char *text, size_t size)
{
	const json_t *indicted = json_object_get(verdict, "indicted"), *name;
	size_t i, n = strlen(text);

	n += (size_t)snprintf(text + n, size - n, ", %s: %s", detector,
			      json_is_true(json_object_get(verdict, "abstain")) ? "abstains"
			      : json_array_size(indicted) ? "" : "healthy");
	json_array_foreach(indicted, i, name) {
		if (n < size)
			n += (size_t)snprintf(text + n, size - n, "%s%s", i ? "+" : "", json_string_value(name));
	}
}

static int judge_one(struct judge *j, int64_t attempt, int32_t seconds, char *text, size_t size, struct err *e)
{
	struct evidence ev = {0};
	int rc = evidence_read(j, attempt, seconds, &ev, e);

	if (!rc)
		rc = store_begin(j->store, e);
	for (size_t i = 0; i < j->n_seats && !rc; i++) {
		json_t *verdicts = NULL, *verdict;
		size_t k;

		rc = detector_diagnose(j->seats[i].detector, j->seats[i].model, &ev.run, &verdicts, e);
		json_array_foreach(verdicts, k, verdict) {
			json_t *named = unmask(j, verdict);
			const char *metric = json_string_value(json_object_get(named, "metric"));

			if (!rc)
				rc = store_put_verdict(j->store, attempt, detector_name(j->seats[i].detector), named, e);
			if (text && i == 0 && metric && !strcmp(metric, "any"))
				describe(named, detector_name(j->seats[i].detector), text, size);
			json_decref(named);
		}
		json_decref(verdicts);
	}
	if (!rc)
		rc = store_commit(j->store, e);
	if (rc)
		store_rollback(j->store);
	evidence_clear(&ev);
	return rc;
}

/* Judges the scored attempts of 'only' (0: all). */
static int judge_rows(struct judge *j, int64_t only, char *text, size_t size, struct err *e)
{
	json_t *rows = NULL, *row;
	size_t i;
	int rc = j->trained ? 0 : train(j, e);

	if (!rc)
		rc = store_confirmed(j->store, &rows, e);
	json_array_foreach(rows, i, row) {
		int64_t attempt = json_integer_value(json_object_get(row, "attempt"));

		if (!rc && !json_integer_value(json_object_get(row, "training")) && (!only || attempt == only))
			rc = judge_one(j, attempt, (int32_t)json_integer_value(json_object_get(row, "seconds")), text, size,
				       e);
	}
	json_decref(rows);
	return rc;
}

int judge_attempt(struct judge *j, int64_t attempt, char *text, size_t size, struct err *e)
{
	return judge_rows(j, attempt, text, size, e);
}

int judge_all(struct judge *j, struct err *e)
{
	int rc = store_clear_verdicts(j->store, e);

	return rc ? rc : judge_rows(j, 0, NULL, 0, e);
}
