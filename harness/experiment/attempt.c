#include "harness/experiment/attempt.h"

#include <errno.h>
#include <fcntl.h>
#include <lauxlib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/clock.h"
#include "harness/base/file.h"
#include "harness/experiment/gates.h"
#include "harness/experiment/measure.h"
#include "harness/experiment/trial.h"

#define RUNTIME_GUESS_S 8 /* for the first ETA only */

double attempt_phases_s(const struct scenario *s)
{
	return s->measure == MEASURE_RUNTIME ? RUNTIME_GUESS_S
					     : s->before_s + s->fault_s + s->after_s;
}

/* After a failure: whatever still runs or acts is stopped as far as the nodes can be reached. */
static void clean_up(struct trial *t)
{
	struct err ignored;

	nodeset_resume(t->x->cluster->set);
	trial_note_between(t, false, "undoing and stopping what is left");
	if (acts_undo(t->x->acts, &ignored))
		t->x->undo_failed = true;
	trial_stop_jobs(t->apps, t->n_apps, "process.stop", NULL, &ignored);
	trial_stop_jobs(t->tracers, t->n_tracers, "trace.stop", NULL, &ignored);
	trial_stop_jobs(t->beside, t->n_beside, "trace.stop", NULL, &ignored);
	trial_stop_jobs(t->samplers, t->n_samplers, "trace.stop", NULL, &ignored);
	if (t->n_apps && !cluster_lost(t->x->cluster, &ignored))
		trial_clean_workload(t);
	measure_discard(t->x->cluster);
}

static int run_trial(struct trial *t, struct err *e)
{
	bool runtime = t->x->scenario->measure == MEASURE_RUNTIME;
	double stopped_s;
	int rc;

	trial_note_between(t, false, "looking at the nodes as they are");
	trial_note_step(t, "begin");
	t->x->unsettled = t->fault && t->fault->may_fail;
	rc = trial_fingerprint(t->x, &t->before, e);
	if (!rc)
		rc = trial_early_fault(t, e);
	trial_note_between(t, false, "starting tracers");
	trial_note_step(t, "trace");
	if (!rc)
		rc = trial_start_tracers(t, e);
	trial_note_between(t, true, "starting the workload");
	trial_note_step(t, "workload");
	if (!rc)
		rc = trial_start_workload(t, e);
	if (!rc)
		rc = runtime ? trial_wait_ended(t, e) : trial_phases(t, e);
	if (!rc) {
		t->row.seconds = (int32_t)((clock_real_ns() - t->row.start_ns) / 1000000000);
		trial_note_between(t, false, "stopping workload and tracers");
		trial_note_step(t, "stop");
		rc = trial_stop_all(t, e);
	}
	if (!rc && t->fault && t->fault->from_start)
		rc = trial_fault_off(t, e);
	if (!rc) {
		trial_note_between(t, true, "cleaning up after the workload");
		trial_note_step(t, "collect");
		trial_clean_workload(t);
	}
	if (!rc)
		rc = gates_during(t->x, t->report, e);
	stopped_s = clock_mono_s();
	trial_note_between(t, false, runtime ? "fetching output" : "fetching traces");
	if (!rc)
		rc = measure_fetch(
			t->x, t->folder, t->workload, t->fault && t->fault->may_fail, t->detail, e);
	if (!rc && runtime)
		rc = measure_runtime(t->x, t->folder, t->detail, e);
	if (!rc) {
		json_t *after = NULL;

		trial_note_between(t, false, "comparing the nodes with before");
		/* Started again, the file system's processes have other numbers. */
		rc = cluster_find_processes(t->x->cluster, e);
		if (!rc)
			rc = trial_fingerprint(t->x, &after, e);
		if (!rc)
			rc = trial_compare(t->before, after, e);
		json_decref(after);
	}
	if (!rc)
		rc = gates_after(t->x, t->report, stopped_s, e);
	return rc;
}

/* Faults of the script or the harness are errors; what befell the nodes makes the attempt
 * invalid. */
static enum outcome outcome_of(int rc)
{
	if (!rc)
		return OUTCOME_CONFIRMED;
	return rc == -EINVAL || rc == -ENOMEM ? OUTCOME_ERROR : OUTCOME_INVALID;
}

/* The names of an attempt's files, and its own in 'cells'. */
static int sync_folders(struct trial *t, struct err *e)
{
	const char *const names[] = {t->folder, "cells"};
	int rc = 0;

	for (size_t i = 0; i < 2 && !rc; i++) {
		char *path = NULL;
		int fd = asprintf(&path, "%s/%s", store_folder(t->x->store), names[i]) < 0
			? -1
			: open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		if (fd < 0 || fsync(fd) < 0)
			rc = err_errno(e, -errno, "cannot write '%s' to the disk", names[i]);
		if (fd >= 0)
			close(fd);
		free(path);
	}
	return rc;
}

/* The attempt's row with what was measured, in one transaction: it is there whole, its files on the
 * disk, or not. */
