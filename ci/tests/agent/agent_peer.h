/*
 * Fixtures for tests of the agent: an agent at the other end of two pipes (struct peer), a
 * fingerprint of what an agent could leave, and a session that must leave nothing (struct session).
 */
#ifndef CULPRIT_CI_TESTS_AGENT_AGENT_PEER_H
#define CULPRIT_CI_TESTS_AGENT_AGENT_PEER_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <libgen.h>
#include <limits.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "ci/tests/built.h"
#include "ci/tests/namespaces.h"
#include "ci/tests/patience.h"
#include "faults/primitives/packets.h"
#include "faults/primitives/process.h"
#include "harness/base/clock.h"
#include "harness/base/file.h"
#include "harness/base/proc.h"

/* Bounds a hang. */
#define PEER_TIMEOUT_S patient_s(60)

/* For tests whose subject is not the lease: they end before it does, on any machine. Waiting for it
 * is a failure, by PEER_TIMEOUT_S. */
#define LONG_LEASE "300s"

/* A lease that is to run out, or to be kept: longer than agent, guard and test go without a
 * processor. */
static inline double short_lease_s(void)
{
	return patient_s(1.5);
}

static inline const char *short_lease(void)
{
	static char text[32];

	snprintf(text, sizeof(text), "%.1fs", short_lease_s());
	return text;
}

static char state_dir[PATH_MAX], agent_path_[PATH_MAX];

struct peer {
	pid_t pid;
	int in, out;
	char *buf;
	size_t size;
	json_t *events; /* what came unasked, or for another request */
	const char *session;
	json_t *hello;
	int next_id;
};

static inline int peer_setup(void **unused)
{
	(void)unused;
	if (!built("agent/culprit-agent", agent_path_))
		return -1;
	strcpy(state_dir, "/tmp/culprit-agent-test-XXXXXX");
	signal(SIGPIPE, SIG_IGN);
	return mkdtemp(state_dir) ? 0 : -1;
}

static inline int peer_teardown(void **unused)
{
	(void)unused;
	return file_remove_tree(state_dir, NULL);
}

/* The next line as JSON; NULL at the end of output. Fails after PEER_TIMEOUT_S. */
static inline json_t *peer_read(struct peer *p)
{
	double deadline = clock_mono_s() + PEER_TIMEOUT_S;

	for (;;) {
		char *newline = p->size ? memchr(p->buf, '\n', p->size) : NULL;
		struct pollfd f = {.fd = p->out, .events = POLLIN};
		ssize_t n;

		if (newline) {
			size_t len = (size_t)(newline - p->buf) + 1;
			json_t *v = json_loadb(p->buf, len, 0, NULL);

			assert_non_null(v);
			p->size -= len;
			memmove(p->buf, p->buf + len, p->size);
			return v;
		}
		assert_true(clock_mono_s() < deadline);
		poll(&f, 1, 1000);
		if (!f.revents)
			continue;
		p->buf = realloc(p->buf, p->size + 65536);
		n = read(p->out, p->buf + p->size, 65536);
		if (n <= 0)
			return NULL;
		p->size += (size_t)n;
	}
}

