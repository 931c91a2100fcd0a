/* Records a command on one client and the processes that it starts on other clients. */
#include "harness/live/job.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/base64.h"
#include "harness/base/clock.h"
#include "harness/base/file.h"
#include "harness/base/jget.h"
#include "harness/run/cluster.h"
#include "harness/run/signals.h"

enum {
	CALL_S = 30,
	START_S = 40, /* a tracer has 30 s to attach */
	STOP_S = 90,
	LIST_S = 90,
	FETCH_S = 600,
	GRACE_S = 5,
	PART_BYTES = 262144,
};

/* A client and the traced processes there. */
struct place {
	struct member *member;
	char *root;
	json_t *launchers; /* array of process numbers */
	char tracer[64];   /* the launchers' handle; "": none */
};

/* How much of the command's output has been read. */
struct output {
	const char *remote;
	int fd;
	int64_t at;
};

struct job {
	const struct job_options *o;
	struct cluster *cluster;
	struct place *places; /* the command's client is the first */
	size_t n;
	char *kernel;
	unsigned runs;
	char handle[64]; /* of the command; "": not running */
	bool ended;
	int code;
	struct output outputs[2];
	struct causal_log *logs;
	char **paths; /* of the logs */
	size_t n_logs;
};

__attribute__((format(printf, 2, 3))) static void tell(const struct job *j, const char *fmt, ...)
{
	char text[1024];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	j->o->tell(text);
}

/* ---- before it runs ---- */

static int choose_places(struct job *j, struct err *e)
{
	struct cluster *k = j->cluster;
	size_t first = 0;

	while (j->o->from && first < k->n_clients && strcmp(k->clients[first]->name, j->o->from))
		first++;
	if (first == k->n_clients)
		return err_blame(e, ERR_USAGE,
			err_set(e, -EINVAL, "--from needs a client of the inventory, not '%s'",
				j->o->from));
	j->places = alloc_zero(k->n_clients, sizeof(*j->places));
	j->places[j->n++].member = k->clients[first];
	for (size_t i = 0; i < k->n_clients; i++)
		if (i != first)
			j->places[j->n++].member = k->clients[i];
	return 0;
}

/* Runs a program and returns its output without the last newline. -ECANCELED: it failed. */
static int run_on(
	const struct place *p, json_t *args, double timeout_s, char **output, struct err *e)
{
	json_auto_t *result = NULL;
	const char *text;
	int rc;

	json_object_set_new(args, "timeout_s", json_real(timeout_s));
	rc = cluster_blame(node_call(p->member->node, "run", args, timeout_s + 10, &result, e), e);
	if (rc)
		return rc;
	text = jget_text(result, "output");
	text = text ? text : "";
	if (jget_int(result, "exit"))
		return err_set(
			e, -ECANCELED, "%s: %.*s", p->member->name, (int)strcspn(text, "\n"), text);
	if (output) {
		*output = alloc_copy(text);
		(*output)[strcspn(*output, "\n")] = '\0';
	}
	return 0;
}

/* Resolves the links in the folder's path. */
static int resolve(const struct place *p, const char *path, char **out, struct err *e)
{
	return run_on(
		p, json_pack("{s:[s, s], s:b}", "argv", "files", path, "self", 1), CALL_S, out, e);
}

/* The part of --root below the mount: "" or "/...". */
static int root_below(const struct job *j, const char *mount, char **below, struct err *e)
{
	const struct place *p = &j->places[0];
	auto_free char *root = NULL;
	size_t n = strlen(mount);
	int rc;

	if (!j->o->root) {
		*below = alloc_copy("");
		return 0;
	}
	if (*j->o->root != '/')
		return err_blame(e, ERR_USAGE,
			err_set(e, -EINVAL,
				"--root '%s': with --inventory, give the absolute path of a folder "
				"on %s",
				j->o->root, p->member->name));
	rc = resolve(p, j->o->root, &root, e);
	if (rc)
		return rc == -ECANCELED ? err_blame(e, ERR_USAGE, rc) : rc;
	if (strncmp(root, mount, n) || (root[n] && root[n] != '/'))
		return err_blame(e, ERR_USAGE,
			err_set(e, -EINVAL,
				"--root '%s' is not below '%s', where %s has the file system: "
				"elsewhere a path may be another file on each client",
				j->o->root, mount, p->member->name));
	*below = alloc_copy(root + n);
	return 0;
}

static int set_roots(struct job *j, struct err *e)
{
	auto_free char *below = NULL;
	int rc = 0;

	for (size_t i = 0; !rc && i < j->n; i++) {
		struct place *p = &j->places[i];
		auto_free char *mount = NULL;
		auto_free char *root = NULL;

		rc = resolve(p, p->member->host->mount, &mount, e);
		if (!rc && !i)
			rc = root_below(j, mount, &below, e);
		if (rc)
			return rc;
		if (!*below) {
			p->root = AUTO_TAKE(mount);
			continue;
		}
		root = alloc_format("%s%s", mount, below);
		rc = resolve(p, root, &p->root, e);
	}
	return rc;
}

