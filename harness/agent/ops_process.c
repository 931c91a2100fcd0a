/* Operations that start programs and stop them: run, process.*, trace.*, signal.pause; and what
 * packets.delay (ops_acts.c) shares with the latter. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "faults/primitives/procfs.h"
#include "harness/agent/child.h"
#include "harness/agent/ops.h"
#include "harness/agent/programs.h"
#include "harness/base/clock.h"
#include "harness/base/file.h"

#define TRACER_READY_S 30
#define TRACER_STOP_S 10
#define TRACER_WRITE_S 30
#define TRACER_OBEY_S 10

/* ---- what a program gets ---- */

/* Room for all the words of a request, so that to add one cannot fail. */
static int begin_words(struct child_spec *s, const json_t *args, struct err *e)
{
	/* Ours are fewer than 288, with the lists of a tracer's filter. */
	size_t room = 288 + json_array_size(jget(args, "argv")) +
		2 * json_array_size(jget(args, "pids"));

	s->argv = calloc(room, sizeof(*s->argv));
	return s->argv ? 0 : err_errno(e, -ENOMEM, "cannot start a program");
}

/* The words stay the caller's. */
static void add_words(struct child_spec *s, const char *const *words)
{
	while (*words)
		s->argv[s->n++] = *words++;
}

#define ADD(s, ...) add_words(s, (const char *const[]){__VA_ARGS__, NULL})

/* All of a JSON list; each after 'option', if that is not NULL. */
static void add_list(struct child_spec *s, const char *option, const json_t *texts)
{
	const json_t *text;
	size_t i;

	json_array_foreach((json_t *)texts, i, text) {
		if (option)
			s->argv[s->n++] = option;
		s->argv[s->n++] = json_string_value(text);
	}
}

static int open_output(const struct agent *a, const char *path, int *fd, struct err *e)
{
	auto_free char *full = path ? agent_path(a, path) : NULL;

	if (!path)
		return 0;
	if (!full)
		return err_errno(e, -ENOMEM, "cannot open '%s'", path);
	*fd = open(full, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC | O_NOCTTY, 0600);
	return *fd < 0 ? err_errno(e, -errno, "cannot open '%s'", full) : 0;
}

/* 'text' as a file, which each run of a loop can read from its start. */
static int open_input(const char *text, int *fd, struct err *e)
{
	int rc;

	if (!text)
		return 0;
	*fd = memfd_create("stdin", MFD_CLOEXEC);
	rc = *fd < 0 ? -errno : fd_write_all(*fd, text, strlen(text));
	if (!rc && lseek(*fd, 0, SEEK_SET) < 0)
		rc = -errno;
	return rc ? err_errno(e, rc, "cannot keep the standard input") : 0;
}

/* ---- run ---- */

/* The words of a command, to be read: as many as make a line. NULL: no memory. */
static char *command_line(const json_t *argv)
{
	char line[160] = "";
	const json_t *word;
	size_t i, n = 0;

	json_array_foreach((json_t *)argv, i, word) {
		const char *text = json_string_value(word);

		if (n + strlen(text) + 5 > sizeof(line)) {
			snprintf(line + n, sizeof(line) - n, "%s", i ? " ..." : "...");
			break;
		}
		n += (size_t)snprintf(line + n, sizeof(line) - n, "%s%s", i ? " " : "", text);
	}
	return strdup(line);
}

int op_run(struct agent *a, json_t *id, json_t *args, struct err *e)
{
	auto_of(child_spec) struct child_spec s = {CHILD_SPEC_INIT, .pipe_output = true};
	struct handle *h;
	int rc = handle_new(a, HANDLE_RUN, &h, e);

	rc = rc ?: begin_words(&s, args, e) ?: open_input(jget_text(args, "stdin"), &s.p.in, e) ?:
		child_open_pipe(&s, e);
	if (rc)
		return rc;
	h->command = command_line(jget(args, "argv"));
	if (!h->command)
		return err_errno(e, -ENOMEM, "cannot start a program");
	if (jget_true(args, "self"))
		add_words(&s, self_argv());
	add_list(&s, NULL, jget(args, "argv"));
	rc = child_start(a, h, &s, e);
	if (rc)
		return rc;
	h->limit_s = arg_number(args, "timeout_s", 30);
	h->deadline = clock_mono_s() + h->limit_s;
	h->request_id = json_incref(id);
	return 0;
}

