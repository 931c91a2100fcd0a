/* Injects, verifies and undoes an attempt's fault. */
#include "harness/run/trial_impl.h"

#include <errno.h>
#include <lauxlib.h>
#include <stdio.h>

#include "harness/base/clock.h"
#include "harness/lua/luajson.h"
#include "harness/lua/luax.h"

#define VERIFY_PERIOD_S 0.2
/* For clients to find a restarted server; a fault that acts from the start may prevent it. */
#define RECONNECT_S 10

/* Calls the fault's function 'name' for the victim 'v'; leaves 'results' values. 'number' is a
 * further argument unless it is negative. */
static int call_fault(
	struct trial *t, size_t v, const char *name, double number, int results, struct err *e)
{
	lua_State *L = t->x->scenario->L;

	bind_push_function(L, t->fault, name);
	lua_rawgeti(L, LUA_REGISTRYINDEX, t->contexts[v]);
	if (number >= 0)
		lua_pushnumber(L, number);
	return luax_call(L, number >= 0 ? 2 : 1, results, e);
}

/* Calls 'name' for one victim until it returns true; '*evidence' gets its value. -ETIME if it does
 * not within 'patience_s'. */
static int ask_until(struct trial *t, size_t v, const char *name, double patience_s,
	const char *what, json_t **evidence, struct err *e)
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

			rc = err_set(e, -ETIME, "%s on %s: %s did not come true within %g s: %s",
				t->fault->label, t->victims[v]->name, name, patience_s,
				seen ? seen : "no reason given");
			break;
		}
		lua_settop(L, top);
		rc = trial_wait_until(t, clock_mono_s() + VERIFY_PERIOD_S, what, e);
		if (rc)
			break;
	}
	lua_settop(L, top);
	return rc;
}

/* Verifies the fault on every victim; detail[key] gets {victim: evidence}. */
static int verify(struct trial *t, const char *key, struct err *e)
{
	json_t *all = json_object();
	int rc = 0;

	for (size_t v = 0; v < t->n_victims && !rc; v++) {
		json_t *evidence = NULL;

		rc = ask_until(t, v, "verify", t->fault->verify_s, "verifying", &evidence, e);
		if (!rc)
			json_object_set_new(all, t->victims[v]->name, evidence);
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
		lua_newtable(L);
		for (size_t i = 0, n = 0; i < t->n_jobs; i++) {
			if (t->jobs[i].kind != JOB_WORKLOAD)
				continue;
			bind_push_handle(L, t->x->acts, t->jobs[i].member, t->jobs[i].handle);
			lua_rawseti(L, -2, (lua_Integer)++n);
		}
		lua_setfield(L, -2, "workload");
		t->contexts[t->n_contexts] = luaL_ref(L, LUA_REGISTRYINDEX);
	}
}

static int fault_on(struct trial *t, struct err *e)
{
	int rc = 0;

	safety_begin(t);
	t->inject_ns = clock_real_ns();
	progress_fault(t->x->progress, t->inject_ns, 0, 0);
	trial_note_step(t, "inject");
	for (size_t v = 0; v < t->n_victims && !rc; v++)
		rc = call_fault(t, v, "inject", -1, 0, e);
	trial_note_step(t, "verify");
	rc = rc ?: verify(t, "verified_on", e);
	if (!rc)
		t->row.onset_ns = clock_real_ns();
	progress_fault(t->x->progress, t->inject_ns, t->row.onset_ns, 0);
	if (!rc && !t->fault->from_start)
		recorder_onset(t, clock_mono_s());
	trial_note_step(t, "onset");
	return rc;
}

int trial_fault_off(struct trial *t, struct err *e)
{
	struct err why;
	int rc, undo;

	trial_note_step(t, "verify-again");
	rc = verify(t, "verified_still_on", e);
	trial_note_step(t, "undo");
	undo = acts_undo(t->x->acts, &why);
	if (!undo)
		t->row.offset_ns = clock_real_ns();
	progress_fault(t->x->progress, t->inject_ns, t->row.onset_ns, t->row.offset_ns);
	trial_note_step(t, "offset");
	if (!rc && undo)
		*e = why;
	return rc ?: undo;
}

