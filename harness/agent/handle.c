/* Handles by which the orchestrator names what runs on a node. */
#include "harness/agent/handle.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "faults/primitives/procfs.h"
#include "harness/base/file.h"
#include "harness/base/jget.h"

static const struct {
	char letter; /* handles are named d1, p2, ... */
	const char *what, *primitive;
} kinds[] = {
	[HANDLE_PROCESS] = {'p', "process", "process"},
	[HANDLE_RUN] = {'r', "run", "process"},
	[HANDLE_TRACE] = {'t', "trace", "process"},
	[HANDLE_PACKETS] = {'d', "packet drop", "packets"},
	[HANDLE_DELAY] = {'q', "packet delay", "delay"},
	[HANDLE_COMMAND] = {'c', "command", "command"},
	[HANDLE_LIMIT] = {'l', "limit", "limits"},
	[HANDLE_STOP] = {'s', "stop", "signal"},
	[HANDLE_GROUP] = {'g', "limit of a control group", "group"},
	[HANDLE_PAUSE] = {'u', "pause", "pauses"},
	[HANDLE_SERVICE] = {'v', "act on a server", "service"},
	[HANDLE_READONLY] = {'f', "read-only file system", "readonly"},
	[HANDLE_DISK] = {'b', "slow disk", "disk"},
	[HANDLE_DISK_ERRORS] = {'e', "failing disk", "disk-errors"},
	[HANDLE_CHECK] = {'k', "check", NULL},
};

int handle_new(struct agent *a, enum handle_kind kind, struct handle **out, struct err *e)
{
	struct handle *h = calloc(1, sizeof(*h));

	if (!h)
		return err_errno(e, -ENOMEM, "cannot begin a %s", kinds[kind].what);
	snprintf(h->name, sizeof(h->name), "%c%u", kinds[kind].letter, ++a->next_number);
	h->kind = kind;
	h->read_fd = h->control_fd = -1;
	h->next = a->handles;
	a->handles = a->begun = h;
	*out = h;
	return 0;
}

void handle_free(struct agent *a, struct handle *h)
{
	struct handle **at = &a->handles;

	if (!h)
		return;
	while (*at != h)
		at = &(*at)->next;
	*at = h->next;
	fd_close(h->read_fd);
	fd_close(h->control_fd);
	process_account_free(h->account);
	json_decref(h->inverse);
	json_decref(h->request_id);
	json_decref(h->summary);
	free(h->log);
	free(h->wanted);
	free(h->command);
	free(h->error_log);
	free(h->output.data);
	free(h->told.data);
	free(h);
}

static struct handle *handle_find(struct agent *a, const char *name)
{
	struct handle *h = a->handles;

	while (h && strcmp(h->name, name))
		h = h->next;
	return h;
}

int handle_get(struct agent *a, const json_t *args, enum handle_kind kind, struct handle **out,
	struct err *e)
{
	const char *name = jget_text(args, "handle");
	struct handle *h = handle_find(a, name);

	if (!h || (kind != HANDLE_ANY && h->kind != kind))
		return err_set(e, -ENOENT, "there is no %s '%s'",
			kind == HANDLE_ANY ? "handle" : kinds[kind].what, name);
	if (h->request_id)
		return err_set(e, -EBUSY, "'%s' is busy with another request", name);
	*out = h;
	return 0;
}

int handle_record(struct agent *a, struct handle *h, json_t *inverse, double max_s, struct err *e)
{
	if (!inverse)
		return err_errno(e, -ENOMEM, "cannot begin a %s", kinds[h->kind].what);
	h->inverse = inverse;
	return guard_record(a->guard, h->name, kinds[h->kind].primitive, inverse, max_s, e);
}

int handle_acted(struct agent *a, json_t *id, struct handle *h, int rc, json_t *more)
{
	auto_json json_t *result = more ?: json_object();

	guard_acted(a->guard, h->name);
	if (rc) {
		guard_undo(a->guard, h->name);
		return rc;
	}
	json_object_set_new(result, "handle", json_string(h->name));
	agent_answer(a, id, AUTO_TAKE(result));
	return 0;
}

