/* The scenario's flight recorder in an attempt (harness/scenario/recorder.h). Nothing that befalls
 * it spoils what the tracer has recorded: it is told, and kept in detail.recorder. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "diag/record/log.h"
#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/clock.h"
#include "harness/base/file.h"
#include "harness/base/jget.h"
#include "harness/run/signals.h"
#include "harness/run/trial_impl.h"
#include "harness/scenario/trigger.h"

#define WRITE_TIMEOUT_S 40 /* the agent gives a tracer 30 s */
#define LOOK_TIMEOUT_S 10
#define FETCH_TIMEOUT_S 120
#define ASK_PERIOD_S 1
#define LOG "recorder.trace"

static const struct recorder *recorder_of(const struct trial *t)
{
	return &t->x->scenario->recorder;
}

void recorder_trouble(struct trial *t, const char *fmt, ...)
{
	char text[768];
	va_list ap;

	if (trial_stop_asked(t) || !t->recorder.report)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	json_array_append_new(jget(t->recorder.report, "troubles"), json_string(text));
	progress_say(t->x->progress, "cell %zu: flight recorder: %s", t->cell->number, text);
}

int recorder_begin(struct trial *t, struct err *e)
{
	const struct recorder *r = recorder_of(t);

	if (!r->tracing.name)
		return 0;
	t->recorder.report = json_pack("{s:f, s:s, s:[], s:[]}", "ring_s", r->ring_s, "tracer",
		r->tracing.label, "written", "troubles");
	json_object_set(t->detail, "recorder", t->recorder.report);
	t->recorder.remote = json_array();
	t->recorder.began_s = clock_mono_s();
	t->recorder.runs = true;
	return r->trigger ? trigger_open(r->trigger, &t->recorder.trigger, e) : 0;
}

void recorder_end(struct trial *t)
{
	trigger_close(t->recorder.trigger);
	json_decref(t->recorder.report);
	json_decref(t->recorder.remote);
	t->recorder = (struct trial_recorder){0};
}

/* ---- writing ---- */

/* A recorder whose processes have all ended wrote its log then. */
static bool has_ended(const struct trial *t, const struct member *m)
{
	const struct job *job = trial_job(t, JOB_RECORDER, m);

	return job && job->ended;
}

static int write_args(void *ctx, const struct member *m, json_t **args, struct err *e)
{
	const struct trial *t = ctx;
	const struct job *job = trial_job(t, JOB_RECORDER, m);

	(void)e;
	if (!job || job->ended)
		return 1;
	*args = json_pack("{s:s}", "handle", job->handle);
	return 0;
}

static void write_ring(struct trial *t, const char *why)
{
	struct trial_recorder *r = &t->recorder;
	json_t *written = jget(r->report, "written"), *logs = json_object(), *result;
	auto_json json_t *results = NULL;
	const int64_t at_ns = clock_real_ns();
	const double began_s = clock_mono_s();
	const size_t n = json_array_size(written) + 1;
	const char *name;
	struct err e;

	if (n > RECORDER_WRITES) {
		json_decref(logs);
		if (!r->full)
			recorder_trouble(t,
				"it has been written %d times; no more is kept of this cell (%s)",
				RECORDER_WRITES, why);
		r->full = true;
		return;
	}
	if (cluster_ask(t->x->cluster, "trace.write", write_args, t, WRITE_TIMEOUT_S, &results, &e))
		recorder_trouble(t, "recorder.%zu (%s) is not of all nodes: %s", n, why, e.text);
	json_object_foreach(results, name, result)
		json_object_set(logs, name, jget(result, "log"));
	cluster_each(m, t->x->cluster) {
		if (has_ended(t, m))
			json_object_set_new(logs, m->name, json_string(LOG));
	}
	progress_note(t->x->progress, "cell %zu attempt %ld recorder.%zu: %s", t->cell->number,
		t->row.number, n, why);
	json_array_append_new(r->remote, logs);
	json_array_append_new(written,
		json_pack("{s:o, s:s, s:I, s:f, s:{}}", "folder", json_sprintf("recorder.%zu", n),
			"why", why, "at_ns", (json_int_t)at_ns, "took_s", clock_mono_s() - began_s,
			"logs"));
}

/* ---- when ---- */

void recorder_onset(struct trial *t, double at_s)
{
	const struct recorder *r = recorder_of(t);

	if (r->after_onset_s >= 0)
		t->recorder.due_s[RECORDER_ONSET] = at_s + r->after_onset_s;
}

void recorder_offset(struct trial *t, double at_s)
{
	if (recorder_of(t)->at_offset)
		t->recorder.due_s[RECORDER_OFFSET] = at_s;
}

