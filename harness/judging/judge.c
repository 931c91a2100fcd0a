/* Shows detectors a run's measurements and records their verdicts. */
#include "harness/judging/judge.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/jget.h"
#include "harness/base/sha256.h"
#include "harness/judging/judge_impl.h"

/* A confirmed attempt. */
struct judged {
	int64_t attempt;
	int32_t seconds;
};

void judge_free(struct judge *j)
{
	if (!j)
		return;
	for (size_t i = 0; i < j->n_parts; i++)
		judge_free(j->parts[i]);
	free(j->parts);
	instances_clear(j);
	free(j->names);
	free(j->aliases);
	free(j->alias_list);
	json_decref(j->servers);
	json_decref(j->file_system);
	free(j);
}

uint64_t judge_draw(const struct judge *j, const char *purpose, int64_t index)
{
	uint8_t digest[SHA256_BYTES];
	char text[160];
	uint64_t x = 0;
	int n = snprintf(text, sizeof(text), "%s %s %lld", j->key, purpose, (long long)index);

	sha256(text, (size_t)n, digest);
	for (int i = 0; i < 8; i++)
		x = x << 8 | digest[i];
	return x;
}

static void give_aliases(struct judge *j)
{
	size_t n = json_array_size(j->servers);

	j->names = alloc_zero(n, sizeof(*j->names));
	j->aliases = alloc_zero(n, sizeof(*j->aliases));
	j->alias_list = alloc_zero(n, sizeof(*j->alias_list));
	j->n_servers = n;
	for (size_t i = 0; i < n; i++) {
		j->names[i] = json_string_value(json_array_get(j->servers, i));
		snprintf(j->aliases[i], sizeof(j->aliases[i]), "server-%04zu", i + 1);
		j->alias_list[i] = j->aliases[i];
	}
	for (size_t i = n; i > 1; i--) {
		size_t k = judge_draw(j, "alias", (int64_t)i) % i;
		const char *name = j->names[k];

		j->names[k] = j->names[i - 1];
		j->names[i - 1] = name;
	}
}

/* Names the servers and loads the detectors; 'rc' is the result of preceding steps. */
static int judge_load(struct judge *j, const json_t *detectors, int rc, struct err *e)
{
	if (rc)
		return rc;
	give_aliases(j);
	return instances_load(j, detectors, e);
}

static int new_part(const json_t *detectors, const json_t *part, struct store *store,
	struct judge **out, struct err *e)
{
	struct judge *j = alloc_zero(1, sizeof(*j));
	const char *key = jget_text(part, "key");
	int rc = 0;

	*j = (struct judge){.servers = json_deep_copy(jget(part, "servers")),
		.store = store,
		.first = jget_int(part, "first"),
		.last = jget_int(part, "last")};
	snprintf(j->key, sizeof(j->key), "%s", key ? key : "");
	if (!*j->key || !json_is_array(j->servers))
		rc = err_blame(e, ERR_DAMAGED,
			err_set(e, -EBADMSG, "'%s' is damaged: its fact 'shards' is incomplete",
				store_folder(store)));
	rc = judge_load(j, detectors, rc, e);
	if (rc)
		judge_free(j);
	else
		*out = j;
	return rc;
}

/* 1: the store holds shards, and each now has a judge; 0: it holds none; or an error. */
static int new_parts(struct judge *j, const json_t *detectors, struct err *e)
{
	json_auto_t *shards = NULL;
	json_t *part;
	size_t i;
	int rc = store_get_json(j->store, "shards", &shards, e);

	if (rc != 1)
		return rc;
	j->parts = alloc_zero(json_array_size(shards), sizeof(struct judge *));
	json_array_foreach(shards, i, part) {
		rc = new_part(detectors, part, j->store, &j->parts[j->n_parts], e);
		if (rc)
			return rc;
		j->n_parts++;
	}
	return 1;
}

int judge_new(const json_t *detectors, const json_t *servers, struct store *store,
	struct judge **out, struct err *e)
{
	struct judge *j = alloc_zero(1, sizeof(*j));
	int rc;

