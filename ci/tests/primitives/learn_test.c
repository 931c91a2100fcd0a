/* What is learnt of a server before a fault (its standard descriptors, and its unit of systemd from
 * the text of its cgroups), and what a command of a user's fault may be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants those four first */
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ci/tests/scratch.h"
#include "faults/primitives/command.h"
#include "faults/primitives/limits.h"
#include "faults/primitives/server.h"
#include "harness/base/proc.h"

/* Only systemd and the process's cgroups are made up. */
static const char *cgroups, *shown;
static int cgroups_rc;

static int made_up_access(const char *path, int mode)
{
	(void)mode;
	assert_string_equal(path, "/run/systemd/system");
	return 0;
}

static int made_up_read(pid_t pid, const char *name, char **text, size_t *size)
{
	(void)size;
	assert_int_equal(pid, 77);
	assert_string_equal(name, "cgroup");
	if (!cgroups_rc)
		*text = strdup(cgroups);
	return cgroups_rc;
}

static int made_up_run_ok(const char *const argv[], double limit_s, char **output, struct err *e)
{
	(void)limit_s, (void)e;
	assert_string_equal(argv[0], "systemctl");
	*output = strdup(shown);
	return 0;
}

#define access made_up_access
#define procfs_read made_up_read
#define proc_run_ok made_up_run_ok
#define unit_of made_up_unit_of
#define unit_main made_up_unit_main
#define unit_stop made_up_unit_stop
#define unit_start made_up_unit_start
#define unit_keep made_up_unit_keep
#define unit_let_go made_up_unit_let_go
#include "faults/primitives/unit.c"
#undef access
#undef procfs_read
#undef proc_run_ok

static void expect_unit(const char *text, const char *unit)
{
	char name[UNIT_NAME_MAX] = "";
	struct err e;
	int rc;

	cgroups = text;
	shown = "MainPID=77\n";
	rc = made_up_unit_of(77, name, &e);
	if (rc != (unit != NULL) || (unit && strcmp(name, unit)))
		fail_msg("'%s': %d '%s'", text, rc, name);
}

static void a_unit_is_read_from_the_cgroups(void **state)
{
	char text[400], name[300], unit[UNIT_NAME_MAX] = "";
	struct err e;

	(void)state;
	expect_unit("0::/system.slice/brick.service\n", "brick.service");
	expect_unit("0::/system.slice/brick.service/inner\n", "brick.service");
	expect_unit("0::/brick.service\n", "brick.service");
	expect_unit("1:name=systemd:/system.slice/brick.service\n0::/\n", "brick.service");
	expect_unit("12:cpu,cpuacct:/x.service\n1:name=systemd:/a/b.service\n", "b.service");
	/* Other controllers have their own folders; names are not only the ending. */
	expect_unit("12:cpu,cpuacct:/x.service\n", NULL);
	expect_unit("0::/system.slice/brick.scope\n", NULL);
	expect_unit("0::/system.slice/.service\n", NULL);
	expect_unit("0::/\n", NULL);
	expect_unit("no line of it\n", NULL);
	expect_unit("0:\n", NULL);
	/* Services of a user's own manager are not the system's. */
	expect_unit("0::/user.slice/user-1.slice/user@1.service/app.slice/x.service\n", NULL);
	/* The longest name, and one that does not fit. */
	memset(name, 'n', sizeof(name));
	strcpy(name + UNIT_NAME_MAX - 1 - strlen(".service"), ".service");
	snprintf(text, sizeof(text), "0::/%s\n", name);
	expect_unit(text, name);
	snprintf(text, sizeof(text), "0::/n%s\n", name);
	expect_unit(text, NULL);
	/* Another process of the service is its main one. */
	shown = "MainPID=78\n";
	cgroups = "0::/brick.service\n";
	assert_int_equal(made_up_unit_of(77, unit, &e), 0);
	shown = "Id=77\n";
	assert_int_equal(made_up_unit_of(77, unit, &e), -EPROTO);
	assert_non_null(strstr(e.text, "does not say which process 'brick.service' has"));
	cgroups_rc = -ENOENT;
	assert_int_equal(made_up_unit_of(77, unit, &e), 0);
	cgroups_rc = -EIO;
	assert_int_equal(made_up_unit_of(77, unit, &e), -EIO);
	assert_non_null(strstr(e.text, "cannot read the cgroup of process 77"));
	cgroups_rc = 0;
}

