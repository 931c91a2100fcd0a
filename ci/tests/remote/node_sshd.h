/*
 * For tests of harness/nodes: real sshds in private namespaces (network, mount, PID), so that
 * ports, /var/lib/culprit and leftover processes belong only to the test and disappear with it.
 */
#ifndef CULPRIT_CI_TESTS_REMOTE_NODE_SSHD_H
#define CULPRIT_CI_TESTS_REMOTE_NODE_SSHD_H

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "ci/tests/built.h"
#include "ci/tests/namespaces.h"
#include "ci/tests/patience.h"
#include "harness/base/clock.h"
#include "harness/base/file.h"
#include "harness/base/proc.h"
#include "harness/nodes/node.h"

static char sshd_dir[64];       /* keys, config, log, stand-in agent; in our /run */
static char sshd_host_key[512]; /* "ssh-ed25519 AAAA..." */
static char sshd_identity[96];
static char sshd_agent[96]; /* folder with an agent */
static pid_t sshd_pid;
static const char *sshd_more = ""; /* first lines for the next sshd_config */

enum { SSHD_PORT = 2222 };

__attribute__((format(printf, 1, 2))) static inline void sshd_sh(const char *fmt, ...)
{
	char *command, *output = NULL;
	struct err e = {""};
	va_list ap;

	va_start(ap, fmt);
	assert_true(vasprintf(&command, fmt, ap) >= 0);
	va_end(ap);
	const char *const argv[] = {"sh", "-ec", command, NULL};

	if (proc_run(argv, patient_s(120), &output, &e))
		fail_msg("%s: %s %s", command, output ? output : "", e.text);
	free(output);
	free(command);
}

/* Runs 'tests' in private namespaces; prints a TAP skip if these or sshd are not available. */
static inline int sshd_tests(int (*tests)(void))
{
	if (access("/usr/sbin/sshd", X_OK)) {
		puts("1..0 # SKIP needs openssh-server");
		return 0;
	}
	return in_own_namespaces(tests);
}

/* Starts an sshd that logs to DIR/log; with 'new_net' in a separate network namespace. */
static inline pid_t sshd_start(const char *dir, int port, bool new_net)
{
	char config[128], *text;
	pid_t pid;
	int fd, i;

	snprintf(config, sizeof(config), "%s/sshd_config", dir);
	assert_true(asprintf(&text,
			    "%sPort %d\nListenAddress 0.0.0.0\nHostKey %s/host\nAuthorizedKeysFile "
			    "%s/authorized\n"
			    "StrictModes no\nUsePAM no\nPidFile none\nLogLevel DEBUG1\nMaxStartups "
			    "200\n"
			    "PermitRootLogin yes\nPasswordAuthentication yes\n"
			    /* Keep this machine's .bashrc out of the test. */
			    "SetEnv HOME=%s\n",
			    sshd_more, port, sshd_dir, sshd_dir, sshd_dir) > 0);
	assert_int_equal(file_write_atomic(config, 0600, text, strlen(text), NULL), 0);
	free(text);
	pid = fork();
	if (!pid) {
		char log[128];

		if (new_net && unshare(CLONE_NEWNET))
			_exit(126);

		snprintf(log, sizeof(log), "%s/log", dir);
		fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
		dup2(fd, 2);
		execl("/usr/sbin/sshd", "/usr/sbin/sshd", "-D", "-e", "-f", config, NULL);
		_exit(127);
	}
	/* sshd logs when it listens. */
	for (i = 0; i < patient_s(6000); i++) {
		char log[128], *said = NULL;

		snprintf(log, sizeof(log), "%s/log", dir);
		if (!file_read(log, &said, NULL, NULL) && strstr(said, "Server listening")) {
			free(said);
			return pid;
		}
		free(said);
		usleep(10000);
	}
	fail_msg("sshd does not come up");
	return -1;
}

