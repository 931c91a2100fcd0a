/* Fetches the tracers' logs into the store. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/clock.h"
#include "harness/base/file.h"
#include "harness/base/jget.h"
#include "harness/live/recording_impl.h"

const char *const recording_files[TRACED_KINDS] = {"fs.trace", "app.trace"};

struct fetch {
	struct node_transfer *list;
	size_t n;
	char **paths; /* below the store; as many as in the list, NULL-terminated */
};

static void cells_clear(struct fetch *f)
{
	for (size_t i = 0; i < f->n; i++) {
		free((char *)f->list[i].local);
		free((char *)f->list[i].remote);
	}
	free(f->list);
	alloc_free_list(f->paths);
}

/* Fetches the logs of all reachable nodes. */
static void plan(
	struct recording *r, const char *cell, json_t *const logs[TRACED_KINDS], struct fetch *f)
{
	f->list = alloc_zero(r->n_tracers, sizeof(*f->list));
	f->paths = alloc_zero(r->n_tracers + 1, sizeof(*f->paths));
	for (size_t i = 0; i < r->n_tracers; i++) {
		const struct recording_tracer *t = &r->tracers[i];
		const char *log = jget_text(logs[t->kind], t->member->name);

		/* The data of a live capture is already here, even if the node was lost. */
		if (r->o->live)
			log = t->tail.got ? recording_files[t->kind] : NULL;
		else if (node_lost(t->member->node, NULL))
			continue;
		if (!log)
			continue;
		f->paths[f->n] = alloc_format(
			"%s/%s.%s", cell, t->member->name, recording_files[t->kind]);
		f->list[f->n] = (struct node_transfer){.node = t->member->node,
			.remote = alloc_copy(log),
			.local = alloc_format("%s/%s", store_folder(r->store), f->paths[f->n])};
		f->n++;
	}
}

static int remove_args(void *ctx, const struct member *m, json_t **args, struct err *e)
{
	const struct fetch *f = ctx;
	json_t *argv = json_pack("[s, s, s]", "rm", "-f", "--");

	(void)e;
	for (size_t i = 0; i < f->n; i++)
		if (f->list[i].node == m->node)
			json_array_append_new(argv, json_string(f->list[i].remote));
	*args = json_pack("{s:o}", "argv", argv);
	return json_array_size(argv) == 3;
}

/* Measure clocks again: nodes' clocks drift during a capture. */
int recording_look_at_clocks(struct recording *r, struct err *e)
{
	int rc = 0;

	cluster_each(m, r->cluster) {
		if (!rc && !node_lost(m->node, NULL))
			rc = node_clock_offset(m->node, &m->offset_s, &m->offset_error_s, e);
	}
	return rc;
}

static int drop_live(struct recording *r, struct err *e)
{
	int rc = r->live_row ? store_drop(r->store, "attempt", r->live_row, e) : 0;

	r->live_row = rc ? r->live_row : 0;
	return rc;
}

static int put_attempt(struct recording *r, const struct fetch *f, json_t *detail,
	const char *failed, struct err *e)
{
	const int64_t now_ns = clock_real_ns(), ring_ns = (int64_t)(r->ring_s * 1e9);
	struct attempt_row row = {.cell = r->cells + 1,
		.number = 1,
		.outcome = failed ? OUTCOME_INVALID : OUTCOME_CONFIRMED,
		.reason = failed,
		.started_ns = r->start_ns,
		.start_ns = ring_ns && now_ns - ring_ns > r->start_ns ? now_ns - ring_ns
								      : r->start_ns,
		.ended_ns = now_ns,
		.detail = detail};
	int rc = store_begin(r->store, e);

	if (rc)
		return rc;
	row.seconds = (int32_t)((now_ns - row.start_ns) / 1000000000 + 1);
	rc = (r->o->live ? drop_live(r, e) : store_put_cell(r->store, row.cell, "recording", e))
		?: store_put_attempt(r->store, &row, e);
	for (size_t i = 0; i < f->n && !rc; i++)
		rc = store_put_file(r->store, row.id, f->paths[i], e);
	return store_end(r->store, rc, e);
}

int recording_put_live(struct recording *r, const json_t *detail, struct err *e)
{
	struct attempt_row row = {.cell = 1,
		.number = 1,
		.outcome = OUTCOME_INVALID,
		.reason = "the capture has not ended",
		.started_ns = r->start_ns,
		.start_ns = r->start_ns,
		.detail = detail};
	int rc = store_begin(r->store, e);

	if (rc)
		return rc;
	rc = store_put_cell(r->store, row.cell, "recording", e)
		?: store_put_attempt(r->store, &row, e);
	r->live_row = row.id;
	return store_end(r->store, rc, e);
}

int recording_make_cell(struct recording *r, const char *cell, struct err *e)
{
	auto_free char *folder = alloc_format("%s/%s", store_folder(r->store), cell);

	return file_mkdirs(folder, 0700, e);
}

