/* Replays an application trace on the clients of a cluster. */
#include "harness/replay/replay.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diag/app/app.h"
#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/clock.h"
#include "harness/base/file.h"
#include "harness/base/jget.h"
#include "harness/run/cluster.h"
#include "harness/run/signals.h"

#define CALL_S 30
#define PUT_S 600
#define REMOVE_S 600
#define AFTER_FAILURE_S 10 /* for the other nodes to notice the failure */

struct replay {
	const struct replay_options *o;
	struct cluster *cluster;
	struct node **nodes; /* nodes of the participating clients */
	struct node_end *ends;
	char (*handles)[64];
	bool *ended;
	int *codes;
	size_t n;
	char root[4200];
	char *sent, scaled[64]; /* the trace of all copies, in a temporary folder */
	json_t *result;
};

__attribute__((format(printf, 2, 3))) static void tell(struct replay *r, const char *fmt, ...)
{
	char text[1024];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	r->o->tell(text);
}

/* ---- before any node is touched ---- */

/* Makes the trace to send, if it is not the user's file. */
static int scale(struct replay *r, const struct app_trace *t, struct err *e)
{
	snprintf(r->scaled, sizeof(r->scaled), "/tmp/culprit-replay-XXXXXX");
	if (!mkdtemp(r->scaled)) {
		r->scaled[0] = '\0';
		return err_errno(e, -errno, "cannot make a folder in /tmp");
	}
	r->sent = alloc_format("%s/app", r->scaled);
	return app_scale(t, r->o->copies, r->sent, e);
}

static int look_at_trace(struct replay *r, size_t *ranks, struct err *e)
{
	const unsigned copies = r->o->copies;
	json_t *application = NULL;
	struct app_trace *t;
	double seconds;
	int rc = app_open(r->o->trace, &t, e);

	if (rc)
		return rc;
	*ranks = app_n_ranks(t) * copies;
	rc = *ranks ? replay_application(t, &application, e)
		    : err_set(e, -EINVAL, "the trace '%s' has no processes", r->o->trace);
	seconds = jget_real(application, "seconds");
	if (!rc && seconds <= 0 && (!strcmp(r->o->mode, "think") || !strcmp(r->o->mode, "wall")))
		rc = err_set(e, -EINVAL,
			"the trace '%s' has no times of calls: replay it with --mode "
			"causal or afap",
			r->o->trace);
	if (!rc)
		r->result = json_pack("{s:s, s:s, s:s, s:s, s:f, s:I, s:i, s:o, s:O}", "trace",
			r->o->trace, "trace_id", app_id(t), "comment", app_about(t)->comment,
			"mode", r->o->mode, "speed", r->o->speed, "ranks", (json_int_t)*ranks,
			"copies", (int)copies, "application_s",
			seconds > 0 ? json_real(seconds) : json_null(), "application", application);
	json_decref(application);
	if (!rc && app_misses_waits(app_about(t)))
		tell(r,
			"warning: its processes share memory, but waits through it are not in the "
			"trace: calls may run too early and fail; a capture "
			"with --method throttle has those waits");
	if (!rc && copies > 1)
		rc = scale(r, t, e);
	app_free(t);
	return rc;
}

/* ---- on the nodes ---- */

static int choose_clients(struct replay *r, size_t ranks, struct err *e)
{
	struct cluster *c = r->cluster;
	json_t *names = json_array();

	json_object_set_new(r->result, "clients", names);
	r->n = r->o->clients ? r->o->clients : c->n_clients;
	if (r->n > c->n_clients)
		return err_blame(e, ERR_USAGE,
			err_set(e, -EINVAL, "the inventory has %zu clients, not %zu", c->n_clients,
				r->n));
	r->n = r->n > ranks ? ranks : r->n;
	if (!r->n)
		return err_blame(e, ERR_USAGE, err_set(e, -EINVAL, "the inventory has no clients"));
	r->nodes = alloc_zero(r->n, sizeof(*r->nodes));
	r->ends = alloc_zero(r->n, sizeof(*r->ends));
	r->handles = alloc_zero(r->n, sizeof(*r->handles));
	r->ended = alloc_zero(r->n, sizeof(*r->ended));
	r->codes = alloc_zero(r->n, sizeof(*r->codes));
	for (size_t i = 0; i < r->n; i++) {
		r->nodes[i] = c->clients[i]->node;
		json_array_append_new(names, json_string(c->clients[i]->name));
	}
	tell(r, "%zu rank%s on %zu client%s%s", ranks, ranks == 1 ? "" : "s", r->n,
		r->n == 1 ? "" : "s", ranks > r->n ? ", several on a client" : "");
	return 0;
}

