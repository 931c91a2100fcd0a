/*
 * Shared by tests of tracers: a tracer in a separate process, programs to trace, and the comparison
 * of a log with the notes of ci/tests/helpers/truth.c. Included once, by a test's .c.
 */
#ifndef CULPRIT_CI_TESTS_CAPTURE_TRACING_H
#define CULPRIT_CI_TESTS_CAPTURE_TRACING_H

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "ci/tests/built.h"
#include "ci/tests/patience.h"
#include "ci/tests/helpers/truth.h"
#include "diag/record/fdtable.h"
#include "diag/record/log.h"
#include "diag/capture/capture.h"
#include "harness/base/file.h"

#if defined(__x86_64__)
#define ARCH "x86_64"
#else
#define ARCH "aarch64"
#endif

static char dir[] = "/tmp/culprit-trace-test-XXXXXX";
static char log_path[64], side_path[64], truth_prog[4096], busy_prog[4096];
static struct truth *truth;
static _Atomic uint64_t *counter;
static rlim_t file_limit;       /* of the tracer; 0: none */
static const char *tracer_name; /* set by the test */

static int setup(void **state)
{
	int fd;

	(void)state;
	if (!mkdtemp(dir) || !built("helpers/truth", truth_prog) ||
		!built("helpers/busy", busy_prog))
		return -1;
	snprintf(log_path, sizeof(log_path), "%s/log", dir);
	snprintf(side_path, sizeof(side_path), "%s/side", dir);
	fd = open(side_path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || ftruncate(fd, sizeof(*truth)) < 0)
		return -1;
	truth = mmap(NULL, sizeof(*truth), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	counter = (_Atomic uint64_t *)truth;
	close(fd);
	signal(SIGPIPE, SIG_IGN);
	/* For helpers built with ASan: leaks cannot be detected under ptrace. */
	setenv("ASAN_OPTIONS", "detect_leaks=0", 0);
	return truth == MAP_FAILED ? -1 : 0;
}

static pid_t busy_pid; /* for a test that failed before its end */

static int teardown(void **state)
{
	(void)state;
	return file_remove_tree(dir, NULL);
}

static inline int kill_busy(void **state)
{
	(void)state;
	if (busy_pid) {
		kill(busy_pid, SIGKILL);
		waitpid(busy_pid, NULL, 0);
	}
	busy_pid = 0;
	return 0;
}

/* Every test begins without a log and with an empty side file. */
static int fresh(void **state)
{
	(void)state;
	unlink(log_path);
	memset(truth, 0, sizeof(*truth));
	file_limit = 0;
	return 0;
}

/* A program with its standard input on a pipe, whose writing end is '*in'. */
static inline pid_t start(const char *const argv[], int *in)
{
	int p[2];
	pid_t pid;

	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		dup2(p[0], 0);
		execv(argv[0], (char *const *)argv);
		_exit(127);
	}
	close(p[0]);
	*in = p[1];
	return pid;
}

/* Starts the tracer and waits until it is ready; with 'in', its standard input as above. */
static pid_t trace(const char *const what[], int *in)
{
	const char *argv[24] = {
		"trace", "--tracer", tracer_name, "--out", log_path, "--ready-fd", NULL};
	char number[16], byte;
	int n = 7, ready[2], p[2];
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
	snprintf(number, sizeof(number), "%d", ready[1]);
	argv[6] = number;
	for (; *what; what++)
		argv[n++] = *what;
	argv[n] = NULL;
	pid = fork();
	if (pid == 0) {
		struct rlimit limit = {file_limit, RLIM_INFINITY};

		/* If the alarm ends the test, nothing else would end the tracer. */
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		if (file_limit)
			setrlimit(RLIMIT_FSIZE, &limit);
		close(ready[0]);
		dup2(p[0], 0);
		close(p[0]);
		close(p[1]);
		_exit(trace_main(n, (char **)argv));
	}
	close(ready[1]);
	close(p[0]);
	if (in)
		*in = p[1];
	else
		close(p[1]);
	if (read(ready[0], &byte, 1) < 0)
		fail();
	close(ready[0]);
	return pid;
}

static inline pid_t trace_pid(pid_t pid)
{
	char number[16];

	snprintf(number, sizeof(number), "%d", pid);
	return trace((const char *const[]){"-p", number, NULL}, NULL);
}

