/* Runs one attempt at a cell, from a clean cluster to a clean cluster. */
#include "harness/run/attempt.h"

#include <errno.h>
#include <fcntl.h>
#include <lauxlib.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/clock.h"
#include "harness/base/file.h"
#include "harness/run/fingerprint.h"
#include "harness/run/signals.h"
#include "harness/run/trial_impl.h"

#define RUNTIME_GUESS_S 8 /* for the first ETA only */

double attempt_phases_s(const struct scenario *s)
{
	return s->measure == MEASURE_RUNTIME ? RUNTIME_GUESS_S
					     : s->before_s + s->fault_s + s->after_s;
}

enum outcome attempt_outcome(enum err_class class)
{
	switch (class) {
	case ERR_USAGE:
	case ERR_SCENARIO:
	case ERR_HARNESS: return OUTCOME_ERROR;
	case ERR_UNSAFE: return OUTCOME_ABORTED;
	default: return OUTCOME_INVALID; /* unclassified as well: a second try costs little */
	}
}

/* After a failure: undoes and stops what is left on the nodes that can be reached, and keeps what
 * programs said. */
static void clean_up(struct trial *t, struct err *why)
{
	json_t *ignored[JOB_KINDS];
	struct err e;

	nodeset_resume(t->x->cluster->set);
	trial_note_between(t, false, "undoing and stopping what is left");
	if (acts_undo(t->x->acts, &e))
		t->x->undo_failed = true;
	else if (why->class == ERR_UNSAFE)
		safety_undone(t);
	trial_stop(t, ignored, &e);
	for (size_t k = 0; k < JOB_KINDS; k++)
		json_decref(ignored[k]);
	if (t->has_begun)
		measure_keep_output(t, why);
	if (t->has_begun && !cluster_lost(t->x->cluster, &e))
		trial_clean_workload(t);
	if (!trial_stop_asked(t))
		gates_explain(&t->x->gate, why);
	measure_discard(t->x->cluster);
}

/* Compares the nodes with the trial's begin. The file system's processes may have been restarted,
 * which changes their numbers. */
static int compare_nodes(struct trial *t, struct err *e)
{
	json_auto_t *after = NULL;

	return cluster_find_processes(t->x->cluster, e)
		?: fingerprint_take(t->x->cluster, &after, e)
		?: fingerprint_compare(t->before, after, e);
}

static int run_trial(struct trial *t, struct err *e)
{
	bool runtime = t->x->scenario->measure == MEASURE_RUNTIME;
	double stopped_s;
	int rc;

	trial_note_between(t, false, "looking at the nodes as they are");
	trial_note_step(t, "begin");
	t->x->gate.unsettled = t->may_fail;
	rc = fingerprint_take(t->x->cluster, &t->before, e) ?: trial_early_fault(t, e);
	trial_note_between(t, false, "starting tracers");
	trial_note_step(t, "trace");
	rc = rc ?: trial_start_tracers(t, e);
	if (!rc && runtime)
		rc = measure_cpu(t, -1, e);
	trial_note_between(t, true, "starting the workload");
	trial_note_step(t, "workload");
	rc = rc ?: trial_start_workload(t, e);
	if (!rc)
		rc = runtime ? trial_wait_ended(t, e) ?: measure_cpu(t, 1, e) : trial_phases(t, e);
	if (!rc) {
		t->row.seconds = (int32_t)((clock_real_ns() - t->row.start_ns) / 1000000000);
		trial_note_between(t, false, "stopping workload and tracers");
		trial_note_step(t, "stop");
		recorder_last(t);
		rc = trial_stop_all(t, e);
	}
	if (!rc && t->fault && t->fault->from_start)
		rc = trial_fault_off(t, e);
	if (!rc) {
		trial_note_between(t, true, "cleaning up after the workload");
		trial_note_step(t, "collect");
		trial_clean_workload(t);
	}
	rc = rc ?: gates_during(&t->x->gate, t->gates, e);
	stopped_s = clock_mono_s();
	trial_note_between(t, false, runtime ? "fetching output" : "fetching traces");
	rc = rc ?: measure_fetch(t, e);
	if (!rc && runtime)
		rc = measure_runtime(t, e);
	if (!rc) {
		trial_note_between(t, false, "comparing the nodes with before");
		rc = compare_nodes(t, e);
	}
	rc = rc ?: gates_after(&t->x->gate, t->gates, stopped_s, e);
	/* Code that knows better has blamed already; all else befell the nodes. */
	return rc ? err_blame(e, ERR_CLUSTER, rc) : 0;
}

static int sync_folder(struct trial *t, const char *name, struct err *e)
{
	auto_free char *path = alloc_format("%s/%s", store_folder(t->x->store), name);
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = 0;

	if (fd < 0 || fsync(fd) < 0)
		rc = err_errno(e, -errno, "cannot write '%s' to the disk", name);
	if (fd >= 0)
		close(fd);
	return rc;
}

/* Makes the names of an attempt's files, and its folder's own in 'cells', durable. */
static int sync_folders(struct trial *t, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; i < recorder_folders(t) && !rc; i++) {
		auto_free char *name = alloc_format("%s/recorder.%zu", t->folder, i + 1);

		rc = sync_folder(t, name, e);
	}
	return rc ?: sync_folder(t, t->folder, e) ?: sync_folder(t, "cells", e);
}

/* Writes the attempt's row and measurements in one transaction, its files on the disk before it is
 * committed. */
