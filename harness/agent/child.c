#include "harness/agent/child.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "diag/capture/capture.h"
#include "faults/primitives/procfs.h"
#include "harness/base/clock.h"
#include "harness/base/file.h"

static int exit_code(int status)
{
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static struct handle *by_pid(struct agent *a, pid_t pid)
{
	struct handle *h = a->handles;

	while (h && (h->pid != pid || h->ended))
		h = h->next;
	return h;
}

void children_reap(struct agent *a)
{
	for (;;) {
		siginfo_t si = {0};
		struct handle *h;
		int status;

		if (waitid(P_ALL, 0, &si, WEXITED | WNOHANG | WNOWAIT) < 0 || !si.si_pid)
			return;
		h = by_pid(a, si.si_pid);
		if (h && h->account)
			process_account_exit(h->account, h->pid);
		if (waitpid(si.si_pid, &status, 0) < 0 || !h)
			continue;
		h->ended = true;
		h->exit = exit_code(status);
		if (h->state == HANDLE_LIVE && h->kind != HANDLE_RUN)
			agent_event(a,
				json_pack("{s:s, s:s, s:i}", "event", "exit", "handle", h->name,
					"exit", h->exit));
		child_step(a, h);
	}
}

/* Keeps the first OUTPUT_MAX_BYTES. As bytes_read. */
static ssize_t take_output(struct handle *h)
{
	ssize_t n = bytes_read(&h->output, h->read_fd);

	if (h->output.size > OUTPUT_MAX_BYTES) {
		h->output.size = OUTPUT_MAX_BYTES;
		h->truncated = true;
	}
	return n;
}

json_t *child_status(struct handle *h, struct err *e)
{
	struct process_usage u = {0};
	int live = 0;

	if (process_account_update(h->account, &u, &live, e))
		return NULL;
	return json_pack("{s:b, s:i, s:i, s:I, s:I, s:I, s:I, s:f, s:I, s:o}", "running", !h->ended,
		"pid", (int)h->pid, "live", live, "read_bytes", (json_int_t)u.read_bytes,
		"write_bytes", (json_int_t)u.write_bytes, "rchar", (json_int_t)u.rchar, "wchar",
		(json_int_t)u.wchar, "cpu_s", u.cpu_s, "rss_bytes", (json_int_t)u.rss_bytes, "exit",
		h->ended ? json_integer(h->exit) : json_null());
}

static json_t *run_result(struct handle *h)
{
	while (h->read_fd >= 0 && take_output(h) > 0)
		;
	return json_pack("{s:i, s:o, s:b}", "exit", h->exit, "output",
		text_json(h->output.data, h->output.size), "truncated", h->truncated);
}

static json_t *stop_result(struct handle *h, struct err *e)
{
	json_t *result = child_status(h, e);

	if (result && h->summary)
		json_object_set(result, "trace", h->summary);
	return result;
}

static void child_undone(struct agent *a, struct handle *h, const struct guard_message *m)
{
	struct err e;

	/* The guard's SIGKILL may not have been reaped yet. */
	children_reap(a);
	if (h->failed)
		agent_refuse(a, h->request_id, h->failed, &h->failure);
	else if (m->rc)
		agent_refuse(a, h->request_id, m->rc, &m->err);
	else
		agent_answer(a, h->request_id,
			h->kind == HANDLE_RUN             ? run_result(h)
				: h->kind == HANDLE_TRACE ? json_incref(h->summary)
							  : stop_result(h, &e));
}

/* A tracer's exit code is that of the command, if it started one (diag/capture/capture.h). */
static bool ended_in_order(const struct handle *h)
{
	return h->ended &&
		(h->kind == HANDLE_TRACE ? h->exit == TRACE_EXIT_OK
					 : h->exit != TRACE_EXIT_NOT_WHOLE);
}

static json_t *summarize(const void *handle)
{
	const struct handle *h = handle;

	return log_summary(h->log, ended_in_order(h));
}

static void end_summary(struct agent *a, struct handle *h, json_t *summary)
{
	h->summary = json_incref(summary);
	if (!summary)
		h->failed = err_set(&h->failure, -EIO, "cannot read the log '%s'", h->log);
	handle_undo(a, h, child_undone);
}

/* In a child, since a long log takes seconds. */
static void begin_summary(struct agent *a, struct handle *h)
{
	h->state = HANDLE_SUMMARY;
	h->deadline = 0;
	handle_close(h);
	h->failed = handle_fork(h, summarize, h, end_summary, &h->failure);
	if (h->failed)
		handle_undo(a, h, child_undone);
}

/* The last line that a tracer wrote to its standard error. */
static void last_complaint(const struct handle *h, char *buf, size_t size)
{
	auto_free char *text = NULL;
	char *line;
	size_t n;

	snprintf(buf, size, "it said nothing");
	if (!h->error_log || file_read(h->error_log, &text, &n, NULL))
		return;
	while (n && text[n - 1] == '\n')
		text[--n] = '\0';
	line = strrchr(text, '\n');
	if (n)
		snprintf(buf, size, "%.300s", line ? line + 1 : text);
}

static void fail_start(struct agent *a, struct handle *h, int code)
{
	char said[310];

	last_complaint(h, said, sizeof(said));
	h->failed = err_set(&h->failure, code,
		code == -ETIMEDOUT ? "the tracer is not ready in time: %s"
				   : "the tracer ended before it was ready: %s",
		said);
	handle_undo(a, h, child_undone);
}

/* By descent, not by tag, which a program in the middle of its exec does not show. Returns how
 * many there were. */
static int signal_children(pid_t parent, int signo)
{
	auto_dir DIR *dir = opendir("/proc");
	struct procfs_stat st;
	int n = 0;

	for (pid_t pid; (pid = procfs_next(dir));) {
		if (procfs_stat(pid, 0, &st) && st.parent == parent) {
			kill(pid, signo);
			n++;
		}
	}
	return n;
}

/* To the program that was asked for: the started process, or the child of its tracer. */
static void signal_program(struct handle *h, int signo)
{
	if (h->ended)
		return;
	/* A tracer that has not started anything yet is told to end in order. */
	if (!h->traced)
		kill(h->pid, signo);
	else if (!signal_children(h->pid, signo))
		kill(h->pid, SIGTERM);
}

void child_stop(struct agent *a, json_t *id, struct handle *h, int signo, double grace_s)
{
	h->request_id = json_incref(id);
	h->state = HANDLE_STOPPING;
	h->deadline = clock_mono_s() + grace_s;
	signal_program(h, signo);
	if (h->ended)
		child_step(a, h);
}

void child_step(struct agent *a, struct handle *h)
{
	switch (h->state) {
	case HANDLE_STARTING: fail_start(a, h, h->ended ? -ECHILD : -ETIMEDOUT); break;
	case HANDLE_STOPPING:
		/* The tracer is left alive, to record the end and close its log. */
		if (h->traced && !h->ended && !h->killed) {
			h->killed = true;
			h->deadline = clock_mono_s() + TRACER_GRACE_S;
			signal_program(h, SIGKILL);
		} else if (h->log) {
			begin_summary(a, h);
		} else {
			handle_undo(a, h, child_undone);
		}
		break;
	case HANDLE_LIVE:
		if (h->kind != HANDLE_RUN)
			break;
		if (!h->ended)
			h->failed = err_set(&h->failure, -ETIMEDOUT,
				"the command did not end in time, and was killed");
		handle_undo(a, h, child_undone);
		break;
	case HANDLE_SUMMARY:
	case HANDLE_UNDOING: break;
	}
}

int child_open_pipe(struct child_spec *s, struct err *e)
{
	if (pipe2(s->pipe, O_CLOEXEC) < 0)
		return err_errno(e, -errno, "cannot make a pipe");
	fcntl(s->pipe[0], F_SETFL, O_NONBLOCK);
	return 0;
}

void child_spec_clear(struct child_spec *s)
{
	const int all[] = {s->p.in, s->p.out, s->p.err, s->pipe[0], s->pipe[1]};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		fd_close(all[i]);
	free(s->argv);
}

static void child_readable(struct agent *a, struct handle *h)
{
	ssize_t n = take_output(h);

	if (n == -EAGAIN || n == -EINTR)
		return;
	if (n <= 0)
		handle_close(h);
	else if (h->state == HANDLE_STARTING && h->output.size >= 6 &&
		!memcmp(h->output.data, "ready\n", 6)) {
		h->deadline = 0;
		handle_answer(a, h, json_pack("{s:s, s:i}", "handle", h->name, "pid", (int)h->pid));
	}
}

int child_start(struct agent *a, struct handle *h, struct child_spec *s, struct err *e)
{
	struct process_spec p = s->p;
	struct process_gate gate;
	json_t *inverse;
	char tag[64];
	int rc;

	snprintf(tag, sizeof(tag), "%s/%s", a->session, h->name);
	rc = process_account_new(tag, &h->account);
	if (rc)
		return err_errno(e, rc, "cannot start '%s'", s->argv[0]);
	p.argv = s->argv;
	p.tag = tag;
	if (s->pipe_output)
		p.out = p.err = s->pipe[1];
	else
		p.pass = s->pipe[1];
	rc = process_fork(&p, &gate, &inverse, e);
	if (rc)
		return rc;
	rc = handle_record(a, h, inverse, s->max_s, e);
	if (rc) {
		process_abandon(&gate);
		return rc;
	}
	h->pid = gate.pid;
	h->read_fd = s->pipe[0];
	h->readable = child_readable;
	s->pipe[0] = -1;
	rc = process_release(&gate, s->argv[0], e);
	guard_acted(a->guard, h->name);
	if (rc)
		guard_undo(a->guard, h->name);
	return rc;
}
