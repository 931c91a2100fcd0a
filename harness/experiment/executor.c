#include "harness/experiment/executor.h"

#include <errno.h>
#include <lauxlib.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "harness/base/clock.h"
#include "harness/lua/luajson.h"
#include "harness/lua/luax.h"
#include "harness/experiment/cell_key.h"
#include "harness/experiment/resume.h"
#include "harness/experiment/needs.h"
#include "harness/experiment/sampling.h"

#define CALL_TIMEOUT_S 30
#define PREPARE_TRIES 3

static volatile sig_atomic_t interrupts;
static struct nodeset *interrupted_set;
static int interrupt_fd;

static void on_signal(int signo)
{
	if (++interrupts > 2) {
		/* The nodes' guards undo what we leave. */
		signal(signo, SIG_DFL);
		raise(signo);
	}
	if (interrupt_fd > 0) {
		const uint64_t one = 1;
		int saved = errno;

		if (write(interrupt_fd, &one, sizeof(one)) < 0)
			errno = saved;
	}
	if (interrupted_set)
		nodeset_interrupt(interrupted_set);
}

int exec_interrupt_fd(void)
{
	return interrupt_fd;
}

volatile sig_atomic_t *exec_catch_signals(void)
{
	struct sigaction sa = {.sa_handler = on_signal};

	interrupt_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (interrupt_fd < 0)
		interrupt_fd = 0;
	sigemptyset(&sa.sa_mask);
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	if (signal(SIGHUP, SIG_IGN) != SIG_IGN)
		sigaction(SIGHUP, &sa, NULL);
	signal(SIGPIPE, SIG_IGN);
	return &interrupts;
}

/* Between cells, where all nodes, or all clients, are at the same. */
static void note_all(struct executor *x, bool clients, const char *what)
{
	for (size_t i = 0; i < x->cluster->n_members; i++) {
		const struct host *h = x->cluster->members[i].host;

		progress_node(x->progress, h->ssh.name, "%s",
			!clients || h->role == ROLE_CLIENT ? what : "ready");
	}
	progress_now(x->progress, 0, "%s", what);
}

/* A fault's own check on every server that may become its victim. -EOPNOTSUPP with the reason why
 * it cannot run. */
static int check_fault(struct executor *x, const struct part *f, struct err *e)
{
	lua_State *L = x->scenario->L;
	int top = lua_gettop(L), rc = 0;

	for (size_t i = 0; i < x->cluster->n_servers && !rc; i++) {
		lua_rawgeti(L, LUA_REGISTRYINDEX, f->def_ref);
		if (!lua_istable(L, -1))
			break;
		lua_getfield(L, -1, "check");
		if (lua_isnil(L, -1))
			break;
		bind_push_context(
			L, x->acts, x->cluster, x->cluster->servers[i], f, store_run_id(x->store));
		rc = luax_call(L, 1, 2, e);
		if (!rc && !lua_toboolean(L, -2))
			rc = err_set(e, -EOPNOTSUPP, "%s",
				lua_isstring(L, -1) ? lua_tostring(L, -1)
						    : "its check gave no reason");
		lua_settop(L, top);
	}
	lua_settop(L, top);
	return rc;
}

/* A fault that cannot run here is left out with its reason; it is an error only if nothing
 * remains. */
static int check_or_skip(struct executor *x, size_t fault, struct err *e)
{
	const struct part *f = &x->scenario->faults[fault];
	struct plan *p = x->plan;
	size_t left = 0, faulty = 0;
	int rc = check_fault(x, f, e);

	if (rc != -EOPNOTSUPP)
		return rc;
	for (size_t i = 0; i < p->n; i++) {
		if (p->cells[i].fault == fault)
			continue;
		faulty += p->cells[i].n_victims > 0;
		p->cells[left++] = p->cells[i];
	}
	if (!faulty)
		return err_prefix(
			e, -EINVAL, "no fault of the scenario can run here: '%s'", f->label);
	p->n = left;
	progress_say(x->progress, "skipped: fault %s: %s", f->label, e->text);
	return store_skip(x->store, f->label, e->text, e);
}

