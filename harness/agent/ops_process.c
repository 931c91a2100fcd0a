/* Ops that start programs and stop them: run, process.*, trace.*. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "harness/agent/agent.h"
#include "harness/base/clock.h"
#include "harness/base/file.h"
#include "harness/base/proc.h"

#define TRACER_READY_S 30
#define TRACER_STOP_S 10
#define MAX_TRACE_PATHS 16
#define MAX_WORDS                                                                                  \
	80 /* ours before those of a request: our own name, a tracer with its paths, a loop */

char *agent_path(const struct agent *a, const char *path)
{
	char *text;

	if (*path == '/')
		return strdup(path);
	return asprintf(&text, "%s/%s", a->dir, path) < 0 ? NULL : text;
}

int agent_seconds(const json_t *args, const char *name, double max, double *out, struct err *e)
{
	const json_t *v = json_object_get(args, name);
	double value = v ? json_number_value(v) : *out;

	if (v && !(value > 0 && value <= max))
		return err_set(
			e, -EINVAL, "%s must be above 0 and at most %g, not %g", name, max, value);
	*out = value;
	return 0;
}

/* Room for the words of 'list' after 'before'; the words stay theirs. */
static const char **make_argv(const char *const *before, const json_t *list)
{
	size_t n = 0, used = 0;
	const char **argv;
	json_t *word;
	size_t i;

	while (before && before[n])
		n++;
	argv = calloc(n + json_array_size(list) + 1, sizeof(*argv));
	if (!argv)
		return NULL;
	for (; used < n; used++)
		argv[used] = before[used];
	json_array_foreach((json_t *)list, i, word) argv[used++] = json_string_value(word);
	return argv;
}

static int open_output(const struct agent *a, const json_t *path, int *fd, struct err *e)
{
	char *full;
	int rc = 0;

	*fd = -1;
	if (!path)
		return 0;
	full = agent_path(a, json_string_value(path));
	if (!full)
		return err_errno(e, -ENOMEM, "cannot open '%s'", json_string_value(path));
	*fd = open(full, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC | O_NOCTTY, 0600);
	if (*fd < 0)
		rc = err_errno(e, -errno, "cannot open '%s'", full);
	free(full);
	return rc;
}

/* 'text' as a file that can be read again from its start, so that 'loop' can give it to every
 * pass. */
static int open_input(const json_t *text, int *fd, struct err *e)
{
	const char *bytes = json_string_value(text);
	int rc;

	*fd = -1;
	if (!text)
		return 0;
	*fd = memfd_create("stdin", MFD_CLOEXEC);
	rc = *fd < 0 ? -errno : fd_write_all(*fd, bytes, strlen(bytes));
	if (!rc && lseek(*fd, 0, SEEK_SET) < 0)
		rc = -errno;
	return rc ? err_errno(e, rc, "cannot keep the standard input") : 0;
}

static void close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
}

int op_run(struct agent *a, json_t *id, json_t *args, struct err *e)
{
	const char *input = json_string_value(json_object_get(args, "stdin"));
	int out[2] = {-1, -1}, in[2] = {-1, -1}, rc;
	struct handle *h = NULL;
	struct start s = {.pass = -1};
	double timeout_s = 30;

	rc = agent_seconds(args, "timeout_s", 1e6, &timeout_s, e);
	if (rc)
		return rc;
	s.argv = make_argv(NULL, json_object_get(args, "argv"));
	h = handle_new(a, HANDLE_RUN);
	if (!s.argv || !h || (input && !(h->input = strdup(input)))) {
		rc = err_errno(e, -ENOMEM, "cannot run a command");
		goto out;
	}
	if (pipe2(out, O_CLOEXEC) < 0 || (input && pipe2(in, O_CLOEXEC) < 0)) {
		rc = err_errno(e, -errno, "cannot run '%s'", s.argv[0]);
		goto out;
	}
	fcntl(out[0], F_SETFL, O_NONBLOCK);
	if (input)
		fcntl(in[1], F_SETFL, O_NONBLOCK);
	s.in = in[0];
	s.out = s.err = out[1];
	rc = child_start(a, h, &s, e);
	if (rc)
		goto out;
	h->input_size = input ? strlen(input) : 0;
	h->read_fd = out[0];
	h->write_fd = in[1];
	out[0] = in[1] = -1;
	h->deadline = clock_mono_s() + timeout_s;
	h->request_id = json_incref(id);
	h = NULL;
out:
	for (int i = 0; i < 2; i++) {
		close_fd(out[i]);
		close_fd(in[i]);
	}
	if (h)
		handle_free(a, h);
	free(s.argv);
	return rc;
}

