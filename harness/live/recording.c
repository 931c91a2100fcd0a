/* Records all nodes of a cluster until it is stopped. */
#include "harness/live/recording.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "diag/capture/choice.h"
#include "diag/query/zones.h"
#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/clock.h"
#include "harness/base/file.h"
#include "harness/base/jget.h"
#include "harness/run/signals.h"
#include "harness/live/recording_impl.h"
#include "harness/scenario/tracing.h"
#include "harness/store/lock.h"

__attribute__((format(printf, 2, 3))) static void tell(struct recording *r, const char *fmt, ...)
{
	char text[1024];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	r->o->tell(text);
}

struct recording_tracer *recording_tracer(
	struct recording *r, enum traced kind, const struct member *m)
{
	for (size_t i = 0; i < r->n_tracers; i++)
		if (r->tracers[i].kind == kind && r->tracers[i].member == m)
			return &r->tracers[i];
	return NULL;
}

/* ---- starting ---- */

struct start {
	struct recording *r;
	enum traced kind;
	json_t *processes; /* {node: result of "processes"} */
};

/* The pids of the programs' processes that do not belong to the file system. */
static json_t *application_pids(
	const struct recording *r, const struct member *m, const json_t *processes)
{
	json_t *pids = json_array(), *p, *own;
	size_t i, k;

	json_array_foreach(jget(processes, "processes"), i, p) {
		const char *exe = jget_text(p, "exe"), *base = exe ? strrchr(exe, '/') : NULL;
		bool wanted = false;

		for (size_t n = 0; exe && n < r->o->n_applications; n++)
			wanted |= !strcmp(r->o->applications[n], base ? base + 1 : exe);
		json_array_foreach(m->pids, k, own)
			wanted &= !json_equal(own, jget(p, "pid"));
		if (wanted)
			json_array_append(pids, jget(p, "pid"));
	}
	return pids;
}

static int start_args(void *ctx, const struct member *m, json_t **args, struct err *e)
{
	struct start *s = ctx;
	const bool app = s->kind == TRACED_APP;
	auto_json json_t *pids = NULL;

	(void)e;
	if (m->host->role == ROLE_OUTSIDER || (app && m->host->role != ROLE_CLIENT))
		return 1;
	pids = app ? application_pids(s->r, m, jget(s->processes, m->name)) : json_incref(m->pids);
	if (!json_array_size(pids)) {
		tell(s->r, "%s: no application process is running", m->name);
		return 1;
	}
	*args = json_deep_copy(s->r->o->tracing);
	json_object_set_new(*args, "out", json_string(app ? "app.trace" : "fs.trace"));
	tracing_add_bulk(*args, s->r->cluster->bulk);
	json_object_set_new(*args, "control", json_true());
	json_object_set(*args, "pids", pids);
	/* Some of an application's processes may have ended since they were listed. */
	json_object_set_new(*args, "skip_ended", json_boolean(app));
	return 0;
}

static int start_kind(struct recording *r, enum traced kind, struct err *e)
{
	struct start s = {r, kind, NULL};
	json_auto_t *results = NULL;
	json_t *result;
	const char *name;
	int rc = 0;

	if (kind == TRACED_APP && !r->o->n_applications)
		return 0;
	if (kind == TRACED_APP)
		rc = cluster_ask(
			r->cluster, "processes", NULL, NULL, RECORDING_CALL_S, &s.processes, e);
	rc = rc
		?: cluster_ask(r->cluster, "trace.start", start_args, &s, RECORDING_CALL_S + 10,
			   &results, e);
	json_object_foreach(results, name, result) {
		struct recording_tracer *t = &r->tracers[r->n_tracers++];

		*t = (struct recording_tracer){.member = cluster_member(r->cluster, name),
			.kind = kind,
			.tail = {.fd = -1}};
		snprintf(t->handle, sizeof(t->handle), "%s", jget_text(result, "handle"));
	}
	json_decref(s.processes);
	return rc;
}

static int set_facts(struct recording *r, struct err *e)
{
	auto_free char *how = json_dumps(r->o->tracing, JSON_COMPACT | JSON_SORT_KEYS);

	return store_set(r->store, "file_system_type", r->cluster->inv->fs_type, e)
		?: store_set(r->store, "inventory", r->o->inventory, e)
		?: store_set(r->store, "recording", how, e);
}

