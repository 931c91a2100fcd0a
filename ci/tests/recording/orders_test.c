/* Orders over a Unix socket: answered in order, bounded, its owner's alone. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "ci/tests/patience.h"
#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/file.h"
#include "harness/live/orders.h"

static char root[] = "/tmp/culprit-orders-test-XXXXXX";
static char *folder; /* longer than a socket's address holds */
static struct orders *orders;
static pthread_t server;
static atomic_bool over;
static atomic_uint obeyed;

static void obey(void *ctx, const char *line, char answer[ORDER_ANSWER])
{
	(void)ctx;
	if (!strcmp(line, "two lines"))
		snprintf(answer, ORDER_ANSWER, "one\ntwo");
	else if (!strcmp(line, "long"))
		memset(answer, 'x', ORDER_ANSWER);
	else
		snprintf(answer, ORDER_ANSWER, "did %.1000s", line);
	obeyed++;
}

static void *serve(void *ctx)
{
	while (!over)
		orders_take(orders, 0.02, 0, obey, ctx);
	return NULL;
}

static int setup(void **state)
{
	char name[121];
	struct err e;

	(void)state;
	memset(name, 'f', 120);
	name[120] = '\0';
	if (!mkdtemp(root))
		return -1;
	folder = alloc_format("%s/%s", root, name);
	return mkdir(folder, 0700) || orders_open(folder, &orders, &e) ||
		pthread_create(&server, NULL, serve, NULL);
}

static int teardown(void **state)
{
	(void)state;
	free(folder);
	return file_remove_tree(root, NULL);
}

static int dial(void)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct timeval limit = {.tv_sec = 60};

	assert_int_equal(chdir(folder), 0);
	strcpy(at.sun_path, "control");
	assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(chdir("/"), 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	return fd;
}

static void test_answers(void **state)
{
	char answer[ORDER_ANSWER];
	struct err e;

	(void)state;
	assert_int_equal(order_send(folder, "write now", 60, answer, &e), 0);
	assert_string_equal(answer, "did write now");
	assert_int_equal(order_send(folder, "two lines", 60, answer, &e), 0);
	assert_string_equal(answer, "one");
	assert_int_equal(order_send(folder, "long", 60, answer, &e), 0);
	assert_int_equal(strspn(answer, "x"), strlen(answer));
	assert_int_equal(order_send(folder, "a\nb", 60, answer, &e), -EINVAL);
}

static void test_pieces_and_several_lines(void **state)
{
	char text[200] = "";
	size_t n = 0;
	int fd = dial();

	(void)state;
	assert_int_equal(write(fd, "fir", 3), 3);
	usleep(100000);
	assert_int_equal(write(fd, "st\nsecond\nthi", 13), 13);
	while (!strstr(text, "second\n")) {
		ssize_t got = read(fd, text + n, sizeof(text) - 1 - n);

		assert_true(got > 0);
		n += (size_t)got;
	}
	assert_string_equal(text, "did first\ndid second\n");
	close(fd);
}

static void test_nobody_waits(void **state)
{
	unsigned before = obeyed;
	struct err e;

	(void)state;
	assert_int_equal(order_send(folder, "write", 60, NULL, &e), 0);
	while (obeyed == before)
		usleep(1000);
}

static void test_too_much(void **state)
{
	char flood[ORDER_LINE + 100], answer[ORDER_ANSWER], byte;
	int fds[20];
	struct err e;

	(void)state;
	memset(flood, 'a', sizeof(flood));
	flood[sizeof(flood) - 1] = '\0';
	assert_int_equal(order_send(folder, flood, 60, answer, &e), -EINVAL);
	/* A line without an end closes its connection, and no other. */
	fds[0] = dial();
	send(fds[0], flood, sizeof(flood), MSG_NOSIGNAL);
	assert_true(read(fds[0], &byte, 1) <= 0);
	close(fds[0]);
	/* So do connections that say nothing: those that are too many are closed. */
	for (int i = 0; i < 20; i++)
		fds[i] = dial();
	assert_true(read(fds[19], &byte, 1) <= 0);
	for (int i = 0; i < 20; i++)
		close(fds[i]);
	while (order_send(folder, "still there", 60, answer, &e) == -ECONNRESET)
		usleep(1000);
	assert_string_equal(answer, "did still there");
}

static void test_its_owners_alone(void **state)
{
	auto_free char *path = alloc_format("%s/control", folder);
	struct stat st;
	struct orders *other;
	struct err e;

	(void)state;
	assert_int_equal(stat(path, &st), 0);
	assert_true(S_ISSOCK(st.st_mode));
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(orders_open(folder, &other, &e), -EADDRINUSE);
	assert_int_equal(stat(path, &st), 0);
}

static void test_its_end(void **state)
{
	auto_free char *path = alloc_format("%s/control", folder);
	char answer[ORDER_ANSWER];
	struct err e;

	(void)state;
	over = true;
	pthread_join(server, NULL);
	/* Somebody is there, but does not answer. */
	assert_int_equal(order_send(folder, "hello", 0.2, answer, &e), -ETIMEDOUT);
	orders_close(orders);
	assert_int_not_equal(access(path, F_OK), 0);
	assert_int_equal(order_send(folder, "hello", 60, answer, &e), -ENOENT);
	assert_non_null(strstr(e.text, "no capture runs"));
	assert_int_equal(order_send("/no/such/folder", "hello", 60, answer, &e), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_answers),
		cmocka_unit_test(test_pieces_and_several_lines),
		cmocka_unit_test(test_nobody_waits),
		cmocka_unit_test(test_too_much),
		cmocka_unit_test(test_its_owners_alone),
		cmocka_unit_test(test_its_end),
	};

	patient_alarm(600);
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("orders", tests, setup, teardown);
}
