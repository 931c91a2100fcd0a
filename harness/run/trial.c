#include "harness/run/trial.h"

#include <errno.h>
#include <lauxlib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/clock.h"
#include "harness/base/lua/luajson.h"
#include "harness/base/lua/luax.h"

bool trial_stop_asked(const struct trial *t)
{
	return *t->x->interrupted > 0;
}

void trial_note_phase(struct trial *t, double left_s, const char *what)
{
	progress_now(t->x->progress, left_s, "cell %zu %s x %s: %s", t->cell->number, t->workload->label,
		     cell_fault(t->x->scenario, t->cell), what);
}

/* Written before the step is taken. */
void trial_note_step(struct trial *t, const char *step)
{
	progress_note(t->x->progress, "cell %zu attempt %ld step %s", t->cell->number, t->row.number, step);
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
int trial_wait_until(struct trial *t, double until_s, const char *what, struct err *e)
{
	double end_s = until_s;

	for (;;) {
		double left = until_s - clock_mono_s();

		if (trial_stop_asked(t))
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
		trial_note_phase(t, end_s - clock_mono_s(), what);
	}
}