static int recording_begin(struct recording *r, struct err *e)
{
	int rc = cluster_load(r->o->inventory, &r->cluster, e);

	if (rc)
		return err_blame(e, ERR_USAGE, rc);
	if (r->o->trigger)
		rc = trigger_open(r->o->trigger, &r->trigger, e);
	if (rc)
		return err_blame(e, ERR_USAGE, rc);
	rc = store_create(r->o->folder, &r->store, e);
	if (rc)
		return err_blame(e, ERR_USAGE, rc);
	tell(r, "connecting to %zu nodes", r->cluster->n_members);
	rc = signals_connect(r->cluster, e);
	if (rc)
		return rc;
	r->tracers = alloc_zero(TRACED_KINDS * r->cluster->n_members, sizeof(*r->tracers));
	for (int k = 0; k < TRACED_KINDS && !rc; k++)
		rc = start_kind(r, (enum traced)k, e);
	r->start_ns = clock_real_ns();
	rc = rc ?: set_facts(r, e);
	if (r->o->live)
		rc = rc ?: run_lock(r->o->folder, &r->lock, e) ?: live_begin(r, e);
	return rc ?: orders_open(r->o->folder, &r->orders, e);
}

/* ---- orders ---- */

struct order_to {
	struct recording *r;
	enum traced kind;
	const char *line;
};

static int order_args(void *ctx, const struct member *m, json_t **args, struct err *e)
{
	const struct order_to *o = ctx;
	const struct recording_tracer *t = recording_tracer(o->r, o->kind, m);

	(void)e;
	if (!t || t->ended)
		return 1;
	*args = json_pack("{s:s, s:s}", "handle", t->handle, "line", o->line);
	return 0;
}

/* -EINVAL: the line is invalid, and no node received it. */
static int recording_pass_on(struct recording *r, const char *line, struct err *e)
{
	struct choice ignored;
	int first = strncmp(line, "filter ", 7) ? 0 : choice_parse(line + 7, &ignored, e);

	if (first)
		return first;
	for (int k = 0; k < TRACED_KINDS; k++) {
		struct order_to o = {r, (enum traced)k, line};
		struct err why = {""};
		int rc = cluster_ask(
			r->cluster, "trace.control", order_args, &o, RECORDING_CALL_S, NULL, &why);

		if (rc && !first) {
			first = rc;
			*e = why;
		}
	}
	if (!first) {
		free(r->state);
		r->state = alloc_copy(line);
	}
	return first;
}

static void recording_describe(struct recording *r, char answer[ORDER_ANSWER])
{
	uint64_t got = 0, size = 0, lost = 0;
	size_t live = 0;
	char kept[128];

	for (size_t i = 0; i < r->n_tracers; i++) {
		live += !r->tracers[i].ended;
		got += r->tracers[i].tail.got;
		size += r->tracers[i].tail.size;
		if (r->tracers[i].tail.index)
			lost += zones_follow_lost(r->tracers[i].tail.index);
	}
	snprintf(kept, sizeof(kept), "ring %.0f s", r->ring_s);
	if (r->o->live)
		snprintf(kept, sizeof(kept),
			"%llu bytes received, %llu pending on nodes, %llu records lost",
			(unsigned long long)got, (unsigned long long)(size > got ? size - got : 0),
			(unsigned long long)lost);
	snprintf(answer, ORDER_ANSWER,
		"%zu tracers, for %.0f s; %s; %zu written; last order: %.1000s", live,
		(double)(clock_real_ns() - r->start_ns) / 1e9, kept, r->cells,
		r->state ? r->state : "none");
}

static void obey(void *ctx, const char *line, char answer[ORDER_ANSWER])
{
	struct recording *r = ctx;
	const bool write = !strcmp(line, "write") || !strncmp(line, "write ", 6);
	char cell[32] = "";
	struct err e = {""};
	int rc = 0;

	if (!strcmp(line, "status")) {
		recording_describe(r, answer);
		return;
	}
	if (write)
		rc = recording_write(r, line[5] ? line + 6 : "an order", cell, &e);
	else if (!strcmp(line, "on") || !strcmp(line, "off") || !strncmp(line, "filter ", 7))
		rc = recording_pass_on(r, line, &e);
	else if (!strcmp(line, "stop"))
		r->over = true;
	else
		rc = err_set(&e, -EINVAL, "orders are on, off, filter, write, status and stop");
	if (rc)
		snprintf(answer, ORDER_ANSWER, "%s: %.2000s", rc == -EINVAL ? "refused" : "failed",
			e.text);
	else
		snprintf(answer, ORDER_ANSWER, "done: %s%s%s", line, write ? ": " : "", cell);
	tell(r, "%s", answer);
}