/* Starts an agent, in the folder 'root' as its whole world if not NULL, and takes its hello. */
static inline void peer_exec(struct peer *p, const char *root, const char *const *argv)
{
	int in[2], out[2];

	*p = (struct peer){.events = json_array()};
	assert_return_code(pipe2(in, O_CLOEXEC), errno);
	assert_return_code(pipe2(out, O_CLOEXEC), errno);
	p->pid = fork();
	assert_true(p->pid >= 0);
	if (p->pid == 0) {
		dup2(in[0], 0);
		dup2(out[1], 1);
		if (root && (chroot(root) || chdir("/") || clearenv()))
			_exit(126);
		execv(argv[0], (char *const *)argv);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	p->in = in[1];
	p->out = out[0];
	p->hello = peer_read(p);
	assert_non_null(p->hello);
	assert_string_equal(json_string_value(json_object_get(p->hello, "event")), "hello");
	p->session = json_string_value(json_object_get(p->hello, "session"));
}

static inline void peer_start(
	struct peer *p, const char *lease, const char *option, const char *value)
{
	peer_exec(p, NULL,
		(const char *[]){agent_path_, "serve", "--dir", state_dir, "--lease", lease, option,
			value, NULL});
}

static inline void peer_send(struct peer *p, const char *line)
{
	assert_int_equal(fd_write_all(p->in, line, strlen(line)), 0);
	assert_int_equal(fd_write_all(p->in, "\n", 1), 0);
}

/* Sends 'op' with the members of 'args' (stolen; NULL: none); the request's id. */
static inline int peer_ask(struct peer *p, const char *op, json_t *args)
{
	int id = ++p->next_id;
	char *text;

	args = args ? args : json_object();
	json_object_set_new(args, "id", json_integer(id));
	json_object_set_new(args, "op", json_string(op));
	text = json_dumps(args, JSON_COMPACT);
	peer_send(p, text);
	free(text);
	json_decref(args);
	return id;
}

/* The whole answer to 'id'; other messages are kept as events. */
static inline json_t *peer_answer(struct peer *p, int id)
{
	for (;;) {
		json_t *v = peer_read(p);

		assert_non_null(v);
		if (json_integer_value(json_object_get(v, "id")) == id)
			return v;
		json_array_append_new(p->events, v);
	}
}

/* The result; a refusal fails the test. */
static inline json_t *peer_call(struct peer *p, const char *op, json_t *args)
{
	json_t *answer = peer_answer(p, peer_ask(p, op, args)),
	       *result = json_object_get(answer, "result");

	if (!result)
		fail_msg("%s: %s", op, json_string_value(json_object_get(answer, "error")));
	json_incref(result);
	json_decref(answer);
	return result;
}

/* A member of a result, copied to a static buffer; the result is freed. */
static inline const char *take_text(json_t *result, const char *member)
{
	static char text[4][1024];
	static unsigned turn;
	char *buf = text[turn++ % 4];

	snprintf(buf, sizeof(text[0]), "%s", json_string_value(json_object_get(result, member)));
	json_decref(result);
	return buf;
}

static inline long long take_int(json_t *result, const char *member)
{
	long long v = json_integer_value(json_object_get(result, member));

	json_decref(result);
	return v;
}

/* The event of that name, from those kept or those to come. */
static inline json_t *peer_event(struct peer *p, const char *name)
{
	for (;;) {
		json_t *v;
		size_t i;

		json_array_foreach(p->events, i, v) {
			const char *is = json_string_value(json_object_get(v, "event"));

			if (is && !strcmp(is, name)) {
				json_incref(v);
				json_array_remove(p->events, i);
				return v;
			}
		}
		v = peer_read(p);
		assert_non_null(v);
		json_array_append_new(p->events, v);
	}
}

static inline void peer_free(struct peer *p)
{
	if (p->in >= 0)
		close(p->in);
	close(p->out);
	json_decref(p->events);
	json_decref(p->hello);
	free(p->buf);
}

/* Closes its input unless that is done, and waits; the exit code, or 128+signal. */
static inline int peer_end(struct peer *p)
{
	int status;

	if (p->in >= 0)
		close(p->in);
	p->in = -1;
	assert_int_equal(waitpid(p->pid, &status, 0), p->pid);
	peer_free(p);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static inline void list_folder(const char *path, json_t *list)
{
	DIR *dir = opendir(path);
	struct dirent *d;

	while (dir && (d = readdir(dir)))
		if (d->d_name[0] != '.' && strcmp(d->d_name, "undo"))
			json_array_append_new(list, json_string(d->d_name));
	if (dir)
		closedir(dir);
}

/* Mounts on the state folder; others come and go with other people's namespaces. */
static inline int count_mounts(void)
{
	char *text, *at;
	int n = 0;

	assert_int_equal(file_read("/proc/self/mountinfo", &text, NULL, NULL), 0);
	for (at = text; (at = strstr(at, state_dir)); at++)
		n++;
	free(text);
	return n;
}

/* Tables, tagged processes, journals, session folders, mounts. The caller frees. */
static inline char *fingerprint(void)
{
	json_t *tables, *files = json_array(), *pids = json_array();
	char path[PATH_MAX + 8], *text;
	pid_t *tagged;
	int n;

	assert_int_equal(packets_tables(&tables, NULL), 0);
	n = proc_find_tagged(PROCESS_TAG, "", true, &tagged);
	assert_true(n >= 0);
	for (int i = 0; i < n; i++)
		json_array_append_new(pids, json_integer(tagged[i]));
	free(tagged);
	list_folder(state_dir, files);
	snprintf(path, sizeof(path), "%s/undo", state_dir);
	list_folder(path, files);
	json_t *all = json_pack("{s:o, s:o, s:o, s:i}", "tables", tables, "processes", pids,
		"files", files, "mounts", count_mounts());
	text = json_dumps(all, JSON_COMPACT | JSON_SORT_KEYS);
	json_decref(all);
	return text;
}

static inline json_t *handle_args(const char *handle)
{
	return json_pack("{s:s}", "handle", handle);
}

/* Asks, and fails unless it is refused with a sentence that holds 'why', or with 'code' if that is
 * not
 * 0. */
static inline void peer_refused(
	struct peer *p, const char *op, json_t *args, const char *why, int code)
{
	json_t *answer = peer_answer(p, peer_ask(p, op, args));
	const char *said = json_string_value(json_object_get(answer, "error"));

	if (!said || !strstr(said, why))
		fail_msg("%s answers '%s', not '%s'", op, said ? said : "yes", why);
	if (code)
		assert_int_equal(json_integer_value(json_object_get(answer, "code")), code);
	json_decref(answer);
}

/* A file of the session; the caller frees. */
static inline char *session_file(const struct peer *p, const char *name)
{
	char path[PATH_MAX + 64], *text;

	snprintf(path, sizeof(path), "%s/%s/%s", state_dir, p->session, name);
	assert_int_equal(file_read(path, &text, NULL, NULL), 0);
	return text;
}

/* The child of 'parent' that has this name; 0: none. */
static inline pid_t child_of(pid_t parent, const char *name)
{
	char path[64], *text, *save = NULL;
	pid_t pid = 0;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)parent, (int)parent);
	assert_int_equal(file_read(path, &text, NULL, NULL), 0);
	for (char *word = strtok_r(text, " ", &save); word && !pid;
		word = strtok_r(NULL, " ", &save)) {
		char *comm;

		snprintf(path, sizeof(path), "/proc/%s/comm", word);
		if (file_read(path, &comm, NULL, NULL))
			continue;
		comm[strcspn(comm, "\n")] = '\0';
		if (!strcmp(comm, name))
			pid = atoi(word);
		free(comm);
	}
	free(text);
	return pid;
}

