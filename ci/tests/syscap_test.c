/* The ptrace tracer against truth, and against processes that must not notice it. */
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
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "ci/tests/helpers/truth.h"
#include "diag/log/fdtable.h"
#include "diag/log/log.h"
#include "diag/trace/trace.h"
#include "diag/syscap/tracer.h"
#include "harness/base/file.h"

#if defined(__x86_64__)
#define ARCH "x86_64"
#else
#define ARCH "aarch64"
#endif

static char dir[] = "/tmp/culprit-syscap-test-XXXXXX";
static char log_path[64], side_path[64], truth_prog[4096], busy_prog[4096];
static struct truth *truth;
static _Atomic uint64_t *counter;
static rlim_t file_limit; /* of the tracer; 0: none */

static int setup(void **state)
{
	char self[4000];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	const char *out;
	int fd;

	(void)state;
	if (n < 0 || !mkdtemp(dir))
		return -1;
	self[n] = '\0';
	out = dirname(dirname(self));
	snprintf(truth_prog, sizeof(truth_prog), "%s/helpers/truth", out);
	snprintf(busy_prog, sizeof(busy_prog), "%s/helpers/busy", out);
	snprintf(log_path, sizeof(log_path), "%s/log", dir);
	snprintf(side_path, sizeof(side_path), "%s/side", dir);
	fd = open(side_path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || ftruncate(fd, sizeof(*truth)) < 0)
		return -1;
	truth = mmap(NULL, sizeof(*truth), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	counter = (_Atomic uint64_t *)truth;
	close(fd);
	signal(SIGPIPE, SIG_IGN);
	/* For the helpers, where they are built with it: leaks cannot be looked for under ptrace. */
	setenv("ASAN_OPTIONS", "detect_leaks=0", 0);
	return truth == MAP_FAILED ? -1 : 0;
}

static pid_t busy_pid; /* for the test that failed before its end */

static int teardown(void **state)
{
	(void)state;
	return file_remove_tree(dir, NULL);
}

static int kill_busy(void **state)
{
	(void)state;
	if (busy_pid) {
		kill(busy_pid, SIGKILL);
		waitpid(busy_pid, NULL, 0);
	}
	busy_pid = 0;
	return 0;
}

/* Every test begins with no log and an empty side file. */
static int fresh(void **state)
{
	(void)state;
	unlink(log_path);
	memset(truth, 0, sizeof(*truth));
	file_limit = 0;
	return 0;
}

/* A program with its standard input on a pipe, of which '*in' is the writing end. */
static pid_t start(const char *const argv[], int *in)
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

/* The tracer, once it says that it is ready; with 'in', its standard input as above. */
static pid_t trace(const char *const what[], int *in)
{
	const char *argv[16] = {"trace", "--out", log_path, "--ready-fd", NULL};
	char number[16], byte;
	int n = 5, ready[2], p[2];
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
	snprintf(number, sizeof(number), "%d", ready[1]);
	argv[4] = number;
	for (; *what; what++)
		argv[n++] = *what;
	argv[n] = NULL;
	pid = fork();
	if (pid == 0) {
		struct rlimit limit = {file_limit, RLIM_INFINITY};

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

static pid_t trace_pid(pid_t pid)
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

/* Waits until the process has made progress from now on. The alarm in main bounds it. */
static void wait_progress(void)
{
	uint64_t seen = *counter;

	while (*counter < seen + 50)
		sched_yield();
}

static long tracer_of(pid_t pid)
{
	char path[32], *text;
	long tracer;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	assert_int_equal(file_read(path, &text, NULL, NULL), 0);
	tracer = strtol(strstr(text, "TracerPid:") + 10, NULL, 10);
	free(text);
	return tracer;
}

static pid_t start_busy(int *in)
{
	pid_t pid = start((const char *const[]){busy_prog, side_path, NULL}, in);

	busy_pid = pid;
	wait_progress();
	return pid;
}

static void end_busy(pid_t pid, int in)
{
	assert_int_equal(write(in, "x", 1), 1);
	close(in);
	busy_pid = 0;
	assert_int_equal(wait_exit(pid), 0);
}

struct line {
	uint32_t tid;
	bool inside;
	uint32_t next; /* where to look on in the truth */
};

static struct line *line_of(struct line *lines, uint32_t tid)
{
	for (int i = 0; i < 64; i++)
		if (lines[i].tid == tid || !lines[i].tid) {
			lines[i].tid = tid;
			return &lines[i];
		}
	fail_msg("more threads than expected");
	return NULL;
}

static uint16_t port(const struct sockaddr_storage *a)
{
	return a->ss_family == AF_INET ? ntohs(((const struct sockaddr_in *)a)->sin_port) : 0;
}

static void check_call(const struct record_call *c, const struct truth_entry *en, const struct fdtable *fds)
{
	const struct fd_state *s = fdtable_get(fds, c->pid, (int32_t)c->args[0]);

	if (c->nr != en->nr)
		fail_msg("thread %u: the log has %s where %s was made", c->tid, call_name(ARCH, c->nr),
			 call_name(ARCH, en->nr));
	assert_int_equal(c->pid, en->pid);
	assert_false(c->unfinished);
	if (!en->known)
		return;
	assert_memory_equal(c->args, en->args, sizeof(c->args));
	assert_int_equal(c->result, en->result);
	assert_true(c->start_ns >= en->t0_ns);
	assert_true(c->start_ns + c->service_ns <= en->t1_ns);
	assert_true(c->service_ns > 0);
	if (!strcmp(en->want, "-")) {
		if (s)
			fail_msg("descriptor %d should be closed, but is '%s'", (int)c->args[0], s->now.path);
	} else if (*en->want) {
		if (!s || !strstr(s->now.path, en->want))
			fail_msg("descriptor %d of %s should be '%s', but is '%s'", (int)c->args[0],
				 call_name(ARCH, c->nr), en->want, s ? s->now.path : "(closed)");
	}
	if (en->local)
		assert_int_equal(s ? port(&s->now.local) : 0, en->local);
	/* connect is what gives it its peer */
	if (en->remote && c->nr != SYS_connect)
		assert_int_equal(s ? port(&s->now.remote) : 0, en->remote);
}

/* Holds the log against the side file. */
static void check_truth(void)
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

static void test_truth_of_a_command(void **state)
{
	int in;
	pid_t tracer = trace((const char *const[]){"--", truth_prog, side_path, dir, NULL}, &in);

	(void)state;
	assert_int_equal(write(in, "x", 1), 1);
	close(in);
	assert_int_equal(wait_exit(tracer), 0);
	check_truth();
}

static void test_truth_of_running_threads(void **state)
{
	int in;
	pid_t pid = start((const char *const[]){truth_prog, side_path, dir, NULL}, &in), tracer;

	(void)state;
	while (!truth->port)
		sched_yield();
	tracer = trace_pid(pid);
	assert_int_equal(write(in, "x", 1), 1);
	close(in);
	assert_int_equal(wait_exit(pid), 0);
	assert_int_equal(wait_exit(tracer), 0); /* by itself: nobody is left */
	check_truth();
}

static void test_comes_and_goes_100_times(void **state)
{
	struct record_end end;
	pid_t pid, tracer;
	struct err e;
	int in;

	(void)state;
	pid = start_busy(&in);
	for (int i = 0; i < 100; i++) {
		tracer = trace_pid(pid);
		assert_int_equal(tracer_of(pid), tracer);
		if (i % 4 == 0)
			wait_progress();
		kill(tracer, i % 2 ? SIGTERM : SIGINT);
		assert_int_equal(wait_exit(tracer), 0);
		assert_int_equal(tracer_of(pid), 0);
		assert_int_equal(log_read_end(log_path, &end, NULL, &e), 0);
		assert_int_equal(end.lost, 0);
		unlink(log_path);
		wait_progress();
	}
	end_busy(pid, in);
}

static void test_killed_tracer_leaves_it_alive(void **state)
{
	pid_t pid, tracer;
	struct record_end end;
	struct err e;
	int in;

	(void)state;
	pid = start_busy(&in);
	tracer = trace_pid(pid);
	wait_progress();
	kill(tracer, SIGKILL);
	assert_int_equal(wait_exit(tracer), 128 + SIGKILL);
	wait_progress();
	assert_int_equal(tracer_of(pid), 0);
	assert_int_equal(log_read_end(log_path, &end, NULL, &e), -EBADMSG);
	end_busy(pid, in);
}

static void test_full_disk_leaves_it_alive(void **state)
{
	pid_t pid, tracer;
	int in;

	(void)state;
	file_limit = 300000;
	pid = start_busy(&in);
	tracer = trace_pid(pid);
	assert_int_equal(wait_exit(tracer), 3);
	wait_progress();
	assert_int_equal(tracer_of(pid), 0);
	end_busy(pid, in);
}

static void stop(pid_t pid)
{
	int status;

	kill(pid, SIGSTOP);
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_true(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
}

static void go_on(pid_t pid)
{
	int status;

	kill(pid, SIGCONT);
	assert_int_equal(waitpid(pid, &status, WCONTINUED), pid);
	assert_true(WIFCONTINUED(status));
	wait_progress();
}

/* Nothing moves while it is stopped; a moment is enough for a thread that would. */
static void check_still(void)
{
	uint64_t seen = *counter;

	usleep(20000);
	assert_int_equal(*counter, seen);
}

static void test_stop_and_continue(void **state)
{
	pid_t pid, tracer;
	int in;

	(void)state;
	pid = start_busy(&in);
	tracer = trace_pid(pid);
	wait_progress();
	for (int i = 0; i < 10; i++) {
		stop(pid);
		check_still();
		go_on(pid);
	}
	stop(pid);
	kill(tracer, SIGTERM); /* leaves it as stopped as it is */
	assert_int_equal(wait_exit(tracer), 0);
	check_still();
	go_on(pid);
	unlink(log_path);
	tracer = trace_pid(pid);
	kill(tracer, SIGTERM);
	assert_int_equal(wait_exit(tracer), 0);
	end_busy(pid, in);
}

static void test_killed_inside_calls(void **state)
{
	unsigned unfinished = 0, fatal = 0, gone = 0;
	const struct record *rec;
	struct log_reader *r;
	pid_t pid, tracer;
	struct err e;
	int in;

	(void)state;
	pid = start_busy(&in);
	tracer = trace_pid(pid);
	wait_progress();
	kill(pid, SIGKILL);
	busy_pid = 0;
	assert_int_equal(wait_exit(pid), 128 + SIGKILL);
	close(in);
	assert_int_equal(wait_exit(tracer), 0);
	assert_int_equal(log_reader_new(log_path, &r, &e), 0);
	while (log_next(r, &rec, &e) == 1) {
		/* busy's waiting thread is in read(0) whenever it comes */
		unfinished += rec->type == RECORD_CALL && rec->call.unfinished && rec->call.nr == SYS_read &&
			      rec->call.args[0] == 0;
		fatal += rec->type == RECORD_SIGNAL && rec->signal.fatal && rec->signal.signo == SIGKILL;
		gone += rec->type == RECORD_PROCESS && rec->process.what == PROCESS_EXIT &&
			WIFSIGNALED(rec->process.status);
	}
	log_reader_free(r);
	assert_int_equal(unfinished, 1);
	assert_int_equal(fatal, 1);
	assert_int_equal(gone, 4);
}

static int run_shell(const char *script)
{
	unlink(log_path);
	return wait_exit(trace((const char *const[]){"--", "/bin/sh", "-c", script, NULL}, NULL));
}

static void test_exit_codes(void **state)
{
	struct record_end end;
	struct err e;
	pid_t tracer;
	int in;

	(void)state;
	assert_int_equal(run_shell("exit 3"), 3);
	assert_int_equal(run_shell("kill -9 $$"), 128 + SIGKILL);
	assert_int_equal(log_read_end(log_path, &end, NULL, &e), 0);
	/* the command ends in order, and so does the log */
	unlink(log_path);
	tracer = trace((const char *const[]){"--", busy_prog, side_path, NULL}, &in);
	wait_progress();
	kill(tracer, SIGTERM);
	assert_int_equal(wait_exit(tracer), 0);
	close(in);
	assert_int_equal(log_read_end(log_path, &end, NULL, &e), 0);
	assert_true(end.records > 100);
}

static void test_sockets_from_tables(void **state)
{
	struct sockaddr_in6 at6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int listener = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0);
	int six = socket(AF_INET6, SOCK_DGRAM, 0);
	struct process self = {.pid = getpid(), .pidfd = -1};
	const int fds[] = {listener, client, six};
	socklen_t n = sizeof(at);

	(void)state;
	assert_int_equal(bind(listener, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &n), 0);
	assert_int_equal(connect(client, (struct sockaddr *)&at, sizeof(at)), 0);
	if (bind(six, (struct sockaddr *)&at6, sizeof(at6)) < 0)
		assert_int_equal(errno, EADDRNOTAVAIL); /* no IPv6 here */
	for (int i = 0; i < 3; i++) {
		struct record_fd want = {.path = ""}, got = {.path = ""};
		char path[32], target[64] = "";

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fds[i]);
		assert_true(readlink(path, target, sizeof(target) - 1) > 8);
		socket_addresses(&self, fds[i], &want);
		if (!socket_from_tables(getpid(), strtoul(target + 8, NULL, 10), &got)) {
			assert_int_equal(i, 2); /* not bound */
			continue;
		}
		assert_memory_equal(&want.local, &got.local, sizeof(want.local));
		assert_memory_equal(&want.remote, &got.remote, sizeof(want.remote));
		assert_int_equal(want.sock_type, got.sock_type);
	}
	assert_true(self.pidfd >= 0);
	close(self.pidfd);
	for (int i = 0; i < 3; i++)
		close(fds[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sockets_from_tables),
		cmocka_unit_test_setup_teardown(test_truth_of_a_command, fresh, kill_busy),
		cmocka_unit_test_setup_teardown(test_truth_of_running_threads, fresh, kill_busy),
		cmocka_unit_test_setup_teardown(test_comes_and_goes_100_times, fresh, kill_busy),
		cmocka_unit_test_setup_teardown(test_killed_tracer_leaves_it_alive, fresh, kill_busy),
		cmocka_unit_test_setup_teardown(test_full_disk_leaves_it_alive, fresh, kill_busy),
		cmocka_unit_test_setup_teardown(test_stop_and_continue, fresh, kill_busy),
		cmocka_unit_test_setup_teardown(test_killed_inside_calls, fresh, kill_busy),
		cmocka_unit_test_setup_teardown(test_exit_codes, fresh, kill_busy),
	};

	if (geteuid() != 0) {
		puts("1..0 # SKIP needs root, to attach to processes");
		return 0;
	}
	alarm(120); /* a test that hangs fails */
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, setup, teardown);
}