/* Keys, folders, one sshd on 127.0.0.1. */
static inline void sshd_setup(void)
{
	char path[128], *key = NULL;

	snprintf(sshd_dir, sizeof(sshd_dir), "/run/culprit-node-test");
	mkdir(sshd_dir, 0700);
	mkdir("/run/sshd", 0755);
	sshd_sh("ip link set lo up; cd %s; ssh-keygen -q -t ed25519 -N '' -f host;"
		"ssh-keygen -q -t ed25519 -N '' -f id; ssh-keygen -q -t ed25519 -N '' -f other; "
		"cp id.pub authorized",
		sshd_dir);
	snprintf(path, sizeof(path), "%s/host.pub", sshd_dir);
	assert_int_equal(file_read(path, &key, NULL, NULL), 0);
	snprintf(sshd_host_key, sizeof(sshd_host_key), "%.*s", (int)strcspn(key, "\n"), key);
	free(key);
	snprintf(sshd_identity, sizeof(sshd_identity), "%s/id", sshd_dir);
	sshd_pid = sshd_start(sshd_dir, SSHD_PORT, false);
}

static inline void sshd_stop(void)
{
	kill(sshd_pid, SIGKILL);
	waitpid(sshd_pid, NULL, 0);
}

/* What sshd has logged so far, for the caller to free. */
static inline char *sshd_log(void)
{
	char path[128], *text = NULL;

	snprintf(path, sizeof(path), "%s/log", sshd_dir);
	assert_int_equal(file_read(path, &text, NULL, NULL), 0);
	return text;
}

/* The real agent's folder, which lies next to the tests' (or is named in CULPRIT_TEST_AGENT). */
static inline const char *sshd_built_agent(void)
{
	static char path[4096];
	const char *dir = getenv("CULPRIT_TEST_AGENT");

	return dir ? dir : built("agent", path);
}

/* An agent that supports hello and ping, and misbehaves on demand: 'exit' prints a reason on
 * stderr and ends, 'junk' sends invalid JSON, 'long' an endless line, 'mute' stops answering,
 * 'event' sends one event, 'flood' endless events; 'pings' returns the number of pings so far. It
 * sends the content of the file 'lie' as a file's header, and then endless zeros. */
static inline void sshd_standin(void)
{
	static const char script[] =
		"#!/bin/bash\n"
		"[ $1 = file ] && [ -e /run/culprit-node-test/lie ] && {"
		" cat /run/culprit-node-test/lie; exec cat /dev/zero; }\n"
		"[ $1 = file ] && exec /run/culprit-node-test/real \"$@\"\n"
		"printf '{\"event\":\"hello\",\"protocol\":1,"
		"\"dir\":\"/var/lib/culprit\",\"pid\":%d}\\n' $$\n"
		"mute=\n"
		"while IFS= read -r line; do\n"
		"  [[ $line =~ \\\"id\\\":([0-9]+) ]] && id=${BASH_REMATCH[1]}\n"
		"  [[ $line =~ \\\"op\\\":\\\"([a-z.]+)\\\" ]] && op=${BASH_REMATCH[1]}\n"
		"  [[ $mute ]] && continue\n"
		"  case $op in\n"
		"  ping) pings=$((pings + 1)); echo "
		"\"{\\\"id\\\":$id,\\\"result\\\":{\\\"time_ns\\\":${EPOCHREALTIME/./}000}}\" ;;\n"
		"  pings) echo \"{\\\"id\\\":$id,\\\"result\\\":{\\\"pings\\\":$pings}}\" ;;\n"
		"  exit) echo 'first line' >&2; echo 'the disk is on fire' >&2; exit 7 ;;\n"
		"  junk) echo 'this is no JSON' ;;\n"
		"  long) head -c 1200000 /dev/zero | tr '\\0' x; sleep 100 ;;\n"
		"  mute) mute=1 ;;\n"
		"  flood) exec yes '{\"event\":\"undone\",\"handle\":\"d1\"}' ;;\n"
		"  event) echo '{\"event\":\"undone\",\"handle\":\"d1\",\"why\":\"max_s\"}'; echo "
		"\"{\\\"id\\\":$id,\\\"result\\\":{}}\" ;;\n"
		"  bye) echo \"{\\\"id\\\":$id,\\\"result\\\":{}}\"; exit 0 ;;\n"
		"  *) echo \"{\\\"id\\\":$id,\\\"error\\\":\\\"there is no op "
		"'$op'\\\",\\\"code\\\":-22}\" ;;\n"
		"  esac\n"
		"done\n";
	char path[128];

	snprintf(sshd_agent, sizeof(sshd_agent), "%s/agent", sshd_dir);
	mkdir(sshd_agent, 0700);
	snprintf(path, sizeof(path), "%s/culprit-agent", sshd_agent);
	assert_int_equal(file_write_atomic(path, 0755, script, sizeof(script) - 1, NULL), 0);
	sshd_sh("cp '%s/culprit-agent' %s/real", sshd_built_agent(), sshd_dir);
}

