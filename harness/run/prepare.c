/* Prepares a run: checks what can run, and makes the workloads' data. */
#include "harness/run/prepare.h"

#include <errno.h>
#include <lauxlib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/jget.h"
#include "harness/run/cell_key.h"
#include "harness/run/fault_check.h"
#include "harness/run/needs.h"
#include "harness/run/resume.h"
#include "harness/run/signals.h"
#include "harness/lua/luajson.h"
#include "harness/lua/luax.h"

#define CALL_TIMEOUT_S 30
#define HEALTHY_S 30
#define PREPARE_TRIES 3

void prepare_note(struct executor *x, bool clients, const char *what)
{
	cluster_each(m, x->cluster) {
		const struct host *h = m->host;

		progress_node(x->progress, h->ssh.name, "%s",
			!clients || h->role == ROLE_CLIENT ? what : "ready");
	}
	progress_now(x->progress, 0, "%s", what);
}

static int record_hosts(struct executor *x, struct err *e)
{
	json_t *hosts = json_object();
	char *text;
	int rc;

	cluster_each(m, x->cluster) {
		json_object_set_new(hosts, m->name,
			json_pack("{s:s, s:O, s:O, s:f, s:f}", "role", role_name(m->host->role),
				"agent", node_hello(m->node), "pids", m->pids, "clock_offset_s",
				m->offset_s, "clock_error_s", m->offset_error_s));
	}
	text = json_dumps(hosts, JSON_COMPACT);
	rc = store_set(x->store, "hosts", text, e);
	free(text);
	json_decref(hosts);
	return rc;
}

static int wait_healthy(struct executor *x, struct err *e)
{
	return cluster_wait_healthy(x->cluster, HEALTHY_S, e);
}

struct tracer_check {
	const struct tracing *tracing;
	const struct member *only; /* NULL: servers and clients */
};

static int tracer_check_args(void *ctx, const struct member *m, json_t **args, struct err *e)
{
	const struct tracer_check *check = ctx;
	const struct tracing *t = check->tracing;

	(void)e;
	if (check->only ? m != check->only : m->host->role == ROLE_OUTSIDER)
		return 1;
	/* In the mode of the run: a kernel may load the programs of one and refuse another's. */
	*args = json_pack("{s:o, s:s*, s:b}", "what", json_sprintf("trace.%s", t->name), "mode",
		t->mode, "heads", t->heads);
	if (t->memory_bytes > 0)
		json_object_set_new(
			*args, "memory_bytes", json_integer((json_int_t)t->memory_bytes));
	return 0;
}

/* -EOPNOTSUPP with the first node on which the tracer cannot run, and why. */
static int check_tracer(struct cluster *c, const struct tracing *t, struct err *e)
{
	struct tracer_check check = {t, t->one_server ? c->servers[0] : NULL};
	json_auto_t *results = NULL;
	json_t *result;
	const char *name;
	int rc;

	if (tracing_none(t))
		return 0;
	rc = cluster_ask(c, "check", tracer_check_args, &check, CALL_TIMEOUT_S, &results, e);
	json_object_foreach(results, name, result) {
		if (!rc && !jget_true(result, "able"))
			rc = err_set(e, -EOPNOTSUPP, "%s: %s", name, jget_text(result, "reason"));
	}
	return rc;
}

/* Leaves out the cells of a fault, or of a tracer. */
static void drop_cells(struct plan *p, bool by_tracer, size_t index)
{
	size_t left = 0;

	for (size_t i = 0; i < p->n; i++)
		if ((by_tracer ? p->cells[i].tracer : p->cells[i].fault) != index)
			p->cells[left++] = p->cells[i];
	p->n = left;
}

static int refuse_tracer(const char *what, const struct tracing *t, struct err *e)
{
	return err_blame(e, ERR_SCENARIO, err_prefix(e, -EINVAL, "%s %s", what, t->label));
}

/* Other calls are seen, at another cost: everybody who reads the run must know. */
static int replace_tracer(struct executor *x, struct tracing *t, struct err *e)
{
	auto_free char *was = alloc_copy(t->label);
	auto_free char *line = NULL;
	auto_free char *reason = alloc_copy(e->text);
	int rc = scenario_set_tracer(x->scenario, "ptrace", e);

	line = alloc_format("traced with ptrace in place of %s: %s", was, reason);
	progress_say(x->progress, "%s", line);
	return rc
		?: store_set(x->store, "tracer", t->label, e)
		?: store_set(x->store, STORE_TRACER_REPLACED, line, e);
}

