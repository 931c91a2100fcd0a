/*
 * Tests the number of moved bytes of calls whose result is another number: sendmmsg and recvmmsg
 * count messages, MSG_PEEK leaves the data, MSG_TRUNC returns the length of a datagram that did not
 * fit. Both tracers, in events and in sums. The traced program is this one, started again with
 * --calls.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants those four first */
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ci/tests/built.h"
#include "diag/record/describe.h"
#include "diag/record/log.h"
#include "harness/base/file.h"

#if defined(__x86_64__)
#define ARCH "x86_64"
#else
#define ARCH "aarch64"
#endif

enum { MANY = 100, FIRST = 40 };

static char dir[] = "/tmp/culprit-moved-XXXXXX", self[4000], agent[4096], log_path[64];

/* Length of a message, chosen so that sums of neighbours differ. */
static size_t length(unsigned i)
{
	return i * i % 251;
}

static int64_t lengths(unsigned from, unsigned n)
{
	int64_t sum = 0;

	for (unsigned i = from; i < from + n; i++)
		sum += (int64_t)length(i);
	return sum;
}

/* Result and moved bytes of each call of make_calls; -1: unknown, or none. */
static struct {
	const char *name;
	int64_t result, moved;
} want[] = {
	{"sendmmsg", MANY, 0}, {"recvmmsg", FIRST, 0}, {"recvmmsg", MANY - FIRST, 0},
	{"sendto", 100, 100}, {"recvfrom", 100, -1}, /* MSG_PEEK */
	{"recvmsg", 100, -1},                        /* both */
	{"recvfrom", 100, 10},                       /* MSG_TRUNC */
	{"sendto", 100, 100}, {"recvmsg", 100, 16},  /* MSG_TRUNC, two buffers */
	{"sendto", 100, 100}, {"recvfrom", 10, 10},  /* truncated without a sign */
	{"sendmmsg", 2, 0}, {"recvmmsg", 1, -1},     /* MSG_PEEK */
	{"recvmmsg", 2, -1},                         /* MSG_TRUNC */
};
enum { WANTED = sizeof(want) / sizeof(want[0]) };

static void expect_lengths(void)
{
	want[0].moved = lengths(0, MANY);
	want[1].moved = lengths(0, FIRST);
	want[2].moved = lengths(FIRST, MANY - FIRST);
	want[11].moved = lengths(0, 2);
}

static int make_calls(void)
{
	static char data[256];
	struct mmsghdr m[MANY] = {0};
	struct iovec part[MANY], two[2] = {{data, 6}, {data + 6, 10}};
	struct msghdr one = {.msg_iov = two, .msg_iovlen = 2};
	int s[2];

	if (socketpair(AF_UNIX, SOCK_DGRAM, 0, s))
		return 1;
	for (unsigned i = 0; i < MANY; i++) {
		part[i] = (struct iovec){data, length(i)};
		m[i].msg_hdr = (struct msghdr){.msg_iov = &part[i], .msg_iovlen = 1};
	}
	/* The queue of a Unix socket is short: the child sends the rest. */
	if (fork() == 0)
		_exit(sendmmsg(s[0], m, MANY, 0) != MANY);
	for (unsigned i = 0; i < MANY; i++)
		part[i].iov_len = sizeof(data);
	if (recvmmsg(s[1], m, FIRST, MSG_WAITALL, NULL) != FIRST ||
		recvmmsg(s[1], m, MANY - FIRST, MSG_WAITALL, NULL) != MANY - FIRST)
		return 2;
	wait(NULL);
	if (send(s[0], data, 100, 0) != 100 || recv(s[1], data, 200, MSG_PEEK) != 100 ||
		recvmsg(s[1], &one, MSG_PEEK | MSG_TRUNC) != 100 ||
		recv(s[1], data, 10, MSG_TRUNC) != 100 || send(s[0], data, 100, 0) != 100 ||
		recvmsg(s[1], &one, MSG_TRUNC) != 100 || send(s[0], data, 100, 0) != 100 ||
		recv(s[1], data, 10, 0) != 10)
		return 3;
	for (unsigned i = 0; i < 2; i++)
		part[i].iov_len = length(i);
	return sendmmsg(s[0], m, 2, 0) != 2 || recvmmsg(s[1], m, 1, MSG_PEEK, NULL) != 1 ||
		recvmmsg(s[1], m, 2, MSG_TRUNC, NULL) != 2;
}