static inline void sshd_real_agent(void)
{
	snprintf(sshd_agent, sizeof(sshd_agent), "%s/agent", sshd_dir);
	sshd_sh("cp -r '%s' %s", sshd_built_agent(), sshd_agent);
}

static inline struct node_spec sshd_spec(const char *name)
{
	return (struct node_spec){.name = name,
		.address = "127.0.0.1",
		.port = SSHD_PORT,
		.identity = sshd_identity,
		.host_key = sshd_host_key};
}

/* A second sshd in its own network namespace, behind a veth pair: 'near' here, 10.99.0.2
 * there. */
static inline pid_t sshd_far(void)
{
	char dir[128];
	pid_t pid;

	snprintf(dir, sizeof(dir), "%s/far", sshd_dir);
	sshd_sh("rm -rf %s; mkdir %s", dir, dir);
	pid = sshd_start(dir, SSHD_PORT, true);
	sshd_sh("ip link add near type veth peer name far netns %d; ip addr add 10.99.0.1/24 dev "
		"near;"
		"ip link set near up; nsenter -t %d -n ip addr add 10.99.0.2/24 dev far;"
		"nsenter -t %d -n ip link set far up",
		pid, pid, pid);
	return pid;
}

static inline void sshd_far_stop(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	sshd_sh("ip link del near");
}

/* Bounds a hang of a connection, a call or a transfer. */
#define SSHD_HANG_S patient_s(120)

/* Limits that a working test never reaches, however busy the machine. */
static inline struct node_options sshd_options(void)
{
	return (struct node_options){.agent_dir = sshd_agent,
		.connect_timeout_s = SSHD_HANG_S,
		.timeout_s = SSHD_HANG_S,
		.lease_s = 2 * SSHD_HANG_S};
}

/* 0: use sshd_options. */
static inline struct nodeset *sshd_far_connect(double timeout_s, double lease_s)
{
	struct node_options opt = sshd_options();
	struct node_spec spec = sshd_spec("s1");
	struct nodeset *set = NULL;
	struct err e = {""};

	opt.timeout_s = timeout_s ? timeout_s : opt.timeout_s;
	opt.lease_s = lease_s ? lease_s : opt.lease_s;
	spec.address = "10.99.0.2";
	if (node_connect_all(&spec, 1, &opt, &set, &e))
		fail_msg("%s", e.text);
	return set;
}

/* 0: use sshd_options. */
static inline struct nodeset *sshd_connect(double timeout_s)
{
	const struct node_spec spec = sshd_spec("s1");
	struct node_options opt = sshd_options();
	struct nodeset *set = NULL;
	struct err e = {""};

	opt.timeout_s = timeout_s ? timeout_s : opt.timeout_s;
	if (node_connect_all(&spec, 1, &opt, &set, &e))
		fail_msg("%s", e.text);
	return set;
}

/* Set-up and tear-down of a group of tests, whose nodes have the real agent or the stand-in. */
static inline int sshd_with_agent(void **state)
{
	(void)state;
	sshd_setup();
	sshd_real_agent();
	return 0;
}

static inline int sshd_with_standin(void **state)
{
	(void)state;
	sshd_setup();
	sshd_standin();
	return 0;
}

static inline int sshd_teardown(void **state)
{
	(void)state;
	sshd_stop();
	return 0;
}

#endif
