/*
 * Asks detectors: passes runs (run_view.c) and models to Lua, and reads models and verdicts.
 */
#include <errno.h>
#include <lauxlib.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "diag/judge/detector_impl.h"
#include "harness/base/near.h"
#include "harness/base/alloc.h"
#include "harness/base/jget.h"
#include "harness/base/name.h"
#include "harness/lua/luajson.h"

enum { SERVER_SECONDS_PER_S = 50000, LOAD_MAX = 30 };

struct inputs {
	struct detector *d;
	const char *function; /* "train", "diagnose" */
	const struct detector_run *const *runs;
	const json_t *model; /* of diagnose */
	size_t n;            /* runs of one call; diagnose gets them one by one */
};

/* The data of one call: 'n' open runs. */
struct call {
	const struct inputs *in;
	struct detector_run *runs;
	size_t n;
};

/* Leaves the function and its arguments; protected, because memory may run out. */
static int push_inputs(lua_State *L)
{
	const struct call *c = lua_touserdata(L, 1);

	lua_settop(L, 0);
	if (c->in->model) {
		run_push(L, c->runs, 0);
		luajson_push(L, c->in->model);
	} else {
		lua_createtable(L, (int)c->n, 0);
		for (size_t i = 0, before = 0; i < c->n; i++) {
			run_push(L, &c->runs[i], before);
			lua_rawseti(L, -2, (lua_Integer)i + 1);
			before += run_metrics(&c->runs[i]) * c->runs[i].n_servers;
		}
	}
	luajson_push(L, c->in->d->params);
	return lua_gettop(L);
}

/* Large runs may take longer. */
static double more_time_s(const struct detector_run *run)
{
	return (double)run->n_servers * run->seconds / SERVER_SECONDS_PER_S;
}

static int call_open(const struct call *c, json_t **out, struct err *e)
{
	struct detector *d = c->in->d;
	const char *function = c->in->function;
	int rc = sandbox_load(d, e);

	if (rc)
		return rc;
	for (size_t i = 0; i < c->n; i++)
		luax_allow(d->L, more_time_s(&c->runs[i]));
	lua_pushcfunction(d->L, push_inputs);
	lua_pushlightuserdata(d->L, (void *)c);
	rc = luax_call(d->L, 1, LUA_MULTRET, e);
	if (!rc) {
		lua_getfield(d->L, 1, function);
		lua_insert(d->L, 2);
		rc = luax_call(d->L, lua_gettop(d->L) - 2, 1, e);
	}
	if (!rc && !lua_istable(d->L, -1))
		rc = err_set(e, -EINVAL, "%s: '%s' must return a table, not a %s", d->src.path,
			function, luaL_typename(d->L, -1));
	else if (!rc && (rc = luajson_get(d->L, -1, out, e)))
		err_prefix(e, rc, "%s: what '%s' returned", d->src.path, function);
	return rc;
}

/* Runs in the child. */
static int call(void *ctx, size_t i, json_t **out, struct err *e)
{
	const struct inputs *in = ctx;
	const struct detector_run *const *given = in->model ? in->runs + i : in->runs;
	struct call c = {.in = in, .n = in->model ? 1 : in->n};
	int rc;

	c.runs = alloc_zero(c.n, sizeof(*c.runs));
	for (size_t k = 0; k < c.n; k++)
		c.runs[k] = run_open(given[k]);
	rc = call_open(&c, out, e);
	sandbox_close(in->d);
	for (size_t k = 0; k < c.n; k++)
		run_close(given[k], &c.runs[k]);
	free(c.runs);
	return rc;
}

/* Asks a Lua detector 'questions' times; the time limit suits a heavily loaded machine. */
static int ask_lua(
	struct inputs *in, size_t questions, struct detector_answer *answers, struct err *e)
{
	double seconds = luax_seconds();

	for (size_t i = 0; i < in->n; i++)
		seconds += more_time_s(in->runs[i]);
	return child_ask(call, in, questions, in->d->path, 60 + LOAD_MAX * seconds, answers, e);
}