/* "ebpf" and the like: a word that the tracer will judge, but never an option. */
static int tracer_name(const json_t *v, const char **name, struct err *e)
{
	*name = json_string_value(v);
	if (!*name || !**name || **name == '-')
		return err_set(e, -EINVAL, "tracer must be the name of a tracer");
	return 0;
}

/* Appends words up to NULL; returns how many there are now. 'words' has room for all that is ever
 * asked for. */
static size_t append(const char **words, size_t n, const char *const *more)
{
	while (*more)
		words[n++] = *more++;
	words[n] = NULL;
	return n;
}

/* Appends the words of our own tracer, up to where what is traced begins. 'spec' has tracer, mode,
 * memory_bytes, paths and out, all checked but for their types by trace_members; 'memory' holds a
 * number's text. */
static int tracer_words(struct agent *a, struct handle *h, const json_t *spec, char memory[32],
	const char **words, size_t *n, struct err *e)
{
	const char *tracer, *mode = json_string_value(json_object_get(spec, "mode"));
	const char *out = json_string_value(json_object_get(spec, "out"));
	const json_t *bytes = json_object_get(spec, "memory_bytes"), *path;
	int rc = tracer_name(json_object_get(spec, "tracer"), &tracer, e);
	size_t i;

	if (rc)
		return rc;
	if (json_array_size(json_object_get(spec, "paths")) > MAX_TRACE_PATHS)
		return err_set(e, -EINVAL, "at most %d paths", MAX_TRACE_PATHS);
	if (!(h->log = agent_path(a, out)))
		return err_errno(e, -ENOMEM, "cannot trace to '%s'", out);
	const char *const ours[] = {"trace", "--tracer", tracer, "--out", h->log, NULL};
	const char *const with_mode[] = {"--mode", mode, NULL},
			  *const with_memory[] = {"--memory", memory, NULL};

	*n = append(words, append(words, *n, self_argv()), ours);
	if (mode)
		*n = append(words, *n, with_mode);
	if (bytes) {
		snprintf(memory, 32, "%lldB", (long long)json_integer_value(bytes));
		*n = append(words, *n, with_memory);
	}
	json_array_foreach(json_object_get(spec, "paths"), i, path)
	{
		const char *const with_path[] = {"--path", json_string_value(path), NULL};

		*n = append(words, *n, with_path);
	}
	return 0;
}

/* The member 'trace' of process.start. */
static int trace_members(const json_t *trace, struct err *e)
{
	static const char *const needed[] = {"out", "tracer"};
	const char *key;
	json_t *value, *path;
	size_t i;

	for (i = 0; i < sizeof(needed) / sizeof(needed[0]); i++)
		if (!json_is_string(json_object_get(trace, needed[i])))
			return err_set(
				e, -EINVAL, "trace needs the member '%s', a string", needed[i]);
	json_object_foreach((json_t *)trace, key, value)
	{
		bool number = !strcmp(key, "memory_bytes");

		if (!strcmp(key, "paths")) {
			json_array_foreach(
				value, i, path) if (!json_is_string(path)) return err_set(e,
				-EINVAL, "trace: paths must be strings");
		} else if (!number && strcmp(key, "out") && strcmp(key, "tracer") &&
			strcmp(key, "mode")) {
			return err_set(e, -EINVAL, "trace has no member '%s'", key);
		} else if (number ? !json_is_integer(value) : !json_is_string(value)) {
			return err_set(e, -EINVAL, "trace: '%s' must be %s", key,
				number ? "an integer" : "a string");
		}
	}
	return 0;
}

