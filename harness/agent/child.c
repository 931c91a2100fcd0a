/* Starts programs, collects their output, and reports how they ended. */
#include "harness/agent/child.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
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

static void answer_started(struct agent *a, struct handle *h)
{
	h->deadline = 0;
	handle_answer(a, h, json_pack("{s:s, s:i}", "handle", h->name, "pid", (int)h->pid));
}

void children_reap(struct agent *a)
{
	for (;;) {
		siginfo_t si = {0};
		struct rusage usage;
		struct handle *h;
		int status;

		if (waitid(P_ALL, 0, &si, WEXITED | WNOHANG | WNOWAIT) < 0 || !si.si_pid)
			return;
		h = by_pid(a, si.si_pid);
		if (h && h->account)
			process_account_exit(h->account, h->pid);
		if (wait4(si.si_pid, &status, 0, &usage) < 0)
			continue;
		handle_reaped(a, si.si_pid);
		if (!h)
			continue;
		h->ended = true;
		h->exit = exit_code(status);
		h->cpu_s = clock_rusage_s(&usage);
		if (h->state == HANDLE_STARTING && h->kind == HANDLE_PROCESS)
			answer_started(a, h); /* whoever asked is told of the end below */
		if ((h->state == HANDLE_LIVE || h->state == HANDLE_WRITING ||
			    h->state == HANDLE_OBEYING) &&
			h->kind != HANDLE_RUN)
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

/* Once the program has ended, what the kernel counted is exact; the account has clock ticks. */
json_t *child_status(struct handle *h, struct err *e)
{
	struct process_usage u = {0};
	int live = 0;

	if (process_account_update(h->account, &u, &live, e))
		return NULL;
	return json_pack("{s:b, s:i, s:i, s:I, s:I, s:I, s:I, s:f, s:I, s:o}", "running", !h->ended,
		"pid", (int)h->pid, "live", live, "read_bytes", (json_int_t)u.read_bytes,
		"write_bytes", (json_int_t)u.write_bytes, "rchar", (json_int_t)u.rchar, "wchar",
		(json_int_t)u.wchar, "cpu_s", u.cpu_s > h->cpu_s ? u.cpu_s : h->cpu_s, "rss_bytes",
		(json_int_t)u.rss_bytes, "exit", h->ended ? json_integer(h->exit) : json_null());
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

	return h->bounded ? log_end_summary(h->log) : log_summary(h->log, ended_in_order(h));
}

/* The last line that a tracer wrote to its standard error; false: none. */
static bool last_complaint(const struct handle *h, char *buf, size_t size)
{
	auto_free char *text = NULL;
	char *line;
	size_t n;

	snprintf(buf, size, "it said nothing");
	if (!h->error_log || file_read(h->error_log, &text, &n, NULL))
		return false;
	while (n && text[n - 1] == '\n')
		text[--n] = '\0';
	line = strrchr(text, '\n');
	if (n)
		snprintf(buf, size, "%.300s", line ? line + 1 : text);
	return n > 0;
}

/* What it had to say although it ended in order: that something cannot be seen, or was missed. */
static void add_note(struct handle *h)
{
	static const char from[] = "culprit-agent trace: ";
	char said[310];

	if (!h->summary || !last_complaint(h, said, sizeof(said)))
		return;
	json_object_set_new(h->summary, "note",
		json_string(strncmp(said, from, strlen(from)) ? said : said + strlen(from)));
}

static void end_summary(struct agent *a, struct handle *h, json_t *summary)
{
	h->summary = json_incref(summary);
	add_note(h);
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

/* By descent, not by tag, which a program in the middle of its exec does not show. SIGKILL, which
 * nobody can pass on, goes to children's children as well, before their parent is gone. Returns how
 * many children there were. */
int child_signal_descent(pid_t parent, int signo)
{
	auto_dir DIR *dir = opendir("/proc");
	struct procfs_stat st;
	int n = 0;

	for (pid_t pid; (pid = procfs_next(dir));) {
		if (!procfs_stat(pid, 0, &st) || st.parent != parent)
			continue;
		if (signo == SIGKILL) {
			kill(pid, SIGSTOP); /* it starts nothing any more */
			child_signal_descent(pid, signo);
		}
		kill(pid, signo);
		n++;
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
	else if (!child_signal_descent(h->pid, signo))
		kill(h->pid, SIGTERM);
}

/* What is traced did not end in its grace: it is killed, and its tracer left alive, to record the
 * end and close its log. What the kernel does not let go of cannot end: the tracer leaves it. */
static void end_traced(struct handle *h)
{
	if (!h->killed)
		signal_program(h, SIGKILL);
	else
		kill(h->pid, TRACE_LEAVE);
	h->left = h->killed;
	h->killed = true;
	h->deadline = clock_mono_s() + TRACER_GRACE_S;
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

/* Looks every tenth of a second whether the file is there, which it is once it is whole. */
static void write_step(struct agent *a, struct handle *h)
{
	char said[310];
	struct err e;

	h->deadline = clock_mono_s() + 0.1;
	if (access(h->wanted, F_OK) < 0 && !h->ended && clock_mono_s() < h->wanted_until)
		return;
	h->deadline = 0;
	if (access(h->wanted, F_OK) == 0) {
		h->writes++;
		handle_answer(a, h, json_pack("{s:s}", "log", h->wanted));
		return;
	}
	last_complaint(h, said, sizeof(said));
	handle_refuse(a, h,
		err_set(&e, h->ended ? -ECHILD : -ETIMEDOUT, "'%s' was not written%s%s", h->wanted,
			*said ? ": " : "", said),
		&e);
}

/* Takes what has come of the answer. True: a whole line. */
static bool read_order(struct handle *h)
{
	ssize_t n;

	while (h->n_order < sizeof(h->order) &&
		(n = recv(h->control_fd, h->order + h->n_order, sizeof(h->order) - h->n_order,
			 MSG_DONTWAIT)) > 0)
		h->n_order += (size_t)n;
	for (size_t i = 0; i < h->n_order; i++)
		if (h->order[i] == '\n' || i == sizeof(h->order) - 1) {
			h->order[i] = '\0';
			return true;
		}
	return false;
}

/* Looks every twentieth of a second whether it has answered. */
static void order_step(struct agent *a, struct handle *h)
{
	static const char failed[] = "error: ";
	struct err e;

	h->deadline = clock_mono_s() + 0.05;
	if (read_order(h)) {
		h->deadline = 0;
		if (strncmp(h->order, failed, strlen(failed)))
			handle_answer(a, h,
				json_pack("{s:o}", "line", text_json(h->order, strlen(h->order))));
		else
			handle_refuse(
				a, h, err_set(&e, -EINVAL, "%s", h->order + strlen(failed)), &e);
		return;
	}
	if (!h->ended && clock_mono_s() < h->wanted_until)
		return;
	h->deadline = 0;
	/* What it answers later is no answer to the next order. */
	fd_close(h->control_fd);
	h->control_fd = -1;
	handle_refuse(a, h,
		err_set(&e, h->ended ? -ECHILD : -ETIMEDOUT, "the tracer '%s' %s", h->name,
			h->ended ? "has ended" : "does not answer"),
		&e);
}

void child_step(struct agent *a, struct handle *h)
{
	switch (h->state) {
	case HANDLE_WRITING: write_step(a, h); break;
	case HANDLE_OBEYING: order_step(a, h); break;
	case HANDLE_STARTING:
		if (h->overdue)
			h->overdue(a, h);
		else
			fail_start(a, h, h->ended ? -ECHILD : -ETIMEDOUT);
		break;
	case HANDLE_STOPPING:
		if (h->traced && !h->ended && !h->left)
			end_traced(h);
		else if (h->log)
			begin_summary(a, h);
		else
			handle_undo(a, h, child_undone);
		break;
	case HANDLE_LIVE:
		if (h->kind != HANDLE_RUN)
			break;
		if (!h->ended)
			h->failed = err_set(&h->failure, -ETIMEDOUT,
				"'%s' did not end within %g s, and was killed", h->command,
				h->limit_s);
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
		!memcmp(h->output.data, "ready\n", 6))
		answer_started(a, h);
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
	if (s->also && json_object_update(inverse, s->also)) {
		json_decref(inverse);
		inverse = NULL;
	}
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