/* The phase in which the fault acts. A fault's 'step' is called once a second, for ramps and
 * sequences. */
static int fault_phase(struct trial *t, double onset, struct err *e)
{
	double end = onset + t->x->scenario->fault_s;
	bool steps = trial_has(t, t->fault, "step");
	char what[160];
	int rc = 0;

	snprintf(what, sizeof(what), "fault on %s", t->victim_names);
	for (double at = onset; steps && at < end && !rc; at += 1) {
		rc = trial_wait_until(t, at, what, e);
		for (size_t v = 0; v < t->n_victims && !rc; v++)
			rc = call_fault(t, v, "step", at - onset, 0, e);
	}
	return rc ?: trial_wait_until(t, end, what, e);
}

/* Waits for the end of the phase before the fault, then for the fault's own trigger, if any. */
static int before_phase(struct trial *t, double begin, struct err *e)
{
	const struct scenario *s = t->x->scenario;
	double before_s = t->fault->after_s >= 0 ? t->fault->after_s : s->before_s;
	json_t *evidence = NULL;
	int rc = trial_wait_until(t, begin + before_s, "before the fault", e);

	if (!rc)
		make_contexts(t);
	if (!rc && trial_has(t, t->fault, "trigger")) {
		rc = ask_until(t, 0, "trigger", attempt_phases_s(s), "waiting for the trigger",
			&evidence, e);
		if (!rc)
			json_object_set_new(t->detail, "trigger", evidence);
	}
	return rc;
}

/* Detectors see as many seconds of each cell as the phases have. A fault that was slow to act has
 * less of its phase in them; what they then miss is not theirs to miss. */
static int in_time(struct trial *t, double asked, struct err *e)
{
	const struct scenario *s = t->x->scenario;
	const double took = clock_mono_s() - asked, limit = gates_onset_s(&s->gates, s->fault_s);

	if (took <= limit)
		return 0;
	err_set(e, -ETIME,
		"%s on %s: it was verified to act %.1f s after it was asked for; %g s are allowed "
		"(gates: 'onset'), since detectors see only %g s of a cell",
		t->fault->label, t->victim_names, took, limit, attempt_phases_s(s));
	return err_blame(e, ERR_CLUSTER, -ETIME);
}

static int write_at_offset(struct trial *t)
{
	recorder_offset(t, clock_mono_s());
	recorder_turn(t);
	return 0;
}

static int fault_on_in_time(struct trial *t, struct err *e)
{
	const double asked = clock_mono_s();

	return fault_on(t, e) ?: in_time(t, asked, e);
}

int trial_phases(struct trial *t, struct err *e)
{
	const struct scenario *s = t->x->scenario;
	double begin = clock_mono_s();
	int rc;

	if (!t->fault || t->fault->from_start) {
		/* What writing costs the nodes is the same in cells with and without a fault. */
		recorder_onset(t, begin + s->before_s);
		recorder_offset(t, begin + s->before_s + s->fault_s);
		return trial_wait_until(t, begin + attempt_phases_s(s),
			t->fault ? "fault from the start" : "no fault", e);
	}
	rc = before_phase(t, begin, e)
		?: fault_on_in_time(t, e)
		?: fault_phase(t, clock_mono_s(), e)
		?: write_at_offset(t)
		?: trial_fault_off(t, e)
		?: trial_wait_until(t, clock_mono_s() + s->after_s, "after the fault", e);
	return rc;
}

/* Injects a fault that acts from the start before anything is traced: so does a misconfigured
 * server. */
int trial_early_fault(struct trial *t, struct err *e)
{
	struct err still;
	int rc;

	if (!t->fault || !t->fault->from_start)
		return 0;
	make_contexts(t);
	rc = fault_on(t, e);
	/* Clients need a while to find a restarted server, which is not the fault's effect. What
	 * stays broken is its effect. */
	if (!rc && cluster_wait_healthy(t->x->cluster, RECONNECT_S, &still))
		progress_note(t->x->progress, "cell %zu: under %s from the start: %s",
			t->cell->number, t->fault->label, still.text);
	return rc ?: cluster_find_processes(t->x->cluster, e);
}