/* ptrace also produces verdicts, so it replaces a tracer that cannot run. A run time is a tracer's
 * own: its cells are left out. */
static int check_tracers(struct executor *x, struct err *e)
{
	struct scenario *s = x->scenario;
	int rc = 0;

	for (size_t k = 0; k < s->n_tracers && !rc; k++) {
		struct tracing *t = &s->tracers[k];

		rc = check_tracer(x->cluster, t, e);
		if (rc != -EOPNOTSUPP)
			continue;
		if (s->measure == MEASURE_RUNTIME) {
			progress_say(x->progress, "skipped: tracer %s: %s", t->label, e->text);
			rc = store_skip(x->store, "tracer", t->label, e->text, e);
			drop_cells(x->plan, true, k);
			continue;
		}
		if (!strcmp(t->name, "ptrace") || s->second.name)
			return refuse_tracer("tracer", t, e);
		return replace_tracer(x, t, e);
	}
	if (!rc && s->second.name)
		rc = check_tracer(x->cluster, &s->second, e);
	if (rc == -EOPNOTSUPP)
		return refuse_tracer("second tracer", &s->second, e);
	if (!rc && s->recorder.tracing.name)
		rc = check_tracer(x->cluster, &s->recorder.tracing, e);
	return rc == -EOPNOTSUPP ? refuse_tracer("recorder", &s->recorder.tracing, e) : rc;
}

/* Sets every member's 'sampled'. The run continues without the samplers that cannot run. */
static int check_samplers(struct executor *x, struct err *e)
{
	struct tracing sampler = {.name = (char *)"sampler"};
	struct tracer_check check = {&sampler, NULL};
	char without[512] = "";
	json_t *results, *result;
	const char *name, *reason;
	size_t n = 0;
	int rc;

	if (x->scenario->measure != MEASURE_VERDICTS)
		return 0;
	rc = cluster_ask(
		x->cluster, "check", tracer_check_args, &check, CALL_TIMEOUT_S, &results, e);
	json_object_foreach(results, name, result) {
		bool able = jget_true(result, "able");

		cluster_member(x->cluster, name)->sampled = able;
		reason = jget_text(result, "reason");
		if (!able && n < sizeof(without))
			n += (size_t)snprintf(without + n, sizeof(without) - n, "%s%s: %s",
				n ? "; " : "", name, reason ? reason : "no reason given");
	}
	json_decref(results);
	if (!rc && n)
		progress_say(x->progress, "not sampled (sockets, disk, processors): %s", without);
	return rc;
}

/* Completes what the cells depend on. A resumed run must be made of the same programs. */
static int identify(struct executor *x, struct err *e)
{
	json_auto_t *was = NULL, *programs = json_object();
	char *text, *difference;
	int rc = store_get_json(x->store, "programs", &was, e);

	if (rc < 0)
		return rc;
	prepare_note(x, false, "being asked for its programs");
	rc = key_add_programs(x->scenario, x->plan, x->cluster, programs, e);
	/* The tracer is the scenario's choice, or what the nodes allow. */
	if (x->scenario->measure == MEASURE_VERDICTS)
		json_object_set_new(
			programs, "traced with", json_string(x->scenario->tracers[0].label));
	difference = rc || !was ? NULL : key_difference(was, programs);
	if (difference)
		rc = key_refuse(difference, e);
	free(difference);
	json_object_update(x->inputs, programs);
	if (rc)
		return rc;
	key_cells(x->scenario, x->plan, x->cluster, x->inputs);
	text = json_dumps(programs, JSON_COMPACT | JSON_SORT_KEYS);
	rc = x->resumed ? resume_check_keys(x, e) : 0;
	rc = rc ?: store_set(x->store, "programs", text, e);
	free(text);
	return rc;
}

