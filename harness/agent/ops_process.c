/* Operations that start programs and stop them: run, process.*, trace.*. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "faults/primitives/procfs.h"
#include "harness/agent/child.h"
#include "harness/agent/ops.h"
#include "harness/agent/programs.h"
#include "harness/base/clock.h"
#include "harness/base/file.h"

#define TRACER_READY_S 30
#define TRACER_STOP_S 10

static void auto_child_spec_(struct child_spec *s)
{
	child_spec_clear(s);
}

/* ---- what a program gets ---- */

/* Appends to a list that NULL ends and is NULL at first. The words stay the caller's. False: no
 * memory. */
static bool add_word(const char ***list, const char *word)
{
	const char **more;
	size_t n = 0;

	while (*list && (*list)[n])
		n++;
	more = realloc(*list, (n + 2) * sizeof(*more));
	if (!more)
		return false;
	*list = more;
	more[n] = word;
	more[n + 1] = NULL;
	return true;
}

static bool add_words(const char ***list, const char *const *words)
{
	bool done = true;

	for (; done && *words; words++)
		done = add_word(list, *words);
	return done;
}

#define ADD(list, ...) add_words(list, (const char *const[]){__VA_ARGS__, NULL})

/* All of a JSON list; each after 'option', if that is not NULL. */
static bool add_list(const char ***list, const char *option, const json_t *texts)
{
	const json_t *text;
	bool done = true;
	size_t i;

	json_array_foreach((json_t *)texts, i, text)
	{
		done = done && (!option || add_word(list, option)) &&
			add_word(list, json_string_value(text));
	}
	return done;
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

int op_run(struct agent *a, json_t *id, json_t *args, struct err *e)
{
	auto_of(child_spec) struct child_spec s = {CHILD_SPEC_INIT, .pipe_output = true};
	struct handle *h;
	int rc = handle_new(a, HANDLE_RUN, &h, e);

	if (!rc && !add_list(&s.argv, NULL, jget(args, "argv")))
		rc = err_errno(e, -ENOMEM, "cannot run a command");
	rc = rc ?: open_input(jget_text(args, "stdin"), &s.in, e) ?: child_open_pipe(&s, e);
	rc = rc ?: child_start(a, h, &s, e);
	if (rc)
		return rc;
	h->deadline = clock_mono_s() + arg_number(args, "timeout_s", 30);
	h->request_id = json_incref(id);
	return 0;
}

/* ---- process.* ---- */

/* Appends the words of our own tracer, up to where what is traced begins. 'spec' has the arguments
 * that process.start and trace.start share. 'number' keeps a word's text. */
static int add_tracer(struct agent *a, struct handle *h, const json_t *spec, char number[32],
	const char ***words, struct err *e)
{
	const char *mode = jget_text(spec, "mode");
	json_int_t memory = jget_int(spec, "memory_bytes");

	h->log = agent_path(a, jget_text(spec, "out"));
	snprintf(number, 32, "%lldB", (long long)memory);
	if (!h->log || !add_words(words, self_argv()) ||
		!ADD(words, "trace", "--tracer", jget_text(spec, "tracer"), "--out", h->log) ||
		(mode && !ADD(words, "--mode", mode)) ||
		(memory && !ADD(words, "--memory", number)) ||
		!add_list(words, "--path", jget(spec, "paths")))
		return err_errno(e, -ENOMEM, "cannot trace");
	return 0;
}

/* The words that run 'argv': our tracer, our loop, ourselves, as asked. 'times' is a path of ours,
 * or NULL. */
static int make_argv(struct agent *a, struct handle *h, const json_t *args, const char *times,
	char number[32], const char ***words, struct err *e)
{
	const json_t *trace = jget(args, "trace");
	bool loop = jget_true(args, "loop"), done = true;
	int rc = trace ? add_tracer(a, h, trace, number, words, e) : 0;

	if (rc)
		return rc;
	if (trace)
		done = add_word(words, "--");
	if (done && (times || loop))
		done = add_words(words, self_argv()) && add_word(words, "loop") &&
			(!times || ADD(words, "--times", times)) &&
			(loop || ADD(words, "--max-runs", "1")) && add_word(words, "--");
	if (done && jget_true(args, "self"))
		done = add_words(words, self_argv());
	if (!done || !add_list(words, NULL, jget(args, "argv")))
		return err_errno(e, -ENOMEM, "cannot start a process");
	return 0;
}

int op_process_start(struct agent *a, json_t *id, json_t *args, struct err *e)
{
	const char *times = jget_text(args, "times");
	auto_free char *times_file = times ? agent_path(a, times) : NULL;
	char number[32];
	auto_of(child_spec) struct child_spec s = {CHILD_SPEC_INIT, .env = jget(args, "env"),
		.cwd = jget_text(args, "cwd"), .max_s = arg_number(args, "max_s", 0)};
	struct handle *h;
	int rc = handle_new(a, HANDLE_PROCESS, &h, e);

	if (rc)
		return rc;
	h->traced = jget(args, "trace");
	s.grace_s = h->traced ? TRACER_GRACE_S : 0;
	if (times && !times_file)
		return err_errno(e, -ENOMEM, "cannot start a process");
	rc = make_argv(a, h, args, times_file, number, &s.argv, e) ?:
		open_input(jget_text(args, "stdin"), &s.in, e) ?:
		open_output(a, jget_text(args, "stdout"), &s.out, e) ?:
		open_output(a, jget_text(args, "stderr"), &s.err, e) ?:
		child_start(a, h, &s, e);
	if (!rc)
		agent_answer(a, id, json_pack("{s:s, s:i}", "handle", h->name, "pid", (int)h->pid));
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

int op_trace_start(struct agent *a, json_t *id, json_t *args, struct err *e)
{
	auto_of(child_spec) struct child_spec s = {CHILD_SPEC_INIT, .grace_s = TRACER_GRACE_S};
	auto_json json_t *pids = json_array();
	char number[32], ready_fd[16];
	struct handle *h;
	json_t *value;
	size_t i;
	int rc = handle_new(a, HANDLE_TRACE, &h, e);

	if (rc)
		return rc;
	json_array_foreach(jget(args, "pids"), i, value)
	{
		json_array_append_new(pids, json_sprintf("%lld", json_integer_value(value)));
	}
	if (asprintf(&h->error_log, "%s/%s.err", a->dir, h->name) < 0)
		return err_errno(e, -ENOMEM, "cannot trace");
	rc = child_open_pipe(&s, e) ?: add_tracer(a, h, args, number, &s.argv, e);
	snprintf(ready_fd, sizeof(ready_fd), "%d", s.pipe[1]);
	if (!rc && (!ADD(&s.argv, "--ready-fd", ready_fd) || !add_list(&s.argv, "-p", pids)))
		rc = err_errno(e, -ENOMEM, "cannot trace");
	rc = rc ?: open_output(a, h->error_log, &s.err, e) ?: child_start(a, h, &s, e);
	if (rc)
		return rc;
	h->state = HANDLE_STARTING;
	h->deadline = clock_mono_s() + TRACER_READY_S;
	h->request_id = json_incref(id);
	return 0;
}

int op_trace_stop(struct agent *a, json_t *id, json_t *args, struct err *e)
{
	struct handle *h;
	int rc = handle_get(a, args, HANDLE_TRACE, &h, e);

	if (!rc)
		child_stop(a, id, h, SIGTERM, TRACER_STOP_S);
	return rc;
}