/* If two names mean one machine, each of its processes would appear twice. */
static int check_addresses(const struct job *j, struct err *e)
{
	for (size_t i = 0; i < j->n; i++)
		for (size_t k = i + 1; k < j->n; k++) {
			const struct member *a = j->places[i].member, *b = j->places[k].member;

			if (!strcmp(a->host->address, b->host->address))
				return err_blame(e, ERR_SCENARIO,
					err_set(e, -EINVAL,
						"'%s' and '%s' have the same address, %s, so their "
						"processes cannot be distinguished",
						a->name, b->name, a->host->address));
		}
	return 0;
}

static int find_launchers(struct job *j, struct err *e)
{
	const char *name = j->o->launcher;
	int rc = 0;

	for (size_t i = 0; !rc && i < j->n; i++) {
		struct place *p = &j->places[i];
		json_auto_t *result = NULL;
		json_t *list, *one, *other;
		size_t k, m;

		p->launchers = json_array();
		rc = cluster_blame(node_call(p->member->node, "processes",
					   json_pack("{s:s}", "exe", name), CALL_S, &result, e),
			e);
		list = jget(result, "processes");
		json_array_foreach(list, k, one) {
			bool child = false;

			/* Existing sessions cannot belong to the command. */
			json_array_foreach(list, m, other)
				child |= jget_int(other, "pid") == jget_int(one, "ppid");
			if (!child)
				json_array_append(p->launchers, jget(one, "pid"));
		}
		if (!rc && i && !json_array_size(p->launchers))
			rc = err_blame(e, ERR_CLUSTER,
				err_set(e, -ESRCH,
					"%s: '%s' is not running: give the program that starts "
					"remote processes there with --launcher",
					p->member->name, name));
	}
	return rc;
}

int job_open(const struct job_options *o, struct job **out, struct err *e)
{
	struct job *j = alloc_zero(1, sizeof(*j));
	int rc;

	j->o = o;
	rc = cluster_load(o->inventory, &j->cluster, e);
	if (rc) {
		free(j);
		return err_blame(e, ERR_USAGE, rc);
	}
	rc = choose_places(j, e);
	if (!rc) {
		tell(j, "connecting to %zu nodes", j->cluster->n_members);
		rc = signals_connect(j->cluster, e);
	}
	if (!rc)
		rc = check_addresses(j, e) ?: set_roots(j, e) ?: find_launchers(j, e)
			?: run_on(&j->places[0],
				   json_pack("{s:[s, s, s]}", "argv", "uname", "-r", "-m"), CALL_S,
				   &j->kernel, e);
	if (rc && *o->interrupted)
		rc = signals_interrupted(e);
	if (rc)
		job_close(j);
	else
		*out = j;
	return rc;
}

/* ---- while it runs ---- */

static json_t *tracing(const struct job *j, const char *log)
{
	return json_pack("{s:s, s:s, s:b, s:I, s:o}", "tracer", "ebpf", "mode", "flow", "causal", 1,
		"memory_bytes", (json_int_t)j->o->memory_bytes, "out",
		json_sprintf("%s.%u.trace", log, j->runs));
}

static int list_files(const struct job *j, const char *folder, const char *name, struct err *e)
{
	const struct place *p = &j->places[0];
	auto_free char *remote = alloc_format("%s/%s.%u", node_dir(p->member->node), name, j->runs);
	auto_free char *local = alloc_format("%s/%s", folder, name);
	struct node_transfer t = {.node = p->member->node, .remote = remote, .local = local};
	int rc = run_on(p,
		json_pack("{s:[s, s, s, s], s:b}", "argv", "files", "--out", remote, p->root,
			"self", 1),
		LIST_S, NULL, e);

	return rc ?: cluster_blame(node_fetch_all(&t, 1, FETCH_S, e), e);
}

static int start_tracers(struct job *j, struct err *e)
{
	struct node_request *all = alloc_zero(j->n, sizeof(*all));
	struct place **places = alloc_zero(j->n, sizeof(*places));
	size_t n = 0;
	int rc;

	for (size_t i = 0; i < j->n; i++) {
		struct place *p = &j->places[i];
		json_t *args;

		if (!json_array_size(p->launchers))
			continue;
		args = tracing(j, "launched");
		json_object_set(args, "pids", p->launchers);
		/* Ignores sessions that existed before: see find_launchers. */
		json_object_set_new(args, "no_descendants", json_true());
		places[n] = p;
		all[n++] = (struct node_request){
			.node = p->member->node, .op = "trace.start", .args = args};
	}
	rc = cluster_blame(node_call_all(all, n, START_S, e), e);
	for (size_t i = 0; i < n; i++) {
		const char *handle = jget_text(all[i].result, "handle");

		snprintf(places[i]->tracer, sizeof(places[i]->tracer), "%s", handle ? handle : "");
		json_decref(all[i].result);
	}
	free(places);
	free(all);
	return rc;
}