/* Leaves out a fault that cannot run here. ERR_SCENARIO if no fault remains. */
static int check_or_skip(struct executor *x, size_t fault, struct err *e)
{
	const struct part *f = &x->scenario->faults[fault];
	struct plan *p = x->plan;
	size_t faulty = 0;
	int rc = fault_check(x->scenario->L, x->acts, x->cluster, f, store_run_id(x->store), e);

	if (rc != -EOPNOTSUPP)
		return rc;
	for (size_t i = 0; i < p->n; i++)
		faulty += p->cells[i].fault != fault && p->cells[i].n_victims > 0;
	if (!faulty) {
		err_prefix(e, rc, "no fault of the scenario can run here: '%s'", f->label);
		return err_blame(e, ERR_SCENARIO, -EINVAL);
	}
	drop_cells(p, false, fault);
	progress_say(x->progress, "skipped: fault %s: %s", f->label, e->text);
	return store_skip(x->store, "fault", f->label, e->text, e);
}

/* Every client must have the programs that the workload needs. */
static int check_workload(struct executor *x, const struct part *w, struct err *e)
{
	json_auto_t *list = json_array();
	int rc = needs_add(x->scenario->L, w, list, e);

	for (size_t k = 0; k < x->cluster->n_clients && !rc && json_array_size(list); k++) {
		json_t *missing = NULL;
		char text[512];

		rc = needs_missing(x->cluster->clients[k]->node, list, &missing, e);
		if (!rc && json_array_size(missing))
			rc = err_blame(e, ERR_SCENARIO,
				err_set(e, -EINVAL, "%s: there is no program %s",
					x->cluster->clients[k]->name,
					needs_text(
						json_array_get(missing, 0), text, sizeof(text))));
		json_decref(missing);
	}
	return rc;
}

/* The commands that prepare a workload: {client: [argv, ...]}. */
struct commands {
	const char *label;
	json_t *lists;
	double limit_s;
	size_t step;
};

static int command_args(void *ctx, const struct member *m, json_t **args, struct err *e)
{
	const struct commands *c = ctx;
	json_t *argv = json_array_get(jget(c->lists, m->name), c->step);

	(void)e;
	if (!argv)
		return 1;
	*args = json_is_object(argv) ? json_copy(argv) : json_pack("{s:O}", "argv", argv);
	json_object_set_new(*args, "timeout_s", json_real(c->limit_s));
	return 0;
}

/* Runs the lists, the n-th command of every client side by side. ERR_CLUSTER: a command failed, or
 * took longer than the limit. ERR_SCENARIO: it does not exist, or cannot be executed. */
static int run_commands_once(struct cluster *cluster, struct commands *c, struct err *e)
{
	bool more = true;
	int rc = 0;

	for (c->step = 0; more && !rc; c->step++) {
		json_t *results, *result;
		const char *name;

		rc = cluster_ask(
			cluster, "run", command_args, c, c->limit_s + CALL_TIMEOUT_S, &results, e);
		if (rc == -ETIMEDOUT)
			err_prefix(e, rc, "preparing '%s' within 'prepare_limit', %g s", c->label,
				c->limit_s);
		more = json_object_size(results) > 0;
		json_object_foreach(results, name, result) {
			int code = (int)jget_int(result, "exit");

			if (rc || !code)
				continue;
			rc = err_set(e, -EIO, "%s: preparing '%s' ended with %d: %.300s", name,
				c->label, code, jget_text(result, "output"));
			err_blame(e, code == 126 || code == 127 ? ERR_SCENARIO : ERR_CLUSTER, rc);
		}
		json_decref(results);
	}
	return rc;
}

/* Tries again what the cluster failed: a file system that is busy may succeed a second later. */
static int run_commands(struct executor *x, const char *label, json_t *lists, struct err *e)
{
	struct commands c = {label, lists, x->scenario->prepare_limit_s, 0};
	int rc = run_commands_once(x->cluster, &c, e);

	for (int n = 1; n < PREPARE_TRIES && rc && e->class == ERR_CLUSTER && !*x->interrupted &&
		!cluster_lost(x->cluster, NULL);
		n++) {
		progress_say(x->progress, "%s; trying again", e->text);
		signals_nap();
		rc = run_commands_once(x->cluster, &c, e);
	}
	return rc;
}