	*j = (struct judge){.servers = json_deep_copy(servers), .store = store};
	rc = store ? new_parts(j, detectors, e) : 0;
	if (!rc && store)
		rc = store_blind_key(store, j->key, e);
	rc = judge_load(j, detectors, rc, e);
	if (rc < 0)
		judge_free(j);
	else
		*out = j;
	return rc < 0 ? rc : 0;
}

/* Does this judge judge the attempt? */
static bool judge_is_own(const struct judge *j, int64_t attempt)
{
	return !j->first || (attempt >= j->first && attempt <= j->last);
}

/* The duration of the scenario's phases, to which scored runs are cut. */
static int read_length(struct judge *j, struct err *e)
{
	auto_free char *text = NULL;
	int rc = store_get(j->store, "judged_seconds", &text, e);

	j->seconds = rc == 1 ? atoi(text) : 0;
	if (rc >= 0 && j->seconds <= 0)
		rc = err_set(e, -EINVAL, "'%s' does not record the duration of its cells",
			store_folder(j->store));
	return rc < 0 ? rc : 0;
}

/* The confirmed attempts of training, or scored ones ('only': this one; 0: all), sorted by cell.
 * The caller frees. */
static int list_confirmed(
	struct judge *j, bool training, int64_t only, struct judged **out, size_t *n, struct err *e)
{
	json_auto_t *rows = NULL;
	json_t *row;
	size_t i;
	int rc = store_rows(j->store, ROWS_CONFIRMED, 0, &rows, e);

	if (rc)
		return rc;
	*n = 0;
	*out = alloc_zero(json_array_size(rows), sizeof(**out));
	json_array_foreach(rows, i, row) {
		int64_t attempt = jget_int(row, "attempt");

		if (training == (jget_int(row, "training") != 0) && (!only || attempt == only) &&
			judge_is_own(j, attempt))
			(*out)[(*n)++] = (struct judged){
				attempt, (int32_t)jget_int(row, "seconds")};
	}
	return 0;
}

/* Number of planned training cells, confirmed or not. */
static int count_training(struct judge *j, size_t *n, struct err *e)
{
	json_auto_t *tally = NULL;
	json_t *cell;
	size_t i;
	int rc = store_tally(j->store, &tally, e);

	*n = 0;
	json_array_foreach(jget(tally, "cells"), i, cell)
		*n += jget_int(cell, "training") != 0;
	return rc;
}

static int train(struct judge *j, struct err *e)
{
	auto_free struct judged *training = NULL;
	auto_free struct evidence *runs = NULL;
	auto_free struct detector_run *list = NULL;
	size_t n = 0, planned = 0;
	int rc = store_get_json(j->store, "file_system", &j->file_system, e);

	rc = rc < 0 ? rc : read_length(j, e) ?: count_training(j, &planned, e);
	if (!rc)
		rc = list_confirmed(j, true, 0, &training, &n, e);
	runs = alloc_zero(n, sizeof(*runs));
	list = alloc_zero(n, sizeof(*list));
	for (size_t i = 0; i < n && !rc; i++) {
		rc = evidence_read(j, training[i].attempt, training[i].seconds, &runs[i], e);
		list[i] = runs[i].run;
	}
	for (size_t i = 0; i < j->n_instances && !rc; i++)
		rc = instance_train(&j->instances[i], list, n, planned, e);
	for (size_t i = 0; i < n; i++)
		evidence_clear(&runs[i]);
	j->trained = !rc;
	return rc;
}

/* The server or client with this alias; other strings are returned unchanged. */
static const char *true_name(const struct judge *j, const struct evidence *ev, const char *alias)
{
	const char *client = jget_text(ev->clients, alias);

	for (size_t i = 0; i < j->n_servers; i++)
		if (!strcmp(j->aliases[i], alias))
			return j->names[i];
	return client ? client : alias;
}

/* A detector's answer with real names. New reference. */
static json_t *unmask(const struct judge *j, const struct evidence *ev, const json_t *v)
{
	const char *key;
	json_t *item, *copy;
	size_t i;

	switch (json_typeof(v)) {
	case JSON_OBJECT:
		copy = json_object();
		json_object_foreach((json_t *)v, key, item)
			json_object_set_new(copy, true_name(j, ev, key), unmask(j, ev, item));
		return copy;
	case JSON_ARRAY:
		copy = json_array();
		json_array_foreach(v, i, item)
			json_array_append_new(copy, unmask(j, ev, item));
		return copy;
	case JSON_STRING: return json_string(true_name(j, ev, json_string_value(v)));
	default: return json_deep_copy(v);
	}
}

