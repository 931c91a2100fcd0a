#include "harness/run/attempt.h"

#include <errno.h>
#include <lauxlib.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "harness/base/clock.h"
#include "harness/base/file.h"
#include "harness/base/lua/luajson.h"
#include "harness/base/lua/luax.h"
#include "harness/run/measure.h"

#define CALL_TIMEOUT_S 30
#define VERIFY_PERIOD_S 0.2
#define RECONNECT_S 10 /* for clients to find a restarted server, under a fault that may keep them from it */
#define HEALTHY_S 60

/* One thing that runs on a node for the length of the attempt. */
struct job {
	struct member *member;
	char handle[64];
	bool running;
};

struct trial {
	struct executor *x;
	const struct cell *cell;
	const struct part *workload, *fault; /* fault NULL: control */
	struct member *victims[MAX_VICTIMS];
	int contexts[MAX_VICTIMS];       /* Lua: the fault's context for each victim */
	size_t n_victims, n_contexts;
	char victim_names[128];
	struct attempt_row row;
	struct job *tracers, *apps;      /* tracers: servers then clients; apps: clients */
	size_t n_tracers, n_apps;
	json_t *before, *detail;
	char *folder;                    /* "cells/0007.1", below the run's */
	struct err gone;                 /* set when an event made the attempt invalid */
	bool is_gone;
};

double attempt_phases_s(const struct scenario *s)
{
	return s->before_s + s->fault_s + s->after_s;
}

static bool stop_asked(const struct trial *t)
{
	return *t->x->interrupted > 0;
}

static void note_phase(struct trial *t, double left_s, const char *what)
{
	progress_now(t->x->progress, left_s, "cell %zu %s x %s: %s", t->cell->number, t->workload->label,
		     cell_fault(t->x->scenario, t->cell), what);
}

/* Written before the step is taken. */
static void note_step(struct trial *t, const char *step)
{
	progress_note(t->x->progress, "cell %zu attempt %ld step %s", t->cell->number, t->row.number, step);
}

/* One request to every member of a list; results stay in 'requests'. */
static int ask_all(struct node_request *requests, size_t n, struct err *e)
{
	int rc = node_call_all(requests, n, CALL_TIMEOUT_S, e);

	return rc;
}

static void drop_results(struct node_request *requests, size_t n)
{
	for (size_t i = 0; i < n; i++)
		json_decref(requests[i].result);
	free(requests);
}

/* {node: fingerprint} of the whole cluster. New reference. */
static int fingerprint(struct trial *t, json_t **out, struct err *e)
{
	struct cluster *c = t->x->cluster;
	struct node_request *requests = calloc(c->n_members, sizeof(*requests));
	int rc;

	if (!requests)
		return err_errno(e, -ENOMEM, "cannot take fingerprints");
	for (size_t i = 0; i < c->n_members; i++)
		requests[i] = (struct node_request){
			.node = c->members[i].node, .op = "fingerprint",
			.args = json_array_size(c->members[i].pids) ? json_pack("{s:O}", "pids", c->members[i].pids) : NULL};
	rc = ask_all(requests, c->n_members, e);
	if (!rc) {
		*out = json_object();
		for (size_t i = 0; i < c->n_members; i++)
			json_object_set(*out, node_name(c->members[i].node), requests[i].result);
	}
	drop_results(requests, c->n_members);
	return rc;
}

/* The first string of 'list' that 'other' has not; NULL if there is none. */
static const char *first_not_in(const json_t *list, const json_t *other)
{
	const json_t *a, *b;
	size_t i, j;

	json_array_foreach((json_t *)list, i, a) {
		json_array_foreach((json_t *)other, j, b)
			if (json_equal(a, b))
				break;
		if (j == json_array_size(other))
			return json_string_value(a);
	}
	return NULL;
}

/* Says the first difference between two fingerprints of the cluster. */
static int compare_fingerprints(const json_t *before, const json_t *after, struct err *e)
{
	const char *name, *key;
	json_t *was, *value;

	json_object_foreach((json_t *)before, name, was) {
		json_object_foreach(was, key, value) {
			const json_t *is = json_object_get(json_object_get(after, name), key);
			const char *lost = first_not_in(value, is), *new = first_not_in(is, value);

			if (lost || new)
				return err_set(e, -EBUSY, "%s: its %s are not what they were: %s%.300s%s%s%.300s", name, key,
					       lost ? "lost " : "", lost ? lost : "", lost && new ? "; " : "",
					       new ? "new " : "", new ? new : "");
		}
	}
	return 0;
}