static void write_due(struct trial *t, double now_s)
{
	/* Cells without a fault, or with one from the start, are written at the same moments. */
	const bool real = t->fault && !t->fault->from_start;
	char why[96];

	for (int k = 0; k < RECORDER_MOMENTS; k++) {
		if (t->recorder.due_s[k] <= 0 || now_s < t->recorder.due_s[k])
			continue;
		t->recorder.due_s[k] = 0;
		if (k == RECORDER_ONSET)
			snprintf(why, sizeof(why), "%s%g s after the onset", real ? "" : "as ",
				recorder_of(t)->after_onset_s);
		else
			snprintf(why, sizeof(why), "%sthe end of the fault", real ? "" : "as ");
		write_ring(t, why);
	}
}

static void ask_trigger(struct trial *t, double now_s)
{
	struct trial_recorder *r = &t->recorder;
	auto_json json_t *now = NULL;
	char why[256];
	json_t *nodes;
	struct err e;
	int rc;

	if (!r->trigger || now_s - r->asked_s < ASK_PERIOD_S)
		return;
	r->asked_s = now_s;
	if (cluster_look(t->x->cluster, LOOK_TIMEOUT_S, &nodes, &e)) {
		if (!r->unseen++)
			recorder_trouble(t, "the trigger could not be asked: %s", e.text);
		return;
	}
	now = json_pack("{s:f, s:o}", "seconds", now_s - r->began_s, "nodes", nodes);
	r->asked++;
	rc = trigger_ask(r->trigger, now, why, &e);
	if (rc < 0) {
		recorder_trouble(t, "the trigger is not asked any more: %s", e.text);
		trigger_close(r->trigger);
		r->trigger = NULL;
	} else if (rc) {
		r->fired++;
		write_ring(t, why);
	}
}

void recorder_turn(struct trial *t)
{
	if (!t->recorder.runs)
		return;
	write_due(t, clock_mono_s());
	ask_trigger(t, clock_mono_s());
}

void recorder_last(struct trial *t)
{
	struct trial_recorder *r = &t->recorder;

	if (!r->runs)
		return;
	if (recorder_of(t)->at_end)
		write_ring(t, "the end of the cell");
	r->runs = false;
}

/* ---- what became of it ---- */

static void tell_never(struct trial *t)
{
	const struct trial_recorder *r = &t->recorder;
	auto_free char *trigger = !recorder_of(t)->trigger
		? alloc_copy("")
		: alloc_format("; its trigger was asked %ld times and held %ld times", r->asked,
			  r->fired);

	/* In a cell without a fault nothing is expected to happen. */
	if (t->fault)
		recorder_trouble(t, "it was never written%s", trigger);
	else
		progress_note(t->x->progress, "cell %zu: the flight recorder was never written%s",
			t->cell->number, trigger);
}

void recorder_stopped(struct trial *t, const json_t *results)
{
	struct trial_recorder *r = &t->recorder;
	const char *name, *note;
	json_t *result;

	if (!r->report)
		return;
	for (size_t i = 0; i < t->n_jobs; i++)
		if (t->jobs[i].kind == JOB_RECORDER && t->jobs[i].ended)
			recorder_trouble(t,
				"%s: all that it traced there ended before the cell did",
				t->jobs[i].member->name);
	json_object_foreach((json_t *)results, name, result) {
		note = jget_text(result, "note");
		if (note)
			recorder_trouble(t, "%s: %s", name, note);
	}
	if (recorder_of(t)->trigger)
		json_object_set_new(r->report, "trigger",
			json_pack("{s:I, s:I, s:I}", "asked", (json_int_t)r->asked, "held",
				(json_int_t)r->fired, "unseen", (json_int_t)r->unseen));
	if (!json_array_size(r->remote))
		tell_never(t);
}

/* ---- its files ---- */

size_t recorder_folders(const struct trial *t)
{
	return json_array_size(t->recorder.remote);
}

int recorder_each_file(const struct trial *t, recorder_file_fn fn, void *ctx, struct err *e)
{
	json_t *logs, *remote;
	const char *name;
	size_t i;
	int rc = 0;

	json_array_foreach(t->recorder.remote, i, logs)
		json_object_foreach(logs, name, remote) {
			auto_free char *below = alloc_format(
				"%s/recorder.%zu/%s.fs.trace", t->folder, i + 1, name);

			if (!rc)
				rc = fn(ctx, cluster_member(t->x->cluster, name),
					json_string_value(remote), below, e);
		}
	return rc;
}