int judge_names(struct store *s, const json_t *v, json_t **out, struct err *e)
{
	const struct evidence none = {.clients = NULL};
	json_auto_t *servers = NULL, *shards = NULL;
	struct judge j = {.store = s};
	int rc = store_get_json(s, "shards", &shards, e);

	/* Each shard has its own aliases, and this text does not say which shard it is about. */
	if (rc == 1)
		*out = json_deep_copy(v);
	if (rc)
		return rc < 0 ? rc : 0;
	rc = store_get_json(s, "servers", &servers, e);
	j.servers = json_incref(servers ? servers : json_array());
	rc = rc < 0 ? rc : store_blind_key(s, j.key, e);
	if (!rc) {
		give_aliases(&j);
		*out = unmask(&j, &none, v);
	}
	free(j.names);
	free(j.aliases);
	free(j.alias_list);
	json_decref(j.servers);
	return rc;
}

/* Appends ", DETECTOR: RESULT" to 'text'. */
static void judge_describe(const json_t *verdict, const char *detector, char *text, size_t size)
{
	const json_t *indicted = jget(verdict, "indicted"), *name;
	const char *said = jget_true(verdict, "abstain") ? "abstains"
		: json_array_size(indicted)              ? ""
							 : "healthy";
	size_t i, n = strlen(text);

	n += (size_t)snprintf(text + n, size - n, ", %s: %s", detector, said);
	json_array_foreach(indicted, i, name) {
		if (n < size)
			n += (size_t)snprintf(
				text + n, size - n, "%s%s", i ? "+" : "", json_string_value(name));
	}
}

/* The verdict for a detector that failed. */
static json_t *failure(struct judge *j, const char *detector, const struct err *why)
{
	if (!j->failures++)
		err_set(&j->failure, -EPROTO, "%s: %s", detector, why->text);
	return json_pack("[{s:s, s:[], s:b, s:s}]", "metric", "any", "indicted", "abstain", 1,
		"error", why->text);
}

static void put_answer(struct judge *j, const char *name, int64_t attempt,
	const struct evidence *ev, struct detector_answer *a, json_t *rows)
{
	json_t *verdict, *named;
	size_t k;

	if (a->rc)
		a->verdicts = failure(j, name, &a->why);
	json_array_foreach(a->verdicts, k, verdict) {
		named = unmask(j, ev, verdict);
		json_array_append_new(rows,
			json_pack("{s:I, s:s, s:O, s:o}", "attempt", (json_int_t)attempt,
				"detector", name, "metric", jget(named, "metric"), "verdict",
				named));
	}
}

/* Appends all detectors' verdicts on some attempts to 'rows', attempt by attempt. */
static int judge_some(
	struct judge *j, const struct judged *which, size_t n, json_t *rows, struct err *e)
{
	auto_free struct detector_answer *answers = alloc_zero(
		j->n_instances * n, sizeof(*answers));
	struct evidence ev[AT_ONCE_MAX] = {{{0}}};
	int rc = 0;

	for (size_t i = 0; i < n && !rc; i++)
		rc = evidence_read(j, which[i].attempt,
			which[i].seconds < j->seconds ? which[i].seconds : j->seconds, &ev[i], e);
	for (size_t k = 0; k < j->n_instances && !rc; k++)
		rc = instance_ask(&j->instances[k], ev, n, &answers[k * n], e);
	for (size_t i = 0; i < n && !rc; i++)
		for (size_t k = 0; k < j->n_instances; k++)
			put_answer(j, j->instances[k].name, which[i].attempt, &ev[i],
				&answers[k * n + i], rows);
	for (size_t i = 0; i < n; i++)
		evidence_clear(&ev[i]);
	for (size_t i = 0; i < j->n_instances * n; i++)
		json_decref(answers[i].verdicts);
	return rc;
}

/* Large runs take much memory, so fewer of them are held at the same time. */
enum { SERVER_SECONDS_MAX = 50000 };