/* Verdicts can be had of ptrace too; a run time cannot, and its cells are left out. */
static int check_tracers(struct executor *x, struct err *e)
{
	struct scenario *s = x->scenario;
	struct plan *p = x->plan;
	int rc = 0;

	for (size_t k = 0; k < s->n_tracers && !rc; k++) {
		size_t left = 0;

		rc = tracing_check(&s->tracers[k], x->cluster, e);
		if (rc != -EOPNOTSUPP)
			continue;
		if (s->measure == MEASURE_VERDICTS) {
			if (!strcmp(s->tracers[k].name, "ptrace") || s->beside.name)
				return err_prefix(e, -EINVAL, "tracer %s", s->tracers[k].label);
			progress_say(x->progress, "tracing with ptrace in place of %s: %s",
				s->tracers[k].label, e->text);
			rc = scenario_set_tracer(s, "ptrace", e);
			return rc ? rc : store_set(x->store, "tracer", s->tracers[k].label, e);
		}
		progress_say(x->progress, "skipped: tracer %s: %s", s->tracers[k].label, e->text);
		rc = store_skip_tracer(x->store, s->tracers[k].label, e->text, e);
		for (size_t i = 0; i < p->n; i++)
			if (p->cells[i].tracer != k)
				p->cells[left++] = p->cells[i];
		p->n = left;
	}
	if (!rc && s->beside.name)
		rc = tracing_check(&s->beside, x->cluster, e);
	return rc == -EOPNOTSUPP ? err_prefix(e, -EINVAL, "beside %s", s->beside.label) : rc;
}

/* A second, or until a signal comes. */
static void nap(struct executor *x)
{
	struct pollfd p = {.fd = exec_interrupt_fd(), .events = POLLIN};

	if (!*x->interrupted)
		poll(&p, p.fd > 0, 1000);
}

/* Runs argv lists, the k-th of every client side by side. -EIO: one failed, or took too long. */
static int run_commands_once(struct executor *x, json_t *lists[], const char *label, struct err *e)
{
	struct cluster *c = x->cluster;
	struct node_request *requests = calloc(c->n_clients, sizeof(*requests));
	double limit_s = x->scenario->prepare_limit_s;
	int rc = requests ? 0 : err_errno(e, -ENOMEM, "cannot prepare '%s'", label);

	for (size_t k = 0; !rc; k++) {
		size_t n = 0;

		for (size_t i = 0; i < c->n_clients; i++) {
			json_t *argv = json_array_get(lists[i], k);

			if (argv)
				requests[n++] = (struct node_request){.node = c->clients[i]->node,
					.op = "run",
					.args = json_pack(
						"{s:O, s:f}", "argv", argv, "timeout_s", limit_s)};
		}
		if (!n)
			break;
		rc = node_call_all(requests, n, limit_s + CALL_TIMEOUT_S, e);
		if (rc == -ETIMEDOUT)
			rc = err_prefix(e, -EIO, "preparing '%s' within 'prepare_limit', %g s",
				label, limit_s);
		for (size_t i = 0; i < n; i++) {
			json_int_t code = json_integer_value(
				json_object_get(requests[i].result, "exit"));

			/* A command that is not there, or that cannot be run, is the scenario's
			 * mistake; a failure the cluster's. */
			if (!rc && code)
				rc = err_set(e, code == 126 || code == 127 ? -EINVAL : -EIO,
					"%s: preparing '%s' ended with %d: %.300s",
					node_name(requests[i].node), label, (int)code,
					json_string_value(
						json_object_get(requests[i].result, "output")));
			json_decref(requests[i].result);
			requests[i].result = NULL;
		}
	}
	free(requests);
	return rc;
}

/* What fails on a file system that has other things to do may well succeed a second later; what
 * keeps failing does not. */
static int run_commands(struct executor *x, json_t *lists[], const char *label, struct err *e)
{
	int rc = run_commands_once(x, lists, label, e);

	for (int again = 1; again < PREPARE_TRIES && rc == -EIO && !*x->interrupted; again++) {
		progress_say(x->progress, "%s; trying again", e->text);
		nap(x);
		rc = run_commands_once(x, lists, label, e);
	}
	return rc;
}

/* Programs that a workload needs, on every client. */
static int check_workload(struct executor *x, const struct part *w, struct err *e)
{
	json_t *list = json_array();
	int rc = needs_add(x->scenario->L, w, list, e);

	for (size_t k = 0; k < x->cluster->n_clients && !rc && json_array_size(list); k++) {
		json_t *missing = NULL;
		char text[512];

		rc = needs_missing(x->cluster->clients[k]->node, list, &missing, e);
		if (!rc && json_array_size(missing))
			rc = err_set(e, -EINVAL, "%s: there is no program %s",
				x->cluster->clients[k]->host->ssh.name,
				needs_text(json_array_get(missing, 0), text, sizeof(text)));
		json_decref(missing);
	}
	json_decref(list);
	return rc;
}

