/* Fetches an attempt's files, reduces them, and checks that they are complete. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/jget.h"
#include "harness/base/file.h"
#include "harness/judging/flows.h"
#include "harness/run/fingerprint.h"
#include "harness/run/trial_impl.h"
#include "harness/lua/luajson.h"
#include "harness/lua/luax.h"

#define FETCH_TIMEOUT_S 120
#define SERVED_BYTES 65536

typedef int (*file_fn)(void *ctx, const struct member *m, const char *file, struct err *e);

/* Calls 'fn' for every file that the attempt's jobs leave and its measure needs, until it fails. */
static int each_file(const struct trial *t, file_fn fn, void *ctx, struct err *e)
{
	unsigned measure = 1u << t->x->scenario->measure;
	int rc = 0;

	for (size_t i = 0; i < t->n_jobs; i++)
		for (const struct job_file *f = job_kinds[t->jobs[i].kind].files; f->name; f++)
			if (!rc && (f->measures & measure))
				rc = fn(ctx, t->jobs[i].member, f->name, e);
	return rc;
}

/* Paths of a member's file, below the run's folder and on this machine. The caller frees. */
static char *file_path(const struct trial *t, const struct member *m, const char *file)
{
	return alloc_format("%s/%s.%s", t->folder, m->name, file);
}

static char *local_path(const struct trial *t, const struct member *m, const char *file)
{
	return alloc_format("%s/%s/%s.%s", store_folder(t->x->store), t->folder, m->name, file);
}

static int remove_args(void *ctx, const struct member *m, json_t **args, struct err *e)
{
	json_t *argv = json_pack("[s, s, s]", "rm", "-f", "--");

	(void)ctx, (void)e;
	for (size_t k = 0; k < JOB_KINDS; k++)
		for (const struct job_file *f = job_kinds[k].files; f->name; f++)
			for (unsigned n = 0; n <= job_kinds[k].more; n++)
				json_array_append_new(argv,
					n ? json_sprintf("%s/%s.%u", node_dir(m->node), f->name, n)
					  : json_sprintf("%s/%s", node_dir(m->node), f->name));
	*args = json_pack("{s:o}", "argv", argv);
	return 0;
}

static int remove_remote(struct cluster *c, struct err *e)
{
	return cluster_ask(c, "run", remove_args, NULL, CALL_TIMEOUT_S, NULL, e);
}

void measure_discard(struct cluster *c)
{
	remove_remote(c, NULL);
}

/* One client's result: {bytes =, seconds =, ...} as the workload reads its output. */
static int read_result(struct trial *t, const struct member *m, json_t **value, struct err *e)
{
	lua_State *L = t->x->scenario->L;
	char *path = local_path(t, m, "app.out"), *text = NULL;
	int top = lua_gettop(L), given;
	size_t size;
	int rc = file_read(path, &text, &size, e);

	if (!rc) {
		bind_push_function(L, t->workload, "result");
		lua_pushlstring(L, text, size);
		rc = luax_call(L, 1, 2, e);
	}
	if (!rc) {
		/* nil and a reason: the reason stands for the result where a failure is allowed. */
		given = lua_isnil(L, -2) && t->may_fail ? -1 : -2;
		if (lua_isnil(L, given) && !t->may_fail)
			rc = err_set(e, -EIO, "%s: %s: %s", m->name, t->workload->label,
				lua_isstring(L, -1) ? lua_tostring(L, -1)
						    : "it reported no result");
		else
			rc = luajson_get(L, given, value, e);
	}
	free(text);
	free(path);
	lua_settop(L, top);
	return rc;
}

static int read_results(struct trial *t, struct err *e)
{
	const struct cluster *c = t->x->cluster;
	json_t *results = json_object();
	int rc = 0;

	json_object_set_new(t->detail, "results", results);
	if (!trial_has(t, t->workload, "result"))
		return 0;
	for (size_t i = 0; i < c->n_clients && !rc; i++) {
		json_t *value = NULL;

		rc = read_result(t, c->clients[i], &value, e);
		if (rc)
			t->talker = c->clients[i];
		else
			json_object_set_new(results, c->clients[i]->name, value);
	}
	return rc;
}

struct transfers {
	const struct trial *t;
	struct node_transfer *list;
	size_t n;
};

static int add_transfer(void *ctx, const struct member *m, const char *file, struct err *e)
{
	struct transfers *all = ctx;

	(void)e;
	all->list = alloc_room(all->list, all->n, sizeof(*all->list));
	all->list[all->n++] = (struct node_transfer){
		.node = m->node, .remote = file, .local = local_path(all->t, m, file)};
	return 0;
}

int measure_fetch(struct trial *t, struct err *e)
{
	struct transfers all = {.t = t};
	int rc = each_file(t, add_transfer, &all, e)
		?: node_fetch_all(all.list, all.n, FETCH_TIMEOUT_S, e)
		?: recorder_fetch(t, e)
		?: remove_remote(t->x->cluster, e)
		?: read_results(t, e);

	while (all.n)
		free((char *)all.list[--all.n].local);
	free(all.list);
	return rc;
}

int measure_reduce(
	struct trial *t, const json_t *cluster, bool second, struct reduction **out, struct err *e)
{
	char *full = alloc_format("%s/%s", store_folder(t->x->store), t->folder);
	struct reduce_spec spec = {.folder = full,
		.cluster = cluster,
		.start_ns = t->row.start_ns,
		.seconds = t->row.seconds,
		.second = second};
	int rc = reduce_traces(&spec, out, e);

