/*
 * Ops on servers and their file systems. Such an act takes seconds (a server that ends, an mkfs, a
 * server that starts), so a child does it, while we go on answering; it dies with us, and the
 * guard's undo waits until it is dead.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "faults/primitives/mounts.h"
#include "faults/primitives/readonly.h"
#include "faults/primitives/service.h"
#include "harness/agent/agent.h"
#include "harness/base/file.h"

static int max_seconds(const json_t *args, double *max_s, struct err *e)
{
	const json_t *max = json_object_get(args, "max_s");

	*max_s = max ? json_number_value(max) : 0;
	if (max && !(*max_s > 0 && *max_s <= 1e6))
		return err_set(
			e, -EINVAL, "max_s must be above 0 and at most 1000000, not %g", *max_s);
	return 0;
}

/* ---- the child that acts ---- */

typedef int (*act_fn)(const void *spec, const json_t *inverse, pid_t *pid, struct err *e);

static int act_service(const void *spec, const json_t *inverse, pid_t *pid, struct err *e)
{
	return service_act(spec, inverse, pid, e);
}

static int act_readonly(const void *spec, const json_t *inverse, pid_t *pid, struct err *e)
{
	(void)spec;
	*pid = 0;
	return readonly_act(inverse, e);
}

static _Noreturn void worker(
	int out, pid_t agent, act_fn act, const void *spec, const json_t *inverse)
{
	struct err e = {""};
	pid_t pid = 0;
	sigset_t none;
	json_t *said;
	char *text;
	int rc;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != agent)
		_exit(1);
	process_close_others(&out, 1);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	rc = act(spec, inverse, &pid, &e);
	said = json_pack("{s:i, s:i, s:o}", "rc", rc, "pid", (int)pid, "text",
		text_json(e.text, strlen(e.text)));
	text = json_dumps(said, JSON_COMPACT);
	if (!text || fd_write_all(out, text, strlen(text)))
		_exit(1);
	_exit(0);
}

/* Records 'h->inverse' and lets a child act; the answer follows. Frees 'h' on failure. */
static int begin(struct agent *a, json_t *id, struct handle *h, const char *primitive, double max_s,
	act_fn act, const void *spec, struct err *e)
{
	int p[2] = {-1, -1}, rc;
	pid_t pid, agent = getpid();

	rc = handle_record(a, h, primitive, max_s, e);
	if (rc)
		goto out;
	if (pipe2(p, O_CLOEXEC | O_NONBLOCK) < 0 || (pid = fork()) < 0) {
		rc = err_errno(e, -errno, "cannot act");
		guard_undo(a->guard, h->name);
		goto out;
	}
	if (pid == 0) {
		fcntl(p[1], F_SETFL, 0);
		worker(p[1], agent, act, spec, h->inverse);
	}
	h->read_fd = p[0];
	p[0] = -1;
	h->request_id = json_incref(id);
	h->state = HANDLE_STARTING;
	h = NULL;
out:
	for (int i = 0; i < 2; i++)
		if (p[i] >= 0)
			close(p[i]);
	if (h)
		handle_free(a, h);
	return rc;
}

static void refused_undone(struct agent *a, struct handle *h, const struct guard_message *m)
{
	if (m->rc) {
		struct err e;

		err_set(&e, h->failed, "%.500s; and undoing it failed: %.400s", h->failure.text,
			m->err.text);
		agent_refuse(a, h->request_id, h->failed, &e);
	} else {
		agent_refuse(a, h->request_id, h->failed, &h->failure);
	}
}

/* What the child says, to its end. */
void service_readable(struct agent *a, struct handle *h)
{
	char buf[4096], *more;
	ssize_t n = read(h->read_fd, buf, sizeof(buf));
	const char *text = "the agent's helper has died";
	json_t *said;
	int rc = -ECHILD, pid = 0;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0) {
		more = realloc(h->output, h->output_size + (size_t)n);
		if (more) {
			h->output = more;
			memcpy(h->output + h->output_size, buf, (size_t)n);
			h->output_size += (size_t)n;
		}
		return;
	}
	close(h->read_fd);
	h->read_fd = -1;
	said = h->output_size ? json_loadb(h->output, h->output_size, 0, NULL) : NULL;
	json_unpack(said, "{s:i, s:i, s:s}", "rc", &rc, "pid", &pid, "text", &text);
	guard_acted(a->guard, h->name);
	if (rc) {
		h->failed = err_set(&h->failure, rc, "%s", text);
		handle_undo(a, h, refused_undone);
	} else {
		h->state = HANDLE_LIVE;
		agent_answer(a, h->request_id,
			pid ? json_pack("{s:s, s:i}", "handle", h->name, "pid", pid)
			    : json_pack("{s:s}", "handle", h->name));
		json_decref(h->request_id);
		h->request_id = NULL;
	}
	json_decref(said);
}

/* ---- service ---- */

static int read_limits(const json_t *limits, struct service_spec *s, struct err *e)
{
	static const char *const names[] = {
		[SERVICE_NOFILE] = "nofile", [SERVICE_FSIZE] = "fsize", [SERVICE_AS] = "as"};
	const char *key;
	json_t *value;
	int i;

	json_object_foreach((json_t *)limits, key, value)
	{
		for (i = 0; i < SERVICE_LIMITS && strcmp(names[i], key); i++)
			;
		if (i == SERVICE_LIMITS)
			return err_set(e, -EINVAL,
				"there is no limit '%s'; there are nofile, fsize and as", key);
		if (!json_is_integer(value) || json_integer_value(value) <= 0)
			return err_set(
				e, -EINVAL, "the limit '%s' must be a whole number above 0", key);
		s->limits[i] = json_integer_value(value);
	}
	return 0;
}

