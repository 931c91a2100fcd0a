/* Turns a run's store into the JSON of a report. */
#include "harness/cli/report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/jget.h"
#include "harness/cli/tables.h"
#include "harness/judging/application.h"
#include "harness/judging/places.h"

/* Too private for a page that is passed on, or the secret that blinds detectors; both stay in
 * run.db. */
static const char *const kept_back[] = {"inventory_text", "blind_key"};

static json_t *parsed(const char *text)
{
	json_t *v = text ? json_loads(text, JSON_DECODE_ANY, NULL) : NULL;

	return v ? v : json_null();
}

/* Shards have a secret each. */
static void without_keys(json_t *facts)
{
	json_t *shards = json_loads(jget_text(facts, "shards") ?: "[]", 0, NULL), *part;
	size_t i;

	json_array_foreach(shards, i, part)
		json_object_del(part, "key");
	if (json_array_size(shards)) {
		auto_free char *text = json_dumps(shards, JSON_COMPACT);

		json_object_set_new(facts, "shards", json_string(text));
	}
	json_decref(shards);
}

static int read_facts(struct store *s, json_t *index, struct err *e)
{
	json_t *rows = NULL, *row, *facts = json_object();
	size_t i;
	int rc = store_table(s, "fact", &rows, e);

	json_array_foreach(rows, i, row)
		json_object_set(facts, jget_text(row, "key"), jget(row, "value"));
	for (i = 0; i < sizeof(kept_back) / sizeof(*kept_back); i++)
		json_object_del(facts, kept_back[i]);
	json_decref(rows);
	without_keys(facts);
	json_object_set_new(index, "facts", facts);
	return rc;
}

/* The scores exactly as 'culprit table --format json' prints them, or those by strength. */
static int read_scores(struct store *s, struct scoring *c, bool doses, json_t *index, struct err *e)
{
	char *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);
	int rc = doses ? show_doses(s, c, TABLE_JSON, false, SHOW_DOSE_LEVEL, f, e)
		       : show_table(s, c, TABLE_JSON, false, NULL, f, e);

	fclose(f);
	if (!rc || doses) /* a run need not have faults of several strengths */
		json_object_set_new(
			index, doses ? "doses" : "table", rc ? json_null() : parsed(text));
	free(text);
	return doses ? 0 : rc;
}

static int read_table(struct store *s, const json_t *verdicts, json_t *index, struct err *e)
{
	struct scoring *c = NULL;
	int rc = scoring_new(s, verdicts, (struct cell_range){0}, &c, e);

	if (!rc)
		rc = read_scores(s, c, false, index, e);
	if (!rc)
		rc = read_scores(s, c, true, index, e);
	scoring_free(c);
	return rc;
}

static json_t *impact_of_cell(const struct impacts *impacts, long cell)
{
	json_t *measures = json_object();

	for (int m = 0; m < IMPACT_MEASURES; m++)
		if (!impacts_unknown(impacts, m))
			json_object_set_new(measures, impact_name(m),
				impact_json(impacts_of_cell(impacts, m, cell)));
	return measures;
}

/* How much the fault of each cell slows the application: {measures that are known of some cell}. */
static int read_impacts(struct store *s, json_t *index, struct err *e)
{
	struct impacts *impacts = NULL;
	json_t *row;
	size_t i;
	int rc = application_impacts(s, (struct cell_range){0}, &impacts, e);

	json_array_foreach(jget(index, "cells"), i, row)
		if (!rc && jget_text(row, "victims") && !jget_int(row, "training"))
			json_object_set_new(row, "impact",
				impact_of_cell(impacts, (long)jget_int(row, "number")));
	impacts_free(impacts);
	return rc;
}

/* Tables of the store that the page shows as they are. */
static int read_rows(struct store *s, json_t *index, struct err *e)
{
	static const char *const keys[][2] = {{"cells", "cell"}, {"attempts", "attempt"}};
	int rc = 0;

	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys) && !rc; i++) {
		json_t *rows = NULL;

		rc = store_table(s, keys[i][1], &rows, e);
		json_object_set_new(index, keys[i][0], rows);
	}
	return rc;
}

static json_t *metric_list(void)
{
	json_t *list = json_array();

	for (int m = 0; m < METRIC_COUNT; m++)
		json_array_append_new(list,
			json_pack("{s:s, s:s, s:b, s:s}", "name", metric_name(m), "unit",
				metric_unit(m), "service_time", m < METRIC_SERVICE_TIMES,
				"definition", metric_definition(m)));
	return list;
}

static int read_tally(struct store *s, json_t *index, struct err *e)
{
	json_t *tally = NULL;
	int rc = store_tally(s, &tally, e);

	json_object_del(tally, "cells"); /* these are listed with their plan */
	json_object_set_new(index, "tally", tally);
	return rc;
}

/* {server: the larger of both}; '*all' may be NULL. */
static void join_severity(json_t **all, const json_t *one)
{
	const char *server;
	json_t *x;

	if (!json_is_object(one))
		return;
	*all = *all ? *all : json_object();
	json_object_foreach((json_t *)one, server, x)
		if (json_is_number(x) &&
			!(json_number_value(jget(*all, server)) > json_number_value(x)))
			json_object_set(*all, server, x);
}

