/* Tests a running capture: its last seconds are written on request, and recording is switched off
 * and on. */
#include "ci/tests/capture/tracing.h"
#include "harness/base/clock.h"

#include <sys/socket.h>
#include <sys/stat.h>

static int control; /* our end */

/* Starts the tracer on a running program, with a control socket and a ring of a second. */
static pid_t record(pid_t pid)
{
	char number[16], fd[16];
	int ends[2];
	pid_t tracer;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	assert_int_equal(fcntl(ends[0], F_SETFD, FD_CLOEXEC), 0);
	snprintf(number, sizeof(number), "%d", pid);
	snprintf(fd, sizeof(fd), "%d", ends[1]);
	tracer = trace(
		(const char *const[]){"--ring", "1s", "--control-fd", fd, "-p", number, NULL},
		NULL);
	close(ends[1]);
	control = ends[0];
	return tracer;
}

static const char *order(const char *line)
{
	static char answer[512];
	size_t n = 0;

	assert_int_equal(write(control, line, strlen(line)), strlen(line));
	while (n < sizeof(answer) - 1 && (!n || answer[n - 1] != '\n')) {
		assert_int_equal(read(control, answer + n, 1), 1);
		n++;
	}
	answer[n - 1] = '\0';
	return answer;
}

static void wait_file(const char *path)
{
	while (access(path, F_OK) < 0)
		usleep(1000);
}

struct look {
	unsigned calls, fds, starts;
	int64_t first_end_ns, last_end_ns, last_ns; /* of calls: ends, and the latest beginning */
};

static struct look look_at(const char *path)
{
	struct look k = {0};
	const struct record *rec;
	struct log_reader *r;
	struct err e;
	int rc;

	assert_int_equal(log_reader_new(path, &r, &e), 0);
	while ((rc = log_next(r, &rec, &e)) == 1) {
		k.fds += rec->type == RECORD_FD && !k.calls;
		k.starts += rec->type == RECORD_PROCESS && rec->process.what == PROCESS_START;
		if (rec->type != RECORD_CALL)
			continue;
		if (!k.calls++)
			k.first_end_ns = record_end_ns(rec);
		if (record_end_ns(rec) > k.last_end_ns)
			k.last_end_ns = record_end_ns(rec);
		k.last_ns = rec->call.start_ns > k.last_ns ? rec->call.start_ns : k.last_ns;
	}
	if (rc < 0)
		fail_msg("%s", e.text);
	log_reader_free(r);
	return k;
}

static void test_the_last_seconds_on_request(void **state)
{
	char first[80], second[80];
	pid_t pid, tracer;
	struct look k;
	int in;

	(void)state;
	snprintf(first, sizeof(first), "%s.1", log_path);
	snprintf(second, sizeof(second), "%s.2", log_path);
	pid = start_busy(&in);
	tracer = record(pid);
	wait_progress();
	sleep(3); /* longer than the ring and a block */
	wait_progress();
	assert_string_equal(order("write\n"), "write");
	k = look_at(first);
	/* Its threads and descriptors are older than the kept blocks. */
	assert_int_equal(k.starts, 4);
	assert_true(k.fds >= 3);
	assert_true(k.calls > 0);
	/* Calls are kept by their ends: a ring of a second, and a block of at most one more. Their
	 * beginnings do not matter: a call may sleep for any time. */
	assert_true(k.first_end_ns > k.last_end_ns - 2500000000ll);
	kill(tracer, SIGUSR1);
	wait_file(second);
	assert_true(look_at(second).last_ns > k.last_ns);
	kill(tracer, SIGTERM);
	assert_int_equal(wait_exit(tracer), 0);
	assert_true(look_at(log_path).calls > 0);
	close(control);
	end_busy(pid, in);
}

/* Clocks are compared: the log's times are the kernel's, moved to CLOCK_REALTIME. */
#define SLACK_NS 20000000

static void nap(void)
{
	nanosleep(&(struct timespec){.tv_nsec = 2 * SLACK_NS}, NULL);
}