/* A folder that no other replay uses; a kept folder is found again by its trace. */
static void name_root(struct replay *r)
{
	const char *session = jget_text(node_hello(r->nodes[0]), "session");
	const char *mount = r->cluster->clients[0]->host->mount;

	if (r->o->keep)
		snprintf(r->root, sizeof(r->root), "%.4000s/culprit-replay-%s-%u", mount,
			jget_text(r->result, "trace_id"), r->o->copies);
	else
		snprintf(r->root, sizeof(r->root), "%.4000s/culprit-replay-%.8s", mount,
			session ? session : "0");
}

static int put_trace(struct replay *r, struct err *e)
{
	struct node_transfer *all = alloc_zero(r->n, sizeof(*all));
	int rc;

	for (size_t i = 0; i < r->n; i++)
		all[i] = (struct node_transfer){.node = r->nodes[i],
			.remote = "replay.app",
			.local = r->sent ? r->sent : r->o->trace};
	rc = node_put_all(all, r->n, PUT_S, e);
	free(all);
	return cluster_blame(rc, e);
}

static json_t *words(const struct replay *r, size_t i, const char *what)
{
	return json_pack("[s, s, o, s, s, s, s, s, o, s, o, s, o, s, s, s, s, o]", "replay",
		"--root",
		json_sprintf("%s%s", r->cluster->clients[i]->host->mount, strrchr(r->root, '/')),
		"--do", what, "--mode", r->o->mode, "--speed", json_sprintf("%g", r->o->speed),
		"--cpu", json_sprintf("%g", r->o->cpu), "--stall",
		json_sprintf("%g", r->o->stall_s), "--linked", "yes", "--series", "yes",
		json_sprintf("%s/replay.app", node_dir(r->nodes[i])));
}

static int replay_start(struct replay *r, struct err *e)
{
	struct node_request *all = alloc_zero(r->n, sizeof(*all));
	char passes[16];
	int rc;

	snprintf(passes, sizeof(passes), "%u", r->o->passes);
	for (size_t i = 0; i < r->n; i++)
		all[i] = (struct node_request){.node = r->nodes[i],
			.op = "process.start",
			.args = json_pack("{s:o, s:b, s:b, s:s, s:s}", "argv", words(r, i, passes),
				"self", 1, "link", 1, "stdout", "replay.out", "stderr",
				"replay.err")};
	rc = node_call_all(all, r->n, CALL_S, e);
	for (size_t i = 0; i < r->n; i++) {
		const char *handle = jget_text(all[i].result, "handle");

		snprintf(r->handles[i], sizeof(r->handles[i]), "%s", handle ? handle : "");
		r->ends[i] = (struct node_end){r->nodes[i], r->handles[i]};
		json_decref(all[i].result);
	}
	free(all);
	if (!rc)
		nodeset_link(r->cluster->set, r->ends, r->n);
	return cluster_blame(rc, e);
}

static void replay_on_event(void *ctx, struct node *n, const json_t *event)
{
	struct replay *r = ctx;
	const char *what = jget_text(event, "event"), *handle = jget_text(event, "handle");

	for (size_t i = 0; what && handle && i < r->n; i++) {
		if (r->nodes[i] != n || strcmp(r->handles[i], handle))
			continue;
		r->ended[i] = true;
		r->codes[i] = strcmp(what, "exit") ? 128 : (int)jget_int(event, "exit");
	}
}

static void count_ends(const struct replay *r, size_t *left, size_t *failed)
{
	*left = *failed = 0;
	for (size_t i = 0; i < r->n; i++) {
		*left += !r->ended[i];
		*failed += r->ended[i] && r->codes[i];
	}
}

/* Waits until all have ended. */
static int replay_watch(struct replay *r, struct err *e)
{
	double begin_s = clock_mono_s(), failed_s = 0;
	size_t left, failed;

	for (;;) {
		node_events(r->cluster->set, 0.25, replay_on_event, r);
		count_ends(r, &left, &failed);
		if (*r->o->interrupted)
			return signals_interrupted(e);
		if (cluster_lost(r->cluster, e))
			return -ENOTCONN;
		if (!left)
			return 0;
		if (failed && !failed_s)
			failed_s = clock_mono_s();
		if (failed_s && clock_mono_s() - failed_s > AFTER_FAILURE_S)
			return 0;
		if (r->o->limit_s > 0 && clock_mono_s() - begin_s > r->o->limit_s)
			return err_blame(e, ERR_CLUSTER,
				err_set(e, -ETIMEDOUT,
					"the replay did not end within %g s (--limit)",
					r->o->limit_s));
	}
}