int recording_keep(struct recording *r, json_t *const logs[TRACED_KINDS], json_t *summaries,
	const char *why, const char *failed, struct err *e)
{
	char cell[32];
	struct fetch f = {0};
	json_t *cluster = NULL;
	auto_json json_t *detail = json_pack("{s:{s:s, s:f, s:O, s:O?}}", "recording", "why", why,
		"ring_s", r->ring_s, "tracing", r->o->tracing, "traces", summaries);
	int rc;

	snprintf(cell, sizeof(cell), "cells/%04zu.1", r->cells + 1);
	plan(r, cell, logs, &f);
	rc = recording_make_cell(r, cell, e) ?: recording_look_at_clocks(r, e)
			?: cluster_describe(r->cluster, &cluster, e)
			?: (r->o->live ? 0 : node_fetch_all(f.list, f.n, RECORDING_FETCH_S, e));
	if (!rc) {
		json_object_set_new(detail, "reduction", cluster);
		rc = put_attempt(r, &f, detail, failed, e);
		r->cells += !rc;
		cluster_ask(r->cluster, "run", remove_args, &f, RECORDING_CALL_S, NULL, NULL);
	} else {
		json_decref(cluster);
	}
	file_give_to_sudo_user(store_folder(r->store));
	cells_clear(&f);
	return rc;
}

/* ---- writing and stopping ---- */

struct one_kind {
	struct recording *r;
	enum traced kind;
};

static int handle_args(void *ctx, const struct member *m, json_t **args, struct err *e)
{
	struct one_kind *k = ctx;
	const struct recording_tracer *t = recording_tracer(k->r, k->kind, m);

	(void)e;
	if (!t || node_lost(m->node, NULL))
		return 1;
	*args = json_pack("{s:s}", "handle", t->handle);
	return 0;
}

static int live_args(void *ctx, const struct member *m, json_t **args, struct err *e)
{
	struct one_kind *k = ctx;
	const struct recording_tracer *t = recording_tracer(k->r, k->kind, m);

	return t && t->ended ? 1 : handle_args(ctx, m, args, e);
}

static void clear_logs(json_t *logs[TRACED_KINDS])
{
	for (int k = 0; k < TRACED_KINDS; k++)
		json_decref(logs[k]);
}

int recording_write(struct recording *r, const char *why, char cell[32], struct err *e)
{
	json_t *logs[TRACED_KINDS];
	struct err failed = {""};
	int first = 0, rc;

	if (r->ring_s <= 0)
		return err_set(e, -EINVAL,
			"no records are kept: start the capture with --ring; without "
			"it, logs are written at the end");
	for (int k = 0; k < TRACED_KINDS; k++) {
		struct one_kind kind = {r, (enum traced)k};
		auto_json json_t *results = NULL;
		const char *name;
		json_t *result;
		struct err why_not = {""};

		rc = cluster_ask(r->cluster, "trace.write", live_args, &kind, RECORDING_WRITE_S,
			&results, &why_not);
		if (rc && !first) {
			first = rc;
			failed = why_not;
		}
		logs[k] = json_object();
		json_object_foreach(results, name, result)
			json_object_set(logs[k], name, jget(result, "log"));
	}
	rc = recording_keep(r, logs, NULL, why, first ? failed.text : NULL, e);
	clear_logs(logs);
	if (!rc)
		snprintf(cell, 32, "cells/%04zu.1", r->cells);
	if (!rc && first) {
		*e = failed;
		rc = first;
	}
	return rc;
}

/* Reports a tracer's losses and messages. Returns false if its log was not closed properly. */
static bool cells_check(struct recording *r, const char *node, const json_t *summary)
{
	const bool whole = jget_true(summary, "whole");
	const char *note = jget_text(summary, "note");
	const long long lost = (long long)jget_int(summary, "lost");
	auto_free char *text = alloc_format("%s: %lld records, %lld lost%s%s%s", node,
		(long long)jget_int(summary, "records"), lost, whole ? "" : ", cut short",
		note ? "; " : "", note ? note : "");

	if (lost || !whole || note)
		r->o->tell(text);
	return whole;
}

int recording_stop(struct recording *r, struct err *e)
{
	json_t *logs[TRACED_KINDS];
	auto_json json_t *summaries = json_object();
	struct err failed = {""};
	int first = 0, rc;

	for (int k = 0; k < TRACED_KINDS; k++) {
		struct one_kind kind = {r, (enum traced)k};
		auto_json json_t *results = NULL;
		const char *name;
		json_t *result;
		struct err why_not = {""};

		rc = cluster_ask(r->cluster, "trace.stop", handle_args, &kind, RECORDING_WRITE_S,
			&results, &why_not);
		logs[k] = json_object();
		json_object_foreach(results, name, result) {
			if (!cells_check(r, name, result) && !rc)
				rc = err_set(&why_not, -EBADMSG, "%s: the log is truncated", name);
			json_object_set_new(logs[k], name, json_string(recording_files[k]));
		}
		json_object_set(summaries, recording_files[k], results);
		if (rc && !first) {
			first = rc;
			failed = why_not;
		}
	}
	cluster_each(m, r->cluster) {
		if (!first && node_lost(m->node, &failed))
			first = -ENOTCONN;
	}
	if (r->o->live && (rc = live_finish(r, e)) && !first) {
		first = rc;
		failed = *e;
	}
	rc = recording_keep(r, logs, summaries, "the end", first ? failed.text : NULL, e);
	clear_logs(logs);
	if (!rc && first) {
		*e = failed;
		rc = first;
	}
	return rc;
}