/* ---- process.* ---- */

struct tracer_numbers {
	char memory[32], ring[32], bound[32], bulk[48], ready[16];
};

/* Appends the words of our own tracer, up to where what is traced begins. 'spec' has the arguments
 * that process.start and trace.start share. 'number' keeps words' text. */
static int add_tracer(struct agent *a, struct handle *h, const json_t *spec,
	struct tracer_numbers *number, struct child_spec *s, struct err *e)
{
	const char *mode = jget_text(spec, "mode");
	int64_t memory = jget_int(spec, "memory_bytes");
	int64_t bound = jget_int(spec, "bound_bytes");
	double ring_s = arg_number(spec, "ring_s", 0);

	h->log = agent_path(a, jget_text(spec, "out"));
	if (!h->log)
		return err_errno(e, -ENOMEM, "cannot trace");
	snprintf(number->memory, sizeof(number->memory), "%lldB", (long long)memory);
	snprintf(number->ring, sizeof(number->ring), "%.3fs", ring_s);
	snprintf(number->bound, sizeof(number->bound), "%lldB", (long long)bound);
	h->keeps = ring_s > 0;
	h->bounded = bound > 0;
	add_words(s, self_argv());
	ADD(s, "trace", "--tracer", jget_text(spec, "tracer"), "--out", h->log);
	if (s->pipe[1] >= 0) {
		snprintf(number->ready, sizeof(number->ready), "%d", s->pipe[1]);
		ADD(s, "--ready-fd", number->ready);
	}
	if (mode)
		ADD(s, "--mode", mode);
	if (jget(spec, "bulk")) {
		snprintf(number->bulk, sizeof(number->bulk), "%lld,%lld",
			(long long)jget_int(jget(spec, "bulk"), "above"),
			(long long)jget_int(jget(spec, "bulk"), "header"));
		ADD(s, "--bulk", number->bulk);
	}
	if (jget_true(spec, "heads"))
		ADD(s, "--heads");
	if (jget_true(spec, "causal"))
		ADD(s, "--causal");
	if (memory)
		ADD(s, "--memory", number->memory);
	if (h->keeps)
		ADD(s, "--ring", number->ring);
	if (h->bounded)
		ADD(s, "--bound", number->bound);
	add_list(s, "--path", jget(spec, "paths"));
	add_list(s, "--process", jget(spec, "processes"));
	add_list(s, "--calls", jget(spec, "calls"));
	add_list(s, "--client", jget(spec, "clients"));
	return 0;
}

/* The words that run 'argv': our loop, ourselves, as asked. 'times' is a path of ours, or NULL. */
static void add_program(struct child_spec *s, const json_t *args, const char *times)
{
	bool loop = jget_true(args, "loop");

	if (times || loop) {
		add_words(s, self_argv());
		ADD(s, "loop");
		if (times)
			ADD(s, "--times", times);
		if (!loop)
			ADD(s, "--max-runs", "1");
		ADD(s, "--");
	}
	if (jget_true(args, "self"))
		add_words(s, self_argv());
	add_list(s, NULL, jget(args, "argv"));
}

/* The tracer has begun to load; child.c answers once it is ready. */
static void await_ready(struct handle *h, json_t *id)
{
	h->state = HANDLE_STARTING;
	h->deadline = clock_mono_s() + TRACER_READY_S;
	h->request_id = json_incref(id);
}

