/*
 * Tests for every tracer of ours: truth, and processes that must not notice the tracer. Included
 * once, by a test's .c, which sets 'tracer_name' first.
 */
#ifndef CULPRIT_CI_TESTS_CAPTURE_TRACING_SHARED_H
#define CULPRIT_CI_TESTS_CAPTURE_TRACING_SHARED_H

#include <dirent.h>

#include "ci/tests/capture/tracing.h"

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

static int come_and_go = 100; /* how often a tracer attaches and detaches */

/* The tracer shown by /proc while 'tracer' traces: the ptrace tracer, and never the in-kernel
 * one. */
static long seen_tracer(pid_t tracer)
{
	return strcmp(tracer_name, "ptrace") ? 0 : tracer;
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
	assert_int_equal(wait_exit(tracer), 0); /* by itself, since no process remains */
	check_truth();
}

static void test_comes_and_goes(void **state)
{
	struct record_end end;
	pid_t pid, tracer;
	struct err e;
	int in;

	(void)state;
	pid = start_busy(&in);
	for (int i = 0; i < come_and_go; i++) {
		tracer = trace_pid(pid);
		assert_int_equal(tracer_of(pid), seen_tracer(tracer));
		if (i % 4 == 0)
			wait_progress();
		kill(tracer, i % 2 ? SIGTERM : SIGINT);
		assert_int_equal(wait_exit(tracer), 0);
		assert_int_equal(tracer_of(pid), 0);
		assert_int_equal(log_read_end(log_path, &end, NULL, &e), 0);
		assert_true(end.records > 0);
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

/* Nothing moves while it is stopped; a short wait is enough to see a thread that would. */
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
	kill(tracer, SIGTERM); /* detaches without continuing it */
	assert_int_equal(wait_exit(tracer), 0);
	check_still();
	go_on(pid);
	unlink(log_path);
	tracer = trace_pid(pid);
	kill(tracer, SIGTERM);
	assert_int_equal(wait_exit(tracer), 0);
	end_busy(pid, in);
}

static bool thread_waits_in_read(pid_t pid, const char *tid)
{
	char path[300], want[16], *text;
	bool yes;

	snprintf(want, sizeof(want), "%d 0x0 ", SYS_read);
	snprintf(path, sizeof(path), "/proc/%d/task/%s/syscall", pid, tid);
	if (file_read(path, &text, NULL, NULL) < 0)
		return false;
	yes = !strncmp(text, want, strlen(want));
	free(text);
	snprintf(path, sizeof(path), "/proc/%d/task/%s/stat", pid, tid);
	if (!yes || file_read(path, &text, NULL, NULL) < 0)
		return false;
	yes = strstr(text, ") S ") != NULL;
	free(text);
	return yes;
}

/* Is a thread of it waiting in read(0)? */
static bool waits_in_read(pid_t pid)
{
	char path[32];
	struct dirent *d;
	bool yes = false;
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	tasks = opendir(path);
	while (tasks && !yes && (d = readdir(tasks)))
		yes = *d->d_name != '.' && thread_waits_in_read(pid, d->d_name);
	if (tasks)
		closedir(tasks);
	return yes;
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
	/* Calls in progress are not recorded: makes the threads restart their calls. */
	stop(pid);
	go_on(pid);
	while (!waits_in_read(pid))
		sched_yield();
	kill(pid, SIGKILL);
	busy_pid = 0;
	assert_int_equal(wait_exit(pid), 128 + SIGKILL);
	close(in);
	assert_int_equal(wait_exit(tracer), 0);
	assert_int_equal(log_reader_new(log_path, &r, &e), 0);
	while (log_next(r, &rec, &e) == 1) {
		/* busy's waiting thread is always in read(0) */
		unfinished += rec->type == RECORD_CALL && rec->call.unfinished &&
			rec->call.nr == SYS_read && rec->call.args[0] == 0;
		fatal += rec->type == RECORD_SIGNAL && rec->signal.fatal &&
			rec->signal.signo == SIGKILL;
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
	/* the command ends normally, and so does the log */
	unlink(log_path);
	tracer = trace((const char *const[]){"--", busy_prog, side_path, NULL}, &in);
	wait_progress();
	kill(tracer, SIGTERM);
	assert_int_equal(wait_exit(tracer), 0);
	close(in);
	assert_int_equal(log_read_end(log_path, &end, NULL, &e), 0);
	assert_true(end.records > 100);
}

#define SHARED_TEST(f) cmocka_unit_test_setup_teardown(f, fresh, kill_busy)
/* Processes that each make FAMILY_CALLS marked calls when a byte for them arrives in a pipe: a
 * server, the two that it forked before the tracer attached, the child of one of them, and one that
 * is forked later. They lead their own sessions, like daemons. */
enum { FAMILY = 5, FAMILY_CALLS = 50, FAMILY_MARK = -4242 };

static void family_calls(int place, int go)
{
	char byte;

	truth->entry[place].pid = (uint32_t)getpid();
	truth->n++;
	if (read(go, &byte, 1) != 1)
		_exit(1);
	for (int i = 0; i < FAMILY_CALLS; i++)
		close(FAMILY_MARK);
}

static void family_wait(int n)
{
	int status;

	for (int i = 0; i < n; i++)
		if (wait(&status) < 0 || status)
			_exit(1);
	_exit(0);
}

static pid_t start_family(int go)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	if (!fork()) {
		setsid();
		if (!fork()) {
			setsid();
			family_calls(0, go);
			_exit(0);
		}
		family_calls(1, go);
		if (!fork()) {
			family_calls(2, go);
			_exit(0);
		}
		family_wait(2);
	}
	if (!fork()) {
		family_calls(3, go);
		_exit(0);
	}
	family_calls(4, go);
	family_wait(2);
	_exit(1);
}

static int family_place(uint32_t pid)
{
	for (int i = 0; i < FAMILY; i++)
		if (truth->entry[i].pid == pid)
			return i;
	return -1;
}

/* Traces a family, with a further option unless that is NULL, and checks which members were
 * recorded. */
static void trace_family(const char *option, const bool traced[FAMILY])
{
	char number[16];
	unsigned calls[FAMILY] = {0}, starts[FAMILY] = {0}, ends[FAMILY] = {0};
	pid_t server, tracer;
	const struct record *rec;
	struct log_reader *r;
	struct err e;
	int go[2], rc;

	assert_int_equal(pipe(go), 0);
	server = start_family(go[0]);
	while (truth->n < FAMILY - 1)
		sched_yield();
	snprintf(number, sizeof(number), "%d", server);
	tracer = trace((const char *const[]){"-p", number, option, NULL}, NULL);
	assert_int_equal(write(go[1], "12345", FAMILY), FAMILY);
	assert_int_equal(wait_exit(server), 0);
	assert_int_equal(wait_exit(tracer), 0); /* by itself, since no process remains */
	close(go[0]);
	close(go[1]);
	assert_int_equal(log_reader_new(log_path, &r, &e), 0);
	while ((rc = log_next(r, &rec, &e)) == 1) {
		bool call = rec->type == RECORD_CALL, process = rec->type == RECORD_PROCESS;
		int place = call  ? family_place(rec->call.pid)
			: process ? family_place(rec->process.pid)
				  : -1;

		if (place < 0)
			continue;
		calls[place] += call && rec->call.nr == SYS_close &&
			(int)rec->call.args[0] == FAMILY_MARK;
		starts[place] += process && rec->process.what == PROCESS_START;
		ends[place] += process && rec->process.what == PROCESS_EXIT;
	}
	assert_int_equal(rc, 0);
	log_reader_free(r);
	for (int i = 0; i < FAMILY; i++) {
		assert_int_equal(calls[i], traced[i] ? FAMILY_CALLS : 0);
		assert_int_equal(starts[i], traced[i]);
		assert_int_equal(ends[i], traced[i]);
	}
}

static void test_descendants_are_traced(void **state)
{
	(void)state;
	trace_family(NULL, (const bool[FAMILY]){true, true, true, true, true});
	fresh(state);
	trace_family("--no-descendants", (const bool[FAMILY]){[FAMILY - 1] = true});
}

/* A tracer does not trace itself if it is a descendant of the traced process. */
static void test_ancestor_of_the_tracer(void **state)
{
	const struct record *rec;
	struct log_reader *r;
	struct err e;
	pid_t shell;
	int rc;

	(void)state;
	shell = fork();
	if (!shell) {
		pid_t tracer = trace_pid(getpid());

		close(FAMILY_MARK);
		kill(tracer, SIGTERM);
		_exit(wait_exit(tracer));
	}
	assert_int_equal(wait_exit(shell), 0);
	assert_int_equal(log_reader_new(log_path, &r, &e), 0);
	while ((rc = log_next(r, &rec, &e)) == 1)
		if (rec->type == RECORD_CALL)
			assert_int_equal(rec->call.pid, shell);
	assert_int_equal(rc, 0);
	log_reader_free(r);
}

#define SHARED_TESTS                                                                               \
	SHARED_TEST(test_truth_of_a_command), SHARED_TEST(test_truth_of_running_threads),          \
		SHARED_TEST(test_comes_and_goes), SHARED_TEST(test_killed_tracer_leaves_it_alive), \
		SHARED_TEST(test_full_disk_leaves_it_alive), SHARED_TEST(test_stop_and_continue),  \
		SHARED_TEST(test_killed_inside_calls), SHARED_TEST(test_exit_codes),               \
		SHARED_TEST(test_descendants_are_traced), SHARED_TEST(test_ancestor_of_the_tracer)

#endif