static inline pid_t peer_guard(const struct peer *p)
{
	pid_t pid = child_of(p->pid, "culprit-guard");

	assert_true(pid > 0);
	return pid;
}

/* Waits until the guard has one other than 'not'. */
static inline pid_t peer_standby(const struct peer *p, pid_t not )
{
	double deadline = clock_mono_s() + PEER_TIMEOUT_S;
	pid_t guard = peer_guard(p), pid;

	while (!(pid = child_of(guard, "culprit-standby")) || pid == not ) {
		assert_true(clock_mono_s() < deadline);
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	}
	return pid;
}

/* Until it is gone, or a zombie: then it holds no lock and no descriptor any more. */
static inline void wait_dead(pid_t pid)
{
	uint64_t ticks;

	while (!proc_start_time(pid, &ticks))
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

/* SIGKILL to agent and guard at once, and to the standby too if 'standby'. The guard is stopped
 * first, so that it cannot undo anything in between. */
static inline void peer_kill_all(struct peer *p, bool standby)
{
	pid_t guard = peer_guard(p), third = peer_standby(p, 0);

	kill(guard, SIGSTOP);
	if (standby)
		kill(third, SIGKILL);
	kill(p->pid, SIGKILL);
	kill(guard, SIGKILL);
	wait_dead(guard);
	if (standby)
		wait_dead(third);
}

/* The agent's own fingerprint, with the service 'pid'; the caller frees. */
static inline char *agent_fingerprint(struct peer *p, pid_t pid)
{
	json_t *r = peer_call(p, "fingerprint", json_pack("{s:[i]}", "pids", (int)pid));
	char *text = json_dumps(r, JSON_COMPACT | JSON_SORT_KEYS);

	json_decref(r);
	return text;
}

/* A process that does nothing, and its end. */
static inline pid_t start_pausing(void)
{
	pid_t pid = fork();

	if (pid == 0)
		for (;;)
			pause();
	assert_true(pid > 0);
	return pid;
}

static inline void end_target(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static inline json_t *trace_args(pid_t pid)
{
	return json_pack("{s:[i], s:s, s:s}", "pids", (int)pid, "out", "t", "tracer", "ptrace");
}

static inline json_t *sleep_args(void)
{
	return json_pack("{s:[s,s]}", "argv", "sleep", "1000");
}

static inline json_t *shell_args(const char *script)
{
	return json_pack("{s:[s,s,s]}", "argv", "sh", "-c", script);
}

/* Seconds until the fingerprint is 'before' again. It is so already with 'at_most_s' 0; else that
 * bounds a hang. */
static inline double until_clean(const char *before, double at_most_s)
{
	double begin = clock_mono_s();

	for (;;) {
		struct timespec nap = {.tv_nsec = 2000000};
		char *now = fingerprint();
		bool same = !strcmp(now, before);

		if (!same && clock_mono_s() - begin > patient_s(at_most_s))
			fail_msg("still there after %g s: %s", at_most_s, now);
		free(now);
		if (same)
			return clock_mono_s() - begin;
		nanosleep(&nap, NULL);
	}
}

/* An agent whose session must leave the node as it was. */
struct session {
	struct peer p;
	char *before;
};

static inline void session_begin(struct session *s, const char *lease)
{
	s->before = fingerprint();
	peer_start(&s->p, lease, NULL, NULL);
}

/* The agent ends with 'code', and nothing is left after 'at_most_s'. Returns how long that took. */
static inline double session_end(struct session *s, int code, double at_most_s)
{
	double took;

	/* If it is to end by its input's end, it has to see that first. */
	if (!at_most_s)
		assert_int_equal(peer_end(&s->p), code);
	took = until_clean(s->before, at_most_s);
	if (at_most_s)
		assert_int_equal(peer_end(&s->p), code);
	free(s->before);
	return took;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, peer_setup, peer_teardown)

#endif
