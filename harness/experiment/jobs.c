#include "harness/experiment/trial.h"

#include <errno.h>
#include <lauxlib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/clock.h"
#include "harness/lua/luajson.h"
#include "harness/lua/luax.h"
#include "harness/experiment/sampling.h"

void trial_drop_results(struct node_request *requests, size_t n)
{
	for (size_t i = 0; i < n; i++)
		json_decref(requests[i].result);
	free(requests);
}

static void take_handle(struct job *job, struct member *m, const json_t *result)
{
	const char *handle = json_string_value(json_object_get(result, "handle"));

	job->member = m;
	job->running = true;
	snprintf(job->handle, sizeof(job->handle), "%s", handle ? handle : "");
}

/* One tracer a node, on the file system's processes there: servers, then clients. */
static int start_tracers(struct trial *t, const struct tracing *tracing, const char *out,
	struct job **jobs, size_t *count, struct err *e)
{
	struct cluster *c = t->x->cluster;
	size_t n = tracing_none(tracing) ? 0
		: tracing->one_server    ? 1
					 : c->n_servers + c->n_clients;
	struct node_request *requests = calloc(n + 1, sizeof(*requests));
	int rc;

	*jobs = calloc(n + 1, sizeof(**jobs));
	if (!requests || !*jobs) {
		free(requests);
		return err_errno(e, -ENOMEM, "cannot start the tracers");
	}
	for (size_t i = 0; i < n; i++) {
		struct member *m = i < c->n_servers ? c->servers[i] : c->clients[i - c->n_servers];

		(*jobs)[i].member = m;
		requests[i] = (struct node_request){.node = m->node,
			.op = "trace.start",
			.args = tracing_args(tracing, out, m->host->storage)};
		json_object_set(requests[i].args, "pids", m->pids);
	}
	*count = n;
	rc = node_call_all(requests, n, CALL_TIMEOUT_S, e);
	for (size_t i = 0; i < n; i++)
		if (requests[i].result)
			take_handle(&(*jobs)[i], (*jobs)[i].member, requests[i].result);
	trial_drop_results(requests, n);
	return rc;
}

/* As start_tracers, where there is a sampler. */
static int start_samplers(struct trial *t, struct err *e)
{
	struct cluster *c = t->x->cluster;
	size_t all = c->n_servers + c->n_clients, n = 0;
	struct node_request *requests = calloc(all, sizeof(*requests));
	int rc;

	t->samplers = calloc(all, sizeof(*t->samplers));
	if (!requests || !t->samplers) {
		free(requests);
		return err_errno(e, -ENOMEM, "cannot start the samplers");
	}
	for (size_t i = 0; i < all; i++) {
		struct member *m = i < c->n_servers ? c->servers[i] : c->clients[i - c->n_servers];

		if (!m->sampled)
			continue;
		t->samplers[n].member = m;
		requests[n++] = (struct node_request){.node = m->node,
			.op = "trace.start",
			.args = sampling_args(m, "fs.samples")};
	}
	t->n_samplers = n;
	rc = node_call_all(requests, n, CALL_TIMEOUT_S, e);
	for (size_t i = 0; i < n; i++)
		if (requests[i].result)
			take_handle(&t->samplers[i], t->samplers[i].member, requests[i].result);
	trial_drop_results(requests, n);
	return rc;
}

int trial_start_tracers(struct trial *t, struct err *e)
{
	const struct tracing *beside = &t->x->scenario->beside;
	int rc = start_tracers(t, t->tracing, "fs.trace", &t->tracers, &t->n_tracers, e);

	if (!rc && beside->name)
		rc = start_tracers(t, beside, "fs.beside.trace", &t->beside, &t->n_beside, e);
	if (!rc && t->x->scenario->measure == MEASURE_VERDICTS)
		rc = start_samplers(t, e);
	return rc;
}

static void push_workload_context(struct trial *t)
{
	lua_State *L = t->x->scenario->L;

	bind_push_context(
		L, t->x->acts, t->x->cluster, NULL, t->workload, store_run_id(t->x->store));
	lua_pushfstring(L, "%d.%d", (int)t->cell->number, (int)t->row.number);
	lua_setfield(L, -2, "attempt");
	lua_pushboolean(L, t->x->scenario->measure == MEASURE_RUNTIME);
	lua_setfield(L, -2, "once");
}

