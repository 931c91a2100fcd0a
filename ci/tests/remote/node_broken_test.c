/* harness/nodes against hosts on which commands misbehave: each attempt ends within its time
 * limit and reports the host's message. */
#include "ci/tests/remote/node_sshd.h"

#include <dlfcn.h>
#include <libssh/libssh.h>
#include <stdatomic.h>

enum { BROKEN_PORT = 2300 };

/* Replaces libssh's function, which may loop without checking the connection. */
static atomic_bool spin;

int ssh_channel_request_exec(ssh_channel channel, const char *command)
{
	int (*real)(ssh_channel, const char *) = dlsym(RTLD_NEXT, "ssh_channel_request_exec");

	while (spin)
		;
	return real(channel, command);
}

static void contains(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("'%s' is not in: %s", part, text);
}

/* Limits that the test reaches: longer than a login takes, even on a busy machine. */
#define LIMIT_S patient_s(3)

/* 'limit_s' 0: a limit that is never reached. */
static int connect_to(int port, double limit_s, double *took_s, struct err *e)
{
	struct node_options opt = sshd_options();
	struct node_spec spec = sshd_spec("s1");
	struct nodeset *set = NULL;
	double start_s = clock_mono_s();
	int rc;

	if (limit_s)
		opt.connect_timeout_s = opt.timeout_s = opt.lease_s = limit_s;
	spec.port = (unsigned)port;
	rc = node_connect_all(&spec, 1, &opt, &set, e);
	*took_s = clock_mono_s() - start_s;
	nodeset_free(set);
	return rc;
}

/* A host whose sshd_config has these lines. */
static int connect_broken(const char *lines, double limit_s, struct err *e)
{
	char dir[128], more[1000];
	double took_s;
	pid_t pid;
	int rc;

	snprintf(dir, sizeof(dir), "%s/broken", sshd_dir);
	sshd_sh("rm -rf %s; mkdir %s", dir, dir);
	/* At DEBUG1, sshd writes into the standard error of commands. */
	snprintf(more, sizeof(more), "LogLevel INFO\n%s", lines);
	sshd_more = more;
	pid = sshd_start(dir, BROKEN_PORT, false);
	sshd_more = "";
	rc = connect_to(BROKEN_PORT, limit_s, &took_s, e);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	/* The limits of login, of the upload and of the agent's start come one after the other. */
	if (limit_s)
		assert_true(took_s < 20 * limit_s);
	return rc;
}

static void an_sftp_server_is_not_needed(void **state)
{
	struct err e = {""};

	(void)state;
	/* With libssh 0.10's client, the first one hung forever. */
	assert_int_equal(
		connect_broken(
			"Subsystem sftp /bin/sh -c 'echo no /dev/null >&2; exit 1'\n", 0, &e),
		0);
	assert_int_equal(connect_broken("Subsystem sftp /bin/sleep 1000\n", 0, &e), 0);
	assert_int_equal(connect_broken("", 0, &e), 0);
}

static void a_command_that_fails_is_quoted(void **state)
{
	struct err e = {""};

	(void)state;
	assert_int_equal(
		connect_broken("ForceCommand echo the account is locked >&2; exit 1\n", 0, &e),
		-EACCES);
	contains(e.text, "s1: root@127.0.0.1:2300 cannot run /bin/sh: the account is locked");
	assert_int_equal(
		connect_broken("ForceCommand echo This account is closed.; exit 1\n", 0, &e),
		-EACCES);
	contains(e.text, "This account is closed.");
	assert_int_equal(connect_broken("ForceCommand kill -9 $$\n", 0, &e), -EACCES);
	contains(e.text, "killed by SIGKILL");
	assert_int_equal(connect_broken("ForceCommand internal-sftp\n", 0, &e), -EACCES);
	contains(e.text, "cannot run /bin/sh");
}

static void a_command_that_hangs_is_given_up(void **state)
{
	struct err e = {""};
	char words[128];

	(void)state;
	assert_int_equal(
		connect_broken(
			"ForceCommand echo waiting for the licence >&2; sleep 1000\n", LIMIT_S, &e),
		-ETIMEDOUT);
	snprintf(words, sizeof(words),
		"did not end within %g s; last it printed: waiting for the licence", LIMIT_S);
	contains(e.text, words);
}

static void a_command_that_prints_without_end_is_given_up(void **state)
{
	struct err e = {""};
	char words[128];

	(void)state;
	assert_int_equal(connect_broken("ForceCommand yes garbage\n", LIMIT_S, &e), -ETIMEDOUT);
	contains(e.text, "last it printed: garbage");
	assert_int_equal(connect_broken("ForceCommand yes garbage >&2\n", LIMIT_S, &e), -ETIMEDOUT);
	contains(e.text, "last it printed: garbage");
	/* Only the agent's start misbehaves. */
	assert_int_equal(
		connect_broken(
			"ForceCommand case \"$SSH_ORIGINAL_COMMAND\" in *serve*) yes garbage;; *)"
			" eval \"$SSH_ORIGINAL_COMMAND\";; esac\n",
			LIMIT_S, &e),
		-ETIMEDOUT);
	snprintf(words, sizeof(words), "sent no hello within %g s; last it printed: garbage",
		2 * LIMIT_S);
	contains(e.text, words);
}

static void a_login_shell_that_greets_does_no_harm(void **state)
{
	struct err e = {""};

	(void)state;
	sshd_sh("rm -rf /var/lib/culprit/agent");
	if (connect_broken(
		    "ForceCommand echo Welcome; echo to s1 >&2; eval \"$SSH_ORIGINAL_COMMAND\"\n",
		    0, &e))
		fail_msg("%s", e.text);
}

static void the_hosts_message_on_a_refused_login_is_reported(void **state)
{
	char lines[200];
	struct err e = {""};

	(void)state;
	sshd_sh("echo 'Maintenance until noon.' >%s/banner", sshd_dir);
	snprintf(lines, sizeof(lines), "Banner %s/banner\nPubkeyAuthentication no\n", sshd_dir);
	assert_int_equal(connect_broken(lines, 0, &e), -EACCES);
	contains(e.text, "the host accepts password");
	contains(e.text, "its banner ends with 'Maintenance until noon.'");
}

static void a_library_that_does_not_return_is_left_behind(void **state)
{
	struct err e = {""};
	double took_s;

	(void)state;
	spin = true;
	assert_int_equal(connect_to(SSHD_PORT, LIMIT_S, &took_s, &e), -ETIMEDOUT);
	contains(e.text, "s1: no answer in time, and libssh does not return");
	assert_true(took_s < 20 * LIMIT_S);
	/* It spins until the program ends: if released, it would use libssh during its
	 * tear-down. */
}

static int tests(void)
{
	const struct CMUnitTest list[] = {
		cmocka_unit_test(an_sftp_server_is_not_needed),
		cmocka_unit_test(a_command_that_fails_is_quoted),
		cmocka_unit_test(a_command_that_hangs_is_given_up),
		cmocka_unit_test(a_command_that_prints_without_end_is_given_up),
		cmocka_unit_test(a_login_shell_that_greets_does_no_harm),
		cmocka_unit_test(the_hosts_message_on_a_refused_login_is_reported),
		cmocka_unit_test(a_library_that_does_not_return_is_left_behind),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("node_broken", list, sshd_with_agent, sshd_teardown);
}

int main(void)
{
	return sshd_tests(tests);
}