int op_process_start(struct agent *a, json_t *id, json_t *args, struct err *e)
{
	static const char *const end_of_options[] = {"--", NULL},
				 *const once[] = {"--max-runs", "1", NULL};
	const char *words[MAX_WORDS] = {NULL}, *times[] = {"loop", "--times", NULL, NULL};
	const json_t *trace = json_object_get(args, "trace");
	char memory[32], *times_file = NULL;
	size_t n = 0;
	struct start s = {.in = -1,
		.out = -1,
		.err = -1,
		.pass = -1,
		.env = json_object_get(args, "env"),
		.cwd = json_string_value(json_object_get(args, "cwd"))};
	struct handle *h = NULL;
	int rc;

	rc = agent_seconds(args, "max_s", 1e6, &s.max_s, e);
	if (rc)
		return rc;
	h = handle_new(a, HANDLE_PROCESS);
	if (!h)
		return err_errno(e, -ENOMEM, "cannot start a process");
	if (trace) {
		rc = trace_members(trace, e);
		if (!rc)
			rc = tracer_words(a, h, trace, memory, words, &n, e);
		if (rc)
			goto out;
		n = append(words, n, end_of_options);
		h->traced = true;
		s.grace_s = TRACER_GRACE_S;
	}
	if (json_object_get(args, "times")) {
		times[2] = times_file = agent_path(
			a, json_string_value(json_object_get(args, "times")));
		if (!times_file) {
			rc = err_errno(e, -ENOMEM, "cannot start a process");
			goto out;
		}
	} else {
		times[1] = NULL;
	}
	if (times_file || json_is_true(json_object_get(args, "loop"))) {
		n = append(words, append(words, n, self_argv()), times);
		if (!json_is_true(json_object_get(args, "loop")))
			n = append(words, n, once);
		n = append(words, n, end_of_options);
	}
	if (json_is_true(json_object_get(args, "self")))
		n = append(words, n, self_argv());
	s.argv = make_argv(n ? words : NULL, json_object_get(args, "argv"));
	if (!s.argv) {
		rc = err_errno(e, -ENOMEM, "cannot start a process");
		goto out;
	}
	rc = open_input(json_object_get(args, "stdin"), &s.in, e);
	if (!rc)
		rc = open_output(a, json_object_get(args, "stdout"), &s.out, e);
	if (!rc)
		rc = open_output(a, json_object_get(args, "stderr"), &s.err, e);
	if (!rc)
		rc = child_start(a, h, &s, e);
	if (rc)
		goto out;
	agent_answer(a, id, json_pack("{s:s, s:i}", "handle", h->name, "pid", (int)h->pid));
	h = NULL;
out:
	close_fd(s.in);
	close_fd(s.out);
	close_fd(s.err);
	free(s.argv);
	free(times_file);
	if (h)
		handle_free(a, h);
	return rc;
}

int op_process_status(struct agent *a, json_t *id, json_t *args, struct err *e)
{
	struct handle *h;
	json_t *result;
	int rc;

	rc = handle_get(
		a, json_string_value(json_object_get(args, "handle")), HANDLE_PROCESS, &h, e);
	if (rc)
		return rc;
	result = child_status(h, e);
	if (!result)
		return -EIO;
	agent_answer(a, id, result);
	return 0;
}

static int signal_number(const char *name, struct err *e)
{
	static const struct {
		const char *name;
		int number;
	} signals[] = {{"TERM", SIGTERM}, {"INT", SIGINT}, {"HUP", SIGHUP}, {"QUIT", SIGQUIT},
		{"KILL", SIGKILL}, {"USR1", SIGUSR1}, {"USR2", SIGUSR2}};

	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		if (!strcmp(signals[i].name, name))
			return signals[i].number;
	return err_set(e, -EINVAL,
		"signal must be TERM, INT, HUP, QUIT, KILL, USR1 or USR2, not '%s'", name);
}

