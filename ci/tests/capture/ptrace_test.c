/* Tests the ptrace tracer: the properties of every tracer, and its reading of sockets. */
#include "ci/tests/capture/tracing_shared.h"
#include "diag/capture/ptrace/tracer.h"

static void test_sockets_from_tables(void **state)
{
	struct sockaddr_in6 at6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int listener = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0);
	int six = socket(AF_INET6, SOCK_DGRAM, 0);
	struct tracee_process self = {.pid = getpid(), .pidfd = -1};
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
		char path[32], target[64] = "";
		struct record_fd want = {.path = target}, got = {.path = ""};

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
		SHARED_TESTS,
	};

	tracer_name = "ptrace";
	if (geteuid() != 0) {
		puts("1..0 # SKIP needs root, to attach to processes");
		return 0;
	}
	patient_alarm(600);
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, setup, teardown);
}
