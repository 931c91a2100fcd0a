/* A server that root started and that became another user, as most daemons do, on a machine whose
 * root lacks CAP_SYS_RESOURCE, as in most containers: it is limited, and started again by root. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants those four first */
#include <cmocka.h>
#include <errno.h>
#include <linux/capability.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ci/tests/built.h"
#include "ci/tests/namespaces.h"
#include "ci/tests/patience.h"
#include "ci/tests/scratch.h"
#include "faults/primitives/limits.h"
#include "faults/primitives/server.h"
#include "harness/base/auto.h"
#include "harness/base/file.h"
#include "harness/base/jget.h"
#include "harness/base/proc.h"

/* Below 1024: nobody could not take it. */
#define PORT "321"

static json_t *server; /* as it was learnt */
static char program[4096];

static void drop_capability(void)
{
	struct __user_cap_header_struct h = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct d[2];

	assert_int_equal(syscall(SYS_capget, &h, d), 0);
	d[0].effective &= ~(1u << CAP_SYS_RESOURCE);
	d[0].permitted &= ~(1u << CAP_SYS_RESOURCE);
	assert_int_equal(syscall(SYS_capset, &h, d), 0);
}

/* The namespace has no other processes of that name than the test's. */
static pid_t newest(void)
{
	const char *const argv[] = {"pgrep", "-nx", "switcher", NULL};
	char *text;
	struct err e;
	pid_t pid;

	if (proc_run_ok(argv, patient_s(60), &text, &e))
		fail_msg("%s", e.text);
	pid = (pid_t)strtol(text, NULL, 10);
	free(text);
	return pid;
}

static int setup(void **state)
{
	struct err e;

	if (make_dir(state) || !built("helpers/switcher", program))
		return -1;
	drop_capability();
	if (proc_run_ok((const char *[]){"ip", "link", "set", "lo", "up", NULL}, 60, NULL, &e) ||
		proc_run_ok((const char *[]){program, PORT, dir, NULL}, 60, NULL, &e) ||
		server_learn(newest(), &server, &e)) {
		print_message("%s\n", e.text);
		return -1;
	}
	return 0;
}

static int teardown(void **state)
{
	struct err e;
	bool was;

	server_stop(server, 0, &was, &e);
	json_decref(server);
	return remove_dir(state);
}

/* Its pid, once it runs as nobody. */
static pid_t runs_as_it_was(void)
{
	auto_free char *text = NULL;
	char path[64];
	struct err e;
	pid_t pid;

	assert_int_equal(server_find(server, &pid, 1), 1);
	if (server_verify(server, false, &e))
		fail_msg("%s", e.text);
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	assert_int_equal(file_read(path, &text, NULL, NULL), 0);
	assert_non_null(strstr(text, "\nUid:\t65534\t65534\t65534"));
	return pid;
}

static void it_is_started_again_by_root(void **state)
{
	struct err e;
	bool was = false;
	pid_t pid;

	(void)state;
	assert_int_equal(json_integer_value(json_array_get(jget(server, "uid"), 1)), 65534);
	assert_int_equal(json_integer_value(json_array_get(jget(server, "start_uid"), 1)), 0);
	assert_int_equal(server_stop(server, 0, &was, &e), 0);
	assert_true(was);
	if (server_start(server, NULL, -1, &pid, &e))
		fail_msg("%s", e.text);
	assert_int_equal(runs_as_it_was(), pid);
}

/* What was started as the user that it is says nothing of a starter. */
static void others_are_started_as_they_are(void **state)
{
	json_t *other = NULL;
	struct err e;
	pid_t pid;
	int rc;

	(void)state;
	pid = fork();
	if (!pid) {
		execlp("setpriv", "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
			"sleep", "1007.5", NULL);
		_exit(127);
	}
	do { /* while it is setpriv still */
		json_decref(other);
		other = NULL;
		rc = server_learn(pid, &other, &e);
	} while (rc || json_integer_value(json_array_get(jget(other, "uid"), 1)) != 65534 ||
		!strstr(json_string_value(jget(other, "exe")), "sleep"));
	assert_null(jget(other, "start_uid"));
	json_decref(other);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* Root alone may not, without the capability; as the server's user it may. */
static void its_limits_are_set(void **state)
{
	json_t *inverse = NULL;
	struct rlimit limits[RLIM_NLIMITS];
	pid_t pid = runs_as_it_was();
	struct err e;

	(void)state;
	assert_int_equal(limits_inverse(pid, "nofile", &inverse, &e), 0);
	if (limits_set(inverse, 50, &e))
		fail_msg("%s", e.text);
	assert_int_equal(limits_of(pid, limits, &e), 0);
	assert_int_equal(limits[RLIMIT_NOFILE].rlim_cur, 50);
	if (primitive_revert(primitive_find("limits"), inverse, NULL, &e))
		fail_msg("%s", e.text);
	json_decref(inverse);
	runs_as_it_was();
}

/* What a server has forked may look like it for a moment, once its parent has ended. */
static void two_for_a_moment_are_one(void **state)
{
	pid_t pid = runs_as_it_was(), child;
	json_t *again = NULL;
	struct err e;

	(void)state;
	child = fork();
	if (!child) {
		/* Where the port is free. */
		if (unshare(CLONE_NEWNET) < 0 ||
			proc_run_ok((const char *[]){program, PORT, dir, NULL}, 60, NULL, &e))
			_exit(1);
		_exit(0);
	}
	assert_int_equal(waitpid(child, NULL, 0), child);
	child = newest();
	assert_int_not_equal(child, pid);
	if (!fork()) {
		usleep(300000);
		_exit(kill(child, SIGKILL));
	}
	if (server_learn(pid, &again, &e))
		fail_msg("%s", e.text);
	json_decref(again);
	runs_as_it_was();
}

static int tests(void)
{
	const struct CMUnitTest list[] = {
		cmocka_unit_test(it_is_started_again_by_root),
		cmocka_unit_test(others_are_started_as_they_are),
		cmocka_unit_test(its_limits_are_set),
		cmocka_unit_test(two_for_a_moment_are_one),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name(
		"servers that become another user", list, setup, teardown);
}

int main(void)
{
	return in_own_namespaces(tests);
}
