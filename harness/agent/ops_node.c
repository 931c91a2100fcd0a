/* Operations that only look, and those on the session itself. */
#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "diag/capture/capture.h"
#include "faults/primitives/procfs.h"
#include "harness/agent/handle.h"
#include "harness/agent/operations.h"
#include "harness/agent/ops.h"
#include "harness/base/clock.h"

int op_ping(struct agent *a, json_t *id, json_t *args, struct err *e)
{
	(void)args;
	(void)e;
	agent_answer(a, id,
		json_pack("{s:I, s:I}", "time_ns", (json_int_t)clock_real_ns(), "mono_ns",
			(json_int_t)clock_ns(CLOCK_MONOTONIC)));
	return 0;
}

/* /proc/PID/cmdline as a list; empty if it is gone. */
static json_t *command_line(pid_t pid)
{
	json_t *list;

	return procfs_words(pid, "cmdline", text_json, &list) ? json_array() : list;
}

/* NULL if it is gone, or its program is not 'wanted'. */
static json_t *describe_process(pid_t pid, const char *wanted)
{
	char exe[PATH_MAX], copy[PATH_MAX], state[2] = "", *deleted;
	struct procfs_stat st;

	/* Kernel threads have no program; one that was replaced on disk is still the same. */
	procfs_link(pid, "exe", exe);
	deleted = strstr(exe, " (deleted)");
	if (deleted)
		*deleted = '\0';
	strcpy(copy, exe);
	if ((wanted && strcmp(basename(copy), wanted)) || !procfs_stat(pid, 0, &st) ||
		strchr("ZX", st.state))
		return NULL;
	state[0] = st.state;
	return json_pack("{s:i, s:i, s:s, s:o, s:o, s:o, s:I}", "pid", (int)pid, "ppid",
		(int)st.parent, "state", state, "comm", text_json(st.comm, strlen(st.comm)), "exe",
		text_json(exe, strlen(exe)), "cmdline", command_line(pid), "start_ticks",
		(json_int_t)st.start);
}

int op_processes(struct agent *a, json_t *id, json_t *args, struct err *e)
{
	auto_json json_t *list = json_array();
	auto_dir DIR *dir = opendir("/proc");
	json_t *one;
	pid_t pid;

	if (!dir)
		return err_errno(e, -errno, "cannot list '/proc'");
	while ((pid = procfs_next(dir)))
		if ((one = describe_process(pid, jget_text(args, "exe"))))
			json_array_append_new(list, one);
	agent_answer(a, id, json_pack("{s:O}", "processes", list));
	return 0;
}

static bool begins(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

static json_t *able(int rc, const struct err *why)
{
	return json_pack("{s:b, s:s}", "able", rc == 0, "reason", why->text);
}

/* Whether 'what' could begin with the arguments 'with' (NULL: not said which). */
static int check_act(struct agent *a, const char *what, const json_t *args, struct err *e)
{
	const json_t *with = jget(args, "with");

	if (geteuid() != 0)
		return err_set(e, -EPERM, "%s other users' processes needs root",
			begins(what, "trace.") ? "tracing" : "acting on");
	if (!strcmp(what, "group.limit"))
		return ops_group_able(a, with, e);
	return with ? ops_service_able(a, what, with, e) : 0;
}

struct tracer_check {
	struct tracer_try as;
	const char *dir;
};

static json_t *try_tracer(const void *ctx)
{
	const struct tracer_check *t = ctx;
	struct err why = {""};
	int rc = trace_able(&t->as, t->dir, &why);

	return able(rc, &why);
}

static void tried(struct agent *a, struct handle *h, json_t *value)
{
	static const struct err why = {"the child that tried it was killed"};

	handle_answer(a, h, value ? json_incref(value) : able(-ECHILD, &why));
	handle_free(a, h);
}

/* A child tries the tracer. On a busy node that takes longer than a lease, which must be renewed
 * in the meantime. */
static int check_tracer(
	struct agent *a, json_t *id, const char *tracer, const json_t *args, struct err *e)
{
	const struct tracer_check t = {{tracer, jget_text(args, "mode"), jget_true(args, "heads"),
					       jget_int(args, "memory_bytes")},
		a->dir};
	struct handle *h;
	int rc = handle_new(a, HANDLE_CHECK, &h, e) ?: handle_fork(h, try_tracer, &t, tried, e);

	if (!rc)
		h->request_id = json_incref(id);
	return rc;
}

/* -EINVAL if 'with' are not arguments of an operation that looks at more than the node. */
static int check_with(const char *what, const json_t *with, struct err *e)
{
	const struct operation *op = operation_find(what);

	if (!with)
		return 0;
	if (!op ||
		!(op->restarts || begins(what, "disk.") || !strcmp(what, "packets.drop") ||
			!strcmp(what, "packets.delay") || !strcmp(what, "group.limit")))
		return err_set(e, -EINVAL, "'%s' is not checked with arguments", what);
	return operation_check(op, with, e);
}

int op_check(struct agent *a, json_t *id, json_t *args, struct err *e)
{
	const char *what = jget_text(args, "what");
	const json_t *with = jget(args, "with");
	struct err why = {""};
	int rc = check_with(what, with, e);

	if (rc)
		return rc;
	if (begins(what, "trace.") && strcmp(what, "trace.start") && geteuid() == 0)
		return check_tracer(a, id, what + strlen("trace."), args, e);
	if (begins(what, "disk.") && with) {
		rc = ops_disk_able(a, with, &why);
	} else if (begins(what, "packets.")) {
		rc = ops_packets_able(a, with, !strcmp(what, "packets.delay"), &why);
	} else if (begins(what, "trace.") || begins(what, "limits.") || begins(what, "signal.") ||
		begins(what, "group.") || begins(what, "service.") || begins(what, "fs.")) {
		rc = check_act(a, what, args, &why);
	} else if (strcmp(what, "run") && !begins(what, "process.")) {
		return err_set(e, -EINVAL,
			"cannot check '%s'; packets.drop, packets.delay, process.start, "
			"limits.set, signal.stop, signal.pause, group.limit, service.restart, "
			"fs.readonly, trace.TRACER and run can be checked, and disk.degrade and "
			"disk.fail with their arguments",
			what);
	}
	agent_answer(a, id, able(rc, &why));
	return 0;
}

static void undo_undone(struct agent *a, struct handle *h, const struct guard_message *m)
{
	if (m->rc)
		agent_refuse(a, h->request_id, m->rc, &m->err);
	else
		agent_answer(a, h->request_id, json_pack("{s:b}", "undone", m->was_there));
}

int op_undo(struct agent *a, json_t *id, json_t *args, struct err *e)
{
	struct handle *h;
	int rc = handle_get(a, args, HANDLE_ANY, &h, e);

	if (rc)
		return rc;
	h->request_id = json_incref(id);
	handle_undo(a, h, undo_undone);
	return 0;
}

int op_bye(struct agent *a, json_t *id, json_t *args, struct err *e)
{
	(void)args;
	(void)e;
	a->bye_id = json_incref(id);
	agent_end(a, 0, "bye");
	return 0;
}
