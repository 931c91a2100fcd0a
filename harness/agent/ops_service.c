/*
 * Operations on servers and their file systems. Such an act takes seconds (a server ends, an mkfs,
 * a server starts), so a child performs it while the agent continues answering. The child dies with
 * the agent, and the guard's undo waits until it is dead.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "faults/primitives/mounts.h"
#include "faults/primitives/procfs.h"
#include "faults/primitives/readonly.h"
#include "faults/primitives/service.h"
#include "harness/agent/child.h"
#include "harness/agent/handle.h"
#include "harness/agent/ops.h"
#include "harness/base/auto.h"
#include "harness/base/clock.h"

/* ---- the child that acts ---- */

/* What it needs; 'spec' is NULL for a file system. */
struct server_act {
	const struct service_spec *spec;
	const json_t *inverse;
};

static json_t *perform(const void *ctx)
{
	const struct server_act *act = ctx;
	struct err e = {""};
	pid_t pid = 0;
	int rc = act->spec ? service_act(act->spec, act->inverse, &pid, &e)
			   : readonly_act(act->inverse, &e);

	return json_pack("{s:i, s:i, s:o}", "rc", rc, "pid", (int)pid, "text",
		text_json(e.text, strlen(e.text)));
}

/* What the child does now: its name, or that of a program that it has started; and where in the
 * kernel that is. */
static void find_place(pid_t child, char *buf, size_t size)
{
	auto_dir DIR *dir = opendir("/proc");
	struct procfs_stat st = {.comm = "it has ended"}, other;
	char path[64], place[64];
	pid_t at = child;

	procfs_stat(child, 0, &st);
	for (pid_t pid; child > 0 && (pid = procfs_next(dir));)
		if (procfs_stat(pid, 0, &other) && other.parent == child && other.state != 'Z') {
			st = other;
			at = pid;
		}
	snprintf(path, sizeof(path), "/proc/%d/wchan", (int)at);
	if (procfs_line(path, place, sizeof(place), NULL) || place[0] == '0')
		place[0] = '\0';
	snprintf(buf, size, "%s%s%s", st.comm, *place ? " in " : "", place);
}

static void ignore_child(struct agent *a, struct handle *h, json_t *said)
{
	(void)a, (void)h, (void)said;
}

static void tell_undone(struct agent *a, struct handle *h, const struct guard_message *m)
{
	if (!m->rc)
		agent_event(a,
			json_pack("{s:s, s:s, s:s}", "event", "undone", "handle", h->name, "why",
				"late"));
}

/* Who asked is answered now, since the undo may have to wait for what holds the child up. */
static void overdue(struct agent *a, struct handle *h)
{
	char place[128];
	struct err e;

	find_place(h->forked, place, sizeof(place));
	handle_refuse(a, h,
		err_set(&e, -ETIMEDOUT, "it is not done after %g s (%s), and is taken back",
			a->act_s, place),
		&e);
	h->forked_done = ignore_child;
	if (h->forked > 0) {
		kill(h->forked, SIGSTOP); /* it starts nothing any more */
		child_signal_descent(h->forked, SIGKILL);
		kill(h->forked, SIGKILL);
	}
	handle_undo(a, h, tell_undone);
}

static void refused_undone(struct agent *a, struct handle *h, const struct guard_message *m)
{
	if (m->rc)
		err_set(&h->failure, h->failed, "%.500s; and undoing it failed: %.400s",
			h->failure.text, m->err.text);
	agent_refuse(a, h->request_id, h->failed, &h->failure);
}

static void performed(struct agent *a, struct handle *h, json_t *said)
{
	const char *text = "the agent's helper has died";
	int rc = -ECHILD, pid = 0;
	json_t *result;

	json_unpack(said, "{s:i, s:i, s:s}", "rc", &rc, "pid", &pid, "text", &text);
	h->deadline = 0;
	guard_acted(a->guard, h->name);
	if (rc) {
		h->failed = err_set(&h->failure, rc, "%s", text);
		handle_undo(a, h, refused_undone);
		return;
	}
	result = json_pack("{s:s}", "handle", h->name);
	if (pid)
		json_object_set_new(result, "pid", json_integer(pid));
	handle_answer(a, h, result);
}

/* Records 'inverse' and lets a child act; the answer follows. */
static int ops_service_begin(struct agent *a, json_t *id, struct handle *h, json_t *inverse,
	const json_t *args, const struct service_spec *spec, struct err *e)
{
	int rc = handle_record(a, h, inverse, arg_number(args, "max_s", 0), e);

	if (rc)
		return rc;
	rc = handle_fork(h, perform, &(struct server_act){spec, inverse}, performed, e);
	if (rc) {
		guard_undo(a->guard, h->name);
		return rc;
	}
	h->request_id = json_incref(id);
	h->state = HANDLE_STARTING;
	h->deadline = clock_mono_s() + a->act_s;
	h->overdue = overdue;
	return 0;
}

/* ---- servers ---- */

static void read_limits(const json_t *limits, struct service_spec *s)
{
	s->limits[SERVICE_NOFILE] = jget_int(limits, "nofile");
	s->limits[SERVICE_FSIZE] = jget_int(limits, "fsize");
	s->limits[SERVICE_AS] = jget_int(limits, "as");
}