static int record_in(struct trial *t, struct store *s, const struct reduction *m, struct err *e)
{
	bool confirmed = t->row.outcome == OUTCOME_CONFIRMED;
	int rc = store_begin(s, e) ?: store_put_attempt(s, &t->row, e);

	if (confirmed)
		rc = rc ?: measure_store(t, s, m, e) ?: sync_folders(t, e);
	else if (s == t->x->store)
		rc = rc ?: measure_list_output(t, e);
	return store_end(s, rc, e);
}

/* Writes both stores, or none. The second tracer's comes first: an attempt that only it has, as
 * after a kill between the two, is then known to be incomplete. */
static int record_both(
	struct trial *t, const struct reduction *m, const struct reduction *second, struct err *e)
{
	struct store *other = t->x->second_store;
	int rc = other ? record_in(t, other, second, e) : 0;

	if (rc)
		return rc;
	t->second_id = t->row.id;
	rc = record_in(t, t->x->store, m, e);
	if (rc && other)
		store_drop_attempt(other, t->second_id, NULL);
	return rc;
}

/* Reduces the traces. Data that cannot be read was damaged on its way. */
static int reduce(struct trial *t, struct reduction **m, struct reduction **second, struct err *e)
{
	json_t *cluster = NULL;
	int rc = cluster_describe(t->x->cluster, &cluster, e)
		?: measure_reduce(t, cluster, false, m, e);

	if (!rc && t->x->second_store)
		rc = measure_reduce(t, cluster, true, second, e);
	if (cluster)
		json_object_set_new(t->detail, "reduction", cluster);
	if (rc)
		return err_blame(e, ERR_DAMAGED, rc);
	rc = measure_check_served(t, *m, e);
	return rc ? err_blame(e, ERR_CLUSTER, rc) : 0;
}

/* Writes the attempt. 'rc' and 'result->why' tell how the trial went. */
static int record(struct trial *t, int rc, struct attempt_result *result, struct err *e)
{
	struct reduction *m = NULL, *second = NULL;
	struct err *why = &result->why;
	int failed;

	if (!rc && t->x->scenario->measure == MEASURE_VERDICTS)
		rc = reduce(t, &m, &second, why);
	t->row.outcome = rc ? attempt_outcome(why->class) : OUTCOME_CONFIRMED;
	t->row.reason = rc ? why->text : NULL;
	t->row.detail = t->detail;
	t->row.ended_ns = clock_real_ns();
	failed = record_both(t, m, second, e);
	if (failed == -ENOSPC) {
		char *full = alloc_format("%s/%s", store_folder(t->x->store), t->folder);

		/* Removing its files makes room for its row. The gates wait for more room before
		 * the next attempt, so this one is invalid. */
		file_remove_tree(full, NULL);
		free(full);
		t->row.outcome = OUTCOME_INVALID;
		*why = *e;
		t->row.reason = why->text;
		failed = record_both(t, NULL, NULL, e);
	}
	reduce_free(second);
	reduce_free(m);
	result->outcome = t->row.outcome;
	result->id = t->row.id;
	result->second_id = t->second_id;
	return failed;
}

static int attempt_begin(struct trial *t, char **full, struct err *e)
{
	struct executor *x = t->x;
	const struct cell *c = t->cell;

	for (size_t i = 0, n = 0; i < c->n_victims; i++) {
		t->victims[t->n_victims++] = x->cluster->servers[c->victims[i]];
		if (n < sizeof(t->victim_names))
			n += (size_t)snprintf(t->victim_names + n, sizeof(t->victim_names) - n,
				"%s%s", i ? "+" : "", x->server_names[c->victims[i]]);
	}
	t->jobs = alloc_zero(JOB_KINDS * x->cluster->n_members, sizeof(*t->jobs));
	t->folder = alloc_format("cells/%04zu.%ld", c->number, t->row.number);
	*full = alloc_format("%s/%s", store_folder(x->store), t->folder);
	json_object_set(t->detail, "gates", t->gates);
	return file_mkdirs(*full, 0700, e);
}

static void trial_clear(struct trial *t)
{
	while (t->n_contexts)
		luaL_unref(t->x->scenario->L, LUA_REGISTRYINDEX, t->contexts[--t->n_contexts]);
	recorder_end(t);
	safety_end(t);
	json_decref(t->before);
	json_decref(t->detail);
	free(t->jobs);
	free(t->folder);
}

int attempt_run(struct executor *x, const struct attempt_request *request,
	struct attempt_result *result, struct err *e)
{
	const struct cell *c = request->cell;
	struct trial t = {.x = x,
		.cell = c,
		.workload = &x->scenario->workloads[c->workload],
		.fault = c->n_victims ? &x->scenario->faults[c->fault] : NULL,
		.tracing = &x->scenario->tracers[c->tracer],
		.detail = json_object(),
		.gates = request->gates,
		.row = {.cell = c->number,
			.number = request->number,
			.started_ns = clock_real_ns(),
			.key = c->key}};
	char *full = NULL;
	int rc;

	*result = (struct attempt_result){.outcome = OUTCOME_ERROR};
	t.may_fail = t.fault && t.fault->may_fail;
	rc = attempt_begin(&t, &full, e);
	if (rc)
		goto out;
	rc = run_trial(&t, &result->why);
	if (rc) {
		clean_up(&t, &result->why);
		x->gate.unsettled = true;
	}
	if (trial_stop_asked(&t)) {
		file_remove_tree(full, NULL);
		rc = signals_interrupted(e);
	} else {
		rc = record(&t, rc, result, e);
	}
out:
	free(full);
	trial_clear(&t);
	return rc;
}