int op_process_start(struct agent *a, json_t *id, json_t *args, struct err *e)
{
	const char *times = jget_text(args, "times");
	auto_free char *times_file = times ? agent_path(a, times) : NULL;
	struct tracer_numbers number;
	auto_of(child_spec) struct child_spec s = {
		CHILD_SPEC_INIT, .max_s = arg_number(args, "max_s", 0)};
	struct handle *h;
	int rc = handle_new(a, HANDLE_PROCESS, &h, e);

	if (rc)
		return rc;
	if (times && !times_file)
		return err_errno(e, -ENOMEM, "cannot start a process");
	rc = begin_words(&s, args, e);
	s.p.env = jget(args, "env");
	s.p.cwd = jget_text(args, "cwd");
	h->traced = jget(args, "trace");
	if (!rc && h->traced) {
		s.p.grace_s = TRACER_GRACE_S;
		/* A linked program says itself when it has begun. */
		rc = (jget_true(args, "link") ? 0 : child_open_pipe(&s, e))
			?: add_tracer(a, h, jget(args, "trace"), &number, &s, e);
		ADD(&s, "--");
	}
	if (rc)
		return rc;
	add_program(&s, args, times_file);
	rc = open_input(jget_text(args, "stdin"), &s.p.in, e) ?:
		open_output(a, jget_text(args, "stdout"), &s.p.out, e) ?:
		open_output(a, jget_text(args, "stderr"), &s.p.err, e);
	if (!rc && jget_true(args, "link"))
		rc = s.p.in >= 0 ? err_set(e, -EINVAL, "with link there is no stdin to give")
				 : link_open(h, &s, e);
	rc = rc ?: child_start(a, h, &s, e);
	if (rc)
		return rc;
	if (h->linked)
		h->readable = link_readable;
	else if (h->traced) {
		await_ready(h, id);
		return 0;
	}
	agent_answer(a, id, json_pack("{s:s, s:i}", "handle", h->name, "pid", (int)h->pid));
	return 0;
}

int op_process_tell(struct agent *a, json_t *id, json_t *args, struct err *e)
{
	struct handle *h;
	int rc = handle_get(a, args, HANDLE_PROCESS, &h, e)
		?: link_tell(h, jget_text(args, "line"), e);

	if (!rc)
		agent_answer(a, id, json_object());
	return rc;
}

int op_process_status(struct agent *a, json_t *id, json_t *args, struct err *e)
{
	struct handle *h;
	json_t *result;
	int rc = handle_get(a, args, HANDLE_PROCESS, &h, e);

	if (rc)
		return rc;
	result = child_status(h, e);
	if (!result)
		return -EIO;
	agent_answer(a, id, result);
	return 0;
}

static int signal_number(const char *name)
{
	for (int signo = 1; name && signo < NSIG; signo++)
		if (sigabbrev_np(signo) && !strcmp(sigabbrev_np(signo), name))
			return signo;
	return SIGTERM;
}

int op_process_stop(struct agent *a, json_t *id, json_t *args, struct err *e)
{
	struct handle *h;
	int rc = handle_get(a, args, HANDLE_PROCESS, &h, e);

	if (!rc)
		child_stop(a, id, h, signal_number(jget_text(args, "signal")),
			arg_number(args, "grace_s", 5));
	return rc;
}

/* ---- trace.* ---- */

/* A socket pair: the tracer's standard input, and our end. */
static int open_control(struct handle *h, struct child_spec *s, struct err *e)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return err_errno(e, -errno, "cannot make a socket");
	h->control_fd = ends[0];
	s->p.in = ends[1];
	return 0;
}

