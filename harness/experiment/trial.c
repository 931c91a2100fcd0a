#include "harness/experiment/trial.h"

#include <errno.h>
#include <lauxlib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/clock.h"
#include "harness/lua/luajson.h"
#include "harness/lua/luax.h"

bool trial_stop_asked(const struct trial *t)
{
	return *t->x->interrupted > 0;
}

static const struct job *job_on(const struct job *jobs, size_t n, const struct member *m)
{
	for (size_t i = 0; i < n; i++)
		if (jobs[i].member == m && jobs[i].running)
			return &jobs[i];
	return NULL;
}

/* What the fault is at on its victim; NULL: nothing. */
static const char *fault_words(const struct trial *t)
{
	static const char *const words[][2] = {{"inject", "injecting"},
		{"verify", "looking whether it acts:"}, {"onset", "under"},
		{"verify-again", "looking whether it still acts:"}, {"undo", "undoing"}};

	for (size_t i = 0; t->fault_step && i < sizeof(words) / sizeof(words[0]); i++)
		if (!strcmp(t->fault_step, words[i][0]))
			return words[i][1];
	return NULL;
}

static void show_node(struct trial *t, const struct member *m)
{
	const struct job *app = job_on(t->apps, t->n_apps, m),
			 *tracer = job_on(t->tracers, t->n_tracers, m);
	const char *name = m->host->ssh.name, *fault = fault_words(t),
		   *traced = tracer ? ", traced by " : "";
	const char *by = tracer ? t->tracing->label : "";
	bool victim = false;

	for (size_t i = 0; i < t->n_victims; i++)
		victim = victim || t->victims[i] == m;
	if (node_lost(m->node, NULL))
		progress_node(t->x->progress, name, "lost");
	else if (victim && fault)
		progress_node(
			t->x->progress, name, "%s %s%s%s", fault, t->fault->label, traced, by);
	else if (t->doing &&
		(m->host->role == ROLE_CLIENT || (m->host->role == ROLE_SERVER && !t->clients_do)))
		progress_node(t->x->progress, name, "%s", t->doing);
	else if (m->host->role == ROLE_SERVER)
		progress_node(t->x->progress, name, "serving%s%s", traced, by);
	else if (app)
		progress_node(t->x->progress, name, "%s %s%s%s",
			app->ended ? "done with" : "running", t->workload->label, traced, by);
	else
		progress_node(t->x->progress, name, "ready");
}

static void show_nodes(struct trial *t)
{
	for (size_t i = 0; i < t->x->cluster->n_members; i++)
		show_node(t, &t->x->cluster->members[i]);
}

void trial_note_phase(struct trial *t, double left_s, const char *what)
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
	/* Before the phases they all lie ahead; afterwards nobody knows. */
	progress_now(
		t->x->progress, t->row.seconds ? 0 : attempt_phases_s(t->x->scenario), "%s", what);
}

/* Written before the step is taken. */
void trial_note_step(struct trial *t, const char *step)
{
	static const char *const fault_steps[] = {
		"inject", "verify", "onset", "verify-again", "undo", "offset"};

	progress_note(t->x->progress, "cell %zu attempt %ld step %s", t->cell->number,
		t->row.number, step);
	for (size_t i = 0; i < sizeof(fault_steps) / sizeof(fault_steps[0]); i++)
		if (!strcmp(step, fault_steps[i]))
			t->fault_step = fault_steps[i];
	show_nodes(t);
	progress_refresh(t->x->progress);
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
	/* Under such a fault the server may crash, and the application fail: that is what is
	 * measured. */
	if (t->fault && t->fault->may_fail && !strcmp(kind, "exit"))
		return;
	for (size_t i = 0; i < t->n_apps; i++) {
		if (t->apps[i].running && t->apps[i].member->node == n &&
			!strcmp(t->apps[i].handle, handle) && code) {
			t->is_gone = true;
			err_set(&t->gone, -EIO, "%s: the workload %s ended by itself with %d",
				node_name(n), t->workload->label, code);
		}
	}
	for (size_t i = 0; i < t->n_apps; i++)
		if (!code && !strcmp(kind, "exit") && t->apps[i].member->node == n &&
			!strcmp(t->apps[i].handle, handle))
			t->apps[i].ended = true;
	for (size_t i = 0; i < t->n_beside; i++) {
		if (t->beside[i].running && t->beside[i].member->node == n &&
			!strcmp(t->beside[i].handle, handle)) {
			t->is_gone = true;
			err_set(&t->gone, -EIO, "%s: the second tracer ended by itself with %d",
				node_name(n), code);
		}
	}
	for (size_t i = 0; i < t->n_samplers; i++) {
		if (t->samplers[i].running && t->samplers[i].member->node == n &&
			!strcmp(t->samplers[i].handle, handle)) {
			t->is_gone = true;
			err_set(&t->gone, -EIO, "%s: the sampler ended by itself with %d",
				node_name(n), code);
		}
	}
	for (size_t i = 0; i < t->n_tracers; i++) {
		if (t->tracers[i].running && t->tracers[i].member->node == n &&
			!strcmp(t->tracers[i].handle, handle)) {
			t->is_gone = true;
			err_set(&t->gone, -EIO, "%s: the tracer ended by itself with %d",
				node_name(n), code);
		}
	}
	if (!strcmp(kind, "undone")) {
		const char *why = json_string_value(json_object_get(event, "why"));

		t->is_gone = true;
		err_set(&t->gone, -ECANCELED, "%s: its guard undid %s: %s", node_name(n), handle,
			why ? why : "?");
	}
}

/* Looks out for events, lost nodes and interruption, 'wait_s' at most. */
static int look_out(struct trial *t, double wait_s, struct err *e)
{
	if (trial_stop_asked(t))
		return err_set(e, -EINTR, "interrupted");
	node_events(t->x->cluster->set,
		wait_s > 0.25        ? 0.25
			: wait_s > 0 ? wait_s
				     : 0,
		on_event, t);
	if (cluster_lost(t->x->cluster, e))
		return -ENOTCONN;
	if (t->is_gone) {
		*e = t->gone;
		return -EIO;
	}
	return 0;
}

/* Waits until 'until_s' (monotonic). */
int trial_wait_until(struct trial *t, double until_s, const char *what, struct err *e)
{
	for (;;) {
		double left = until_s - clock_mono_s();
		int rc = look_out(t, left, e);

		if (rc || left <= 0)
			return rc;
		trial_note_phase(t, until_s - clock_mono_s(), what);
	}
}

int trial_wait_ended(struct trial *t, struct err *e)
{
	double begin = clock_mono_s(), limit_s = t->x->scenario->limit_s;

	for (;;) {
		size_t left = 0;
		int rc = look_out(t, 0.25, e);

		for (size_t i = 0; i < t->n_apps; i++)
			left += !t->apps[i].ended;
		if (rc || !left)
			return rc;
		if (clock_mono_s() - begin > limit_s)
			return err_set(e, -ETIMEDOUT,
				"%s did not end within %g s on %zu clients (scenario: 'limit')",
				t->workload->label, limit_s, left);
		trial_note_phase(t, 0, "running to its end");
	}
}
