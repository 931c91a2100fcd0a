/* Addresses at which metrics may be served, and conflicts with other processes. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "ci/tests/scratch.h"
#include "harness/base/alloc.h"
#include "harness/live/exporter.h"

static void only_this_machine_can_reach_it(void **state)
{
	static const char *const good[] = {
		"unix:/tmp/a", "127.0.0.1:9100", "127.3.2.1:0", "[::1]:65535"};
	static const char *const bad[] = {"", ":", "unix:", "unix:a", "0.0.0.0:9100", "[::]:9100",
		":9100", "9100", "10.0.0.1:9100", "192.168.0.1:1", "localhost:9100", "127.0.0.1",
		"127.0.0.1:", "127.0.0.1:x", "127.0.0.1:65536", "127.0.0.1:-1",
		"127.0.0.1:99999999999999999999", "127.1:9100", "[::ffff:10.0.0.1]:1", "::1:9100",
		"[::1:9100", "[fe80::1]:1", "256.0.0.1:1", "127.0.0.1 :1", "[]:1",
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa:1",
		"unix:/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};
	struct sockaddr_storage to;
	socklen_t size;
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		assert_int_equal(exporter_parse(good[i], &to, &size, &e), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(exporter_parse(bad[i], &to, &size, &e), -EINVAL);
		assert_int_equal(strncmp(e.text, "needs ", 6), 0);
	}
}

static void stale_sockets_are_replaced(void **state)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	struct exporter *x = NULL, *y = NULL;
	char address[128];
	struct stat st;
	struct err e;
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	(void)state;
	snprintf(address, sizeof(address), "unix:%s/socket", dir);
	snprintf(un.sun_path, sizeof(un.sun_path), "%s/socket", dir);
	assert_int_equal(bind(fd, (struct sockaddr *)&un, sizeof(un)), 0);
	close(fd);
	assert_int_equal(exporter_open(address, &x, &e), 0);
	assert_int_equal(stat(un.sun_path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_string_equal(exporter_address(x), address);
	/* The socket of a live process is kept. */
	assert_int_equal(exporter_open(address, &y, &e), -EADDRINUSE);
	assert_int_equal(stat(un.sun_path, &st), 0);
	exporter_publish(x, alloc_copy("a 1\n"));
	exporter_close(x);
	assert_int_equal(stat(un.sun_path, &st), -1);
}

static void other_users_files_are_not_changed(void **state)
{
	struct exporter *x = NULL;
	char address[128], *path = address + 5;
	struct stat st;
	struct err e;

	(void)state;
	snprintf(address, sizeof(address), "unix:%s/file", dir);
	assert_int_equal(file_write_atomic(path, 0600, "x", 1, NULL), 0);
	assert_int_equal(exporter_open(address, &x, &e), -EEXIST);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_size, 1);
	/* A socket file that is no longer ours is kept at the end. */
	unlink(path);
	assert_int_equal(exporter_open(address, &x, &e), 0);
	unlink(path);
	assert_int_equal(file_write_atomic(path, 0600, "x", 1, NULL), 0);
	exporter_close(x);
	assert_int_equal(stat(path, &st), 0);
	snprintf(address, sizeof(address), "unix:%s/no/such/folder", dir);
	assert_int_equal(exporter_open(address, &x, &e), -ENOENT);
}

static void a_free_port_is_reported(void **state)
{
	struct exporter *x = NULL, *y = NULL;
	struct err e;

	(void)state;
	assert_int_equal(exporter_open("127.0.0.1:0", &x, &e), 0);
	assert_int_equal(strncmp(exporter_address(x), "127.0.0.1:", 10), 0);
	assert_true(atoi(exporter_address(x) + 10) > 0);
	assert_null(exporter_path(x));
	assert_int_equal(exporter_open(exporter_address(x), &y, &e), -EADDRINUSE);
	exporter_close(x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_this_machine_can_reach_it),
		cmocka_unit_test(stale_sockets_are_replaced),
		cmocka_unit_test(other_users_files_are_not_changed),
		cmocka_unit_test(a_free_port_is_reported),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
