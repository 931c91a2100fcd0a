/*
 * Tests TRACE_LEAVE: every tracer detaches from a running command and closes its log. The command
 * then continues untraced, without a disturbance.
 */
#include "ci/tests/capture/tracing.h"

#include "harness/base/alloc.h"
#include "harness/base/auto.h"

static bool is_traced(pid_t pid)
{
	auto_free char *path = alloc_format("/proc/%d/status", (int)pid);
	auto_free char *text = NULL;
	char *at;

	assert_int_equal(file_read(path, &text, NULL, NULL), 0);
	at = strstr(text, "\nTracerPid:");
	assert_non_null(at);
	return atoi(at + strlen("\nTracerPid:"));
}

/* The command writes its pid itself. */
static pid_t number_in(const char *path)
{
	auto_free char *text = NULL;

	while (file_read(path, &text, NULL, NULL) < 0 || !strchr(text, '\n')) {
		free(text);
		text = NULL;
		usleep(1000);
	}
	return (pid_t)atoi(text);
}

static void leave(const char *name, bool own_log)
{
	auto_free char *number = alloc_format("%s/pid", dir);
	auto_free char *script = alloc_format(
		"echo $$ >%s && exec %s %s", number, busy_prog, side_path);
	struct record_end end;
	struct err e;
	pid_t tracer, command;
	int in;

	tracer_name = name;
	unlink(number);
	tracer = trace((const char *const[]){"--", "/bin/sh", "-c", script, NULL}, &in);
	command = number_in(number);
	wait_progress();
	assert_int_equal(kill(tracer, TRACE_LEAVE), 0);
	assert_int_equal(wait_exit(tracer), 0);
	if (own_log)
		assert_int_equal(log_read_end(log_path, &end, NULL, &e), 0);
	else
		assert_int_equal(access(log_path, R_OK), 0);
	assert_false(is_traced(command));
	wait_progress();
	assert_int_equal(write(in, "x", 1), 1);
	close(in);
	assert_int_equal(wait_exit(command), 0);
	unlink(log_path);
}

static void test_ebpf(void **state)
{
	struct err why;

	(void)state;
	if (!ebpf_allowed(&why))
		skip();
	leave("ebpf", true);
}

static void test_ptrace(void **state)
{
	(void)state;
	leave("ptrace", true);
}

static void test_sampler(void **state)
{
	(void)state;
	leave("sampler", true);
}

static void test_strace(void **state)
{
	(void)state;
	if (system("command -v strace >/dev/null 2>&1"))
		skip();
	leave("strace", false);
}

static void test_sysstat(void **state)
{
	struct err why;

	(void)state;
	if (trace_able(&(struct tracer_try){.tracer = "sysstat"}, dir, &why))
		skip();
	leave("sysstat", false);
}

/* A command that cannot be detached: its only thread is in the kernel and takes no signal, as if it
 * waited for a missing disk. A stopped command is the closest substitute. */
static void test_a_command_that_is_stopped(void **state)
{
	static const char *const names[] = {"ptrace", "ebpf", "sampler"};
	struct err why;

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		auto_free char *number = alloc_format("%s/pid", dir);
		auto_free char *script = alloc_format(
			"echo $$ >%s && exec %s %s", number, busy_prog, side_path);
		struct record_end end;
		struct err e;
		pid_t tracer, command;
		int in;

		tracer_name = names[i];
		if (!strcmp(tracer_name, "ebpf") && !ebpf_allowed(&why))
			continue;
		unlink(number);
		tracer = trace((const char *const[]){"--", "/bin/sh", "-c", script, NULL}, &in);
		command = number_in(number);
		wait_progress();
		kill(command, SIGSTOP);
		assert_int_equal(kill(tracer, TRACE_LEAVE), 0);
		assert_int_equal(wait_exit(tracer), 0);
		assert_int_equal(log_read_end(log_path, &end, NULL, &e), 0);
		kill(command, SIGCONT);
		wait_progress();
		assert_int_equal(write(in, "x", 1), 1);
		close(in);
		assert_int_equal(wait_exit(command), 0);
		unlink(log_path);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_ebpf, fresh),
		cmocka_unit_test_setup(test_ptrace, fresh),
		cmocka_unit_test_setup(test_sampler, fresh),
		cmocka_unit_test_setup(test_strace, fresh),
		cmocka_unit_test_setup(test_sysstat, fresh),
		cmocka_unit_test_setup(test_a_command_that_is_stopped, fresh),
	};

	/* A command whose tracer has ended becomes our child. */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	patient_alarm(600);
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, setup, teardown);
}
