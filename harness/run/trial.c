/* Waits and notes that all parts of an attempt share. */
#include "harness/run/trial_impl.h"

#include <errno.h>
#include <string.h>

#include "harness/base/clock.h"
#include "harness/base/jget.h"
#include "harness/run/signals.h"

#define POLL_S 0.25

bool trial_stop_asked(const struct trial *t)
{
	return *t->x->interrupted > 0;
}

bool trial_has(const struct trial *t, const struct part *p, const char *name)
{
	lua_State *L = t->x->scenario->L;
	int top = lua_gettop(L);
	bool has = bind_push_function(L, p, name);

	lua_settop(L, top);
	return has;
}

/* The fault's steps, and what its victim shows during each; NULL: nothing. */
static const struct {
	const char *step, *words;
} fault_steps[] = {{"inject", "injecting"}, {"verify", "looking whether it acts:"},
	{"onset", "under"}, {"verify-again", "looking whether it still acts:"}, {"undo", "undoing"},
	{"offset", NULL}};

bool trial_is_victim(const struct trial *t, const struct member *m)
{
	for (size_t i = 0; i < t->n_victims; i++)
		if (t->victims[i] == m)
			return true;
	return false;
}

static void show_node(struct trial *t, const struct member *m)
{
	const struct job *app = trial_job(t, JOB_WORKLOAD, m);
	bool is_traced = trial_job(t, JOB_TRACER, m) != NULL;
	const char *name = m->name, *traced = is_traced ? ", traced by " : "",
		   *by = is_traced ? t->tracing->label : "";
	struct progress *p = t->x->progress;

	if (node_lost(m->node, NULL))
		progress_node(p, name, "lost");
	else if (t->fault_step && trial_is_victim(t, m))
		progress_node(p, name, "%s %s%s%s", t->fault_step, t->fault->label, traced, by);
	else if (t->doing &&
		(m->host->role == ROLE_CLIENT || (m->host->role == ROLE_SERVER && !t->clients_do)))
		progress_node(p, name, "%s", t->doing);
	else if (m->host->role == ROLE_SERVER)
		progress_node(p, name, "serving%s%s", traced, by);
	else if (app)
		progress_node(p, name, "%s %s%s%s", app->ended ? "done with" : "running",
			t->workload->label, traced, by);
	else
		progress_node(p, name, "ready");
}

static void show_nodes(struct trial *t)
{
	cluster_each(m, t->x->cluster) {
		show_node(t, m);
	}
}

static void note_phase(struct trial *t, double left_s, const char *what)
{
	t->doing = NULL;
	show_nodes(t);
	progress_now(t->x->progress, left_s, "%s", what);
}

void trial_note_between(struct trial *t, bool clients, const char *what)
{
	t->doing = what;
	t->clients_do = clients;
	show_nodes(t);
	/* Before the phases all of them are left; afterwards the time left is not known. */
	progress_now(
		t->x->progress, t->row.seconds ? 0 : attempt_phases_s(t->x->scenario), "%s", what);
}

/* detail.steps: [{step, at_ns}], for reports. */
static void keep_step(struct trial *t, const char *step)
{
	json_t *steps = jget(t->detail, "steps");

	if (!steps) {
		steps = json_array();
		json_object_set_new(t->detail, "steps", steps);
	}
	json_array_append_new(
		steps, json_pack("{s:s, s:I}", "step", step, "at_ns", (json_int_t)clock_real_ns()));
}

void trial_note_step(struct trial *t, const char *step)
{
	keep_step(t, step);
	progress_note(t->x->progress, "cell %zu attempt %ld step %s", t->cell->number,
		t->row.number, step);
	for (size_t i = 0; i < sizeof(fault_steps) / sizeof(fault_steps[0]); i++)
		if (!strcmp(step, fault_steps[i].step))
			t->fault_step = fault_steps[i].words;
	show_nodes(t);
	progress_refresh(t->x->progress);
}

