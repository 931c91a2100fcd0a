#include "harness/cli/report_data.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "harness/base/jget.h"
#include "harness/cli/show.h"

/* Too private for a page that is passed on; it stays in run.db. */
static const char kept_back[] = "inventory_text";

static json_t *parsed(const char *text)
{
	json_t *v = text ? json_loads(text, JSON_DECODE_ANY, NULL) : NULL;

	return v ? v : json_null();
}

static int read_facts(struct store *s, json_t *index, struct err *e)
{
	json_t *rows = NULL, *row, *facts = json_object();
	size_t i;
	int rc = store_table(s, "fact", &rows, e);

	json_array_foreach(rows, i, row) {
		if (strcmp(jget_text(row, "key"), kept_back))
			json_object_set(facts, jget_text(row, "key"), jget(row, "value"));
	}
	json_decref(rows);
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

static int read_table(struct store *s, json_t *index, struct err *e)
{
	struct scoring *c = NULL;
	int rc = scoring_new(s, NULL, (struct cell_range){0}, &c, e);

	if (!rc)
		rc = read_scores(s, c, false, index, e);
	if (!rc)
		rc = read_scores(s, c, true, index, e);
	scoring_free(c);
	return rc;
}

/* Tables of the store that the page shows as they are. */
static int read_rows(struct store *s, json_t *index, struct err *e)
{
	static const char *const keys[][2] = {
		{"cells", "cell"}, {"attempts", "attempt"}, {"models", "model"}};
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

	json_object_set_new(index, "tally", tally);
	return rc;
}

static int read_verdicts(struct store *s, json_t *index, struct err *e)
{
	static const char *const keys[] = {"attempt", "detector", "metric"};
	json_t *rows = NULL, *row, *list = json_array();
	size_t i;
	int rc = store_rows(s, ROWS_VERDICTS, 0, &rows, e);

	json_array_foreach(rows, i, row) {
		json_t *verdict = json_copy(jget(row, "verdict"));

		json_object_del(verdict, "evidence");
		for (int k = 0; k < 3; k++)
			json_object_set(verdict, keys[k], jget(row, keys[k]));
		json_array_append_new(list, verdict);
	}
	json_decref(rows);
	json_object_set_new(index, "verdicts", list);
	return rc;
}

/* Of an attempt's detail the list of cells shows the run time alone. */
static void keep_runtime(json_t *attempt)
{
	json_t *detail = parsed(jget_text(attempt, "detail"));
	json_t *seconds = jget(detail, "runtime_s");

	if (seconds)
		json_object_set(attempt, "runtime_s", seconds);
	json_object_del(attempt, "detail");
	json_decref(detail);
}

int report_index(struct store *s, json_t **out, struct err *e)
{
	static int (*const parts[])(struct store *, json_t *, struct err *) = {
		read_tally, read_facts, read_table, read_rows, read_verdicts};
	json_t *index = json_pack("{s:{s:s, s:I}, s:s, s:o}", "report", "culprit_version",
		CULPRIT_VERSION, "made_s", (json_int_t)time(NULL), "run", store_run_id(s),
		"metrics", metric_list());
	json_t *row;
	size_t i;
	int rc = index ? 0 : err_set(e, -EINVAL, "the run's name is no text");

	for (i = 0; i < sizeof(parts) / sizeof(*parts) && !rc; i++)
		rc = parts[i](s, index, e);
	json_array_foreach(jget(index, "attempts"), i, row)
		keep_runtime(row);
	if (rc)
		json_decref(index);
	else
		*out = index;
	return rc;
}

/* Such a metric is not worth a chart. */
static bool is_constant(const struct sample *samples, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (samples[i].sum_s != samples->sum_s || samples[i].count != samples->count)
			return false;
	return true;
}

struct charted {
	json_t *metrics; /* {metric: {server: [[second], [count], [sum], [max], [bytes]]}} */
	json_t *moving;  /* {metric: true}: those of which a server's samples change */
};

static int add_series(void *ctx, const char *name, const char *server, const struct sample *samples,
	size_t n, struct err *e)
{
	struct charted *c = ctx;
	json_t *columns = json_pack("[[], [], [], [], []]");
	json_t *of = jget(c->metrics, name);
	enum metric m;

	(void)e;
	if (!is_constant(samples, n) || metric_from_name(name, &m) || m < METRIC_SERVICE_TIMES)
		json_object_set_new(c->moving, name, json_true());
	for (const struct sample *i = samples; i < samples + n; i++) {
		json_t *const values[] = {json_integer(i->second),
			json_integer((json_int_t)i->count), json_real(i->sum_s),
			json_real(i->max_s), json_integer((json_int_t)i->bytes)};

		for (size_t k = 0; k < sizeof(values) / sizeof(*values); k++)
			json_array_append_new(json_array_get(columns, k), values[k]);
	}
	if (!of)
		json_object_set_new(c->metrics, name, of = json_object());
	json_object_set_new(of, server, columns);
	return 0;
}

static int read_columns(struct store *s, int64_t attempt, json_t **out, struct err *e)
{
	struct charted c = {.metrics = json_object(), .moving = json_object()};
	int rc = store_samples(s, attempt, add_series, &c, e);
	const char *name;
	json_t *of;
	void *next;

	json_object_foreach_safe(c.metrics, next, name, of) if (!jget(c.moving, name))
		json_object_del(c.metrics, name);
	json_decref(c.moving);
	if (rc)
		json_decref(c.metrics);
	else
		*out = c.metrics;
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
	const json_t *files, json_t **out, struct err *e)
{
	json_int_t id = jget_int(attempt, "id");
	json_t *samples = NULL, *events = NULL, *detail;
	int rc = read_columns(s, id, &samples, e);

	if (!rc)
		rc = store_rows(s, ROWS_EVENTS, id, &events, e);
	if (rc) {
		json_decref(samples);
		return rc;
	}
	detail = parsed(jget_text(attempt, "detail"));
	/* Addresses, and for 'culprit remeasure' only. */
	json_object_del(detail, "reduction");
	*out = json_pack("{s:o, s:o, s:o, s:o, s:o}", "detail", detail, "samples", samples,
		"events", events, "verdicts", of_attempt(verdicts, id), "files",
		of_attempt(files, id));
	return 0;
}