int detector_train(struct detector *d, const struct detector_run *runs, size_t n, json_t **model,
	struct err *e)
{
	const struct detector_run **list;
	struct detector_answer a = {0};
	int rc;

	if (d->external)
		return program_train(d, runs, n, model, e);
	if (!d->trains) {
		*model = json_object();
		return 0;
	}
	list = alloc_zero(n, sizeof(*list));
	for (size_t i = 0; i < n; i++)
		list[i] = &runs[i];
	rc = ask_lua(&(struct inputs){.d = d, .function = "train", .runs = list, .n = n}, 1, &a, e);
	free(list);
	if (rc)
		return rc;
	if (a.rc) {
		*e = a.why;
		return a.rc;
	}
	/* An empty Lua table is an empty array; a model is an object. */
	if (json_is_array(a.verdicts) && !json_array_size(a.verdicts)) {
		json_decref(a.verdicts);
		a.verdicts = json_object();
	}
	if (!json_is_object(a.verdicts)) {
		json_decref(a.verdicts);
		return luax_complain(
			&d->src, NULL, e, "'train' must return a table with named entries");
	}
	*model = a.verdicts;
	return 0;
}

static bool is_server(const struct detector_run *run, const char *name)
{
	for (size_t s = 0; name && s < run->n_servers; s++)
		if (!strcmp(run->servers[s], name))
			return true;
	return false;
}

static int verdict_by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Reads the list, sorted and without duplicates; every name must be a server's. New reference. */
static int read_indicted(const struct detector *d, const struct detector_run *run,
	const json_t *list, json_t **out, struct err *e)
{
	size_t n = json_array_size(list), i;
	const char **names = alloc_zero(n, sizeof(*names));
	json_t *item;
	int rc = 0;

	json_array_foreach((json_t *)list, i, item) {
		const char *name = json_string_value(item);

		if (!rc && !is_server(run, name))
			rc = luax_complain(&d->src, NULL, e,
				"a verdict indicts '%s', which is not a server of the run",
				name ? name : "something that is not a name");
		if (!rc)
			names[i] = name;
	}
	if (!rc) {
		qsort(names, n, sizeof(*names), verdict_by_text);
		*out = json_array();
	}
	for (i = 0; i < n && !rc; i++)
		if (!i || strcmp(names[i - 1], names[i]))
			json_array_append_new(*out, json_string(names[i]));
	free(names);
	return rc;
}

/* "disk", "network/hog": only names, because tables and TAP print them. */
static bool is_resource(const char *text)
{
	const char *slash = strchr(text, '/');
	char first[NAME_LENGTH_MAX + 2];

	snprintf(first, sizeof(first), "%.*s", slash ? (int)(slash - text) : INT_MAX, text);
	return !name_check("resource", first, NULL) &&
		(!slash || !name_check("resource", slash + 1, NULL));
}

static bool knows_metric(const struct detector_run *run, const char *name)
{
	bool known = !strcmp(name, "any");

	for (size_t i = 0; i < run_metrics(run) && !known; i++)
		known = !strcmp(run_metric(run, i), name);
	return known;
}