static size_t at_once(const struct judge *j)
{
	size_t room = SERVER_SECONDS_MAX / (j->n_servers * (size_t)j->seconds + 1) + 1;

	return AT_ONCE_MAX < room ? AT_ONCE_MAX : room;
}

static int judge_own(struct judge *j, int64_t only, json_t **out, struct err *e)
{
	json_auto_t *rows = json_array();
	auto_free struct judged *list = NULL;
	size_t n = 0, most;
	int rc = j->trained ? 0 : train(j, e);

	if (!rc)
		rc = list_confirmed(j, false, only, &list, &n, e);
	most = rc ? 1 : at_once(j);
	for (size_t i = 0; i < n && !rc; i += most)
		rc = judge_some(j, list + i, n - i < most ? n - i : most, rows, e);
	if (!rc)
		*out = json_incref(rows);
	return rc;
}

static int judge_parts(struct judge *j, int64_t only, json_t **out, struct err *e)
{
	json_auto_t *rows = json_array();
	int rc = 0;

	j->failures = 0;
	for (size_t i = 0; i < j->n_parts && !rc; i++) {
		struct judge *part = j->parts[i];
		auto_free struct judged *list = NULL;
		json_auto_t *own = NULL;
		size_t n = 0;

		/* A shard without scored attempts needs no training. */
		rc = list_confirmed(part, false, only, &list, &n, e);
		if (rc || !n)
			continue;
		rc = judge_own(part, only, &own, e);
		json_array_extend(rows, own);
		if (part->failures && !j->failures)
			j->failure = part->failure;
		j->failures += part->failures;
	}
	if (!rc)
		*out = json_incref(rows);
	return rc;
}

int judge_all(struct judge *j, int64_t only, json_t **out, struct err *e)
{
	return j->n_parts ? judge_parts(j, only, out, e) : judge_own(j, only, out, e);
}

/* The model of an external program is its training runs, which are already in the store. */
static int put_models(struct judge *j, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; i < j->n_instances && !rc; i++) {
		const struct instance *in = &j->instances[i];

		if (detector_trains(in->detector) && !detector_external(in->detector) && in->model)
			rc = store_put_model(
				j->store, in->name, detector_params(in->detector), in->model, e);
	}
	return rc;
}

static int put_all(struct judge *j, const json_t *rows, struct err *e)
{
	json_t *row;
	size_t i;
	int rc = put_models(j, e);

	json_array_foreach((json_t *)rows, i, row) {
		if (!rc)
			rc = store_put_verdict(j->store, jget_int(row, "attempt"),
				jget_text(row, "detector"), jget(row, "verdict"), e);
	}
	return rc;
}

/* Verdicts and the hashes of their detectors change in one transaction, so a run never names
 * another version. */
int judge_replace(struct judge *j, const json_t *rows, struct err *e)
{
	auto_free char *texts = json_dumps(j->texts, JSON_COMPACT);

	return store_clear_verdicts(j->store, e)
		?: put_all(j, rows, e)
		?: store_set(j->store, "detector_texts", texts, e);
}

int judge_save(struct judge *j, const json_t *rows, struct err *e)
{
	int rc = store_begin(j->store, e);

	return rc ? rc : store_end(j->store, judge_replace(j, rows, e), e);
}

int judge_attempt(struct judge *j, int64_t attempt, char *text, size_t size, struct err *e)
{
	const char *first = j->instances[0].name;
	json_auto_t *rows = NULL;
	json_t *row;
	size_t i;
	int rc;

	j->failures = 0;
	rc = judge_all(j, attempt, &rows, e);
	if (!rc)
		rc = store_begin(j->store, e);
	if (!rc)
		rc = store_end(j->store, put_all(j, rows, e), e);
	json_array_foreach(rows, i, row) {
		if (!rc && text && !strcmp(jget_text(row, "detector"), first) &&
			!strcmp(jget_text(row, "metric"), "any"))
			judge_describe(jget(row, "verdict"), first, text, size);
	}
	return !rc && j->failures ? err_set(e, -EPROTO, "%s", j->failure.text) : rc;
}

unsigned judge_failures(const struct judge *j, const char **first)
{
	*first = j->failures ? j->failure.text : NULL;
	return j->failures;
}