static int prepare_workload(struct executor *x, const struct part *w, struct err *e)
{
	lua_State *L = x->scenario->L;
	struct cluster *c = x->cluster;
	json_t **lists = calloc(c->n_clients, sizeof(*lists));
	int top = lua_gettop(L),
	    rc = lists ? 0 : err_errno(e, -ENOMEM, "cannot prepare '%s'", w->label);

	for (size_t i = 0; i < c->n_clients && !rc; i++) {
		lua_rawgeti(L, LUA_REGISTRYINDEX, w->def_ref);
		lua_getfield(L, -1, "prepare");
		if (lua_isnil(L, -1))
			break;
		bind_push_context(L, x->acts, c, NULL, w, store_run_id(x->store));
		bind_push_node(L, x->acts, c->clients[i]);
		rc = luax_call(L, 2, 1, e);
		if (!rc)
			rc = luajson_get(L, -1, &lists[i], e);
		lua_settop(L, top);
	}
	lua_settop(L, top);
	if (!rc)
		rc = run_commands(x, lists, w->label, e);
	for (size_t i = 0; lists && i < c->n_clients; i++)
		json_decref(lists[i]);
	free(lists);
	return rc;
}

/* Which parts the plan really uses ('--only' may leave some out). */
static void used_parts(const struct executor *x, bool *workloads, bool *faults)
{
	for (size_t i = 0; i < x->plan->n; i++) {
		const struct cell *c = &x->plan->cells[i];

		workloads[c->workload] = true;
		if (c->fault != SIZE_MAX)
			faults[c->fault] = true;
	}
}

/* Made once, before workloads do: clients that make one folder at the same time may get a stale
 * handle (GlusterFS). */
static int make_folder(struct executor *x, struct err *e)
{
	struct member *client = x->cluster->clients[0];
	json_t **lists = calloc(x->cluster->n_clients, sizeof(*lists));
	int rc = lists ? 0 : err_errno(e, -ENOMEM, "cannot prepare");

	if (!rc) {
		lists[0] = json_pack("[[s, s, o]]", "mkdir", "-p",
			json_sprintf("%s/%s", client->host->mount, store_run_id(x->store)));
		rc = run_commands(x, lists, "the run's folder", e);
		json_decref(lists[0]);
	}
	free(lists);
	return rc;
}

static int check_and_prepare(struct executor *x, struct err *e)
{
	const struct scenario *s = x->scenario;
	bool *workloads = calloc(s->n_workloads + s->n_faults, sizeof(*workloads)), *faults;
	char what[160];
	int rc = 0;

	if (!workloads)
		return err_errno(e, -ENOMEM, "cannot prepare");
	faults = workloads + s->n_workloads;
	used_parts(x, workloads, faults);
	note_all(x, false, "being asked whether faults and workloads can run");
	for (size_t i = 0; i < s->n_faults && !rc; i++)
		rc = faults[i] ? check_or_skip(x, i, e) : 0;
	for (size_t i = 0; i < s->n_workloads && !rc; i++)
		rc = workloads[i] ? check_workload(x, &s->workloads[i], e) : 0;
	if (!rc)
		rc = make_folder(x, e);
	for (size_t i = 0; i < s->n_workloads && !rc; i++) {
		if (!workloads[i])
			continue;
		snprintf(what, sizeof(what), "preparing %s", s->workloads[i].label);
		note_all(x, true, what);
		rc = prepare_workload(x, &s->workloads[i], e);
	}
	free(workloads);
	progress_cells(x->progress, x->plan->n);
	return rc;
}

/* The workloads' folder on the file system goes with the run. */
static void remove_data(struct executor *x)
{
	struct member *client = x->cluster->clients[0];
	json_t *result = NULL;

	node_call(client->node, "run",
		json_pack("{s:[s, s, s, o], s:i}", "argv", "rm", "-rf", "--",
			json_sprintf("%s/%s", client->host->mount, store_run_id(x->store)),
			"timeout_s", 120),
		150, &result, NULL);
	json_decref(result);
}

/* A lost node is given up with its nodeset; the next attempt begins with a new one. */
static int reconnect(struct executor *x, struct err *e)
{
	struct err ignored;
	int rc;

	if (x->cluster->set && !cluster_lost(x->cluster, &ignored))
		return 0;
	interrupted_set = NULL;
	note_all(x, false, "being connected again");
	acts_forget(x->acts);
	cluster_disconnect(x->cluster);
	rc = cluster_connect(x->cluster, e);
	/* A key that is another one does not come right by waiting. */
	if (rc == -EKEYREJECTED)
		return -EHOSTDOWN;
	if (rc)
		return *x->interrupted ? err_set(e, -EINTR, "interrupted") : -EAGAIN;
	interrupted_set = x->cluster->set;
	return 0;
}