	free(full);
	return rc;
}

/* An empty trace alone proves nothing: a workload may leave a server out, and one that is killed or
 * hangs makes no calls. But what a client receives from a server, the server has sent by a call.
 * Exceptions: what it had sent before the tracers came may still arrive from a server that a fault
 * holds from the start; and a few bytes may be another process's on the server's port. */
int measure_check_served(const struct trial *t, const struct reduction *r, struct err *e)
{
	const json_t *traces = jget(t->detail, job_kinds[JOB_TRACER].sink);
	const struct cluster *c = t->x->cluster;

	for (size_t i = 0; i < c->n_servers; i++) {
		const struct member *m = c->servers[i];
		const json_t *calls = jget(jget(traces, m->name), "calls");
		double bytes = reduce_received_bytes(r, m->name);

		if (!json_is_integer(calls) || json_integer_value(calls) ||
			(t->fault && t->fault->from_start && trial_is_victim(t, m)) ||
			bytes < SERVED_BYTES)
			continue;
		return err_set(e, -ENODATA,
			"%s sent %.0f bytes to the clients, but its trace has no call; check "
			"'server_pids' ('culprit doctor')",
			m->name, bytes);
	}
	return 0;
}

static int store_file(void *ctx, const struct member *m, const char *file, struct err *e)
{
	struct trial *t = ctx;
	char *path = file_path(t, m, file);
	int rc = store_put_file(t->x->store, t->row.id, path, e);

	free(path);
	return rc;
}

static int store_recorded(
	void *ctx, const struct member *m, const char *remote, const char *below, struct err *e)
{
	struct trial *t = ctx;

	(void)m, (void)remote;
	return store_put_file(t->x->store, t->row.id, below, e);
}

/* The requests, if the tracer or the flight recorder recorded flows. */
static int store_requests(struct trial *t, struct err *e)
{
	auto_json json_t *row = json_pack("{s:I, s:I, s:I, s:I, s:I, s:O}", "attempt",
		(json_int_t)t->row.id, "cell", (json_int_t)t->row.cell, "number",
		(json_int_t)t->row.number, "start_ns", (json_int_t)t->row.start_ns, "seconds",
		(json_int_t)t->row.seconds, "detail", t->detail);

	return flows_store(t->x->store, row, e);
}

int measure_store(struct trial *t, struct store *s, const struct reduction *r, struct err *e)
{
	int rc = r ? reduce_store(r, s, t->row.id, e) : 0;

	if (r && s == t->x->store)
		rc = rc ?: store_requests(t, e);
	/* All files lie in the run's own folder. */
	return rc || s != t->x->store ? rc
				      : each_file(t, store_file, t, e)
			?: recorder_each_file(t, store_recorded, t, e);
}

static int cpu_args(void *ctx, const struct member *m, json_t **args, struct err *e)
{
	int rc = fingerprint_pids(ctx, m, args, e);

	return rc ?: m->host->role == ROLE_OUTSIDER;
}

int measure_cpu(struct trial *t, int sign, struct err *e)
{
	json_auto_t *results = NULL;
	const char *name;
	json_t *result;
	int rc = cluster_ask(t->x->cluster, "cpu", cpu_args, NULL, CALL_TIMEOUT_S, &results, e);

	json_object_foreach(results, name, result) {
		t->fs_cpu_s += sign * jget_real(result, "processes_s");
		t->tracers_cpu_s += sign * jget_real(result, "tracers_s");
	}
	return rc;
}

/* Processor time of a client's tracer in the pass. 'line' is about the program that it traced. */
static double app_tracer_s(const struct trial *t, const char *client, const json_t *line)
{
	const json_t *exits = jget(t->detail, job_kinds[JOB_WORKLOAD].sink);
	const json_t *end = jget(exits, client);
	double s = jget_real(end, "cpu_s") - jget_real(line, "cpu_s") -
		jget_real(line, "parent_cpu_s");

	return jget(end, "trace") && s > 0 ? s : 0;
}

int measure_runtime(struct trial *t, struct err *e)
{
	struct cluster *c = t->x->cluster;
	json_t *times = json_object();
	double sum = 0, apps_s = 0, tracers_s = t->tracers_cpu_s;
	int rc = 0;

	json_object_set_new(t->detail, "times", times);
	for (size_t i = 0; i < c->n_clients && !rc; i++) {
		const char *name = c->clients[i]->name;
		char *path = local_path(t, c->clients[i], "app.times");
		json_error_t why;
		json_t *line = json_load_file(path, 0, &why);
		double seconds = jget_real(line, "seconds");

		if (!line || seconds <= 0)
			rc = err_set(e, -EBADMSG, "%s: no run time in '%s': %s", name, path,
				line ? "not a positive number" : why.text);
		else
			json_object_set(times, name, line);
		sum += seconds;
		apps_s += jget_real(line, "cpu_s");
		tracers_s += app_tracer_s(t, name, line);
		json_decref(line);
		free(path);
	}
	if (rc)
		return rc;
	json_object_set_new(t->detail, "runtime_s", json_real(sum / (double)c->n_clients));
	json_object_set_new(t->detail, "cpu",
		json_pack("{s:f, s:f, s:f, s:f}", "file_system_s", t->fs_cpu_s, "applications_s",
			apps_s, "tracers_s", tracers_s, "all_s", t->fs_cpu_s + apps_s + tracers_s));
	return 0;
}