/* Sends the clients what the workload takes along. */
static int put_files(struct executor *x, const struct part *w, struct err *e)
{
	size_t n = 0, clients = x->cluster->n_clients;
	struct node_transfer *all = alloc_zero(json_object_size(w->files) * clients, sizeof(*all));
	const char *key;
	json_t *file;
	int rc;

	json_object_foreach(w->files, key, file) {
		for (size_t i = 0; i < clients; i++)
			all[n++] = (struct node_transfer){.node = x->cluster->clients[i]->node,
				.remote = jget_text(file, "name"),
				.local = jget_text(file, "path")};
	}
	rc = node_put_all(all, n, x->scenario->prepare_limit_s, e);
	free(all);
	return cluster_blame(rc, e);
}

static int prepare_workload(struct executor *x, const struct part *w, struct err *e)
{
	lua_State *L = x->scenario->L;
	struct cluster *c = x->cluster;
	json_t *lists = json_object(), *list;
	int top = lua_gettop(L), rc = w->files ? put_files(x, w, e) : 0;

	for (size_t i = 0; i < c->n_clients && !rc && bind_push_function(L, w, "prepare"); i++) {
		bind_push_context(L, x->acts, c, NULL, w, store_run_id(x->store));
		bind_push_node(L, x->acts, c->clients[i]);
		rc = luax_call(L, 2, 1, e) ?: luajson_get(L, -1, &list, e);
		if (!rc)
			json_object_set_new(lists, c->clients[i]->name, list);
		lua_settop(L, top);
	}
	rc = rc ?: run_commands(x, w->label, lists, e);
	json_decref(lists);
	return rc;
}

/* Made once, before workloads do: with GlusterFS, clients that make one folder at the same time may
 * get a stale handle. */
static int make_folder(struct executor *x, struct err *e)
{
	const struct host *client = x->cluster->clients[0]->host;
	json_auto_t *lists = json_pack("{s:[[s, s, o]]}", client->ssh.name, "mkdir", "-p",
		json_sprintf("%s/%s", client->mount, store_run_id(x->store)));

	return run_commands(x, "the run's folder", lists, e);
}

/* Checks and prepares the faults and workloads that the plan uses ('--only' may leave some out). */
static int prepare_parts(struct executor *x, struct err *e)
{
	const struct scenario *s = x->scenario;
	bool *workloads = alloc_zero(s->n_workloads + s->n_faults, sizeof(*workloads)),
	     *faults = workloads + s->n_workloads;
	char what[160];
	int rc = 0;

	for (size_t i = 0; i < x->plan->n; i++) {
		workloads[x->plan->cells[i].workload] = true;
		if (x->plan->cells[i].fault != SIZE_MAX)
			faults[x->plan->cells[i].fault] = true;
	}
	prepare_note(x, false, "being asked whether faults and workloads can run");
	for (size_t i = 0; i < s->n_faults && !rc; i++)
		rc = faults[i] ? check_or_skip(x, i, e) : 0;
	for (size_t i = 0; i < s->n_workloads && !rc; i++)
		rc = workloads[i] ? check_workload(x, &s->workloads[i], e) : 0;
	rc = rc ?: make_folder(x, e);
	for (size_t i = 0; i < s->n_workloads && !rc; i++) {
		if (!workloads[i])
			continue;
		snprintf(what, sizeof(what), "preparing %s", s->workloads[i].label);
		prepare_note(x, true, what);
		/* Without a terminal nothing else is seen of what may take minutes. */
		progress_say(x->progress, "preparing %s on the clients", s->workloads[i].label);
		rc = prepare_workload(x, &s->workloads[i], e);
	}
	free(workloads);
	progress_cells(x->progress, x->plan->n);
	return rc;
}

int prepare_run(struct executor *x, struct err *e)
{
	static int (*const steps[])(struct executor *, struct err *) = {
		record_hosts, wait_healthy, check_tracers, check_samplers, identify, prepare_parts};
	int rc = 0;

	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]) && !rc; i++)
		rc = steps[i](x, e);
	return rc;
}

void prepare_remove_data(struct executor *x)
{
	struct member *client = x->cluster->clients[0];

	node_call(client->node, "run",
		json_pack("{s:[s, s, s, o], s:i}", "argv", "rm", "-rf", "--",
			json_sprintf("%s/%s", client->host->mount, store_run_id(x->store)),
			"timeout_s", 120),
		150, NULL, NULL);
}