/* Checks keys and types. */
static int check_form(
	const struct detector *d, const struct detector_run *run, const json_t *v, struct err *e)
{
	static const char *const keys[] = {
		"metric", "indicted", "abstain", "reason", "evidence", "time_s", "resource", NULL};
	const char *metric = jget_text(v, "metric"), *key;
	const json_t *indicted = jget(v, "indicted"), *abstain = jget(v, "abstain"),
		     *reason = jget(v, "reason"), *resource = jget(v, "resource");
	json_t *item;

	if (!json_is_object(v))
		return luax_complain(&d->src, NULL, e, "'diagnose' must return a list of verdicts");
	json_object_foreach((json_t *)v, key, item) {
		const char *near;
		size_t i = 0;

		while (keys[i] && strcmp(keys[i], key))
			i++;
		if (keys[i])
			continue;
		near = near_match(key, keys);
		return luax_complain(&d->src, key, e, "verdict: unknown key '%s'%s%s%s", key,
			near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
	}
	if (!metric || !knows_metric(run, metric))
		return luax_complain(&d->src, NULL, e,
			"a verdict's metric must be one of the run's (%s ...) or 'any'",
			run_metrics(run) ? run_metric(run, 0) : "none");
	if ((indicted && !json_is_array(indicted)) || (abstain && !json_is_boolean(abstain)) ||
		(reason && !json_is_string(reason)) || (resource && !json_is_string(resource)))
		return luax_complain(&d->src, NULL, e,
			"a verdict's 'indicted' must be a list, 'abstain' a boolean, 'reason' and "
			"'resource' strings");
	if (resource && !is_resource(json_string_value(resource)))
		return luax_complain(&d->src, "resource", e,
			"a verdict's 'resource' must be a name, or two names joined by a slash");
	if (json_is_true(abstain) && json_array_size(indicted))
		return luax_complain(
			&d->src, NULL, e, "a verdict on '%s' both abstains and indicts", metric);
	return 0;
}

/* A call in progress when the run starts has an event before 0. */
enum { BEFORE_START_S = 2 };

/* 'server' is NULL if one time is given for all indicted servers. */
static int check_time(const struct detector *d, const struct detector_run *run, const char *server,
	const json_t *time, struct err *e)
{
	const double time_s = json_number_value(time);

	if (json_is_number(time) && time_s >= -BEFORE_START_S && time_s <= run->seconds)
		return 0;
	if (!json_is_number(time))
		return luax_complain(
			&d->src, NULL, e, "a verdict's 'time_s' of '%s' is not a number", server);
	return luax_complain(&d->src, "time_s", e,
		"a verdict's 'time_s'%s%s%s is %.6g, outside of the run: give seconds from its "
		"start, 0 to %ld",
		server ? " of '" : "", server ? server : "", server ? "'" : "", time_s,
		(long)run->seconds);
}

/* 'given' is one time for all indicted servers, or a time for each; NULL: none. '*out' becomes
 * {server: seconds}, or stays NULL. */
static int read_times(const struct detector *d, const struct detector_run *run,
	const json_t *indicted, const json_t *given, json_t **out, struct err *e)
{
	const char *server;
	json_t *name, *v;
	size_t i;
	int rc = 0;

	if (!given || json_is_null(given) || (json_is_array(given) && !json_array_size(given)))
		return 0;
	if (!json_is_number(given) && !json_is_object(given))
		return luax_complain(&d->src, NULL, e,
			"a verdict's 'time_s' must be a number, or a table of server and number");
	if (json_is_number(given))
		rc = check_time(d, run, NULL, given, e);
	json_object_foreach((json_t *)given, server, v)
		rc = rc ?: check_time(d, run, server, v, e);
	if (rc)
		return rc;
	*out = json_object();
	json_array_foreach((json_t *)indicted, i, name) {
		const char *key = json_string_value(name);

		v = json_is_number(given) ? (json_t *)given : jget(given, key);
		if (v)
			json_object_set_new(*out, key, json_real(json_number_value(v)));
	}
	return 0;
}

/* Reads one verdict into its final form. New reference. */
static int read_verdict(const struct detector *d, const struct detector_run *run, const json_t *v,
	json_t **out, struct err *e)
{
	static const char *const kept[] = {"reason", "evidence", "resource", NULL};
	json_t *list = NULL, *times = NULL;
	int rc = check_form(d, run, v, e);

	if (!rc)
		rc = read_indicted(d, run, jget(v, "indicted"), &list, e);
	if (!rc)
		rc = read_times(d, run, list, jget(v, "time_s"), &times, e);
	if (rc) {
		json_decref(list);
		return rc;
	}
	*out = json_pack("{s:O, s:o, s:b}", "metric", jget(v, "metric"), "indicted", list,
		"abstain", jget_true(v, "abstain"));
	for (size_t i = 0; kept[i]; i++)
		if (strcmp(kept[i], "resource") || json_array_size(list))
			json_object_set(*out, kept[i], jget(v, kept[i]));
	if (times)
		json_object_set_new(*out, "time_s", times);
	return 0;
}

/* Merges each server's earliest time into 'all'. */
static void earliest(json_t *all, const json_t *times)
{
	const char *server;
	json_t *v;

	json_object_foreach((json_t *)times, server, v) {
		const json_t *had = jget(all, server);

		if (!had || json_number_value(v) < json_number_value(had))
			json_object_set(all, server, v);
	}
}

/* Adds the union of the verdicts on metrics. */
static int add_any(
	const struct detector *d, const struct detector_run *run, json_t *verdicts, struct err *e)
{
	json_t *all = json_array(), *times = json_object(), *list = NULL, *v, *any;
	const json_t *resource = NULL;
	bool abstain = true;
	size_t i;
	int rc;

	json_array_foreach(verdicts, i, v) {
		abstain = abstain && jget_true(v, "abstain");
		json_array_extend(all, jget(v, "indicted"));
		earliest(times, jget(v, "time_s"));
		if (!resource)
			resource = jget(v, "resource");
	}
	rc = read_indicted(d, run, all, &list, e);
	if (!rc) {
		any = json_pack(
			"{s:s, s:o, s:b}", "metric", "any", "indicted", list, "abstain", abstain);
		if (json_object_size(times))
			json_object_set(any, "time_s", times);
		if (resource)
			json_object_set(any, "resource", (json_t *)resource);
		json_array_append_new(verdicts, any);
	}
	json_decref(times);
	json_decref(all);
	return rc;
}

/* Turns a detector's result into the form that detector_diagnose promises. */
static int read_verdicts(struct detector *d, const struct detector_run *run, const json_t *raw,
	json_t **verdicts, struct err *e)
{
	json_t *done = json_array(), *by_metric = json_object(), *any, *v;
	size_t i;
	int rc = json_is_array(raw)
		? 0
		: luax_complain(&d->src, NULL, e, "'diagnose' must return a list of verdicts");

	json_array_foreach((json_t *)raw, i, v) {
		json_t *one = NULL;
		const char *metric;

		if (!rc)
			rc = read_verdict(d, run, v, &one, e);
		if (rc)
			break;
		metric = jget_text(one, "metric");
		if (jget(by_metric, metric))
			rc = luax_complain(&d->src, NULL, e, "two verdicts on '%s'", metric);
		else if (strcmp(metric, "any"))
			json_array_append(done, one);
		json_object_set_new(by_metric, metric, one);
	}
	any = jget(by_metric, "any");
	if (!rc && any)
		json_array_append(done, any);
	else if (!rc)
		rc = add_any(d, run, done, e);
	json_decref(by_metric);
	if (rc)
		json_decref(done);
	else
		*verdicts = done;
	return rc;
}

int detector_diagnose_all(struct detector *d, const json_t *model,
	const struct detector_run *const *runs, struct detector_answer *answers, size_t n,
	struct err *e)
{
	struct inputs in = {.d = d, .function = "diagnose", .runs = runs, .model = model, .n = n};
	int rc = 0;

	memset(answers, 0, n * sizeof(*answers));
	if (d->external)
		program_ask(d, model, runs, answers, n);
	else
		rc = ask_lua(&in, n, answers, e);
	for (size_t i = 0; i < n && !rc; i++) {
		struct detector_answer *a = &answers[i];
		json_t *raw = a->verdicts;

		a->verdicts = NULL;
		if (!a->rc)
			a->rc = read_verdicts(d, runs[i], raw, &a->verdicts, &a->why);
		json_decref(raw);
	}
	return rc;
}

int detector_diagnose(struct detector *d, const json_t *model, const struct detector_run *run,
	json_t **verdicts, struct err *e)
{
	struct detector_answer a;
	int rc = detector_diagnose_all(d, model, &run, &a, 1, e);

	if (!rc && a.rc && e)
		*e = a.why;
	if (!rc && !a.rc)
		*verdicts = a.verdicts;
	return rc ? rc : a.rc;
}