int op_trace_start(struct agent *a, json_t *id, json_t *args, struct err *e)
{
	auto_of(child_spec) struct child_spec s = {CHILD_SPEC_INIT};
	auto_json json_t *pids = json_array();
	struct tracer_numbers number;
	struct handle *h;
	json_t *value;
	size_t i;
	int rc = handle_new(a, HANDLE_TRACE, &h, e);

	if (rc)
		return rc;
	s.p.grace_s = TRACER_GRACE_S;
	json_array_foreach(jget(args, "pids"), i, value) {
		if (json_array_append_new(pids, json_sprintf("%lld", json_integer_value(value))))
			return err_errno(e, -ENOMEM, "cannot trace");
	}
	if (asprintf(&h->error_log, "%s/%s.err", a->dir, h->name) < 0)
		return err_errno(e, -ENOMEM, "cannot trace");
	rc = child_open_pipe(&s, e) ?: begin_words(&s, args, e) ?:
		add_tracer(a, h, args, &number, &s, e) ?: open_output(a, h->error_log, &s.p.err, e);
	if (rc)
		return rc;
	if (jget_true(args, "control")) {
		rc = open_control(h, &s, e);
		ADD(&s, "--control-fd", "0");
	}
	if (rc)
		return rc;
	if (jget_true(args, "skip_ended"))
		ADD(&s, "--skip-ended");
	if (jget_true(args, "no_descendants"))
		ADD(&s, "--no-descendants");
	add_list(&s, "-p", pids);
	rc = child_start(a, h, &s, e);
	if (!rc)
		await_ready(h, id);
	return rc;
}

int op_trace_write(struct agent *a, json_t *id, json_t *args, struct err *e)
{
	struct handle *h;
	int rc = handle_get(a, args, HANDLE_TRACE, &h, e);

	if (rc)
		return rc;
	if (h->ended)
		return err_set(e, -ESRCH, "'%s' has ended", h->name);
	if (!h->keeps)
		return err_set(e, -EINVAL, "'%s' keeps no seconds: it was started without ring_s",
			h->name);
	free(h->wanted);
	if (asprintf(&h->wanted, "%s.%u", h->log, h->writes + 1) < 0) {
		h->wanted = NULL;
		return err_errno(e, -ENOMEM, "cannot write");
	}
	h->request_id = json_incref(id);
	h->state = HANDLE_WRITING;
	h->wanted_until = clock_mono_s() + TRACER_WRITE_S;
	h->deadline = clock_mono_s() + 0.1;
	kill(h->pid, SIGUSR1);
	return 0;
}

int op_trace_control(struct agent *a, json_t *id, json_t *args, struct err *e)
{
	const char *line = jget_text(args, "line");
	auto_free char *text = NULL;
	struct handle *h;
	int n, rc = handle_get(a, args, HANDLE_TRACE, &h, e);

	if (rc)
		return rc;
	if (h->ended)
		return err_set(e, -ESRCH, "'%s' has ended", h->name);
	if (h->control_fd < 0)
		return err_set(e, -EINVAL, "'%s' takes no orders: it was started without control",
			h->name);
	if (strpbrk(line, "\n\r") ||
		(strcmp(line, "on") && strcmp(line, "off") && strncmp(line, "filter ", 7)))
		return err_set(e, -EINVAL, "an order is on, off or filter ..., on one line");
	n = asprintf(&text, "%s\n", line);
	if (n < 0 || send(h->control_fd, text, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL) != n)
		return err_errno(e, n < 0 ? -ENOMEM : -EIO, "cannot tell '%s'", h->name);
	h->n_order = 0;
	h->request_id = json_incref(id);
	h->state = HANDLE_OBEYING;
	h->wanted_until = clock_mono_s() + TRACER_OBEY_S;
	h->deadline = clock_mono_s() + 0.05;
	return 0;
}

int op_trace_stop(struct agent *a, json_t *id, json_t *args, struct err *e)
{
	struct handle *h;
	int rc = handle_get(a, args, HANDLE_TRACE, &h, e);

	if (!rc)
		child_stop(a, id, h, SIGTERM, h->keeps ? TRACER_WRITE_S : TRACER_STOP_S);
	return rc;
}

/* ---- programs of ours that act: packets.delay, signal.pause ---- */