static int record_in(struct trial *t, struct store *s, const struct reduction *m, struct err *e)
{
	int rc = store_begin(s, e);

	if (!rc)
		rc = store_put_attempt(s, &t->row, e);
	if (!rc && t->row.outcome == OUTCOME_CONFIRMED)
		rc = measure_store(t->x, s, t->folder, t->row.id, m, e);
	if (!rc && t->row.outcome == OUTCOME_CONFIRMED)
		rc = sync_folders(t, e);
	if (!rc)
		rc = store_commit(s, e);
	if (rc)
		store_rollback(s);
	return rc;
}

/* In both stores, or in none; the one beside first, so that what only it has can be told from what
 * is complete. */
static int record_both(
	struct trial *t, const struct reduction *m, const struct reduction *beside, struct err *e)
{
	int rc = 0;

	if (t->x->beside) {
		rc = record_in(t, t->x->beside, beside, e);
		t->beside_id = t->row.id;
	}
	if (rc)
		return rc;
	rc = record_in(t, t->x->store, m, e);
	if (rc && t->x->beside)
		store_drop_attempt(t->x->beside, t->beside_id, NULL);
	return rc;
}

/* 'rc' and 'why' say how the trial went; 'why' is kept up to date. */
static int record(struct trial *t, int rc, struct err *why, struct err *e)
{
	const struct scenario *sc = t->x->scenario;
	struct reduction *m = NULL, *beside = NULL;
	json_t *cluster = NULL;
	bool reduced = !rc && sc->measure == MEASURE_VERDICTS;
	int failed;

	if (reduced) {
		rc = measure_describe(t->x, &cluster, why);
		if (!rc)
			rc = measure_reduce(t->x, t->folder, cluster, t->row.start_ns,
				t->row.seconds, false, &m, why);
		if (!rc && t->x->beside)
			rc = measure_reduce(t->x, t->folder, cluster, t->row.start_ns,
				t->row.seconds, true, &beside, why);
		if (!rc)
			json_object_set(t->detail, "reduction", cluster);
	}
	/* What cannot be read was damaged on its way; no script is to blame. */
	if (rc == -EINVAL && reduced)
		rc = -EBADMSG;
	t->row.outcome = outcome_of(rc);
	t->row.reason = rc ? why->text : NULL;
	t->row.detail = t->detail;
	t->row.ended_ns = clock_real_ns();
	failed = record_both(t, m, beside, e);
	if (failed == -ENOSPC) {
		char full[1200];

		/* Its files make room for the word that it was. */
		snprintf(full, sizeof(full), "%s/%s", store_folder(t->x->store), t->folder);
		file_remove_tree(full, NULL);
		t->row.outcome = OUTCOME_INVALID;
		err_set(why, -ENOSPC, "%s", e->text);
		t->row.reason = why->text;
		failed = record_both(t, NULL, NULL, e);
	}
	reduce_free(beside);
	reduce_free(m);
	json_decref(cluster);
	return failed;
}

static void trial_clear(struct trial *t)
{
	while (t->n_contexts)
		luaL_unref(t->x->scenario->L, LUA_REGISTRYINDEX, t->contexts[--t->n_contexts]);
	json_decref(t->before);
	json_decref(t->detail);
	free(t->tracers);
	free(t->beside);
	free(t->samplers);
	free(t->apps);
	free(t->folder);
}

int attempt_run(struct executor *x, const struct cell *c, long number, enum outcome *outcome,
	struct err *why, json_t *report, int64_t *id, int64_t *beside_id, struct err *e)
{
	struct trial t = {.x = x,
		.cell = c,
		.workload = &x->scenario->workloads[c->workload],
		.tracing = &x->scenario->tracers[c->tracer],
		.detail = json_object(),
		.report = report};
	char *full = NULL;
	int rc = 0;

	t.row = (struct attempt_row){
		.cell = c->number, .number = number, .started_ns = clock_real_ns(), .key = c->key};
	if (c->n_victims)
		t.fault = &x->scenario->faults[c->fault];
	for (size_t i = 0, n = 0; i < c->n_victims; i++) {
		t.victims[t.n_victims++] = x->cluster->servers[c->victims[i]];
		if (n < sizeof(t.victim_names))
			n += (size_t)snprintf(t.victim_names + n, sizeof(t.victim_names) - n,
				"%s%s", i ? "+" : "", x->server_names[c->victims[i]]);
	}
	if (!t.detail || asprintf(&t.folder, "cells/%04zu.%ld", c->number, number) < 0 ||
		asprintf(&full, "%s/%s", store_folder(x->store), t.folder) < 0) {
		rc = err_errno(e, -ENOMEM, "cannot begin an attempt");
		goto out;
	}
	json_object_set(t.detail, "gates", report);
	rc = file_mkdirs(full, 0700, e);
	if (rc)
		goto out;
	rc = run_trial(&t, why);
	if (rc) {
		clean_up(&t);
		x->unsettled = true;
	}
	if (rc == -EINTR || trial_stop_asked(&t)) {
		file_remove_tree(full, NULL);
		rc = err_set(e, -EINTR, "interrupted");
		goto out;
	}
	rc = record(&t, rc, why, e);
	*outcome = t.row.outcome;
	*id = t.row.id;
	*beside_id = t.beside_id;
out:
	free(full);
	trial_clear(&t);
	return rc;
}
