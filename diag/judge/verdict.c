/*
 * The other half of the runtime: runs and models into Lua (run.c), models and verdicts out of it.
 */
#include <errno.h>
#include <lauxlib.h>
#include <stdlib.h>
#include <string.h>

#include "diag/judge/detector_impl.h"
#include "harness/lua/luajson.h"

struct inputs {
	struct detector *d;
	const struct detector_run *runs;
	size_t n;
	const json_t *model;
};

/* Leaves what train or diagnose is called with; protected, since memory may run out. */
static int push_inputs(lua_State *L)
{
	const struct inputs *in = lua_touserdata(L, 1);

	lua_settop(L, 0);
	if (in->model) {
		run_push(L, in->runs, 0);
		luajson_push(L, in->model);
	} else {
		lua_createtable(L, (int)in->n, 0);
		for (size_t i = 0, before = 0; i < in->n; i++) {
			run_push(L, &in->runs[i], before);
			lua_rawseti(L, -2, (lua_Integer)i + 1);
			before += run_metrics(&in->runs[i]) * in->runs[i].n_servers;
		}
	}
	luajson_push(L, in->d->params);
	return lua_gettop(L);
}

static int call_open(
	struct detector *d, const char *name, struct inputs *in, json_t **out, struct err *e)
{
	int rc = sandbox_load(d, e);

	if (rc)
		return rc;
	in->d = d;
	for (size_t i = 0; i < in->n; i++)
		sandbox_allow(d, (double)in->runs[i].n_servers * in->runs[i].seconds);
	lua_pushcfunction(d->L, push_inputs);
	lua_pushlightuserdata(d->L, in);
	rc = luax_call(d->L, 1, LUA_MULTRET, e);
	if (!rc)
		rc = detector_call(d, name, lua_gettop(d->L) - 1, e);
	if (!rc && !lua_istable(d->L, -1))
		rc = err_set(e, -EINVAL, "%s: '%s' must return a table, not a %s", d->src.path,
			name, luaL_typename(d->L, -1));
	if (!rc) {
		rc = luajson_get(d->L, -1, out, e);
		if (rc)
			err_prefix(e, rc, "%s: what '%s' returned", d->src.path, name);
	}
	sandbox_close(d);
	return rc;
}

/* Calls 'name' on the inputs; its result is JSON. */
static int call(
	struct detector *d, const char *name, struct inputs *in, json_t **out, struct err *e)
{
	const struct detector_run *given = in->runs;
	struct detector_run *runs = calloc(in->n + 1, sizeof(*runs));
	size_t opened = 0;
	int rc = runs ? 0 : err_errno(e, -ENOMEM, "cannot ask '%s'", d->name);

	while (opened < in->n && !rc) {
		rc = run_open(&given[opened], &runs[opened], e);
		opened += !rc;
	}
	in->runs = runs;
	if (!rc)
		rc = call_open(d, name, in, out, e);
	for (size_t i = 0; i < opened; i++)
		run_close(&given[i], &runs[i]);
	free(runs);
	return rc;
}

int detector_train(struct detector *d, const struct detector_run *runs, size_t n, json_t **model,
	struct err *e)
{
	struct inputs in = {.runs = runs, .n = n};
	json_t *m = NULL;
	int rc;