static int start_command(struct job *j, struct err *e)
{
	const struct place *p = &j->places[0];
	json_auto_t *result = NULL;
	json_t *argv = json_array();
	const char *handle;
	int rc;

	for (char *const *a = j->o->argv; *a; a++)
		if (json_array_append_new(argv, json_string(*a))) {
			json_decref(argv);
			return err_blame(e, ERR_USAGE,
				err_set(e, -EINVAL, "the command has a word that is not UTF-8"));
		}
	j->outputs[0] = (struct output){"command.out", STDOUT_FILENO, 0};
	j->outputs[1] = (struct output){"command.err", STDERR_FILENO, 0};
	j->ended = false;
	rc = node_call(p->member->node, "process.start",
		json_pack("{s:o, s:s, s:s, s:s, s:o}", "argv", argv, "cwd", p->root, "stdout",
			j->outputs[0].remote, "stderr", j->outputs[1].remote, "trace",
			tracing(j, "command")),
		CALL_S, &result, e);
	handle = jget_text(result, "handle");
	snprintf(j->handle, sizeof(j->handle), "%s", handle ? handle : "");
	return cluster_blame(rc, e);
}

static void job_on_event(void *ctx, struct node *n, const json_t *event)
{
	struct job *j = ctx;
	const char *what = jget_text(event, "event"), *handle = jget_text(event, "handle");

	if (!what || !handle || n != j->places[0].member->node || strcmp(handle, j->handle))
		return;
	j->ended = true;
	j->code = strcmp(what, "exit") ? 128 : (int)jget_int(event, "exit");
}

/* Prints available output. Returns 1 if there may be more. */
static int print_part(struct job *j, struct output *o, struct err *e)
{
	json_auto_t *part = NULL;
	const char *text;
	uint8_t *data;
	int64_t n;
	int rc = node_call(j->places[0].member->node, "file.read",
		json_pack("{s:s, s:I, s:i, s:b}", "path", o->remote, "offset", (json_int_t)o->at,
			"most", PART_BYTES, "release", 1),
		CALL_S, &part, e);

	if (rc)
		return cluster_blame(rc, e);
	text = jget_text(part, "data");
	text = text ? text : "";
	data = alloc_zero(strlen(text) + 1, 1);
	n = base64_decode(text, strlen(text), data);
	/* If our output is closed, discard the command's output. */
	if (n > 0)
		fd_write_all(o->fd, data, (size_t)n);
	free(data);
	o->at += n > 0 ? n : 0;
	return n > 0;
}

static int print_output(struct job *j, bool all, struct err *e)
{
	int rc = 0;

	for (int i = 0; i < 2 && rc >= 0; i++)
		do
			rc = print_part(j, &j->outputs[i], e);
		while (rc > 0 && all);
	return rc < 0 ? rc : 0;
}

static int outcome(const struct job *j, struct err *e)
{
	if (!j->code)
		return 0;
	return err_set(e, -ECANCELED,
		"'%s' ended with exit code %d on %s: no trace is written (it must succeed)",
		j->o->argv[0], j->code, j->places[0].member->name);
}

static int job_watch(struct job *j, struct err *e)
{
	const double end_s = clock_mono_s() + j->o->limit_s;
	bool ended;
	int rc;

	do {
		node_events(j->cluster->set, 0.2, job_on_event, j);
		ended = j->ended;
		if (*j->o->interrupted)
			return signals_interrupted(e);
		if (cluster_lost(j->cluster, e))
			return -ENOTCONN;
		rc = print_output(j, ended, e);
		if (!rc && !ended && clock_mono_s() > end_s)
			rc = err_set(e, -ETIMEDOUT,
				"'%s' ran for more than %.0f s and was killed: raise "
				"--time-limit",
				j->o->argv[0], j->o->limit_s);
	} while (!rc && !ended);
	return rc ?: outcome(j, e);
}

/* Ends the tracers and processes that still run. Returns false, with the first reason in 'e', if
 * a log is incomplete. */
