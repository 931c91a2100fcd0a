/* The ptrace tracer against truth, and against processes that must not notice it. */
#include "ci/tests/tracing.h"
#include "diag/syscap/tracer.h"

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

	tracer_name = "ptrace";
	if (geteuid() != 0) {
		puts("1..0 # SKIP needs root, to attach to processes");
		return 0;
	}
	alarm(120); /* a test that hangs fails */
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, setup, teardown);
}
