#include "harness/judging/judge.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/judging/judge_impl.h"

struct judged {
	int64_t attempt;
	int32_t seconds;
};

void judge_free(struct judge *j)
{
	if (!j)
		return;
	entrants_clear(j);
	free(j->names);
	free(j->aliases);
	free(j->alias_list);
	json_decref(j->servers);
	json_decref(j->file_system);
	free(j);
}

uint64_t judge_draw(const struct judge *j, const char *purpose, int64_t index)
{
	unsigned char digest[EVP_MAX_MD_SIZE];
	char text[160];
	uint64_t x = 0;
	int n = snprintf(text, sizeof(text), "%s %s %lld", j->key, purpose, (long long)index);

	EVP_Digest(text, (size_t)n, digest, NULL, EVP_sha256(), NULL);
	for (int i = 0; i < 8; i++)
		x = x << 8 | digest[i];
	return x;
}

static int give_aliases(struct judge *j, struct err *e)
{
	size_t n = json_array_size(j->servers);

	j->names = calloc(n + 1, sizeof(*j->names));
	j->aliases = calloc(n + 1, sizeof(*j->aliases));
	j->alias_list = calloc(n + 1, sizeof(*j->alias_list));
	if (!j->names || !j->aliases || !j->alias_list)
		return err_errno(e, -ENOMEM, "cannot judge");
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
	return 0;
}

int judge_new(const json_t *detectors, const json_t *servers, struct store *store,
	struct judge **out, struct err *e)
{
	struct judge *j = calloc(1, sizeof(*j));
	int rc;

	if (!j)
		return err_errno(e, -ENOMEM, "cannot judge");
	*j = (struct judge){.servers = json_deep_copy(servers), .store = store};
	if (store)
		store_blind_key(store, j->key);
	rc = give_aliases(j, e);
	if (!rc)
		rc = entrants_load(j, detectors, e);
	if (rc)
		judge_free(j);
	else
		*out = j;
	return rc;
}

static void read_file_system(struct judge *j)
{
	char *text = store_get(j->store, "file_system");

	if (text && !j->file_system)
		j->file_system = json_loads(text, 0, NULL);
	free(text);
}

/* The length that every scored run can be cut to: what was planned, or else what the shortest one
 * has. */
static void choose_length(struct judge *j, const json_t *rows)
{
	char *text = store_get(j->store, "judged_seconds");
	json_t *row;
	size_t i;

	j->seconds = text ? atoi(text) : 0;
	free(text);
	if (j->seconds > 0)
		return;
	json_array_foreach((json_t *)rows, i, row)
	{
		int32_t seconds = (int32_t)json_integer_value(json_object_get(row, "seconds"));

		if (!json_integer_value(json_object_get(row, "training")) &&
			(!j->seconds || seconds < j->seconds))
			j->seconds = seconds;
	}
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
		choose_length(j, rows);
		runs = calloc(json_array_size(rows) + 1, sizeof(*runs));
		list = calloc(json_array_size(rows) + 1, sizeof(*list));
		if (!runs || !list)
			rc = err_errno(e, -ENOMEM, "cannot train");
	}
	json_array_foreach(rows, i, row)
	{
		if (rc || !json_integer_value(json_object_get(row, "training")))
			continue;
		rc = evidence_read(j, json_integer_value(json_object_get(row, "attempt")),
			(int32_t)json_integer_value(json_object_get(row, "seconds")), &runs[n], e);
		list[n] = runs[n].run;
		n++;
	}
	for (i = 0; i < j->n_entrants && !rc; i++)
		rc = entrant_train(&j->entrants[i], list, n, e);
	for (i = 0; i < n; i++)
		evidence_clear(&runs[i]);
	free(runs);
	free(list);
	json_decref(rows);
	j->trained = !rc;
	return rc;
}

/* Models of a program are its training runs, which the store has anyway. */
static int put_models(struct judge *j, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; i < j->n_entrants && !rc; i++) {
		const struct entrant *s = &j->entrants[i];

		if (detector_trains(s->detector) && !detector_external(s->detector) && s->model)
			rc = store_put_model(
				j->store, s->name, detector_params(s->detector), s->model, e);
	}
	return rc;
}