static int wait_exit(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* False, with the reason, if the kernel or our privilege does not allow the in-kernel tracer. */
static inline bool ebpf_allowed(struct err *why)
{
	char *const nothing[] = {(char *)"/bin/true", NULL};
	struct trace_request r = {.tracer = "ebpf",
		.out = "/dev/null/none",
		.ready_fd = -1,
		.command = (char **)nothing};

	return ebpf_trace(&r, why) != -EOPNOTSUPP;
}

/* Waits until the process has made progress from now on. The alarm in main limits the wait. */
static inline void wait_progress(void)
{
	uint64_t seen = *counter;

	while (*counter < seen + 50)
		sched_yield();
}

static inline pid_t start_busy(int *in)
{
	pid_t pid = start((const char *const[]){busy_prog, side_path, NULL}, in);

	busy_pid = pid;
	wait_progress();
	return pid;
}

static inline void end_busy(pid_t pid, int in)
{
	assert_int_equal(write(in, "x", 1), 1);
	close(in);
	busy_pid = 0;
	assert_int_equal(wait_exit(pid), 0);
}

struct line {
	uint32_t tid;
	bool inside;
	uint32_t next; /* next entry of the truth to compare */
};

static inline struct line *line_of(struct line *lines, uint32_t tid)
{
	for (int i = 0; i < 64; i++)
		if (lines[i].tid == tid || !lines[i].tid) {
			lines[i].tid = tid;
			return &lines[i];
		}
	fail_msg("more threads than expected");
	return NULL;
}

static inline uint16_t port(const struct sockaddr_storage *a)
{
	return a->ss_family == AF_INET ? ntohs(((const struct sockaddr_in *)a)->sin_port) : 0;
}

/* A tracer sets its clock every 250 ms; the kernel lets the wall clock run at most 500 ppm faster
 * or slower (adjtimex), which is half of this. */
#define CLOCK_STEP_NS 250000

static inline void check_call(
	const struct record_call *c, const struct truth_entry *en, const struct fdtable *fds)
{
	const struct fd_state *s = fdtable_get(fds, c->pid, (int32_t)c->args[0]);

	if (c->nr != en->nr)
		fail_msg("thread %u: the log has %s where %s was made", c->tid,
			call_name(ARCH, c->nr), call_name(ARCH, en->nr));
	assert_int_equal(c->pid, en->pid);
	assert_false(c->unfinished);
	if (!en->known)
		return;
	assert_memory_equal(c->args, en->args, sizeof(c->args));
	assert_int_equal(c->result, en->result);
	assert_true(c->start_ns >= en->t0_ns - CLOCK_STEP_NS);
	assert_true(c->start_ns + c->service_ns <= en->t1_ns + CLOCK_STEP_NS);
	assert_true(c->service_ns > 0);
	if (!strcmp(en->want, "-")) {
		if (s)
			fail_msg("descriptor %d should be closed, but is '%s'", (int)c->args[0],
				s->now.path);
	} else if (*en->want) {
		if (!s || !strstr(s->now.path, en->want))
			fail_msg("descriptor %d of %s should be '%s', but is '%s'", (int)c->args[0],
				call_name(ARCH, c->nr), en->want, s ? s->now.path : "(closed)");
	}
	if (en->local)
		assert_int_equal(s ? port(&s->now.local) : 0, en->local);
	/* connect sets its peer */
	if (en->remote && c->nr != SYS_connect)
		assert_int_equal(s ? port(&s->now.remote) : 0, en->remote);
}

/* Compares the log with the side file. */
static inline void check_truth(void)
{
	struct line lines[64] = {{0}};
	struct fdtable *fds = fdtable_new();
	unsigned checked = 0, usr1 = 0, processes = 0, execs = 0;
	const struct record *rec;
	uint64_t seq[2] = {0, 0};
	struct log_reader *r;
	struct err e;
	int rc;

	assert_int_equal(log_reader_new(log_path, &r, &e), 0);
	assert_true(log_reader_head(r)->bias_ns > 0);
	while ((rc = log_next(r, &rec, &e)) == 1) {
		struct line *l;

		assert_int_equal(fdtable_feed(fds, rec), 0);
		usr1 += rec->type == RECORD_SIGNAL && rec->signal.signo == SIGUSR1;
		if (rec->type == RECORD_PROCESS && rec->process.pid == rec->process.tid) {
			processes += rec->process.what == PROCESS_START;
			execs += rec->process.what == PROCESS_EXEC;
		}
		if (rec->type == RECORD_END)
			assert_int_equal(rec->end.lost, 0);
		if (rec->type != RECORD_CALL)
			continue;
		l = line_of(lines, rec->call.tid);
		if (rec->call.nr == SYS_close && (int)rec->call.args[0] == TRUTH_BEGIN) {
			l->inside = true;
			continue;
		}
		if (rec->call.nr == SYS_close && (int)rec->call.args[0] == TRUTH_END)
			l->inside = false;
		if (!l->inside)
			continue;
		while (l->next < truth->n && truth->entry[l->next].tid != l->tid)
			l->next++;
		if (l->next == truth->n)
			fail_msg("thread %u: the log has a %s that was never made", l->tid,
				call_name(ARCH, rec->call.nr));
		check_call(&rec->call, &truth->entry[l->next++], fds);
		checked++;
		seq[0] = rec->call.seq;
		assert_int_not_equal(seq[0], seq[1]);
		seq[1] = seq[0];
	}
	if (rc < 0)
		fail_msg("%s", e.text);
	log_reader_free(r);
	fdtable_free(fds);
	assert_int_equal(checked, truth->n);
	assert_true(checked > 700);
	assert_int_equal(usr1, 20);
	assert_int_equal(processes, 4); /* itself, two by fork, one by vfork */
	assert_int_equal(execs, 2);
}

#endif