static void request_done(struct handle *h)
{
	json_decref(h->request_id);
	h->request_id = NULL;
	h->state = HANDLE_LIVE;
}

void handle_answer(struct agent *a, struct handle *h, json_t *result)
{
	agent_answer(a, h->request_id, result);
	request_done(h);
}

void handle_refuse(struct agent *a, struct handle *h, int rc, const struct err *e)
{
	agent_refuse(a, h->request_id, rc, e);
	request_done(h);
}

void handle_undo(struct agent *a, struct handle *h,
	void (*undone)(struct agent *, struct handle *, const struct guard_message *))
{
	h->state = HANDLE_UNDOING;
	h->deadline = 0;
	h->undone = undone;
	guard_undo(a->guard, h->name);
}

void handle_close(struct handle *h)
{
	fd_close(h->read_fd);
	h->read_fd = -1;
	h->told.size = 0;
}

/* The value is complete when the child closes the pipe. */
static void forked_readable(struct agent *a, struct handle *h)
{
	ssize_t n = bytes_read(&h->output, h->read_fd);
	auto_json json_t *value = NULL;

	if (n > 0 || n == -EAGAIN || n == -EINTR)
		return;
	handle_close(h);
	value = json_loadb(h->output.data ?: "", h->output.size, 0, NULL);
	h->forked_done(a, h, value);
}

static _Noreturn void forked_child(
	int out, pid_t agent, json_t *(*compute)(const void *ctx), const void *ctx)
{
	sigset_t none;
	char *text;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != agent)
		_exit(1);
	process_close_others(&out, 1);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	text = json_dumps(compute(ctx), JSON_COMPACT);
	_exit(text && !fd_write_all(out, text, strlen(text)) ? 0 : 1);
}

int handle_fork(struct handle *h, json_t *(*compute)(const void *ctx), const void *ctx,
	void (*done)(struct agent *a, struct handle *h, json_t *value), struct err *e)
{
	pid_t agent = getpid(), pid;
	int p[2];

	if (pipe2(p, O_CLOEXEC) < 0)
		return err_errno(e, -errno, "cannot make a pipe");
	pid = fork();
	if (pid == 0)
		forked_child(p[1], agent, compute, ctx);
	close(p[1]);
	if (pid < 0) {
		close(p[0]);
		return err_errno(e, -EAGAIN, "cannot start a child");
	}
	fcntl(p[0], F_SETFL, O_NONBLOCK);
	h->output.size = 0;
	h->read_fd = p[0];
	h->readable = forked_readable;
	h->forked_done = done;
	h->forked = pid;
	return 0;
}

void handle_reaped(struct agent *a, pid_t pid)
{
	for (struct handle *h = a->handles; h; h = h->next)
		if (h->forked == pid)
			h->forked = 0;
}

void handles_kill_forked(struct agent *a)
{
	for (struct handle *h = a->handles; h; h = h->next)
		if (h->forked > 0)
			kill(h->forked, SIGKILL);
}

/* What the guard did by itself leaves a handle that can still be asked. */
void handle_undone_message(struct agent *a, const struct guard_message *message)
{
	struct handle *h = handle_find(a, message->handle);
	struct guard_message m = *message;

	if (!m.asked) {
		agent_event(a,
			json_pack("{s:s, s:s, s:s}", "event", "undone", "handle", m.handle, "why",
				"max_s"));
		return;
	}
	if (!h || !h->undone)
		return;
	if (m.rc == -ENOENT) /* the guard has undone it before, by itself */
		m.rc = 0;
	h->undone(a, h, &m);
	/* What could not be undone is still in the journal: the handle stays, to be tried again. */
	if (m.rc)
		request_done(h);
	else
		handle_free(a, h);
}
