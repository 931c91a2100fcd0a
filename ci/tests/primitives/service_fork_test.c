/* A server that forks a process per client: its processes are limited and killed with it, and it
 * alone is started again. */
#include "ci/tests/primitives/service_fixture.h"

#include <netinet/in.h>
#include <sys/resource.h>

#include "ci/tests/helpers/server.h"
#include "faults/primitives/service.h"
#include "faults/primitives/signal.h"

#define PORT 4713
#define CLIENTS 3

struct client {
	int sock;
	struct server_child who;
};

static int setup(void **unused)
{
	if (storage_setup(unused, "32M"))
		return -1;
	RUN("ip", "link", "set", "lo", "up");
	RUN(helper, "4713", storage, "fork");
	return 0;
}

static void connect_client(struct client *c)
{
	struct sockaddr_in at = {.sin_family = AF_INET,
		.sin_port = htons(PORT),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

	c->sock = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(c->sock, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(recv(c->sock, &c->who, sizeof(c->who), MSG_WAITALL), (int)sizeof(c->who));
}

static bool lives(pid_t pid)
{
	uint64_t ticks;

	return !proc_start_time(pid, &ticks);
}

static rlim_t files_of(pid_t pid)
{
	struct rlimit l;

	assert_return_code(prlimit(pid, RLIMIT_NOFILE, NULL, &l), errno);
	return l.rlim_cur;
}

static char *look(struct peer *p, pid_t pid)
{
	json_t *all = peer_call(p, "fingerprint", json_pack("{s:[i]}", "pids", (int)pid));
	char *text;

	/* Other people's loop devices come and go in the machine's /dev. */
	json_object_del(all, "block_devices");
	text = json_dumps(all, JSON_COMPACT | JSON_SORT_KEYS);
	json_decref(all);
	return text;
}

/* All processes of the clients have ended, and the server serves again, as it was. */
static void check_after(struct peer *p, struct client *c, const char *before)
{
	struct client again;
	char *now, byte = 'x';

	for (int i = 0; i < CLIENTS; i++) {
		assert_false(lives(c[i].who.child) || lives(c[i].who.program));
		close(c[i].sock);
	}
	connect_client(&again);
	assert_int_not_equal(again.who.server, c[0].who.server);
	assert_int_equal(send(again.sock, &byte, 1, MSG_NOSIGNAL), 1);
	assert_int_equal(recv(again.sock, &byte, 1, 0), 1);
	now = look(p, again.who.server);
	assert_string_equal(now, before);
	free(now);
	close(again.sock);
	wait_dead(again.who.child);
}

static void is_killed_whole(void **unused)
{
	struct client c[CLIENTS];
	char *before, byte;
	const char *handle;
	struct peer p;

	(void)unused;
	for (int i = 0; i < CLIENTS; i++)
		connect_client(&c[i]);
	peer_start(&p, LONG_LEASE, NULL, NULL);
	before = look(&p, c[0].who.server);
	handle = take_text(
		peer_call(&p, "service.kill", json_pack("{s:i}", "pid", (int)c[0].who.server)),
		"handle");
	assert_false(lives(c[0].who.server));
	for (int i = 0; i < CLIENTS; i++) {
		assert_false(lives(c[i].who.child) || lives(c[i].who.program));
		assert_true(recv(c[i].sock, &byte, 1, 0) <= 0);
	}
	json_decref(peer_call(&p, "undo", handle_args(handle)));
	check_after(&p, c, before);
	assert_int_equal(peer_end(&p), 0);
	free(before);
}

static void is_limited_whole(void **unused)
{
	struct client c[CLIENTS], later;
	const char *handle;
	char *before;
	struct peer p;

	(void)unused;
	for (int i = 0; i < CLIENTS; i++)
		connect_client(&c[i]);
	peer_start(&p, LONG_LEASE, NULL, NULL);
	before = look(&p, c[0].who.server);
	handle = take_text(peer_call(&p, "service.limit",
				   json_pack("{s:i, s:{s:i}}", "pid", (int)c[0].who.server,
					   "limits", "nofile", 50)),
		"handle");
	connect_client(&later);
	assert_int_equal(files_of(c[0].who.server), 50);
	assert_int_equal(files_of(later.who.child), 50);
	for (int i = 0; i < CLIENTS; i++) {
		assert_int_equal(files_of(c[i].who.child), 50);
		assert_int_equal(files_of(c[i].who.program), 50);
	}
	json_decref(peer_call(&p, "undo", handle_args(handle)));
	assert_false(lives(later.who.child));
	close(later.sock);
	check_after(&p, c, before);
	assert_int_equal(peer_end(&p), 0);
	free(before);
}

/* A kill that was cut off once the processes were stopped. */
static void a_half_kill_is_undone(void **unused)
{
	struct service_spec spec = {.kill = true};
	struct client c[CLIENTS];
	struct err e = {""};
	json_t *inverse;
	bool was = false;
	char *before;
	struct peer p;

	(void)unused;
	for (int i = 0; i < CLIENTS; i++)
		connect_client(&c[i]);
	peer_start(&p, LONG_LEASE, NULL, NULL);
	before = look(&p, c[0].who.server);
	spec.pid = c[0].who.server;
	assert_int_equal(service_prepare(&spec, base, "0123456789abcdef-s1", &inverse, &e), 0);
	kill(spec.pid, SIGSTOP);
	for (int i = 0; i < CLIENTS; i++) {
		kill(c[i].who.child, SIGSTOP);
		kill(c[i].who.program, SIGSTOP);
	}
	while (!signal_is_stopped(spec.pid))
		;
	if (primitive_revert(&service_primitive, inverse, &was, &e))
		fail_msg("%s", e.text);
	assert_true(was);
	check_after(&p, c, before);
	assert_int_equal(peer_end(&p), 0);
	json_decref(inverse);
	free(before);
}

static int tests(void)
{
	const struct CMUnitTest list[] = {
		cmocka_unit_test(is_killed_whole),
		cmocka_unit_test(is_limited_whole),
		cmocka_unit_test(a_half_kill_is_undone),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("forking servers", list, setup, service_teardown);
}

int main(void)
{
	return in_own_namespaces(tests);
}
