/* The in-kernel tracer against truth, and against processes that must not notice it. */
#include "ci/tests/tracing.h"

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

static void test_comes_and_goes(void **state)
{
	struct record_end end;
	pid_t pid, tracer;
	struct err e;
	int in;

	(void)state;
	pid = start_busy(&in);
	for (int i = 0; i < 30; i++) {
		tracer = trace_pid(pid);
		if (i % 4 == 0)
			wait_progress();
		kill(tracer, i % 2 ? SIGTERM : SIGINT);
		assert_int_equal(wait_exit(tracer), 0);
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

/* Is a thread of it waiting in read(0)? */
static bool waits_in_read(pid_t pid)
{
	char path[64], want[16], *text;
	bool yes = false;

	snprintf(want, sizeof(want), "%d 0x0 ", SYS_read);
	for (pid_t tid = pid; tid < pid + 16 && !yes; tid++) {
		snprintf(path, sizeof(path), "/proc/%d/task/%d/syscall", pid, tid);
		if (file_read(path, &text, NULL, NULL) < 0)
			continue;
		yes = !strncmp(text, want, strlen(want));
		free(text);
		snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", pid, tid);
		if (!yes || file_read(path, &text, NULL, NULL) < 0)
			continue;
		yes = strstr(text, ") S ") != NULL;
		free(text);
	}
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
	/* What it was inside of before is not ours to record: so it begins its calls anew. */
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

int main(void)
{
	struct err why;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_truth_of_a_command, fresh, kill_busy),
		cmocka_unit_test_setup_teardown(test_truth_of_running_threads, fresh, kill_busy),
		cmocka_unit_test_setup_teardown(test_comes_and_goes, fresh, kill_busy),
		cmocka_unit_test_setup_teardown(test_killed_tracer_leaves_it_alive, fresh, kill_busy),
		cmocka_unit_test_setup_teardown(test_full_disk_leaves_it_alive, fresh, kill_busy),
		cmocka_unit_test_setup_teardown(test_killed_inside_calls, fresh, kill_busy),
		cmocka_unit_test_setup_teardown(test_exit_codes, fresh, kill_busy),
	};

	if (!ebpf_allowed(&why)) {
		printf("1..0 # SKIP %s\n", why.text);
		return 0;
	}
	tracer_name = "ebpf";
	alarm(120); /* a test that hangs fails */
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, setup, teardown);
}