static void take_handle(struct job *job, struct member *m, const json_t *result)
{
	const char *handle = json_string_value(json_object_get(result, "handle"));

	job->member = m;
	job->running = true;
	snprintf(job->handle, sizeof(job->handle), "%s", handle ? handle : "");
}

static int start_tracers(struct trial *t, struct err *e)
{
	struct cluster *c = t->x->cluster;
	size_t n = c->n_servers + c->n_clients;
	struct node_request *requests = calloc(n, sizeof(*requests));
	int rc;

	t->tracers = calloc(n, sizeof(*t->tracers));
	if (!requests || !t->tracers) {
		free(requests);
		return err_errno(e, -ENOMEM, "cannot start the tracers");
	}
	for (size_t i = 0; i < n; i++) {
		struct member *m = i < c->n_servers ? c->servers[i] : c->clients[i - c->n_servers];

		t->tracers[i].member = m;
		requests[i] = (struct node_request){
			.node = m->node, .op = "trace.start",
			.args = json_pack("{s:s, s:O, s:s}", "tracer", t->x->scenario->tracer, "pids", m->pids, "out",
					  "fs.trace")};
	}
	t->n_tracers = n;
	rc = ask_all(requests, n, e);
	for (size_t i = 0; i < n; i++)
		if (requests[i].result)
			take_handle(&t->tracers[i], t->tracers[i].member, requests[i].result);
	drop_results(requests, n);
	return rc;
}

static void push_workload_context(struct trial *t)
{
	lua_State *L = t->x->scenario->L;

	bind_push_context(L, t->x->acts, t->x->cluster, NULL, t->workload, store_run_id(t->x->store));
	lua_pushfstring(L, "%d.%d", (int)t->cell->number, (int)t->row.number);
	lua_setfield(L, -2, "attempt");
}

/* The workload's own cleaning after an attempt. That it fails spoils nothing that was measured: it is noted. */
static void clean_workload(struct trial *t)
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
			rc = node_call(c->clients[i]->node, "run", json_pack("{s:o, s:i}", "argv", argv, "timeout_s", 60), 70,
				       &result, &why);
		if (!rc && json_integer_value(json_object_get(result, "exit")))
			rc = err_set(&why, -EIO, "%s", json_string_value(json_object_get(result, "output")));
		if (rc)
			progress_note(t->x->progress, "cell %zu: cleaning after %s failed: %s", t->cell->number,
				      t->workload->label, why.text);
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
		rc = err_set(e, -EINVAL, "%s: 'command' must return a table with 'argv'", t->workload->path);
	}
	if (!rc) {
		json_object_set_new(*args, "stdout", json_string("app.out"));
		json_object_set_new(*args, "stderr", json_string("app.out"));
		json_object_set_new(*args, "trace", json_pack("{s:s, s:s}", "tracer", t->x->scenario->tracer, "out",
							      "app.trace"));
	}
	return rc;
}

static int start_workload(struct trial *t, struct err *e)
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
		requests[i] = (struct node_request){.node = c->clients[i]->node, .op = "process.start"};
		rc = workload_command(t, c->clients[i], &requests[i].args, e);
	}
	if (rc) {
		for (size_t i = 0; i < c->n_clients; i++)
			json_decref(requests[i].args);
		free(requests);
		return rc;
	}
	t->n_apps = c->n_clients;
	rc = ask_all(requests, c->n_clients, e);
	for (size_t i = 0; i < c->n_clients; i++)
		if (requests[i].result)
			take_handle(&t->apps[i], c->clients[i], requests[i].result);
	drop_results(requests, c->n_clients);
	t->row.start_ns = clock_real_ns();
	return rc;
}