/* No cell is run before every host is as it was when the run began, and quiet. */
static int wait_clean(struct executor *x, json_t **report, struct err *e)
{
	double wait_s = gates_wait_s(&x->scenario->gates), deadline = clock_mono_s() + wait_s;
	char said[sizeof(e->text)] = "";

	for (;;) {
		struct err why = {""};
		int rc = reconnect(x, &why);

		if (!rc && !*said)
			note_all(x, false, "being looked at: processes, clocks, load");
		if (!rc)
			rc = gates_before(x, report, &why);
		if (!rc && *said)
			progress_say(x->progress, "quarantine is over");
		if (!rc)
			return 0;
		if (rc == -EINTR || *x->interrupted)
			return err_set(e, -EINTR, "interrupted");
		if (rc != -EAGAIN && rc != -ENOTCONN && rc != -ETIMEDOUT)
			return err_set(e, rc, "%s", why.text);
		if (!*said)
			progress_say(x->progress,
				"quarantined: %s; no cell is run meanwhile, for %g s at most",
				why.text, wait_s);
		snprintf(said, sizeof(said), "%s", why.text);
		if (clock_mono_s() > deadline)
			return err_set(e, -EHOSTDOWN,
				"quarantined for more than %g s (gates: 'wait'): %.800s", wait_s,
				said);
		note_all(x, false, "waiting");
		progress_now(x->progress, 0, "quarantined: %.200s", said);
		nap(x);
	}
}

/* On what the second tracer saw, too. Where run times are measured nobody judges. */
static int judge_both(
	struct executor *x, int64_t id, int64_t beside_id, char *text, size_t size, struct err *e)
{
	char ignored[160];
	int rc = x->judge ? judge_attempt(x->judge, id, text, size, e) : 0;

	return rc || !x->judge_beside
		? rc
		: judge_attempt(x->judge_beside, beside_id, ignored, sizeof(ignored), e);
}

/* "ddw x disk-hog on s2" */
static void name_cell(const struct executor *x, const struct cell *c, char *text, size_t size)
{
	size_t n = (size_t)snprintf(text, size, "%s x %s",
		x->scenario->workloads[c->workload].label, cell_treatment(x->scenario, c));

	for (size_t i = 0; i < c->n_victims && n < size; i++)
		n += (size_t)snprintf(text + n, size - n, "%s%s", i ? "+" : " on ",
			x->server_names[c->victims[i]]);
}

static int run_cell(struct executor *x, size_t place, const struct cell *c, struct err *e)
{
	double begin = clock_mono_s();
	char title[512];
	int rc = 0;

	name_cell(x, c, title, sizeof(title));
	for (long n = c->attempts + 1; n <= c->attempts + x->scenario->attempts; n++) {
		enum outcome outcome = OUTCOME_ERROR;
		struct err why = {""};
		int64_t id = 0, beside_id = 0;
		json_t *report = NULL;
		char text[160] = "";

		progress_attempt(x->progress, c->number, n - c->attempts, title);
		rc = wait_clean(x, &report, e);
		if (!rc)
			rc = attempt_run(x, c, n, &outcome, &why, report, &id, &beside_id, e);
		json_decref(report);
		if (rc)
			return rc;
		if (outcome != OUTCOME_CONFIRMED) {
			progress_invalid(x->progress);
			progress_say(x->progress, "cell %zu %s: attempt %ld %s: %s", c->number,
				title, n, outcome_name(outcome), why.text);
			/* What the script got wrong does not get better by trying. */
			if (outcome == OUTCOME_ERROR)
				break;
			continue;
		}
		progress_cell_done(x->progress, true, clock_mono_s() - begin);
		/* What was measured stays and can be judged again: a detector's mistake ends no
		 * run. */
		if (!c->training && judge_both(x, id, beside_id, text, sizeof(text), &why)) {
			x->judge_failed = true;
			progress_say(x->progress, "cell %zu: not judged: %s", c->number, why.text);
		}
		progress_say(x->progress, "[%zu/%zu] cell %zu %s: %sconfirmed%s (%.1f s)", place,
			x->plan->n, c->number, title, c->training ? "training, " : "", text,
			clock_mono_s() - begin);
		return 0;
	}
	progress_cell_done(x->progress, false, clock_mono_s() - begin);
	if (c->training)
		return err_set(e, -EIO,
			"training cell %zu has no confirmed attempt: nothing could be judged",
			c->number);
	return 0;
}