/* The workload's own cleaning after an attempt. That it fails spoils nothing that was measured: it
 * is noted. */
void trial_clean_workload(struct trial *t)
{
	lua_State *L = t->x->scenario->L;
	struct cluster *c = t->x->cluster;
	int top = lua_gettop(L);

	for (size_t i = 0; i < c->n_clients; i++) {
		json_t *argv = NULL, *result = NULL;
		struct err why = {""};
		int rc;

		lua_rawgeti(L, LUA_REGISTRYINDEX, t->workload->def_ref);
		if (lua_getfield(L, -1, "cleanup") != LUA_TFUNCTION)
			break;
		push_workload_context(t);
		bind_push_node(L, t->x->acts, c->clients[i]);
		rc = luax_call(L, 2, 1, &why);
		if (!rc)
			rc = luajson_get(L, -1, &argv, &why);
		if (!rc && !json_is_array(argv)) {
			json_decref(argv);
			continue;
		}
		if (!rc)
			rc = node_call(c->clients[i]->node, "run",
				json_pack("{s:o, s:i}", "argv", argv, "timeout_s", 60), 70, &result,
				&why);
		if (!rc && json_integer_value(json_object_get(result, "exit")))
			rc = err_set(&why, -EIO, "%s",
				json_string_value(json_object_get(result, "output")));
		if (rc)
			progress_note(t->x->progress, "cell %zu: cleaning after %s failed: %s",
				t->cell->number, t->workload->label, why.text);
		json_decref(result);
		lua_settop(L, top);
	}
	lua_settop(L, top);
}

/* The workload's command for one client, as process.start's arguments. */
static int workload_command(struct trial *t, struct member *client, json_t **args, struct err *e)
{
	lua_State *L = t->x->scenario->L;
	int top = lua_gettop(L), rc;

	lua_rawgeti(L, LUA_REGISTRYINDEX, t->workload->def_ref);
	lua_getfield(L, -1, "command");
	push_workload_context(t);
	bind_push_node(L, t->x->acts, client);
	rc = luax_call(L, 2, 1, e);
	if (!rc)
		rc = luajson_get(L, -1, args, e);
	lua_settop(L, top);
	if (!rc && !json_is_object(*args)) {
		json_decref(*args);
		rc = err_set(e, -EINVAL, "%s: 'command' must return a table with 'argv'",
			t->workload->path);
	}
	if (!rc) {
		json_object_set_new(*args, "stdout", json_string("app.out"));
		json_object_set_new(*args, "stderr", json_string("app.out"));
		if (!tracing_none(t->tracing) && !t->tracing->one_server)
			json_object_set_new(
				*args, "trace", tracing_args(t->tracing, "app.trace", NULL));
		if (t->x->scenario->measure == MEASURE_RUNTIME) {
			json_object_del(*args, "loop");
			json_object_set_new(*args, "times", json_string("app.times"));
		}
	}
	return rc;
}

int trial_start_workload(struct trial *t, struct err *e)
{
	struct cluster *c = t->x->cluster;
	struct node_request *requests = calloc(c->n_clients, sizeof(*requests));
	int rc = 0;

	t->apps = calloc(c->n_clients, sizeof(*t->apps));
	if (!requests || !t->apps) {
		free(requests);
		return err_errno(e, -ENOMEM, "cannot start the workload");
	}
	for (size_t i = 0; i < c->n_clients && !rc; i++) {
		requests[i] = (struct node_request){
			.node = c->clients[i]->node, .op = "process.start"};
		rc = workload_command(t, c->clients[i], &requests[i].args, e);
	}
	if (rc) {
		for (size_t i = 0; i < c->n_clients; i++)
			json_decref(requests[i].args);
		free(requests);
		return rc;
	}
	t->n_apps = c->n_clients;
	rc = node_call_all(requests, c->n_clients, CALL_TIMEOUT_S, e);
	for (size_t i = 0; i < c->n_clients; i++)
		if (requests[i].result)
			take_handle(&t->apps[i], c->clients[i], requests[i].result);
	trial_drop_results(requests, c->n_clients);
	/* The seconds of tracers that sum in the kernel are the clock's. */
	t->row.start_ns = (clock_real_ns() / 1000000000 + 1) * 1000000000;
	return rc;
}