/* The server or client behind an alias, or else what it was. */
static const char *true_name(const struct judge *j, const struct evidence *ev, const char *alias)
{
	for (size_t i = 0; i < j->n_servers; i++)
		if (!strcmp(j->aliases[i], alias))
			return j->names[i];
	return json_object_get(ev->clients, alias)
		? json_string_value(json_object_get(ev->clients, alias))
		: alias;
}

/* What a detector said, with true names. New reference. */
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
		json_array_foreach(v, i, item) json_array_append_new(copy, unmask(j, ev, item));
		return copy;
	case JSON_STRING: return json_string(true_name(j, ev, json_string_value(v)));
	default: return json_deep_copy(v);
	}
}

static void describe(const json_t *verdict, const char *detector, char *text, size_t size)
{
	const json_t *indicted = json_object_get(verdict, "indicted"), *name;
	size_t i, n = strlen(text);

	n += (size_t)snprintf(text + n, size - n, ", %s: %s", detector,
		json_is_true(json_object_get(verdict, "abstain")) ? "abstains"
			: json_array_size(indicted)               ? ""
								  : "healthy");
	json_array_foreach(indicted, i, name)
	{
		if (n < size)
			n += (size_t)snprintf(
				text + n, size - n, "%s%s", i ? "+" : "", json_string_value(name));
	}
}

/* What a detector that failed is written down with. */
static json_t *failure(struct judge *j, const char *detector, const struct err *why)
{
	if (!j->failures++)
		err_set(&j->failure, -EPROTO, "%s: %s", detector, why->text);
	return json_pack("[{s:s, s:[], s:b, s:s}]", "metric", "any", "indicted", "abstain", 1,
		"error", why->text);
}

/* The answer is used up. */
static void put_answer(struct judge *j, const char *name, int64_t attempt,
	const struct evidence *ev, struct detector_answer *a, json_t *rows)
{
	json_t *verdict;
	size_t k;

	if (a->rc)
		a->verdicts = failure(j, name, &a->why);
	json_array_foreach(a->verdicts, k, verdict)
	{
		json_t *named = unmask(j, ev, verdict);

		json_array_append_new(rows,
			json_pack("{s:I, s:s, s:O, s:o}", "attempt", (json_int_t)attempt,
				"detector", name, "metric", json_object_get(named, "metric"),
				"verdict", named));
	}
	json_decref(a->verdicts);
	a->verdicts = NULL;
}

/* What all detectors say of some attempts, appended to 'rows', attempt by attempt. */
static int judge_some(
	struct judge *j, const struct judged *which, size_t n, json_t *rows, struct err *e)
{
	struct detector_answer *answers = calloc(j->n_entrants * n + 1, sizeof(*answers));
	struct evidence ev[AT_ONCE_MAX] = {{{0}}};
	int rc = answers ? 0 : err_errno(e, -ENOMEM, "cannot judge");

	for (size_t i = 0; i < n && !rc; i++)
		rc = evidence_read(j, which[i].attempt,
			which[i].seconds < j->seconds ? which[i].seconds : j->seconds, &ev[i], e);
	for (size_t k = 0; k < j->n_entrants && !rc; k++)
		rc = entrant_ask(&j->entrants[k], ev, n, &answers[k * n], e);
	for (size_t i = 0; i < n && !rc; i++)
		for (size_t k = 0; k < j->n_entrants; k++)
			put_answer(j, j->entrants[k].name, which[i].attempt, &ev[i],
				&answers[k * n + i], rows);
	for (size_t i = 0; i < n; i++)
		evidence_clear(&ev[i]);
	for (size_t i = 0; answers && i < j->n_entrants * n; i++)
		json_decref(answers[i].verdicts);
	free(answers);
	return rc;
}

enum { SERVER_SECONDS_MAX = 50000 };