/* Of a detector's verdicts on an attempt, those on single metrics follow one another: what they say
 * is in that on "any". How far each server came towards a limit is of all of them. */
static json_t *verdict_list(const json_t *rows)
{
	static const char *const keys[] = {"attempt", "detector"};
	auto_json json_t *joined = json_object();
	json_t *row, *list = json_array();
	size_t i;

	json_array_foreach((json_t *)rows, i, row) {
		auto_free char *key = alloc_format(
			"%lld %s", (long long)jget_int(row, "attempt"), jget_text(row, "detector"));
		json_t *severity = json_incref(jget(joined, key));

		join_severity(&severity, jget(jget(jget(row, "verdict"), "evidence"), "severity"));
		if (severity)
			json_object_set_new(joined, key, severity);
	}
	json_array_foreach((json_t *)rows, i, row) {
		auto_free char *key = alloc_format(
			"%lld %s", (long long)jget_int(row, "attempt"), jget_text(row, "detector"));
		const char *metric = jget_text(row, "metric");
		json_t *verdict;

		if (!metric || strcmp(metric, "any") != 0)
			continue;
		verdict = json_copy(jget(row, "verdict"));
		json_object_del(verdict, "evidence");
		for (int k = 0; k < 2; k++)
			json_object_set(verdict, keys[k], jget(row, keys[k]));
		if (jget(joined, key))
			json_object_set(verdict, "severity", jget(joined, key));
		json_array_append_new(list, verdict);
	}
	return list;
}

/* Models as the page shows them: with the names of servers. */
static int read_models(struct store *s, json_t *index, struct err *e)
{
	json_t *rows = NULL, *row;
	size_t i;
	int rc = store_table(s, "model", &rows, e);

	json_array_foreach(rows, i, row) {
		json_t *model = parsed(jget_text(row, "model")), *named = NULL;

		if (!rc)
			rc = judge_names(s, model, &named, e);
		json_object_set_new(row, "model", named ? named : json_null());
		json_decref(model);
	}
	json_object_set_new(index, "models", rows);
	return rc;
}

/* Of an attempt's detail the list of cells shows the run time alone; and whether its logs are
 * there, which timelines and queries read. */
static void keep_short(const struct store *s, json_t *attempt)
{
	auto_free char *folder = places_folder(store_folder(s), attempt);
	json_t *detail = parsed(jget_text(attempt, "detail"));
	json_t *seconds = jget(detail, "runtime_s");

	if (seconds)
		json_object_set(attempt, "runtime_s", seconds);
	json_object_del(attempt, "detail");
	json_decref(detail);
	if (!access(folder, F_OK))
		json_object_set_new(attempt, "logs", json_true());
}

int report_index(struct store *s, const json_t *verdicts, json_t **out, struct err *e)
{
	static int (*const parts[])(struct store *, json_t *, struct err *) = {
		read_tally, read_facts, read_rows, read_models, read_impacts};
	json_t *index = json_pack("{s:{s:s, s:I}, s:s, s:o}", "report", "culprit_version",
		CULPRIT_VERSION, "made_s", (json_int_t)time(NULL), "run", store_run_id(s),
		"metrics", metric_list());
	json_t *row;
	size_t i;
	int rc = index ? 0 : err_set(e, -EINVAL, "the run's name is no text");

	for (i = 0; i < sizeof(parts) / sizeof(*parts) && !rc; i++)
		rc = parts[i](s, index, e);
	rc = rc ?: read_table(s, verdicts, index, e);
	json_object_set_new(index, "verdicts", verdict_list(verdicts));
	json_array_foreach(jget(index, "attempts"), i, row)
		keep_short(s, row);
	if (rc)
		json_decref(index);
	else
		*out = index;
	return rc;
}

/* The rows of 'all' that belong to 'attempt', without saying so in each. */
static json_t *of_attempt(const json_t *all, json_int_t attempt)
{
	json_t *list = json_array(), *row;
	size_t i;

	json_array_foreach((json_t *)all, i, row) {
		if (jget_int(row, "attempt") == attempt) {
			json_t *copy = json_copy(row);

			json_object_del(copy, "attempt");
			json_array_append_new(list, copy);
		}
	}
	return list;
}

int report_block(struct store *s, const json_t *attempt, const json_t *verdicts,
	const json_t *files, const struct report_samples *samples, bool brief, json_t **out,
	struct err *e)
{
	json_int_t id = jget_int(attempt, "id");
	json_t *events = NULL, *detail;
	int rc = store_rows(s, ROWS_EVENTS, id, &events, e);

	if (rc)
		return rc;
	detail = parsed(jget_text(attempt, "detail"));
	/* Addresses, and for 'culprit rescore --remeasure' only. */
	json_object_del(detail, "reduction");
	if (brief && jget_text(attempt, "outcome") &&
		!strcmp(jget_text(attempt, "outcome"), "confirmed"))
		json_object_del(detail, "gates"); /* it passed them */
	*out = json_pack("{s:o, s:O, s:o, s:o, s:o}", "detail", detail, "samples", samples->what,
		"events", events, "verdicts", of_attempt(verdicts, id), "files",
		of_attempt(files, id));
	return 0;
}