static int setup(void **state)
{
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	(void)state;
	if (n < 0 || !mkdtemp(dir) || !built("agent/culprit-agent", agent))
		return -1;
	self[n] = '\0';
	snprintf(log_path, sizeof(log_path), "%s/log", dir);
	setenv("ASAN_OPTIONS", "detect_leaks=0", 0);
	expect_lengths();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	return file_remove_tree(dir, NULL);
}

/* 2: the kernel refuses this tracer; any other failure is a defect. */
static struct log_reader *trace(const char *tracer, const char *mode)
{
	struct log_reader *r;
	struct err e;
	pid_t pid;
	int status;

	unlink(log_path);
	pid = fork();
	if (pid == 0) {
		execl(agent, agent, "trace", "--tracer", tracer, "--mode", mode, "--out", log_path,
			"--", self, "--calls", NULL);
		_exit(126);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 2)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
	if (log_reader_new(log_path, &r, &e))
		fail_msg("%s", e.text);
	return r;
}

/* Two processes: a recorded call matches the next expected one of its name that was not seen
 * yet. */
static void each_call(const char *tracer)
{
	struct log_reader *r = trace(tracer, "events");
	bool seen[WANTED] = {false};
	const struct record *rec;
	struct err e;

	while (log_next(r, &rec, &e) == 1) {
		const struct record_call *c = &rec->call;
		const struct call_info *info = rec->type == RECORD_CALL
			? call_info(call_arch(ARCH), c->nr)
			: NULL;

		for (int i = 0; info && i < WANTED; i++) {
			if (seen[i] || strcmp(want[i].name, info->name))
				continue;
			seen[i] = true;
			assert_int_equal(c->result, want[i].result);
			assert_int_equal(call_moved(info, c), want[i].moved);
			break;
		}
	}
	for (int i = 0; i < WANTED; i++)
		if (!seen[i])
			fail_msg("call %d, %s, was not recorded", i, want[i].name);
	log_reader_free(r);
}

static void ptrace_each_call(void **state)
{
	(void)state;
	each_call("ptrace");
}

static void ebpf_each_call(void **state)
{
	(void)state;
	each_call("ebpf");
}

/* The program makes no other calls on sockets of this kind. */
static void ebpf_sums(void **state)
{
	struct log_reader *r = trace("ebpf", "sums");
	int64_t read = 0, written = 0, want_read = 0, want_written = 0;
	const struct record *rec;
	struct err e;

	(void)state;
	for (int i = 0; i < WANTED; i++)
		if (want[i].moved > 0)
			*(strncmp(want[i].name, "recv", 4) ? &want_written
							   : &want_read) += want[i].moved;
	while (log_next(r, &rec, &e) == 1)
		if (rec->type == RECORD_SUM && rec->sum.fd_class != FD_CLASS_DISK) {
			read += rec->sum.class == CALL_READ ? (int64_t)rec->sum.bytes : 0;
			written += rec->sum.class == CALL_WRITE ? (int64_t)rec->sum.bytes : 0;
		}
	assert_int_equal(read, want_read);
	assert_int_equal(written, want_written);
	log_reader_free(r);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ptrace_each_call),
		cmocka_unit_test(ebpf_each_call),
		cmocka_unit_test(ebpf_sums),
	};

	if (argc == 2 && !strcmp(argv[1], "--calls"))
		return make_calls();
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, setup, teardown);
}