/* Unasked messages of agents: a workload or tracer that ended, something the guard undid. */
static void on_event(void *ctx, struct node *n, const json_t *event)
{
	struct trial *t = ctx;
	const char *kind = json_string_value(json_object_get(event, "event"));
	const char *handle = json_string_value(json_object_get(event, "handle"));
	int code = (int)json_integer_value(json_object_get(event, "exit"));

	if (!kind || !handle || t->is_gone)
		return;
	/* Under such a fault the server may crash, and the application fail: that is what is measured. */
	if (t->fault && t->fault->may_fail && !strcmp(kind, "exit"))
		return;
	for (size_t i = 0; i < t->n_apps; i++) {
		if (t->apps[i].running && t->apps[i].member->node == n && !strcmp(t->apps[i].handle, handle) && code) {
			t->is_gone = true;
			err_set(&t->gone, -EIO, "%s: the workload %s ended by itself with %d", node_name(n),
				t->workload->label, code);
		}
	}
	for (size_t i = 0; i < t->n_tracers; i++) {
		if (t->tracers[i].running && t->tracers[i].member->node == n && !strcmp(t->tracers[i].handle, handle)) {
			t->is_gone = true;
			err_set(&t->gone, -EIO, "%s: the tracer ended by itself with %d", node_name(n), code);
		}
	}
	if (!strcmp(kind, "undone")) {
		const char *why = json_string_value(json_object_get(event, "why"));

		t->is_gone = true;
		err_set(&t->gone, -ECANCELED, "%s: its guard undid %s: %s", node_name(n), handle, why ? why : "?");
	}
}

/* Waits until 'until_s' (monotonic), looking out for events, lost nodes and interruption. */
static int wait_until(struct trial *t, double until_s, const char *what, struct err *e)
{
	double end_s = until_s;

	for (;;) {
		double left = until_s - clock_mono_s();

		if (stop_asked(t))
			return err_set(e, -EINTR, "interrupted");
		node_events(t->x->cluster->set, left > 0.25 ? 0.25 : left > 0 ? left : 0, on_event, t);
		if (cluster_lost(t->x->cluster, e))
			return -ENOTCONN;
		if (t->is_gone) {
			*e = t->gone;
			return -EIO;
		}
		if (left <= 0)
			return 0;
		note_phase(t, end_s - clock_mono_s(), what);
	}
}

/* Calls the fault's function 'name' for the victim 'v'; leaves 'results' values. 'number' is a further
 * argument unless it is negative. */
static int call_fault(struct trial *t, size_t v, const char *name, double number, int results, struct err *e)
{
	lua_State *L = t->x->scenario->L;

	lua_rawgeti(L, LUA_REGISTRYINDEX, t->fault->def_ref);
	lua_getfield(L, -1, name);
	lua_remove(L, -2);
	lua_rawgeti(L, LUA_REGISTRYINDEX, t->contexts[v]);
	if (number >= 0)
		lua_pushnumber(L, number);
	return luax_call(L, number >= 0 ? 2 : 1, results, e);
}

static bool fault_has(const struct trial *t, const char *name)
{
	lua_State *L = t->x->scenario->L;
	bool has;

	lua_rawgeti(L, LUA_REGISTRYINDEX, t->fault->def_ref);
	has = lua_getfield(L, -1, name) == LUA_TFUNCTION;
	lua_pop(L, 2);
	return has;
}

/* Asks 'name' of one victim until it says yes; its evidence goes into '*evidence'. -ETIME if it never does
 * within 'patience_s' (0: asks for ever, as long as the phase may last). */
static int ask_until(struct trial *t, size_t v, const char *name, double patience_s, const char *what,
		     json_t **evidence, struct err *e)
{
	lua_State *L = t->x->scenario->L;
	double deadline = clock_mono_s() + patience_s;
	int top = lua_gettop(L), rc;

	for (;;) {
		rc = call_fault(t, v, name, -1, 2, e);
		if (rc)
			break;
		if (lua_toboolean(L, top + 1)) {
			rc = luajson_get(L, top + 1, evidence, e);
			break;
		}
		if (clock_mono_s() > deadline) {
			const char *seen = lua_tostring(L, top + 2);

			rc = err_set(e, -ETIME, "%s on %s: %s did not come true within %g s: %s", t->fault->label,
				     t->victims[v]->host->ssh.name, name, patience_s, seen ? seen : "no reason given");
			break;
		}
		lua_settop(L, top);
		rc = wait_until(t, clock_mono_s() + VERIFY_PERIOD_S, what, e);
		if (rc)
			break;
	}
	lua_settop(L, top);
	return rc;
}