/* The file in which the program says what it has done. */
static int open_note(
	const struct agent *a, const struct handle *h, int flags, int *fd, struct err *e)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s.done", a->dir, h->name);
	*fd = open(path, flags | O_CLOEXEC, 0600);
	return *fd < 0 ? err_errno(e, -errno, "cannot open '%s'", path) : 0;
}

int ops_start_acting(struct agent *a, struct handle *h, struct child_spec *s, const char *program,
	const char *argument, struct err *e)
{
	int rc = begin_words(s, NULL, e)
		?: open_note(a, h, O_WRONLY | O_CREAT | O_TRUNC, &s->p.out, e);

	if (rc)
		return rc;
	add_words(s, self_argv());
	ADD(s, program, argument);
	return child_start(a, h, s, e);
}

int ops_acting_done(const struct agent *a, const struct handle *h, json_t **done, struct err *e)
{
	auto_fd int fd = -1;
	struct stat st;
	int rc = open_note(a, h, O_RDONLY, &fd, e);

	*done = NULL;
	if (rc || fstat(fd, &st) < 0 || !st.st_size)
		return rc;
	/* It is written over as a whole, but may be read in the middle of that. */
	for (int i = 0; i < 3 && !*done; i++)
		*done = json_loadfd(fd, 0, NULL) ?: (lseek(fd, 0, SEEK_SET), NULL);
	return *done ? 0 : err_set(e, -EIO, "what '%s' has done cannot be read", h->name);
}

/* ---- signal.pause ---- */

static int stop_inverses(const struct agent *a, const json_t *pids, json_t *servers, struct err *e)
{
	json_t *pid, *one;
	size_t i;

	json_array_foreach((json_t *)pids, i, pid) {
		int rc = ops_stop_inverse(a, (pid_t)json_integer_value(pid), &one, e);

		if (rc)
			return rc;
		if (json_array_append_new(servers, one))
			return err_errno(e, -ENOMEM, "cannot pause");
	}
	return 0;
}

int op_signal_pause(struct agent *a, json_t *id, json_t *args, struct err *e)
{
	auto_of(child_spec) struct child_spec s = {
		CHILD_SPEC_INIT, .max_s = arg_number(args, "max_s", 0)};
	double pause_s = arg_number(args, "pause_s", 0), every_s = arg_number(args, "every_s", 0);
	auto_json json_t *servers = json_array(), *also = json_object(), *input = NULL;
	auto_free char *text = NULL;
	struct handle *h;
	int rc;

	if (every_s && every_s <= pause_s)
		return err_set(e, -EINVAL, "every_s must be above pause_s, %g s, not %g s", pause_s,
			every_s);
	rc = stop_inverses(a, jget(args, "pids"), servers, e) ?: handle_new(a, HANDLE_PAUSE, &h, e);
	if (rc)
		return rc;
	input = json_pack(
		"{s:O, s:f, s:f}", "servers", servers, "pause_s", pause_s, "every_s", every_s);
	text = input ? json_dumps(input, JSON_COMPACT) : NULL;
	if (!text || json_object_set(also, "servers", servers))
		return err_errno(e, -ENOMEM, "cannot pause");
	s.also = also;
	rc = open_input(text, &s.p.in, e) ?: ops_start_acting(a, h, &s, "pause", NULL, e);
	if (!rc)
		agent_answer(a, id, json_pack("{s:s}", "handle", h->name));
	return rc;
}

int op_signal_pauses(struct agent *a, json_t *id, json_t *args, struct err *e)
{
	struct handle *h;
	json_t *done;
	int rc = handle_get(a, args, HANDLE_PAUSE, &h, e) ?: ops_acting_done(a, h, &done, e);

	if (rc)
		return rc;
	done = done ?: json_pack("{s:i, s:f, s:f}", "stops", 0, "stopped_s", 0.0, "whole_s", 0.0);
	json_object_set_new(done, "running", json_boolean(!h->ended));
	agent_answer(a, id, done);
	return 0;
}