static bool job_stop(struct job *j, struct err *e)
{
	struct node_request *all = alloc_zero(j->n, sizeof(*all));
	struct place **places = alloc_zero(j->n, sizeof(*places));
	bool whole = true;
	size_t n = 0;

	/* A second signal ends the wait. */
	nodeset_resume(j->cluster->set);
	if (*j->handle && !j->ended)
		node_call(j->places[0].member->node, "process.stop",
			json_pack("{s:s, s:i}", "handle", j->handle, "grace_s", GRACE_S),
			GRACE_S + STOP_S, NULL, NULL);
	*j->handle = '\0';
	for (size_t i = 0; i < j->n; i++) {
		struct place *p = &j->places[i];

		if (!*p->tracer || node_lost(p->member->node, NULL))
			continue;
		places[n] = p;
		all[n++] = (struct node_request){.node = p->member->node,
			.op = "trace.stop",
			.args = json_pack("{s:s}", "handle", p->tracer)};
	}
	if (node_call_all(all, n, STOP_S, e))
		whole = false;
	for (size_t i = 0; i < n; i++) {
		const char *name = places[i]->member->name,
			   *note = jget_text(all[i].result, "note");

		if (whole && !jget_true(all[i].result, "whole")) {
			err_set(e, -EBADMSG, "%s: the log of '%s' is truncated%s%s", name,
				j->o->launcher, note ? ": " : "", note ? note : "");
			whole = false;
		} else if (note) {
			tell(j, "%s: %s", name, note);
		}
		json_decref(all[i].result);
	}
	for (size_t i = 0; i < j->n; i++)
		*j->places[i].tracer = '\0';
	free(places);
	free(all);
	return whole;
}

/* ---- afterwards ---- */

static void job_add_log(struct job *j, const char *folder, const struct place *p, bool launcher)
{
	char *path = alloc_format("%s/%zu.%s.trace", folder, (size_t)(p - j->places),
		launcher ? "launched" : "command");

	j->paths[j->n_logs] = path;
	j->logs[j->n_logs++] = (struct causal_log){.path = path,
		.node = p->member->name,
		.root = p->root,
		.cwd = launcher ? "/" : p->root,
		.address = p->member->host->address,
		.offset_ns = (int64_t)(p->member->offset_s * 1e9),
		.launcher = launcher};
}

static void clear_logs(struct job *j)
{
	for (size_t i = 0; i < j->n_logs; i++)
		free(j->paths[i]);
	free(j->paths);
	free(j->logs);
	j->paths = NULL;
	j->logs = NULL;
	j->n_logs = 0;
}

static int job_fetch(struct job *j, const char *folder, struct err *e)
{
	const size_t most = j->n + 1;
	struct node_transfer *all = alloc_zero(most, sizeof(*all));
	char **remote = alloc_zero(most + 1, sizeof(*remote));
	int rc;

	clear_logs(j);
	j->logs = alloc_zero(most, sizeof(*j->logs));
	j->paths = alloc_zero(most, sizeof(*j->paths));
	for (size_t i = 0; i < most; i++) {
		const struct place *p = &j->places[i ? i - 1 : 0];
		size_t n = j->n_logs;

		if (i && !json_array_size(p->launchers))
			continue;
		job_add_log(j, folder, p, i);
		remote[n] = alloc_format("%s.%u.trace", i ? "launched" : "command", j->runs);
		all[n] = (struct node_transfer){
			.node = p->member->node, .remote = remote[n], .local = j->paths[n]};
	}
	rc = cluster_blame(node_fetch_all(all, j->n_logs, FETCH_S, e), e);
	alloc_free_list(remote);
	free(all);
	return rc;
}

int job_run(struct job *j, const char *folder, struct err *e)
{
	struct err later = {""};
	int rc;

	j->runs++;
	if (mkdir(folder, 0700))
		return err_errno(e, -errno, "cannot make '%s'", folder);
	rc = list_files(j, folder, "before", e) ?: start_tracers(j, e) ?: start_command(j, e);
	if (!rc && j->runs == 1)
		tell(j, "the command runs on %s; '%s' is followed on %zu clients",
			j->places[0].member->name, j->o->launcher, j->n);
	rc = rc ?: job_watch(j, e);
	if (!job_stop(j, &later) && !rc) {
		*e = later;
		rc = err_blame(e, ERR_CLUSTER, -EBADMSG);
	}
	rc = rc ?: job_fetch(j, folder, e) ?: list_files(j, folder, "after", e);
	if (rc && *j->o->interrupted)
		rc = signals_interrupted(e);
	return rc;
}

const struct causal_log *job_logs(const struct job *j, size_t *n)
{
	*n = j->n_logs;
	return j->logs;
}

const char *job_kernel(const struct job *j)
{
	return j->kernel;
}

void job_close(struct job *j)
{
	if (!j)
		return;
	signals_interrupt(NULL);
	cluster_disconnect(j->cluster);
	cluster_free(j->cluster);
	for (size_t i = 0; i < j->n; i++) {
		json_decref(j->places[i].launchers);
		free(j->places[i].root);
	}
	clear_logs(j);
	free(j->places);
	free(j->kernel);
	free(j);
}