static int read_storage(const json_t *storage, struct service_spec *s, struct err *e)
{
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)storage, key, value) if (strcmp(key, "path") &&
		strcmp(key, "size_bytes") && strcmp(key, "inodes") && strcmp(key, "prune") &&
		strcmp(key, "spare_inodes")) return err_set(e, -EINVAL,
		"storage has no '%s'; there are path, size_bytes, inodes, spare_inodes and prune",
		key);
	s->storage = json_string_value(json_object_get(storage, "path"));
	s->prune = json_string_value(json_object_get(storage, "prune"));
	s->size_bytes = json_integer_value(json_object_get(storage, "size_bytes"));
	s->inodes = json_integer_value(json_object_get(storage, "inodes"));
	s->spare = json_integer_value(json_object_get(storage, "spare_inodes"));
	if (!s->storage || s->storage[0] != '/')
		return err_set(e, -EINVAL, "storage needs an absolute 'path'");
	if (s->size_bytes < 1 << 20)
		return err_set(e, -EINVAL, "storage.size_bytes must be at least 1 MiB");
	if (s->inodes < 0 || s->inodes > 1 << 30 || s->spare < 0 || s->spare > 1 << 30)
		return err_set(
			e, -EINVAL, "storage.inodes and storage.spare_inodes must not be below 0");
	return 0;
}

static int begin_service(
	struct agent *a, json_t *id, const json_t *args, struct service_spec *s, struct err *e)
{
	struct handle *h = NULL;
	char name[64];
	double max_s;
	int rc;

	s->pid = (pid_t)json_integer_value(json_object_get(args, "pid"));
	rc = max_seconds(args, &max_s, e);
	if (rc)
		return rc;
	h = handle_new(a, HANDLE_SERVICE);
	if (!h)
		return err_errno(e, -ENOMEM, "cannot act on a server");
	snprintf(name, sizeof(name), "culprit-%.16s-%s", a->session, h->name);
	rc = service_prepare(s, a->dir, name, &h->inverse, e);
	if (rc) {
		handle_free(a, h);
		return rc;
	}
	return begin(a, id, h, "service", max_s, act_service, s, e);
}

int op_service_kill(struct agent *a, json_t *id, json_t *args, struct err *e)
{
	struct service_spec s = {.kill = true};

	return begin_service(a, id, args, &s, e);
}

int op_service_limit(struct agent *a, json_t *id, json_t *args, struct err *e)
{
	struct service_spec s = {0};
	int rc = read_limits(json_object_get(args, "limits"), &s, e);

	return rc ? rc : begin_service(a, id, args, &s, e);
}

int op_service_restart(struct agent *a, json_t *id, json_t *args, struct err *e)
{
	struct service_spec s = {
		.restart = true, .user = json_string_value(json_object_get(args, "user"))};
	int rc = read_limits(json_object_get(args, "limits"), &s, e);

	if (!rc && json_object_get(args, "storage"))
		rc = read_storage(json_object_get(args, "storage"), &s, e);
	return rc ? rc : begin_service(a, id, args, &s, e);
}

/* ---- file systems ---- */

int op_fs_readonly(struct agent *a, json_t *id, json_t *args, struct err *e)
{
	const char *path = json_string_value(json_object_get(args, "path"));
	struct handle *h;
	double max_s;
	int rc;

	rc = max_seconds(args, &max_s, e);
	if (rc)
		return rc;
	h = handle_new(a, HANDLE_READONLY);
	if (!h)
		return err_errno(e, -ENOMEM, "cannot make '%s' read-only", path);
	rc = readonly_prepare(path, (pid_t)json_integer_value(json_object_get(args, "pid")), a->dir,
		&h->inverse, e);
	if (rc) {
		handle_free(a, h);
		return rc;
	}
	return begin(a, id, h, "readonly", max_s, act_readonly, NULL, e);
}

int op_fs_info(struct agent *a, json_t *id, json_t *args, struct err *e)
{
	const char *path = json_string_value(json_object_get(args, "path"));
	struct mounted *m = malloc(sizeof(*m));
	struct statvfs v;
	int rc;

	if (!m)
		return err_errno(e, -ENOMEM, "cannot look at '%s'", path);
	rc = mounted_at(path, m, e);
	if (!rc && statvfs(path, &v) < 0)
		rc = err_errno(e, -errno, "cannot look at '%s'", path);
	if (!rc)
		agent_answer(a, id,
			json_pack("{s:s, s:s, s:s, s:s, s:s, s:b, s:I, s:I, s:I, s:I}", "type",
				m->type, "source", m->source, "point", m->point, "options",
				m->options, "super_options", m->super, "readonly",
				mounted_readonly(m), "size_bytes",
				(json_int_t)(v.f_blocks * v.f_frsize), "free_bytes",
				(json_int_t)(v.f_bavail * v.f_frsize), "inodes",
				(json_int_t)v.f_files, "free_inodes", (json_int_t)v.f_ffree));
	free(m);
	return rc;
}