/* What a request of service.kill, .limit or .restart asks for. */
static struct service_spec read_spec(const char *op, const json_t *args)
{
	const json_t *storage = jget(args, "storage");
	struct service_spec s = {.pid = (pid_t)jget_int(args, "pid"),
		.kill = !strcmp(op, "service.kill"),
		.restart = !strcmp(op, "service.restart"),
		.user = jget_text(args, "user"),
		.storage = {.path = jget_text(storage, "path"),
			.prune = jget_text(storage, "prune"),
			.keep = jget(storage, "keep"),
			.size_bytes = jget_int(storage, "size_bytes"),
			.inodes = jget_int(storage, "inodes"),
			.spare = jget_int(storage, "spare_inodes")}};

	read_limits(jget(args, "limits"), &s);
	return s;
}

static int begin_service(
	struct agent *a, json_t *id, const json_t *args, const char *op, struct err *e)
{
	struct service_spec s = read_spec(op, args);
	struct handle *h;
	json_t *inverse;
	char name[64];
	int rc = handle_new(a, HANDLE_SERVICE, &h, e);

	if (rc)
		return rc;
	snprintf(name, sizeof(name), "culprit-%.16s-%s", a->session, h->name);
	rc = service_prepare(&s, a->dir, name, &inverse, e);
	return rc ?: ops_service_begin(a, id, h, inverse, args, &s, e);
}

int op_service_kill(struct agent *a, json_t *id, json_t *args, struct err *e)
{
	return begin_service(a, id, args, "service.kill", e);
}

int op_service_limit(struct agent *a, json_t *id, json_t *args, struct err *e)
{
	return begin_service(a, id, args, "service.limit", e);
}

int op_service_restart(struct agent *a, json_t *id, json_t *args, struct err *e)
{
	return begin_service(a, id, args, "service.restart", e);
}

int ops_service_able(struct agent *a, const char *op, const json_t *args, struct err *e)
{
	struct service_spec s = read_spec(op, args);
	json_t *inverse = NULL;
	int rc = !strcmp(op, "fs.readonly")
		? readonly_prepare(jget_text(args, "path"), s.pid, a->dir, &inverse, e)
		: service_prepare(&s, a->dir, "culprit-check", &inverse, e);

	json_decref(inverse);
	return rc;
}

/* ---- file systems ---- */

int op_fs_readonly(struct agent *a, json_t *id, json_t *args, struct err *e)
{
	struct handle *h;
	json_t *inverse;
	int rc = handle_new(a, HANDLE_READONLY, &h, e)
		?: readonly_prepare(jget_text(args, "path"), (pid_t)jget_int(args, "pid"), a->dir,
			   &inverse, e);

	return rc ?: ops_service_begin(a, id, h, inverse, args, NULL, e);
}

/* A block device holds no file system that could be named, but maybe a server's data. */
static int describe_device(
	struct agent *a, json_t *id, const char *path, dev_t number, struct err *e)
{
	char real[PATH_MAX], device[32];
	uint64_t bytes = 0;
	int readonly = 0;
	auto_fd int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0 || !realpath(path, real) || ioctl(fd, BLKGETSIZE64, &bytes) < 0 ||
		ioctl(fd, BLKROGET, &readonly) < 0)
		return err_errno(e, -errno, "cannot look at the device '%s'", path);
	snprintf(device, sizeof(device), "%u:%u", major(number), minor(number));
	agent_answer(a, id,
		json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:b, s:I, s:I, s:I, s:I}", "type",
			"block device", "source", real, "device", device, "point", "", "options",
			"", "super_options", "", "readonly", readonly, "size_bytes",
			(json_int_t)bytes, "free_bytes", (json_int_t)0, "inodes", (json_int_t)0,
			"free_inodes", (json_int_t)0));
	return 0;
}

int op_fs_info(struct agent *a, json_t *id, json_t *args, struct err *e)
{
	const char *path = jget_text(args, "path");
	char device[32];
	struct mounted m;
	struct statvfs v;
	struct stat st;
	int rc;

	if (!stat(path, &st) && S_ISBLK(st.st_mode))
		return describe_device(a, id, path, st.st_rdev, e);
	rc = mounted_at(path, &m, e);

	if (!rc && statvfs(path, &v) < 0)
		rc = err_errno(e, -errno, "cannot look at '%s'", path);
	if (rc)
		return rc;
	snprintf(device, sizeof(device), "%u:%u", m.major, m.minor);
	agent_answer(a, id,
		json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:b, s:I, s:I, s:I, s:I}", "type", m.type,
			"source", m.source, "device", device, "point", m.point, "options",
			m.options, "super_options", m.super, "readonly", mounted_readonly(&m),
			"size_bytes", (json_int_t)(v.f_blocks * v.f_frsize), "free_bytes",
			(json_int_t)(v.f_bavail * v.f_frsize), "inodes", (json_int_t)v.f_files,
			"free_inodes", (json_int_t)v.f_ffree));
	return 0;
}