int op_process_stop(struct agent *a, json_t *id, json_t *args, struct err *e)
{
	const char *name = json_string_value(json_object_get(args, "signal"));
	struct handle *h;
	double grace_s = 5;
	int rc, signo;

	signo = signal_number(name ? name : "TERM", e);
	if (signo < 0)
		return signo;
	rc = agent_seconds(args, "grace_s", 1e6, &grace_s, e);
	if (!rc)
		rc = handle_get(a, json_string_value(json_object_get(args, "handle")),
			HANDLE_PROCESS, &h, e);
	if (rc)
		return rc;
	h->request_id = json_incref(id);
	h->state = HANDLE_STOPPING;
	h->deadline = clock_mono_s() + grace_s;
	child_signal(h, signo);
	if (h->ended)
		child_step(a, h);
	return 0;
}

int op_trace_start(struct agent *a, json_t *id, json_t *args, struct err *e)
{
	const char *words[MAX_WORDS], *options[3];
	const json_t *pids = json_object_get(args, "pids");
	struct start s = {.in = -1, .out = -1, .err = -1, .pass = -1, .grace_s = TRACER_GRACE_S};
	json_t *list = json_array(), *value;
	int ready[2] = {-1, -1}, rc;
	struct handle *h = NULL;
	char number[16], memory[32];
	size_t i, n = 0;

	json_array_foreach((json_t *)pids, i, value)
	{
		char text[32];

		if (json_integer_value(value) <= 0 || json_integer_value(value) > 0x7fffffff) {
			rc = err_set(e, -EINVAL, "pids must be process numbers, not %lld",
				(long long)json_integer_value(value));
			goto out;
		}
		snprintf(text, sizeof(text), "%lld", (long long)json_integer_value(value));
		json_array_append_new(list, json_string("-p"));
		json_array_append_new(list, json_string(text));
	}
	h = handle_new(a, HANDLE_TRACE);
	if (!h || asprintf(&h->error_log, "%s/%s.err", a->dir, h->name) < 0) {
		rc = err_errno(e, -ENOMEM, "cannot trace");
		goto out;
	}
	if (pipe2(ready, O_CLOEXEC) < 0) {
		rc = err_errno(e, -errno, "cannot trace");
		goto out;
	}
	fcntl(ready[0], F_SETFL, O_NONBLOCK);
	snprintf(number, sizeof(number), "%d", ready[1]);
	options[0] = "--ready-fd";
	options[1] = number;
	options[2] = NULL;
	rc = tracer_words(a, h, args, memory, words, &n, e);
	if (rc)
		goto out;
	append(words, n, options);
	s.argv = make_argv(words, list);
	s.pass = ready[1];
	s.err = open(h->error_log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	rc = s.argv ? child_start(a, h, &s, e) : err_errno(e, -ENOMEM, "cannot trace");
	if (rc)
		goto out;
	h->read_fd = ready[0];
	ready[0] = -1;
	h->state = HANDLE_STARTING;
	h->deadline = clock_mono_s() + TRACER_READY_S;
	h->request_id = json_incref(id);
	h = NULL;
out:
	close_fd(ready[0]);
	close_fd(ready[1]);
	close_fd(s.err);
	free(s.argv);
	json_decref(list);
	if (h)
		handle_free(a, h);
	return rc;
}

int op_trace_stop(struct agent *a, json_t *id, json_t *args, struct err *e)
{
	struct handle *h;
	int rc;

	rc = handle_get(a, json_string_value(json_object_get(args, "handle")), HANDLE_TRACE, &h, e);
	if (rc)
		return rc;
	h->request_id = json_incref(id);
	h->state = HANDLE_STOPPING;
	h->deadline = clock_mono_s() + TRACER_STOP_S;
	if (h->ended)
		child_step(a, h);
	else
		kill(h->pid, SIGTERM);
	return 0;
}