/* Verified on every victim: {victim: evidence} goes into detail[key]. */
static int verify(struct trial *t, const char *key, struct err *e)
{
	json_t *all = json_object();
	int rc = 0;

	for (size_t v = 0; v < t->n_victims && !rc; v++) {
		json_t *evidence = NULL;

		rc = ask_until(t, v, "verify", t->fault->verify_s, "verifying", &evidence, e);
		if (!rc)
			json_object_set_new(all, t->victims[v]->host->ssh.name, evidence);
	}
	json_object_set_new(t->detail, key, all);
	return rc;
}

static void make_contexts(struct trial *t)
{
	lua_State *L = t->x->scenario->L;

	for (; t->n_contexts < t->n_victims; t->n_contexts++) {
		bind_push_context(L, t->x->acts, t->x->cluster, t->victims[t->n_contexts], t->fault,
				  store_run_id(t->x->store));
		lua_createtable(L, (int)t->n_apps, 0);
		for (size_t i = 0; i < t->n_apps; i++) {
			bind_push_handle(L, t->x->acts, t->apps[i].member, t->apps[i].handle);
			lua_rawseti(L, -2, (lua_Integer)i + 1);
		}
		lua_setfield(L, -2, "workload");
		t->contexts[t->n_contexts] = luaL_ref(L, LUA_REGISTRYINDEX);
	}
}

static int fault_on(struct trial *t, struct err *e)
{
	int rc = 0;

	note_step(t, "inject");
	for (size_t v = 0; v < t->n_victims && !rc; v++)
		rc = call_fault(t, v, "inject", -1, 0, e);
	note_step(t, "verify");
	if (!rc)
		rc = verify(t, "verified_on", e);
	if (!rc)
		t->row.onset_ns = clock_real_ns();
	note_step(t, "onset");
	return rc;
}

static int fault_off(struct trial *t, struct err *e)
{
	struct err why;
	int rc, undo;

	note_step(t, "verify-again");
	rc = verify(t, "verified_still_on", e);
	note_step(t, "undo");
	undo = acts_undo(t->x->acts, &why);
	if (!undo)
		t->row.offset_ns = clock_real_ns();
	note_step(t, "offset");
	if (!rc && undo)
		rc = err_set(e, undo, "%s", why.text);
	return rc;
}

/* The phase in which the fault acts; a fault with 'step' is called once a second, for ramps and sequences. */
static int fault_phase(struct trial *t, double onset, struct err *e)
{
	double end = onset + t->x->scenario->fault_s;
	bool steps = fault_has(t, "step");
	char what[160];
	int rc = 0;

	snprintf(what, sizeof(what), "fault on %s", t->victim_names);
	for (double at = onset; steps && at < end && !rc; at += 1) {
		rc = wait_until(t, at, what, e);
		for (size_t v = 0; v < t->n_victims && !rc; v++)
			rc = call_fault(t, v, "step", at - onset, 0, e);
	}
	return rc ? rc : wait_until(t, end, what, e);
}

/* Until the time before the fault is over and the fault's own trigger, if it has one, has come true. */
static int before_phase(struct trial *t, double begin, struct err *e)
{
	const struct scenario *s = t->x->scenario;
	double before_s = t->fault->after_s >= 0 ? t->fault->after_s : s->before_s;
	json_t *evidence = NULL;
	int rc = wait_until(t, begin + before_s, "before the fault", e);

	if (!rc)
		make_contexts(t);
	if (!rc && fault_has(t, "trigger")) {
		rc = ask_until(t, 0, "trigger", attempt_phases_s(s), "waiting for the trigger", &evidence, e);
		if (!rc)
			json_object_set_new(t->detail, "trigger", evidence);
	}
	return rc;
}