/* The error message of a node's program, if it failed. */
static int complaint(struct replay *r, const char *folder, struct err *e)
{
	static const char prefix[] = "culprit-agent replay: ";

	for (size_t i = 0; i < r->n; i++) {
		auto_free char *path = alloc_format("%s/%zu.err", folder, i), *text = NULL;
		const char *said;

		if (!r->codes[i] || file_read(path, &text, NULL, NULL))
			continue;
		text[strcspn(text, "\n")] = '\0';
		said = strncmp(text, prefix, sizeof(prefix) - 1) ? text : text + sizeof(prefix) - 1;
		return err_blame(e, ERR_CLUSTER,
			err_set(e, -EIO, "%s: %s", node_name(r->nodes[i]),
				*said ? said : "the replay failed"));
	}
	return 0;
}

static int replay_fetch(struct replay *r, const char *folder, struct err *e)
{
	struct node_transfer *all = alloc_zero(2 * r->n, sizeof(*all));
	char **paths = alloc_zero(2 * r->n + 1, sizeof(*paths));
	int rc;

	for (size_t i = 0; i < 2 * r->n; i++) {
		paths[i] = alloc_format("%s/%zu.%s", folder, i / 2, i % 2 ? "err" : "out");
		all[i] = (struct node_transfer){.node = r->nodes[i / 2],
			.remote = i % 2 ? "replay.err" : "replay.out",
			.local = paths[i]};
	}
	rc = node_fetch_all(all, 2 * r->n, PUT_S, e);
	alloc_free_list(paths);
	free(all);
	return cluster_blame(rc, e);
}

static int merge(struct replay *r, const char *folder, struct err *e)
{
	char **outputs = alloc_zero(r->n + 1, sizeof(*outputs));
	int rc = 0;

	for (size_t i = 0; i < r->n && !rc; i++) {
		auto_free char *path = alloc_format("%s/%zu.out", folder, i);

		rc = file_read(path, &outputs[i], NULL, e);
	}
	rc = rc ?: replay_merge(outputs, r->n, r->result, e);
	alloc_free_list(outputs);
	return rc ? err_blame(e, ERR_CLUSTER, rc) : 0;
}

static int replay_collect(struct replay *r, struct err *e)
{
	char folder[] = "/tmp/culprit-replay-XXXXXX";
	int rc = 0;

	if (!mkdtemp(folder))
		return err_errno(e, -errno, "cannot make a folder in /tmp");
	rc = replay_fetch(r, folder, e) ?: complaint(r, folder, e) ?: merge(r, folder, e);
	file_remove_tree(folder, NULL);
	return rc;
}

/* Stops running programs and removes the dummy files. Does not wait for lost nodes. */
static void replay_finish(struct replay *r)
{
	struct err why = {""};

	nodeset_resume(r->cluster->set);
	for (size_t i = 0; i < r->n; i++)
		if (r->handles[i][0])
			node_call(r->nodes[i], "process.stop",
				json_pack("{s:s, s:s}", "handle", r->handles[i], "signal", "INT"),
				CALL_S, NULL, NULL);
	if (!r->root[0] || r->o->keep)
		return;
	if (node_call(r->nodes[0], "run",
		    json_pack("{s:[s, s, s, s, s, s], s:b, s:i}", "argv", "replay", "--root",
			    r->root, "--do", "remove", "-", "self", 1, "timeout_s", REMOVE_S),
		    REMOVE_S + CALL_S, NULL, &why))
		tell(r, "the dummy files are still in '%s': %s", r->root, why.text);
}

static int on_nodes(struct replay *r, size_t ranks, struct err *e)
{
	int rc = choose_clients(r, ranks, e);

	if (rc)
		return rc;
	name_root(r);
	rc = put_trace(r, e) ?: replay_start(r, e) ?: replay_watch(r, e) ?: replay_collect(r, e);
	replay_finish(r);
	return rc;
}

static void replay_forget(struct replay *r)
{
	if (r->scaled[0])
		file_remove_tree(r->scaled, NULL);
	free(r->sent);
	free(r->nodes);
	free(r->ends);
	free(r->handles);
	free(r->ended);
	free(r->codes);
}

int replay_run(const struct replay_options *o, json_t **result, struct err *e)
{
	struct replay r = {.o = o};
	size_t ranks = 0;
	int rc = look_at_trace(&r, &ranks, e) ?: cluster_load(o->inventory, &r.cluster, e);

	if (rc) {
		replay_forget(&r);
		json_decref(r.result);
		return err_blame(e, ERR_USAGE, rc);
	}
	tell(&r, "connecting to %zu nodes", r.cluster->n_members);
	rc = signals_connect(r.cluster, e) ?: on_nodes(&r, ranks, e);
	if (rc && *o->interrupted)
		rc = signals_interrupted(e);
	signals_interrupt(NULL);
	cluster_disconnect(r.cluster);
	cluster_free(r.cluster);
	replay_forget(&r);
	if (rc)
		json_decref(r.result);
	else
		*result = r.result;
	return rc;
}