/* Stops what of 'jobs' runs, all at once; results (may be NULL) gets {node: result}. */
int trial_stop_jobs(struct job *jobs, size_t n, const char *op, json_t *results, struct err *e)
{
	struct node_request *requests = calloc(n + 1, sizeof(*requests));
	size_t k = 0;
	int rc;

	if (!requests)
		return err_errno(e, -ENOMEM, "cannot stop what was started");
	for (size_t i = 0; i < n; i++) {
		json_t *args;

		if (!jobs[i].running)
			continue;
		args = json_pack("{s:s}", "handle", jobs[i].handle);
		if (!strcmp(op, "process.stop"))
			json_object_set_new(args, "signal", json_string("INT"));
		requests[k++] = (struct node_request){
			.node = jobs[i].member->node, .op = op, .args = args};
		jobs[i].running = false;
	}
	rc = node_call_all(requests, k, CALL_TIMEOUT_S, e);
	for (size_t i = 0; i < k && results; i++)
		if (requests[i].result)
			json_object_set(results, node_name(requests[i].node), requests[i].result);
	trial_drop_results(requests, k);
	return rc;
}

/* Complains of the first trace of {node: summary} that is not whole; 'member' names the summary in
 * a result, NULL: the result is it. Adds up what was recorded. */
static int check_traces(const json_t *results, const char *member, json_int_t *records,
	json_int_t *lost, struct err *e)
{
	const char *name;
	json_t *v;

	json_object_foreach((json_t *)results, name, v)
	{
		const json_t *summary = member ? json_object_get(v, member) : v;
		json_int_t missed = json_integer_value(json_object_get(summary, "lost"));

		if (!summary)
			continue;
		*records += json_integer_value(json_object_get(summary, "records"));
		*lost += missed;
		if (missed || !json_is_true(json_object_get(summary, "whole")))
			return err_set(e, -EBADMSG,
				"%s: the trace is not whole: %lld records lost%s", name,
				(long long)missed,
				json_is_true(json_object_get(summary, "whole")) ? ""
										: ", cut short");
	}
	return 0;
}

int trial_stop_all(struct trial *t, struct err *e)
{
	json_t *apps = json_object(), *tracers = json_object(), *beside = json_object(),
	       *samples = json_object();
	json_int_t records = 0, lost = 0, ignored = 0;
	int rc, rc2;
	struct err e2;

	rc = trial_stop_jobs(t->apps, t->n_apps, "process.stop", apps, e);
	rc2 = trial_stop_jobs(t->tracers, t->n_tracers, "trace.stop", tracers, &e2);
	if (!rc2)
		rc2 = trial_stop_jobs(t->beside, t->n_beside, "trace.stop", beside, &e2);
	if (!rc2)
		rc2 = trial_stop_jobs(t->samplers, t->n_samplers, "trace.stop", samples, &e2);
	if (!rc && rc2)
		rc = err_set(e, rc2, "%s", e2.text);
	if (!rc)
		rc = check_traces(tracers, NULL, &records, &lost, e);
	if (!rc)
		rc = check_traces(beside, NULL, &records, &lost, e);
	if (!rc)
		rc = check_traces(apps, "trace", &records, &lost, e);
	if (!rc)
		rc = check_traces(samples, NULL, &ignored, &ignored, e);
	if (tracing_has_log(t->tracing)) {
		json_object_set_new(t->detail, "records", json_integer(records));
		json_object_set_new(t->detail, "lost", json_integer(lost));
	}
	json_object_set_new(t->detail, "workload_exits", apps);
	json_object_set_new(t->detail, "traces", tracers);
	if (t->n_beside)
		json_object_set(t->detail, "beside_traces", beside);
	if (t->n_samplers)
		json_object_set(t->detail, "samples", samples);
	json_decref(beside);
	json_decref(samples);
	return rc;
}