static size_t at_once(const struct judge *j)
{
	size_t most = 1;

	for (size_t i = 0; i < j->n_entrants; i++)
		if (detector_at_once(j->entrants[i].detector) > most)
			most = detector_at_once(j->entrants[i].detector);
	return most < AT_ONCE_MAX ? most : AT_ONCE_MAX;
}

/* Judges the scored attempts of 'only' (0: all). */
static int judge_rows(struct judge *j, int64_t only, json_t *rows, struct err *e)
{
	struct judged some[AT_ONCE_MAX];
	json_t *attempts = NULL, *row;
	size_t i, n = 0, most = at_once(j);
	int rc = j->trained ? 0 : train(j, e);

	if (!rc)
		rc = store_confirmed(j->store, &attempts, e);
	json_array_foreach(attempts, i, row)
	{
		int64_t attempt = json_integer_value(json_object_get(row, "attempt"));

		if (rc || json_integer_value(json_object_get(row, "training")) ||
			(only && attempt != only))
			continue;
		some[n++] = (struct judged){
			attempt, (int32_t)json_integer_value(json_object_get(row, "seconds"))};
		/* Large runs take much memory: fewer of them are held at once. */
		if (n == most || n * j->n_servers * (size_t)j->seconds > SERVER_SECONDS_MAX) {
			rc = judge_some(j, some, n, rows, e);
			n = 0;
		}
	}
	if (!rc && n)
		rc = judge_some(j, some, n, rows, e);
	json_decref(attempts);
	return rc;
}

/* Writes rows and models. */
static int put_all(struct judge *j, const json_t *rows, struct err *e)
{
	json_t *row;
	size_t i;
	int rc = put_models(j, e);

	json_array_foreach((json_t *)rows, i, row)
	{
		if (!rc)
			rc = store_put_verdict(j->store,
				json_integer_value(json_object_get(row, "attempt")),
				json_string_value(json_object_get(row, "detector")),
				json_object_get(row, "verdict"), e);
	}
	return rc;
}

int judge_replace(struct judge *j, const json_t *rows, struct err *e)
{
	int rc = store_clear_verdicts(j->store, e);

	return rc ? rc : put_all(j, rows, e);
}

/* In one transaction; 'clear': instead of what is there. */
static int save(struct judge *j, const json_t *rows, bool clear, struct err *e)
{
	int rc = store_begin(j->store, e);

	if (rc)
		return rc;
	rc = clear ? judge_replace(j, rows, e) : put_all(j, rows, e);
	if (!rc)
		rc = store_commit(j->store, e);
	if (rc)
		store_rollback(j->store);
	return rc;
}

int judge_attempt(struct judge *j, int64_t attempt, char *text, size_t size, struct err *e)
{
	json_t *rows = json_array(), *row;
	unsigned before = j->failures;
	size_t i;
	int rc = judge_rows(j, attempt, rows, e);

	if (!rc)
		rc = save(j, rows, false, e);
	json_array_foreach(rows, i, row)
	{
		const char *detector = json_string_value(json_object_get(row, "detector"));

		if (!rc && text && !strcmp(detector, j->entrants[0].name) &&
			!strcmp(json_string_value(json_object_get(row, "metric")), "any"))
			describe(json_object_get(row, "verdict"), detector, text, size);
	}
	if (!rc && j->failures > before) {
		json_array_foreach(rows, i, row)
		{
			const json_t *verdict = json_object_get(row, "verdict");

			if (!rc && json_object_get(verdict, "error"))
				rc = err_set(e, -EPROTO, "%s: %s",
					json_string_value(json_object_get(row, "detector")),
					json_string_value(json_object_get(verdict, "error")));
		}
	}
	json_decref(rows);
	return rc;
}

int judge_all(struct judge *j, int64_t only, json_t **rows, struct err *e)
{
	json_t *list = json_array();
	int rc = judge_rows(j, only, list, e);

	if (rc)
		json_decref(list);
	else
		*rows = list;
	return rc;
}

unsigned judge_failures(const struct judge *j, const char **first)
{
	*first = j->failures ? j->failure.text : NULL;
	return j->failures;
}

int judge_save(struct judge *j, const json_t *rows, struct err *e)
{
	return save(j, rows, true, e);
}