static void test_off_and_on(void **state)
{
	char path[80];
	pid_t pid, tracer;
	struct look off, still, on;
	int64_t off_ns, on_ns;
	int in;

	(void)state;
	for (int i = 1; i <= 3; i++) {
		snprintf(path, sizeof(path), "%s.%d", log_path, i);
		unlink(path);
	}
	pid = start_busy(&in);
	tracer = record(pid);
	wait_progress();
	assert_string_equal(order("off\n"), "off");
	off_ns = clock_real_ns();
	nap();
	wait_progress();
	assert_string_equal(order("write\n"), "write");
	snprintf(path, sizeof(path), "%s.1", log_path);
	off = look_at(path);
	nap();
	wait_progress();
	assert_string_equal(order("write\n"), "write");
	snprintf(path, sizeof(path), "%s.2", log_path);
	still = look_at(path);
	/* A call that had begun before the order may end at any time after it. */
	assert_true(off.last_ns < off_ns + SLACK_NS);
	assert_true(still.last_ns < off_ns + SLACK_NS);
	on_ns = clock_real_ns();
	assert_string_equal(order("on\n"), "on");
	nap();
	wait_progress();
	assert_string_equal(order("write\n"), "write");
	snprintf(path, sizeof(path), "%s.3", log_path);
	on = look_at(path);
	assert_true(on.last_ns > on_ns + SLACK_NS);
	/* An invalid line changes nothing. */
	assert_non_null(
		strstr(order("fly\n"), "error: control lines are on, off, write and filter"));
	assert_non_null(
		strstr(order("0123456789012345678901234567890123456789012345678901234567890123"
			     "456789\n"),
			"error"));
	close(control); /* the capture continues */
	wait_progress();
	kill(tracer, SIGTERM);
	assert_int_equal(wait_exit(tracer), 0);
	end_busy(pid, in);
}

struct sums {
	uint64_t calls, lost;
	bool whole;
};

static struct sums sums_of(const char *path)
{
	struct sums s = {0};
	const struct record *rec;
	struct log_reader *r;
	struct err e;

	assert_int_equal(log_reader_new(path, &r, &e), 0);
	while (log_next(r, &rec, &e) == 1) {
		s.calls += rec->type == RECORD_SUM && !rec->sum.messages ? rec->sum.count : 0;
		s.calls += rec->type == RECORD_CALL;
		s.lost += rec->type == RECORD_LOST ? rec->lost.count : 0;
		if (rec->type != RECORD_END)
			continue;
		s.lost += rec->end.lost;
		s.whole = true;
	}
	log_reader_free(r);
	return s;
}

/* As in a scenario with a recorder: one tracer adds up, the other keeps the last seconds of each
 * call. */
static void test_next_to_a_tracer_of_sums(void **state)
{
	char sums_path[sizeof(log_path)], number[16], written[80];
	struct sums cheap, ring;
	pid_t pid, tracer, recorder;
	int64_t ended_ns;
	uint64_t kept;
	int in;

	(void)state;
	pid = start_busy(&in);
	snprintf(number, sizeof(number), "%d", pid);
	snprintf(sums_path, sizeof(sums_path), "%s/sums", dir);
	strcpy(written, log_path);
	strcpy(log_path, sums_path);
	tracer = trace((const char *const[]){"--mode", "sums", "-p", number, NULL}, NULL);
	strcpy(log_path, written);
	recorder = trace((const char *const[]){"--mode", "flow", "--heads", "--ring", "600s", "-p",
				 number, NULL},
		NULL);
	wait_progress();
	snprintf(written, sizeof(written), "%s.1", log_path);
	unlink(written);
	kill(recorder, SIGUSR1);
	wait_file(written);
	kept = sums_of(written).calls;
	assert_true(kept > 0);
	/* Each continues when the other ends. */
	kill(tracer, SIGTERM);
	assert_int_equal(wait_exit(tracer), 0);
	ended_ns = clock_real_ns();
	nap();
	wait_progress();
	kill(recorder, SIGTERM);
	assert_int_equal(wait_exit(recorder), 0);
	cheap = sums_of(sums_path);
	ring = sums_of(log_path);
	assert_true(cheap.whole && ring.whole);
	assert_int_equal(cheap.lost, 0);
	assert_int_equal(ring.lost, 0);
	/* This tracer was attached first. */
	assert_true(cheap.calls >= kept);
	assert_true(look_at(log_path).last_ns > ended_ns);
	end_busy(pid, in);
}

static void test_impossible_options_are_refused(void **state)
{
	const char *const wrong[][4] = {{"--ring", "0s"}, {"--ring", "soon"},
		{"--ring-memory", "5"}, {"--control-fd", "x"}};

	(void)state;
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(wait_exit(trace((const char *const[]){wrong[i][0], wrong[i][1],
							 "--", "/bin/true", NULL},
					 NULL)),
			2);
	tracer_name = "ptrace";
	assert_int_equal(
		wait_exit(trace(
			(const char *const[]){"--ring", "5s", "--", "/bin/true", NULL}, NULL)),
		2);
	tracer_name = "ebpf";
	assert_int_not_equal(access(log_path, F_OK), 0);
}

int main(void)
{
	struct err why;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_the_last_seconds_on_request, fresh, kill_busy),
		cmocka_unit_test_setup_teardown(test_off_and_on, fresh, kill_busy),
		cmocka_unit_test_setup_teardown(test_next_to_a_tracer_of_sums, fresh, kill_busy),
		cmocka_unit_test_setup(test_impossible_options_are_refused, fresh),
	};

	if (!ebpf_allowed(&why)) {
		printf("1..0 # SKIP %s\n", why.text);
		return 0;
	}
	tracer_name = "ebpf";
	patient_alarm(600);
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, setup, teardown);
}