	if (d->external)
		return external_train(d, runs, n, model, e);
	if (!d->trains) {
		*model = json_object();
		return *model ? 0 : err_errno(e, -ENOMEM, "cannot make a model");
	}
	rc = call(d, "train", &in, &m, e);
	if (rc)
		return rc;
	/* An empty Lua table may be either; a model is an object. */
	if (json_is_array(m) && !json_array_size(m)) {
		json_decref(m);
		m = json_object();
	}
	if (!json_is_object(m)) {
		json_decref(m);
		return err_set(e, -EINVAL, "%s: 'train' must return a table with named entries",
			d->src.path);
	}
	*model = m;
	return 0;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The list, sorted, every name a server's and there once. New reference. */
static int read_indicted(const struct detector *d, const struct detector_run *run,
	const json_t *list, json_t **out, struct err *e)
{
	size_t n = json_array_size(list);
	const char **names = calloc(n ? n : 1, sizeof(*names));
	int rc = 0;

	if (!names)
		return err_errno(e, -ENOMEM, "cannot read a verdict");
	for (size_t i = 0; i < n && !rc; i++) {
		const char *name = json_string_value(json_array_get(list, i));
		size_t s = 0;

		while (name && s < run->n_servers && strcmp(run->servers[s], name))
			s++;
		if (!name || s == run->n_servers)
			rc = err_set(e, -EINVAL,
				"%s: a verdict indicts '%s', which is no server of the run",
				d->src.path, name ? name : "something that is not a name");
		names[i] = name;
	}
	if (!rc) {
		qsort(names, n, sizeof(*names), by_text);
		*out = json_array();
		for (size_t i = 0; i < n; i++)
			if (!i || strcmp(names[i - 1], names[i]))
				json_array_append_new(*out, json_string(names[i]));
	}
	free(names);
	return rc;
}

static int check_keys(const struct detector *d, const json_t *v, struct err *e)
{
	static const char *const keys[] = {
		"metric", "indicted", "abstain", "reason", "evidence", "time_s", "resource", NULL};
	const char *key, *near;
	json_t *item;

	json_object_foreach((json_t *)v, key, item)
	{
		size_t i = 0;

		while (keys[i] && strcmp(keys[i], key))
			i++;
		if (keys[i])
			continue;
		near = luax_nearest(key, keys);
		return luax_complain(&d->src, key, e, "verdict: unknown key '%s'%s%s%s", key,
			near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
	}
	return 0;
}

static bool knows_metric(const struct detector_run *run, const char *name)
{
	if (!strcmp(name, "any"))
		return true;
	for (size_t i = 0; i < run_metrics(run); i++)
		if (!strcmp(run_metric(run, i), name))
			return true;
	return false;
}

/* 'given': one time for all that are indicted, or one each; NULL: not told. '*out' is {server:
 * seconds}, or NULL. */
static int read_times(const struct detector *d, const json_t *indicted, const json_t *given,
	json_t **out, struct err *e)
{
	const char *server;
	json_t *name, *v;
	size_t i;

	if (!given || json_is_null(given) || (json_is_array(given) && !json_array_size(given)))
		return 0;
	if (!json_is_number(given) && !json_is_object(given))
		return err_set(e, -EINVAL,
			"%s: a verdict's 'time_s' is a number, or a table of server and number",
			d->src.path);
	json_object_foreach((json_t *)given, server, v) if (!json_is_number(v)) return err_set(
		e, -EINVAL, "%s: a verdict's 'time_s' of '%s' is no number", d->src.path, server);
	*out = json_object();
	json_array_foreach((json_t *)indicted, i, name)
	{
		const char *key = json_string_value(name);

		v = json_is_number(given) ? (json_t *)given : json_object_get(given, key);
		if (v)
			json_object_set_new(*out, key, json_real(json_number_value(v)));
	}
	return 0;
}

/* One verdict in its final form. New reference. */
static int read_verdict(const struct detector *d, const struct detector_run *run, const json_t *v,
	json_t **out, struct err *e)
{
	const json_t *metric = json_object_get(v, "metric"),
		     *indicted = json_object_get(v, "indicted");
	const json_t *abstain = json_object_get(v, "abstain"),
		     *reason = json_object_get(v, "reason");
	const json_t *resource = json_object_get(v, "resource");
	json_t *list = NULL, *times = NULL;
	int rc;

	if (!json_is_object(v))
		return err_set(
			e, -EINVAL, "%s: 'diagnose' must return a list of verdicts", d->src.path);
	rc = check_keys(d, v, e);
	if (rc)
		return rc;
	if (!json_is_string(metric) || !knows_metric(run, json_string_value(metric)))
		return err_set(e, -EINVAL,
			"%s: a verdict's metric is one of the run's (%s ...) or 'any'", d->src.path,
			run_metrics(run) ? run_metric(run, 0) : "none");
	if ((indicted && !json_is_array(indicted)) || (abstain && !json_is_boolean(abstain)) ||
		(reason && !json_is_string(reason)) || (resource && !json_is_string(resource)))
		return err_set(e, -EINVAL,
			"%s: a verdict's 'indicted' is a list, 'abstain' a boolean, 'reason' and 'resource' are strings",
			d->src.path);
	if (json_is_true(abstain) && json_array_size(indicted))
		return err_set(e, -EINVAL, "%s: a verdict on '%s' abstains and indicts",
			d->src.path, json_string_value(metric));
	rc = read_indicted(d, run, indicted, &list, e);
	if (!rc)
		rc = read_times(d, list, json_object_get(v, "time_s"), &times, e);
	if (rc) {
		json_decref(list);
		return rc;
	}
	*out = json_pack("{s:O, s:o, s:b}", "metric", metric, "indicted", list, "abstain",
		json_is_true(abstain));
	if (reason)
		json_object_set(*out, "reason", (json_t *)reason);
	if (json_object_get(v, "evidence"))
		json_object_set(*out, "evidence", json_object_get(v, "evidence"));
	if (times)
		json_object_set_new(*out, "time_s", times);
	if (resource && json_array_size(list))
		json_object_set(*out, "resource", (json_t *)resource);
	return 0;
}

/* Into 'all' goes each server's earliest time. */
static void earliest(json_t *all, const json_t *times)
{
	const char *server;
	json_t *v;

	json_object_foreach((json_t *)times, server, v)
	{
		const json_t *had = json_object_get(all, server);

		if (!had || json_number_value(v) < json_number_value(had))
			json_object_set(all, server, v);
	}
}

/* The union of what the metrics say. */
static int add_any(
	const struct detector *d, const struct detector_run *run, json_t *verdicts, struct err *e)
{
	json_t *all = json_array(), *times = json_object(), *list = NULL, *v, *any;
	const json_t *resource = NULL;
	bool abstain = true;
	size_t i;
	int rc;

	json_array_foreach(verdicts, i, v)
	{
		abstain = abstain && json_is_true(json_object_get(v, "abstain"));
		json_array_extend(all, json_object_get(v, "indicted"));
		earliest(times, json_object_get(v, "time_s"));
		if (!resource)
			resource = json_object_get(v, "resource");
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

static bool has_metric(const json_t *verdicts, const char *metric)
{
	json_t *v;
	size_t i;

	json_array_foreach((json_t *)verdicts, i,
		v) if (!strcmp(json_string_value(json_object_get(v, "metric")),
			       metric)) return true;
	return false;
}

/* What a detector returned -> what detector_diagnose promises. */
static int read_verdicts(struct detector *d, const struct detector_run *run, const json_t *raw,
	json_t **verdicts, struct err *e)
{
	json_t *done = json_array(), *any = NULL, *v, *one = NULL;
	size_t i;
	int rc = 0;

	if (!json_is_array(raw))
		rc = err_set(
			e, -EINVAL, "%s: 'diagnose' must return a list of verdicts", d->src.path);
	json_array_foreach((json_t *)raw, i, v)
	{
		if (rc)
			break;
		rc = read_verdict(d, run, v, &one, e);
		if (rc)
			break;
		if (has_metric(done, json_string_value(json_object_get(one, "metric"))) ||
			(any &&
				!strcmp(json_string_value(json_object_get(one, "metric")),
					"any"))) {
			rc = err_set(e, -EINVAL, "%s: two verdicts on '%s'", d->src.path,
				json_string_value(json_object_get(one, "metric")));
			json_decref(one);
		} else if (!strcmp(json_string_value(json_object_get(one, "metric")), "any")) {
			any = one;
		} else {
			json_array_append_new(done, one);
		}
	}
	if (!rc && any)
		json_array_append(done, any);
	else if (!rc)
		rc = add_any(d, run, done, e);
	json_decref(any);
	if (rc)
		json_decref(done);
	else
		*verdicts = done;
	return rc;
}

static int ask_programs(struct detector *d, const json_t *model,
	const struct detector_run *const *runs, struct detector_answer *answers, size_t n,
	struct err *e)
{
	struct external_answer *said = calloc(n + 1, sizeof(*said));
	int rc = said ? external_ask(d, model, runs, said, n, e)
		      : err_errno(e, -ENOMEM, "cannot ask '%s'", d->path);

	for (size_t i = 0; i < n && !rc; i++) {
		struct detector_answer *a = &answers[i];

		a->rc = said[i].rc;
		if (a->rc)
			a->why = said[i].why;
		else
			a->rc = read_verdicts(d, runs[i], said[i].said, &a->verdicts, &a->why);
		json_decref(said[i].said);
	}
	free(said);
	return rc;
}

int detector_diagnose_all(struct detector *d, const json_t *model,
	const struct detector_run *const *runs, struct detector_answer *answers, size_t n,
	struct err *e)
{
	struct inputs in = {.n = 1, .model = model};

	for (size_t i = 0; i < n; i++)
		answers[i] = (struct detector_answer){0};
	if (d->external)
		return ask_programs(d, model, runs, answers, n, e);
	for (size_t i = 0; i < n; i++) {
		struct detector_answer *a = &answers[i];
		json_t *raw = NULL;

		in.runs = runs[i];
		a->rc = call(d, "diagnose", &in, &raw, &a->why);
		if (!a->rc)
			a->rc = read_verdicts(d, runs[i], raw, &a->verdicts, &a->why);
		json_decref(raw);
	}
	return 0;
}

int detector_diagnose(struct detector *d, const json_t *model, const struct detector_run *run,
	json_t **verdicts, struct err *e)
{
	struct detector_answer a;
	int rc = detector_diagnose_all(d, model, &run, &a, 1, e);

	if (rc)
		return rc;
	if (a.rc)
		return err_set(e, a.rc, "%s", a.why.text);
	*verdicts = a.verdicts;
	return 0;
}