/* A process whose standard descriptors are these; -1: closed. */
static pid_t started(const int fds[3])
{
	struct procfs_stat st;
	int ready[2];
	pid_t pid;
	char c;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid = fork();
	if (!pid) {
		int moved[3];

		for (int i = 0; i < 3; i++)
			moved[i] = fds[i] < 0 ? -1 : fcntl(fds[i], F_DUPFD_CLOEXEC, 10);
		for (int i = 0; i < 3; i++)
			if (moved[i] < 0)
				close(i);
			else
				dup2(moved[i], i);
		execlp("sleep", "sleep", "1007.25", NULL);
		_exit(127);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &c, 1), 0); /* the program runs */
	close(ready[0]);
	/* Until it sleeps its loader may have a library open, as descriptor 0 if that is closed. */
	while (procfs_stat(pid, 0, &st) && st.state != 'S')
		usleep(1000);
	return pid;
}

/* Takes CAP_SYS_RESOURCE away, or gives it back. Only the effective set changes. */
static void may_raise(bool yes)
{
	struct __user_cap_header_struct h = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct d[2];

	assert_int_equal(syscall(SYS_capget, &h, d), 0);
	if (yes)
		d[0].effective |= d[0].permitted & 1u << CAP_SYS_RESOURCE;
	else
		d[0].effective &= ~(1u << CAP_SYS_RESOURCE);
	assert_int_equal(syscall(SYS_capset, &h, d), 0);
}

/* A program of another user, as a daemon is that was started by root. */
static pid_t started_as_nobody(void)
{
	int ready[2];
	pid_t pid;
	char c;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid = fork();
	if (!pid) {
		if (!setresgid(65534, 65534, 65534) && !setresuid(65534, 65534, 65534) &&
			!prctl(PR_SET_PDEATHSIG, SIGKILL))
			execlp("sleep", "sleep", "1007.5", NULL);
		_exit(127);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &c, 1), 0);
	close(ready[0]);
	return pid;
}

/* prlimit(2) refuses the limits of another user's process without CAP_SYS_RESOURCE, which most
 * containers lack; /proc shows them. What cannot be set is named. */
static void limits_of_another_user_are_learnt_without_a_capability(void **state)
{
	struct rlimit limits[RLIM_NLIMITS], was, more;
	struct server_change change = {.limits = limits};
	json_t *server = NULL;
	struct err e;
	pid_t pid, again;
	int rc;

	(void)state;
	if (geteuid())
		skip();
	pid = started_as_nobody();
	may_raise(false);
	rc = server_learn(pid, &server, &e);
	if (rc)
		fail_msg("%s", e.text);
	assert_int_equal(server_limits(server, limits), 0);
	for (int i = 0; i < RLIM_NLIMITS; i++) {
		assert_int_equal(getrlimit(i, &was), 0);
		assert_true(
			was.rlim_cur == limits[i].rlim_cur && was.rlim_max == limits[i].rlim_max);
	}
	assert_true(server_unchanged(server, pid));

	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	more = limits[RLIMIT_MSGQUEUE];
	more.rlim_max++;
	limits[RLIMIT_MSGQUEUE] = more;
	assert_int_equal(server_start(server, &change, -1, &again, &e), -EPERM);
	assert_string_equal(e.text,
		"cannot start the server: cannot set its limit msgqueue: Operation not permitted");
	may_raise(true);
	json_decref(server);
}

/* Of a process that is two users at once nobody but root with the capability may set a limit. */
static void a_limit_that_cannot_be_set_is_named(void **state)
{
	json_t *inverse = NULL;
	int ready[2];
	struct err e;
	pid_t pid;
	char c;

	(void)state;
	if (geteuid())
		skip();
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid = fork();
	if (!pid) {
		if (!setresuid(65534, 65534, 0) && !prctl(PR_SET_PDEATHSIG, SIGKILL) &&
			write(ready[1], "x", 1) == 1)
			pause();
		_exit(127);
	}
	assert_int_equal(read(ready[0], &c, 1), 1);
	may_raise(false);
	assert_int_equal(limits_inverse(pid, "nofile", &inverse, &e), 0);
	assert_int_equal(limits_set(inverse, 50, &e), -EPERM);
	assert_non_null(strstr(e.text, "cannot set limit nofile of process"));
	assert_non_null(strstr(e.text, "CAP_SYS_RESOURCE"));
	may_raise(true);
	json_decref(inverse);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(ready[0]);
	close(ready[1]);
}

