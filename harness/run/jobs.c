/* Starts and stops what runs on nodes during an attempt. */
#include "harness/run/jobs.h"

#include <errno.h>
#include <lauxlib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"
#include "harness/base/jget.h"
#include "harness/base/clock.h"
#include "harness/run/trial_impl.h"
#include "harness/lua/luajson.h"
#include "harness/lua/luax.h"

/* A tracer of the file system's processes on the member; 1: none there. */
static int trace_args(const struct trial *t, const struct tracing *how, const char *out,
	const struct member *m, json_t **args)
{
	if (m->host->role == ROLE_OUTSIDER || !how->name || tracing_none(how) ||
		(how->one_server && m != t->x->cluster->servers[0]))
		return 1;
	*args = tracing_args(how, out, m->host->storage);
	tracing_add_bulk(*args, t->x->cluster->bulk);
	json_object_set(*args, "pids", m->pids);
	return 0;
}

static int tracer_args(struct trial *t, struct member *m, json_t **args, struct err *e)
{
	(void)e;
	return trace_args(t, t->tracing, "fs.trace", m, args);
}

static int second_args(struct trial *t, struct member *m, json_t **args, struct err *e)
{
	(void)e;
	return trace_args(t, &t->x->scenario->second, "fs.second.trace", m, args);
}

static int recorder_job_args(struct trial *t, struct member *m, json_t **args, struct err *e)
{
	const struct recorder *r = &t->x->scenario->recorder;

	(void)e;
	if (m->host->role == ROLE_OUTSIDER || !r->tracing.name)
		return 1;
	*args = recorder_args(r, "recorder.trace");
	json_object_set(*args, "pids", m->pids);
	return 0;
}