static struct job *find_job(struct trial *t, const struct node *n, const char *handle)
{
	for (size_t i = 0; i < t->n_jobs; i++)
		if (t->jobs[i].running && t->jobs[i].member->node == n &&
			!strcmp(t->jobs[i].handle, handle))
			return &t->jobs[i];
	return NULL;
}

/* Messages that agents send by themselves: a job ended, or the guard undid an act. */
static void trial_on_event(void *ctx, struct node *n, const json_t *event)
{
	struct trial *t = ctx;
	const char *what = jget_text(event, "event");
	const char *handle = jget_text(event, "handle");
	const char *why = jget_text(event, "why");
	int code = (int)jget_int(event, "exit");
	const struct job_kind *kind;
	struct job *job;

	if (!what || !handle || t->is_spoilt)
		return;
	if (!strcmp(what, "undone")) {
		if (why && !strcmp(why, "max_s"))
			err_set(&t->spoilt, -ECANCELED,
				"%s: an act's 'max_s' ran out before the fault's end; it is a "
				"safety limit, the length is the scenario's phases.fault",
				node_name(n));
		else
			err_set(&t->spoilt, -ECANCELED, "%s: its guard undid %s: %s", node_name(n),
				handle, why ? why : "?");
		t->is_spoilt = true;
	}
	job = strcmp(what, "exit") ? NULL : find_job(t, n, handle);
	kind = job ? &job_kinds[job->kind] : NULL;
	/* Under a fault that may fail, a crashed server or application is what is measured. */
	if (!job || (t->may_fail && !kind->spare))
		return;
	job->ended = kind->spare || (kind->may_end && !code);
	if (job->ended)
		return;
	err_set(&t->spoilt, -EIO, "%s: %s%s%s ended by itself with %d", node_name(n), kind->name,
		job->kind == JOB_WORKLOAD ? " " : "",
		job->kind == JOB_WORKLOAD ? t->workload->label : "", code);
	t->is_spoilt = true;
	t->talker = job->kind == JOB_WORKLOAD ? job->member : NULL;
}

/* Watches for events, lost nodes and interruption, 'wait_s' at most. */
static int trial_watch(struct trial *t, double wait_s, struct err *e)
{
	if (trial_stop_asked(t))
		return signals_interrupted(e);
	recorder_turn(t);
	node_events(t->x->cluster->set,
		wait_s > POLL_S      ? POLL_S
			: wait_s > 0 ? wait_s
				     : 0,
		trial_on_event, t);
	if (cluster_lost(t->x->cluster, e))
		return -ENOTCONN;
	if (!t->is_spoilt)
		return safety_check(t, e);
	*e = t->spoilt;
	return err_blame(e, ERR_CLUSTER, -EIO);
}

int trial_wait_until(struct trial *t, double until_s, const char *what, struct err *e)
{
	for (;;) {
		double left = until_s - clock_mono_s();
		int rc = trial_watch(t, left, e);

		if (rc || left <= 0)
			return rc;
		note_phase(t, until_s - clock_mono_s(), what);
	}
}

int trial_wait_ended(struct trial *t, struct err *e)
{
	double begin = clock_mono_s(), limit_s = t->x->scenario->limit_s;

	for (;;) {
		const struct member *late = NULL;
		size_t left = 0;
		int rc = trial_watch(t, POLL_S, e);

		for (size_t i = 0; i < t->n_jobs; i++) {
			if (t->jobs[i].kind != JOB_WORKLOAD || t->jobs[i].ended)
				continue;
			left++;
			late = t->jobs[i].member;
		}
		if (rc || !left)
			return rc;
		if (clock_mono_s() - begin > limit_s) {
			t->talker = late;
			return err_set(e, -ETIMEDOUT,
				"%s did not end within %g s on %zu clients (scenario: 'limit')",
				t->workload->label, limit_s, left);
		}
		note_phase(t, 0, "running to its end");
	}
}