/* A hard limit above the agent's is named. In a child: it cannot always be raised again. */
static void a_limit_above_ours_is_named(void **state)
{
	struct rlimit less;
	json_t *server = NULL;
	pid_t pid, child;
	struct err e;
	int status;

	(void)state;
	if (geteuid())
		skip();
	pid = started_as_nobody();
	child = fork();
	if (!child) {
		may_raise(false);
		getrlimit(RLIMIT_NOFILE, &less);
		less.rlim_cur = --less.rlim_max;
		if (setrlimit(RLIMIT_NOFILE, &less) < 0)
			_exit(2);
		_exit(server_learn(pid, &server, &e) != -EPERM ||
			!strstr(e.text, "hard limit nofile is above the agent's"));
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void expect_descriptors(const int fds[3], const char *const paths[3], const int flags[3])
{
	pid_t pid = started(fds);
	json_t *server = NULL, *list, *d;
	struct err e;
	size_t i;

	if (server_learn(pid, &server, &e))
		fail_msg("%s", e.text);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	list = json_object_get(server, "descriptors");
	assert_int_equal(json_array_size(list), 3);
	json_array_foreach(list, i, d) {
		if (!paths[i]) {
			assert_true(json_is_null(d));
			continue;
		}
		assert_string_equal(json_string_value(json_array_get(d, 0)), paths[i]);
		assert_int_equal(json_integer_value(json_array_get(d, 1)), flags[i]);
	}
	json_decref(server);
}

/* Files and devices are opened again, as they were; what has no name becomes /dev/null. */
static void standard_descriptors_are_learnt(void **state)
{
	char log[128];
	int file, null = open("/dev/zero", O_RDONLY | O_CLOEXEC), ends[2],
		  folder = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	(void)state;
	snprintf(log, sizeof(log), "%s/log", dir);
	file = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	expect_descriptors((int[]){null, file, ends[1]},
		(const char *[]){"/dev/zero", log, "/dev/null"},
		(int[]){O_RDONLY, O_WRONLY | O_APPEND, O_WRONLY});
	expect_descriptors((int[]){-1, folder, file}, (const char *[]){NULL, "/dev/null", log},
		(int[]){0, O_RDONLY, O_WRONLY | O_APPEND});
	/* A file that has been removed has no name any more. */
	unlink(log);
	expect_descriptors((int[]){null, file, file},
		(const char *[]){"/dev/zero", "/dev/null", "/dev/null"},
		(int[]){O_RDONLY, O_WRONLY | O_APPEND, O_WRONLY | O_APPEND});
	close(file);
	close(null);
	close(folder);
	close(ends[0]);
	close(ends[1]);
}

static void what_is_no_server_is_refused(void **state)
{
	const pid_t none[] = {-1, 0, 1, getpid(), 1 << 23};
	json_t *server = NULL;
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		assert_int_equal(server_learn(none[i], &server, &e), -ESRCH);
		assert_null(server);
		assert_non_null(strstr(e.text, "that could be a server"));
	}
}

/* What a command of a user's fault must be, and what becomes of one that fails. */
static void commands_are_lists_of_strings(void **state)
{
	static const char *const bad[] = {"[]", "[1]", "[\"true\", null]", "{}", "\"true\""};
	json_t *argv;
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		argv = json_loads(bad[i], JSON_DECODE_ANY, NULL);
		assert_int_equal(command_act(argv, 10, &e), -EBADMSG);
		assert_non_null(strstr(e.text, "must be a list of strings, at least one"));
		json_decref(argv);
	}
	argv = json_pack("[s]", "true");
	assert_int_equal(command_act(argv, 10, &e), 0);
	json_decref(argv);
	argv = json_pack("[s, s, s]", "sh", "-c", "echo no such thing; exit 3");
	assert_int_equal(command_act(argv, 10, &e), -EIO);
	assert_non_null(strstr(e.text, "no such thing"));
	json_decref(argv);
	argv = json_pack("[s, s]", "sleep", "100");
	assert_int_equal(command_act(argv, 0.1, &e), -ETIMEDOUT);
	json_decref(argv);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_unit_is_read_from_the_cgroups),
		cmocka_unit_test(standard_descriptors_are_learnt),
		cmocka_unit_test(limits_of_another_user_are_learnt_without_a_capability),
		cmocka_unit_test(a_limit_that_cannot_be_set_is_named),
		cmocka_unit_test(a_limit_above_ours_is_named),
		cmocka_unit_test(what_is_no_server_is_refused),
		cmocka_unit_test(commands_are_lists_of_strings),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