/* ---- its life ---- */

static void recording_on_event(void *ctx, struct node *n, const json_t *event)
{
	struct recording *r = ctx;
	const char *what = jget_text(event, "event"), *handle = jget_text(event, "handle");

	if (!what || !handle || strcmp(what, "exit"))
		return;
	for (size_t i = 0; i < r->n_tracers; i++) {
		struct recording_tracer *t = &r->tracers[i];

		if (t->member->node != n || strcmp(t->handle, handle) || t->ended)
			continue;
		t->ended = true;
		tell(r, "%s: the tracer of %s has ended: all its processes have", t->member->name,
			t->kind == TRACED_FS ? "the file system" : "applications");
	}
}

static json_t *look_at_nodes(struct recording *r, struct err *e)
{
	json_t *nodes;

	if (cluster_look(r->cluster, RECORDING_CALL_S, &nodes, e))
		return NULL;
	return json_pack("{s:f, s:o}", "seconds", (double)(clock_real_ns() - r->start_ns) / 1e9,
		"nodes", nodes);
}

/* Calls the trigger once a second. If the call fails, the capture continues without the trigger. */
static void ask_trigger(struct recording *r)
{
	auto_json json_t *now = NULL;
	char why[256], cell[32];
	struct err e = {""};
	int rc;

	if (!r->trigger || clock_mono_s() - r->asked_s < 1)
		return;
	r->asked_s = clock_mono_s();
	now = look_at_nodes(r, &e);
	if (!now)
		return; /* a lost node ends the capture elsewhere */
	rc = trigger_ask(r->trigger, now, why, &e);
	if (rc < 0) {
		tell(r, "the trigger is disabled: %s", e.text);
		trigger_close(r->trigger);
		r->trigger = NULL;
	} else if (rc) {
		rc = recording_write(r, why, cell, &e);
		tell(r, "trigger: %s: %s", why, rc ? e.text : cell);
	}
}

static bool all_ended(const struct recording *r)
{
	for (size_t i = 0; i < r->n_tracers; i++)
		if (!r->tracers[i].ended)
			return false;
	return true;
}

static int recording_watch(struct recording *r, struct err *e)
{
	const double end_s = r->o->for_s > 0 ? clock_mono_s() + r->o->for_s : 0;

	double wait_s = 0.2;

	while (!*r->o->interrupted && !r->over && !all_ended(r) &&
		(end_s <= 0 || clock_mono_s() < end_s)) {
		orders_take(r->orders, wait_s, signals_fd(), obey, r);
		node_events(r->cluster->set, 0, recording_on_event, r);
		ask_trigger(r);
		if (r->o->live) {
			int rc = live_step(r, &wait_s, e);

			if (rc)
				return rc;
		}
		if (cluster_lost(r->cluster, e))
			return -ENOTCONN;
	}
	return 0;
}

static void recording_finish(struct recording *r)
{
	orders_close(r->orders);
	trigger_close(r->trigger);
	signals_interrupt(NULL);
	live_clear(r);
	if (r->cluster)
		cluster_disconnect(r->cluster);
	if (r->lock >= 0)
		close(r->lock);
	store_close(r->store);
	cluster_free(r->cluster);
	free(r->tracers);
	free(r->state);
}

int recording_run(const struct recording_options *o, size_t *cells, struct err *e)
{
	struct recording r = {.o = o, .ring_s = jget_real(o->tracing, "ring_s"), .lock = -1};
	struct err later;
	int rc = recording_begin(&r, e), stopped;

	if (!rc) {
		tell(&r, "%zu tracers run; orders: culprit trace --control %s write", r.n_tracers,
			o->folder);
		rc = recording_watch(&r, e);
		/* A second signal ends the wait. */
		nodeset_resume(r.cluster->set);
		tell(&r, "ending");
		stopped = recording_stop(&r, &later);
		if (stopped && !rc) {
			rc = stopped;
			*e = later;
		}
	} else if (*o->interrupted) {
		rc = signals_interrupted(e);
	}
	/* The recording is empty. */
	if (rc && r.store && !r.cells && !r.orders)
		file_remove_tree(o->folder, NULL);
	*cells = r.cells;
	recording_finish(&r);
	return rc;
}