static int phases(struct trial *t, struct err *e)
{
	const struct scenario *s = t->x->scenario;
	double begin = clock_mono_s();
	int rc;

	if (!t->fault || t->fault->from_start)
		return wait_until(t, begin + attempt_phases_s(s), t->fault ? "fault from the start" : "no fault", e);
	rc = before_phase(t, begin, e);
	if (!rc)
		rc = fault_on(t, e);
	if (!rc)
		rc = fault_phase(t, clock_mono_s(), e);
	if (!rc)
		rc = fault_off(t, e);
	if (!rc)
		rc = wait_until(t, clock_mono_s() + s->after_s, "after the fault", e);
	return rc;
}

/* Stops what of 'jobs' runs, all at once; results (may be NULL) gets {node: result}. */
static int stop_jobs(struct job *jobs, size_t n, const char *op, json_t *results, struct err *e)
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
		requests[k++] = (struct node_request){.node = jobs[i].member->node, .op = op, .args = args};
		jobs[i].running = false;
	}
	rc = ask_all(requests, k, e);
	for (size_t i = 0; i < k && results; i++)
		if (requests[i].result)
			json_object_set(results, node_name(requests[i].node), requests[i].result);
	drop_results(requests, k);
	return rc;
}

static int stop_all(struct trial *t, struct err *e)
{
	json_t *apps = json_object(), *tracers = json_object();
	const char *name;
	json_t *v;
	int rc, rc2;
	struct err e2;

	rc = stop_jobs(t->apps, t->n_apps, "process.stop", apps, e);
	rc2 = stop_jobs(t->tracers, t->n_tracers, "trace.stop", tracers, &e2);
	if (!rc && rc2)
		rc = err_set(e, rc2, "%s", e2.text);
	json_object_foreach(tracers, name, v) {
		if (rc)
			break;
		if (json_integer_value(json_object_get(v, "lost")) || !json_is_true(json_object_get(v, "whole")))
			rc = err_set(e, -EBADMSG, "%s: the trace is not whole: %lld records lost%s", name,
				     (long long)json_integer_value(json_object_get(v, "lost")),
				     json_is_true(json_object_get(v, "whole")) ? "" : ", cut short");
	}
	json_object_set_new(t->detail, "workload_exits", apps);
	json_object_set_new(t->detail, "traces", tracers);
	return rc;
}

/* After a failure: whatever still runs or acts is stopped as far as the nodes can be reached. */
static void clean_up(struct trial *t)
{
	struct err ignored;

	nodeset_resume(t->x->cluster->set);
	acts_undo(t->x->acts, &ignored);
	stop_jobs(t->apps, t->n_apps, "process.stop", NULL, &ignored);
	stop_jobs(t->tracers, t->n_tracers, "trace.stop", NULL, &ignored);
	measure_discard(t->x->cluster);
}

/* A fault that acts from the start is on before anything is traced, as a misconfigured server would be. */
static int early_fault(struct trial *t, struct err *e)
{
	struct err still;
	int rc;

	if (!t->fault || !t->fault->from_start)
		return 0;
	make_contexts(t);
	rc = fault_on(t, e);
	/* Clients take a while to find a server that was restarted: that is not the fault. What stays broken is. */
	if (!rc && cluster_wait_healthy(t->x->cluster, RECONNECT_S, &still))
		progress_note(t->x->progress, "cell %zu: under %s from the start: %s", t->cell->number, t->fault->label, still.text);
	return rc ? rc : cluster_find_processes(t->x->cluster, e);
}

static int run_trial(struct trial *t, struct err *e)
{
	int rc;

	note_phase(t, attempt_phases_s(t->x->scenario), "starting");
	note_step(t, "begin");
	/* What a fault restarted has another number now. */
	rc = cluster_find_processes(t->x->cluster, e);
	if (!rc && t->x->unsettled)
		rc = cluster_wait_healthy(t->x->cluster, HEALTHY_S, e);
	t->x->unsettled = t->fault && t->fault->may_fail;
	if (!rc)
		rc = fingerprint(t, &t->before, e);
	if (!rc)
		rc = early_fault(t, e);
	note_step(t, "trace");
	if (!rc)
		rc = start_tracers(t, e);
	note_step(t, "workload");
	if (!rc)
		rc = start_workload(t, e);
	if (!rc)
		rc = phases(t, e);
	if (!rc) {
		t->row.seconds = (int32_t)((clock_real_ns() - t->row.start_ns) / 1000000000);
		note_phase(t, 0, "collecting");
		note_step(t, "stop");
		rc = stop_all(t, e);
	}
	if (!rc && t->fault && t->fault->from_start)
		rc = fault_off(t, e);
	if (!rc) {
		note_step(t, "collect");
		clean_workload(t);
	}
	if (!rc)
		rc = measure_fetch(t->x, t->folder, t->workload, t->fault && t->fault->may_fail, t->detail, e);
	if (!rc) {
		json_t *after = NULL;

		/* Started again, the file system's processes have other numbers. */
		rc = cluster_find_processes(t->x->cluster, e);
		if (!rc)
			rc = fingerprint(t, &after, e);
		if (!rc)
			rc = compare_fingerprints(t->before, after, e);
		json_decref(after);
	}
	return rc;
}