static int run_cells(struct executor *x, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; i < x->plan->n && !rc; i++)
		if (!x->plan->cells[i].done)
			rc = run_cell(x, i + 1, &x->plan->cells[i], e);
	return rc;
}

/* Killed between an attempt and its verdicts, or judged by a model or a detector that has changed
 * since. */
static int judge_rest_of(struct executor *x, struct judge *j, struct store *s, struct err *e)
{
	json_t *rows = NULL, *row;
	char ignored[160];
	struct err why;
	size_t i;
	int rc = j ? store_unjudged(s, &rows, e) : 0;

	json_array_foreach(rows, i, row)
	{
		if (*x->interrupted)
			break;
		progress_now(x->progress, 0, "judging what was measured before");
		if (judge_attempt(j, json_integer_value(json_object_get(row, "attempt")), ignored,
			    sizeof(ignored), &why)) {
			x->judge_failed = true;
			progress_say(x->progress, "cell %lld: not judged: %s",
				(long long)json_integer_value(json_object_get(row, "cell")),
				why.text);
		}
	}
	json_decref(rows);
	return rc;
}

int exec_judge_rest(struct executor *x, struct err *e)
{
	int rc = x->resumed ? judge_rest_of(x, x->judge, x->store, e) : 0;

	return rc || !x->resumed || !x->beside ? rc
					       : judge_rest_of(x, x->judge_beside, x->beside, e);
}

/* What the cells depend on is now known whole. A run that is resumed must be made of the same
 * programs. */
static int identify(struct executor *x, struct err *e)
{
	char *text = store_get(x->store, "programs"), *difference;
	json_t *was = text ? json_loads(text, 0, NULL) : NULL, *programs = json_object();
	int rc;

	free(text);
	note_all(x, false, "being asked for its programs");
	rc = key_add_programs(x->scenario, x->plan, x->cluster, programs, e);
	/* What the scenario asks for, or what the nodes can. */
	if (x->scenario->measure == MEASURE_VERDICTS)
		json_object_set_new(
			programs, "traced with", json_string(x->scenario->tracers[0].label));
	difference = rc || !was ? NULL : key_difference(was, programs);
	if (difference)
		rc = err_set(e, -EINVAL,
			"it is not the same run any more: %.800s; 'culprit run' begins a new one",
			difference);
	free(difference);
	json_object_update(x->inputs, programs);
	if (!rc)
		rc = key_cells(x->scenario, x->plan, x->cluster, x->inputs, e);
	if (!rc && x->resumed)
		rc = resume_check_keys(x, e);
	text = rc ? NULL : json_dumps(programs, JSON_COMPACT | JSON_SORT_KEYS);
	if (!rc)
		rc = text ? store_set(x->store, "programs", text, e)
			  : err_errno(e, -ENOMEM, "cannot write a fact");
	free(text);
	json_decref(was);
	json_decref(programs);
	return rc;
}

static int record_environment(struct executor *x, struct err *e)
{
	json_t *hosts = json_object();
	char *text;
	int rc;

	for (size_t i = 0; i < x->cluster->n_members; i++) {
		struct member *m = &x->cluster->members[i];

		json_object_set_new(hosts, m->host->ssh.name,
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

int exec_run(struct executor *x, struct err *e)
{
	int rc;

	luax_advise("; the nodes' guards undo what is left, and 'culprit resume' goes on");
	note_all(x, false, "being connected, and given the agent");
	progress_now(x->progress, 0, "connecting to %zu nodes", x->cluster->n_members);
	x->cluster->interrupt_fd = exec_interrupt_fd();
	rc = cluster_connect(x->cluster, e);
	if (rc)
		return rc;
	interrupted_set = x->cluster->set;
	rc = bind_open(x->scenario->L, &x->acts, e);
	if (!rc)
		rc = record_environment(x, e);
	if (!rc)
		rc = cluster_wait_healthy(x->cluster, 30, e);
	if (!rc)
		rc = check_tracers(x, e);
	if (!rc && x->scenario->measure == MEASURE_VERDICTS)
		rc = sampling_check(x->cluster, x->progress, e);
	if (!rc)
		rc = identify(x, e);
	if (!rc)
		rc = check_and_prepare(x, e);
	if (!rc)
		rc = run_cells(x, e);
	if (!rc)
		rc = exec_judge_rest(x, e);
	if (x->cluster->set) {
		nodeset_resume(x->cluster->set);
		remove_data(x);
	}
	interrupted_set = NULL;
	bind_close(x->acts);
	x->acts = NULL;
	cluster_disconnect(x->cluster);
	if (*x->interrupted)
		rc = err_set(e, -EINTR, "interrupted");
	return rc;
}