static int sampler_args(struct trial *t, struct member *m, json_t **args, struct err *e)
{
	(void)t, (void)e;
	if (!m->sampled)
		return 1;
	*args = json_pack(
		"{s:s, s:s, s:O}", "tracer", "sampler", "out", "fs.samples", "pids", m->pids);
	if (m->host->storage)
		json_object_set_new(*args, "paths", json_pack("[s]", m->host->storage));
	return 0;
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

/* Calls the workload's function 'name' (context, client); '*out' gets what it returns. */
static int call_workload(
	struct trial *t, const char *name, struct member *client, json_t **out, struct err *e)
{
	lua_State *L = t->x->scenario->L;
	int top = lua_gettop(L), rc;

	bind_push_function(L, t->workload, name);
	push_workload_context(t);
	bind_push_node(L, t->x->acts, client);
	rc = luax_call(L, 2, 1, e) ?: luajson_get(L, -1, out, e);
	lua_settop(L, top);
	return rc ? err_blame(e, ERR_SCENARIO, rc) : 0;
}

static int workload_args(struct trial *t, struct member *client, json_t **out, struct err *e)
{
	json_t *args = NULL;
	int rc = client->host->role == ROLE_CLIENT ? call_workload(t, "command", client, &args, e)
						   : 1;

	if (rc)
		return rc;
	if (!json_is_object(args)) {
		json_decref(args);
		err_set(e, -EINVAL, "%s: 'command' must return a table with 'argv'",
			t->workload->path);
		return err_blame(e, ERR_SCENARIO, -EINVAL);
	}
	json_object_set_new(args, "stdout", json_string("app.out"));
	json_object_set_new(args, "stderr", json_string("app.out"));
	if (!tracing_none(t->tracing) && !t->tracing->one_server)
		json_object_set_new(args, "trace", tracing_args(t->tracing, "app.trace", NULL));
	if (t->x->scenario->measure == MEASURE_RUNTIME) {
		json_object_del(args, "loop");
		json_object_set_new(args, "times", json_string("app.times"));
	}
	t->is_linked = t->is_linked || jget_true(args, "link");
	*out = args;
	return 0;
}

/* A flight recorder writes what it keeps when it is stopped, and has 30 s for that. */
#define SPARE_TIMEOUT_S 40

enum { VERDICTS = 1 << MEASURE_VERDICTS, RUNTIME = 1 << MEASURE_RUNTIME };

const struct job_kind job_kinds[JOB_KINDS] = {
	[JOB_WORKLOAD] = {.name = "the workload",
		.start = "process.start",
		.stop = "process.stop",
		.signal = "INT",
		.args = workload_args,
		.sink = "workload_exits",
		.summary = "trace",
		.is_log = true,
		.may_end = true,
		.files = {{"app.trace", VERDICTS}, {"app.out", VERDICTS | RUNTIME},
			{"app.times", RUNTIME}}},
	[JOB_TRACER] = {.name = "the tracer",
		.start = "trace.start",
		.stop = "trace.stop",
		.args = tracer_args,
		.sink = "traces",
		.is_log = true,
		.files = {{"fs.trace", VERDICTS}}},
	[JOB_SECOND_TRACER] = {.name = "the second tracer",
		.start = "trace.start",
		.stop = "trace.stop",
		.args = second_args,
		.sink = "second_traces",
		.is_log = true,
		.files = {{"fs.second.trace", VERDICTS}}},
	[JOB_RECORDER] = {.name = "the flight recorder",
		.start = "trace.start",
		.stop = "trace.stop",
		.args = recorder_job_args,
		.sink = "recorder_traces",
		.spare = true,
		.files = {{"recorder.trace", 0}},
		.more = RECORDER_WRITES},
	[JOB_SAMPLER] = {.name = "the sampler",
		.start = "trace.start",
		.stop = "trace.stop",
		.args = sampler_args,
		.sink = "samples",
		.files = {{"fs.samples", VERDICTS}}},
};

const struct job *trial_job(const struct trial *t, enum job_kind_id kind, const struct member *m)
{
	for (size_t i = 0; i < t->n_jobs; i++)
		if (t->jobs[i].kind == kind && t->jobs[i].member == m && t->jobs[i].running)
			return &t->jobs[i];
	return NULL;
}

/* Context of the functions that make a kind's arguments. */
struct jobs_of {
	struct trial *t;
	enum job_kind_id kind;
};

static int start_args(void *ctx, const struct member *m, json_t **args, struct err *e)
{
	struct jobs_of *s = ctx;

	return job_kinds[s->kind].args(s->t, (struct member *)m, args, e);
}

/* Starts a kind's jobs on all their nodes at once. Those that run are in t->jobs, in case of errors
 * as well. */
static int jobs_start(struct trial *t, enum job_kind_id kind, struct err *e)
{
	struct jobs_of s = {t, kind};
	json_auto_t *results = NULL;
	json_t *result;
	const char *name;
	int rc = cluster_ask(
		t->x->cluster, job_kinds[kind].start, start_args, &s, CALL_TIMEOUT_S, &results, e);

	json_object_foreach(results, name, result) {
		const char *handle = jget_text(result, "handle");
		struct job *job = &t->jobs[t->n_jobs++];

		*job = (struct job){
			kind, .member = cluster_member(t->x->cluster, name), .running = true};
		snprintf(job->handle, sizeof(job->handle), "%s", handle ? handle : "");
	}
	return rc;
}

int trial_start_tracers(struct trial *t, struct err *e)
{
	int rc = 0;

	for (enum job_kind_id k = 0; k < JOB_KINDS && !rc; k++)
		rc = k == JOB_WORKLOAD ? 0 : jobs_start(t, k, e);
	return rc ?: recorder_begin(t, e);
}

/* The workload's programs on all clients hear each other. */
static void link_workload(struct trial *t)
{
	struct node_end *ends = alloc_zero(t->n_jobs, sizeof(*ends));
	size_t n = 0;

	for (size_t i = 0; i < t->n_jobs; i++)
		if (t->jobs[i].kind == JOB_WORKLOAD)
			ends[n++] = (struct node_end){t->jobs[i].member->node, t->jobs[i].handle};
	nodeset_link(t->x->cluster->set, ends, n);
	free(ends);
}

int trial_start_workload(struct trial *t, struct err *e)
{
	int rc;

	t->has_begun = true;
	t->is_linked = false;
	rc = jobs_start(t, JOB_WORKLOAD, e);
	if (!rc && t->is_linked)
		link_workload(t);
	/* Tracers that sum in the kernel count seconds by the clock. */
	t->row.start_ns = (clock_real_ns() / 1000000000 + 1) * 1000000000;
	return rc;
}

static int stop_args(void *ctx, const struct member *m, json_t **args, struct err *e)
{
	struct jobs_of *s = ctx;
	struct job *job = (struct job *)trial_job(s->t, s->kind, m);

	(void)e;
	if (!job)
		return 1;
	*args = json_pack(
		"{s:s, s:s*}", "handle", job->handle, "signal", job_kinds[s->kind].signal);
	job->running = false;
	return 0;
}

int trial_stop(struct trial *t, json_t *results[JOB_KINDS], struct err *e)
{
	int first = 0;

	for (enum job_kind_id k = 0; k < JOB_KINDS; k++) {
		struct jobs_of s = {t, k};
		struct err why = {""};
		int rc = cluster_ask(t->x->cluster, job_kinds[k].stop, stop_args, &s,
			job_kinds[k].spare ? SPARE_TIMEOUT_S : CALL_TIMEOUT_S, &results[k], &why);

		if (rc && job_kinds[k].spare) {
			recorder_trouble(t, "%s", why.text);
		} else if (rc && !first) {
			first = rc;
			*e = why;
		}
	}
	return first;
}

struct run_logs {
	json_int_t records, calls, lost;
};

/* Adds up what the kind's jobs recorded. -EBADMSG with the first recording that is not whole. */
static int check_recordings(struct progress *progress, const struct job_kind *kind, json_t *results,
	struct run_logs *sum, struct err *e)
{
	const char *name;
	json_t *result;

	json_object_foreach(results, name, result) {
		const json_t *summary = kind->summary ? jget(result, kind->summary) : result;
		json_int_t missed = jget_int(summary, "lost");
		bool whole = jget_true(summary, "whole");

		if (!summary)
			continue;
		if (kind->is_log && kind != &job_kinds[JOB_SAMPLER] && jget_text(summary, "note"))
			progress_say(progress, "%s: %s", name, jget_text(summary, "note"));
		if (kind->is_log) {
			sum->records += jget_int(summary, "records");
			sum->calls += jget_int(summary, "calls");
			sum->lost += missed;
		}
		if (missed || !whole)
			return err_set(e, -EBADMSG,
				"%s: the trace is not whole: %lld records lost%s", name,
				(long long)missed, whole ? "" : ", cut short");
	}
	return 0;
}

int trial_stop_all(struct trial *t, struct err *e)
{
	json_t *results[JOB_KINDS];
	struct run_logs sum = {0};
	int rc = trial_stop(t, results, e);

	for (enum job_kind_id k = 0; k < JOB_KINDS; k++) {
		if (!job_kinds[k].spare)
			rc = rc
				?: check_recordings(
					   t->x->progress, &job_kinds[k], results[k], &sum, e);
		if (json_object_size(results[k]))
			json_object_set(t->detail, job_kinds[k].sink, results[k]);
		json_decref(results[k]);
	}
	recorder_stopped(t, jget(t->detail, job_kinds[JOB_RECORDER].sink));
	if (tracing_has_log(t->tracing)) {
		json_object_set_new(t->detail, "records", json_integer(sum.records));
		json_object_set_new(t->detail, "calls", json_integer(sum.calls));
		json_object_set_new(t->detail, "lost", json_integer(sum.lost));
	}
	return rc;
}

/* Runs the command that the workload's 'cleanup' names for one client. */
static int clean_client(struct trial *t, struct member *client, struct err *e)
{
	json_t *argv = NULL, *result = NULL;
	int rc = call_workload(t, "cleanup", client, &argv, e);

	if (rc || !json_is_array(argv)) {
		json_decref(argv);
		return rc;
	}
	rc = node_call(client->node, "run",
		json_pack("{s:o, s:i}", "argv", argv, "timeout_s", CLEAN_TIMEOUT_S),
		CLEAN_TIMEOUT_S + 10, &result, e);
	if (!rc && jget_int(result, "exit"))
		rc = err_set(e, -EIO, "%s", jget_text(result, "output"));
	json_decref(result);
	return rc;
}

void trial_clean_workload(struct trial *t)
{
	struct cluster *c = t->x->cluster;
	struct err why = {""};

	if (!trial_has(t, t->workload, "cleanup"))
		return;
	for (size_t i = 0; i < c->n_clients; i++)
		if (clean_client(t, c->clients[i], &why))
			progress_note(t->x->progress, "cell %zu: cleaning after %s failed: %s",
				t->cell->number, t->workload->label, why.text);
}