/* What a log holds, read once. */
static json_t *look_at_log(const char *path, uint64_t *lost, struct err *e)
{
	int64_t records = 0, calls = 0, from_ns = INT64_MAX, to_ns = 0;
	const struct record *rec;
	struct log_reader *log;
	int rc = log_reader_new(path, &log, e);

	*lost = 0;
	if (rc)
		return NULL;
	while ((rc = log_next(log, &rec, e)) > 0) {
		records++;
		*lost += rec->type == RECORD_LOST ? rec->lost.count : 0;
		if (rec->type != RECORD_CALL)
			continue;
		calls++;
		if (record_end_ns(rec) < from_ns)
			from_ns = record_end_ns(rec);
		if (record_end_ns(rec) > to_ns)
			to_ns = record_end_ns(rec);
	}
	log_reader_free(log);
	return rc ? NULL
		  : json_pack("{s:I, s:I, s:I, s:o, s:o}", "records", (json_int_t)records, "calls",
			    (json_int_t)calls, "lost", (json_int_t)*lost, "from_ns",
			    calls ? json_integer(from_ns) : json_null(), "to_ns",
			    calls ? json_integer(to_ns) : json_null());
}

static int recorder_look(
	void *ctx, const struct member *m, const char *remote, const char *below, struct err *e)
{
	struct trial *t = ctx;
	auto_free char *path = alloc_format("%s/%s", store_folder(t->x->store), below);
	const char *number = strstr(below, "/recorder.") + strlen("/recorder.");
	json_t *entry = json_array_get(
		       jget(t->recorder.report, "written"), strtoul(number, NULL, 10) - 1),
	       *held;
	uint64_t lost;
	struct err why;

	(void)remote, (void)e;
	held = look_at_log(path, &lost, &why);
	if (!held)
		recorder_trouble(t, "%s", why.text);
	else if (lost)
		recorder_trouble(t, "%s: %llu records lost in '%s'", m->name,
			(unsigned long long)lost, below);
	json_object_set_new(jget(entry, "logs"), m->name, held ? held : json_null());
	return 0;
}

struct transfers {
	const struct trial *t;
	struct node_transfer *list;
	size_t n;
};

static int add_transfer(
	void *ctx, const struct member *m, const char *remote, const char *below, struct err *e)
{
	struct transfers *all = ctx;

	(void)e;
	all->list = alloc_room(all->list, all->n, sizeof(*all->list));
	all->list[all->n++] = (struct node_transfer){.node = m->node,
		.remote = remote,
		.local = alloc_format("%s/%s", store_folder(all->t->x->store), below)};
	return 0;
}

/* Also of a writing that no node has. */
static int make_folders(const struct trial *t, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; i < recorder_folders(t) && !rc; i++) {
		auto_free char *folder = alloc_format(
			"%s/%s/recorder.%zu", store_folder(t->x->store), t->folder, i + 1);

		rc = file_mkdirs(folder, 0700, e);
	}
	return rc;
}

/* Forgets a log that is not there. */
static void recorder_drop(struct trial *t, const struct node_transfer *file)
{
	const char *number = strstr(file->local, "/recorder.") + strlen("/recorder.");
	json_t *logs = json_array_get(t->recorder.remote, strtoul(number, NULL, 10) - 1);

	unlink(file->local);
	cluster_each(m, t->x->cluster) {
		if (m->node == file->node)
			json_object_del(logs, m->name);
	}
}

/* All at once; if that fails, one by one, without those that cannot be had. */
static int run_recorder_fetch(struct trial *t, struct transfers *all, struct err *e)
{
	struct err why;

	if (!node_fetch_all(all->list, all->n, FETCH_TIMEOUT_S, &why))
		return 0;
	for (size_t i = 0; i < all->n; i++) {
		if (trial_stop_asked(t))
			return signals_interrupted(e);
		if (cluster_lost(t->x->cluster, e))
			return -ENOTCONN;
		unlink(all->list[i].local);
		if (!node_fetch_all(&all->list[i], 1, FETCH_TIMEOUT_S, &why))
			continue;
		recorder_trouble(t, "%s", why.text);
		recorder_drop(t, &all->list[i]);
	}
	return 0;
}

int recorder_fetch(struct trial *t, struct err *e)
{
	struct transfers all = {.t = t};
	auto_json json_t *paths = json_deep_copy(t->recorder.remote); /* 'all' borrows from it */
	json_t *own = t->recorder.remote;
	int rc = make_folders(t, e);

	t->recorder.remote = paths;
	rc = rc ?: recorder_each_file(t, add_transfer, &all, e);
	t->recorder.remote = own;
	rc = rc ?: run_recorder_fetch(t, &all, e) ?: recorder_each_file(t, recorder_look, t, e);
	while (all.n)
		free((char *)all.list[--all.n].local);
	free(all.list);
	return rc;
}