/* Faults of the script or the harness are errors; what befell the nodes makes the attempt invalid. */
static enum outcome outcome_of(int rc)
{
	if (!rc)
		return OUTCOME_CONFIRMED;
	return rc == -EINVAL || rc == -ENOMEM || rc == -ENOSPC ? OUTCOME_ERROR : OUTCOME_INVALID;
}

static int record(struct trial *t, int rc, const struct err *why, struct err *e)
{
	struct store *s = t->x->store;
	struct measurement *m = NULL;
	struct err bad;
	int failed;

	if (!rc) {
		rc = measure_reduce(t->x, t->folder, t->row.start_ns, t->row.seconds, &m, &bad);
		if (rc)
			why = &bad;
	}
	t->row.outcome = outcome_of(rc);
	t->row.reason = rc ? why->text : NULL;
	t->row.detail = t->detail;
	t->row.ended_ns = clock_real_ns();
	failed = store_begin(s, e);
	if (!failed)
		failed = store_put_attempt(s, &t->row, e);
	if (!failed && m)
		failed = measure_store(t->x, t->folder, t->row.id, m, e);
	if (!failed)
		failed = store_commit(s, e);
	if (failed)
		store_rollback(s);
	measure_free(m);
	return failed;
}

static void trial_clear(struct trial *t)
{
	while (t->n_contexts)
		luaL_unref(t->x->scenario->L, LUA_REGISTRYINDEX, t->contexts[--t->n_contexts]);
	json_decref(t->before);
	json_decref(t->detail);
	free(t->tracers);
	free(t->apps);
	free(t->folder);
}

int attempt_run(struct executor *x, const struct cell *c, long number, enum outcome *outcome, struct err *why,
		int64_t *id, struct err *e)
{
	struct trial t = {.x = x, .cell = c, .workload = &x->scenario->workloads[c->workload],
			  .detail = json_object()};
	char *full = NULL;
	int rc = 0;

	t.row = (struct attempt_row){.cell = c->number, .number = number, .started_ns = clock_real_ns()};
	if (c->n_victims)
		t.fault = &x->scenario->faults[c->fault];
	for (size_t i = 0, n = 0; i < c->n_victims; i++) {
		t.victims[t.n_victims++] = x->cluster->servers[c->victims[i]];
		if (n < sizeof(t.victim_names))
			n += (size_t)snprintf(t.victim_names + n, sizeof(t.victim_names) - n, "%s%s", i ? "+" : "",
					      x->server_names[c->victims[i]]);
	}
	if (!t.detail || asprintf(&t.folder, "cells/%04zu.%ld", c->number, number) < 0 ||
	    asprintf(&full, "%s/%s", store_folder(x->store), t.folder) < 0) {
		rc = err_errno(e, -ENOMEM, "cannot begin an attempt");
		goto out;
	}
	rc = file_mkdirs(full, 0700, e);
	if (rc)
		goto out;
	rc = run_trial(&t, why);
	if (rc) {
		clean_up(&t);
		x->unsettled = true;
	}
	if (rc == -EINTR || stop_asked(&t)) {
		file_remove_tree(full, NULL);
		rc = err_set(e, -EINTR, "interrupted");
		goto out;
	}
	rc = record(&t, rc, why, e);
	*outcome = t.row.outcome;
	if (t.row.reason && t.row.reason != why->text)
		err_set(why, -EIO, "%s", t.row.reason);
	*id = t.row.id;
out:
	free(full);
	trial_clear(&t);
	return rc;
}
