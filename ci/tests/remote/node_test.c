/* harness/nodes against a real sshd: accepted and refused logins, and calls. */
#include "ci/tests/remote/node_sshd.h"

#include <dirent.h>
#include <libssh/server.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>

static int connect_spec(struct node_spec spec, double timeout_s, struct err *e)
{
	struct node_options opt = sshd_options();
	struct nodeset *set = NULL;
	int rc;

	opt.connect_timeout_s = timeout_s;
	rc = node_connect_all(&spec, 1, &opt, &set, e);
	if (rc < 0)
		assert_null(set);
	nodeset_free(set);
	return rc;
}

static void contains(const char *text, const char *part)
{
	if (!text || !strstr(text, part))
		fail_msg("'%s' is not in: %s", part, text ? text : "nothing");
}

/* Counts the entries of the agents' folder on the node. */
static int agents(const char *prefix)
{
	DIR *d = opendir("/var/lib/culprit/agent");
	struct dirent *ent;
	int n = 0;

	while (d && (ent = readdir(d)))
		n += strcmp(ent->d_name, ".") && strcmp(ent->d_name, "..") &&
			!strncmp(ent->d_name, prefix, strlen(prefix));
	if (d)
		closedir(d);
	return n;
}

static json_t *sleep_for(const char *s)
{
	return json_pack("{s:[s,s]}", "argv", "sleep", s);
}

static void twenty_nodes_connect_at_once_and_answer_side_by_side(void **state)
{
	struct node_options opt = sshd_options();
	struct node_request calls[20];
	struct node_spec specs[20];
	struct nodeset *set = NULL;
	char names[20][8];
	struct err e = {""};
	double start_s;
	size_t i;

	(void)state;
	for (i = 0; i < 20; i++) {
		snprintf(names[i], sizeof(names[i]), "n%zu", i);
		specs[i] = sshd_spec(names[i]);
	}
	start_s = clock_mono_s();
	if (node_connect_all(specs, 20, &opt, &set, &e))
		fail_msg("%s", e.text);
	printf("# 20 nodes connected in %.2f s\n", clock_mono_s() - start_s);
	assert_int_equal(nodeset_count(set), 20);
	assert_string_equal(node_name(nodeset_at(set, 7)), "n7");
	assert_null(nodeset_at(set, 20));
	/* Each waits for all others: run sequentially, none would end. */
	sshd_sh("mkdir %s/here", sshd_dir);
	for (i = 0; i < 20; i++)
		calls[i] = (struct node_request){.node = nodeset_at(set, i),
			.op = "run",
			.args = json_pack("{s:[s,s,s,s], s:f}", "argv", "sh", "-c",
				"cd \"$0\" && : >$$ && while set -- * && [ $# -lt 20 ]; do "
				"sleep 0.1; done",
				"/run/culprit-node-test/here", "timeout_s", SSHD_HANG_S)};
	if (node_call_all(calls, 20, SSHD_HANG_S, &e))
		fail_msg("%s", e.text);
	for (i = 0; i < 20; i++) {
		assert_int_equal(json_integer_value(json_object_get(calls[i].result, "exit")), 0);
		json_decref(calls[i].result);
	}
	nodeset_free(set);
	assert_int_equal(agents(""), 1);
}

static void a_changed_host_key_is_refused_before_anything_is_sent(void **state)
{
	struct node_spec spec = sshd_spec("s1");
	char path[128], *other = NULL, *log;
	struct err e = {""};

	(void)state;
	sshd_sh(": >%s/log", sshd_dir);
	snprintf(path, sizeof(path), "%s/other.pub", sshd_dir);
	assert_int_equal(file_read(path, &other, NULL, NULL), 0);
	spec.host_key = other;
	assert_int_equal(connect_spec(spec, SSHD_HANG_S, &e), -EKEYREJECTED);
	contains(e.text, "s1: host key of 127.0.0.1:2222 has changed");
	assert_non_null(strstr(e.text, "SHA256:"));
	contains(strchr(strstr(e.text, "SHA256:"), ','), "SHA256:");
	log = sshd_log();
	contains(log, "Connection from");
	assert_null(strstr(log, "userauth-request"));
	free(log);
	free(other);
}

static void a_host_without_a_key_of_the_pinned_type_is_refused(void **state)
{
	struct node_spec spec = sshd_spec("s1");
	struct err e = {""};

	(void)state;
	spec.host_key =
		"ecdsa-sha2-nistp256 "
		"AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBEmKSENjQEezOmxkZMy7opKg"
		"wFB9nkt5YRrYMjNuG5N87uRgg6CLrbo5wAdT/y6v0mKV0U2w0WZ2YB/++Tpockg=";
	assert_int_equal(connect_spec(spec, SSHD_HANG_S, &e), -EKEYREJECTED);
	spec.host_key = "not a key";
	assert_int_equal(connect_spec(spec, SSHD_HANG_S, &e), -EINVAL);
	contains(e.text, "host_key 'not a key'");
}

static void an_unknown_host_is_refused_and_a_known_one_is_not(void **state)
{
	struct node_spec spec = sshd_spec("s1");
	struct err e = {""};

	(void)state;
	spec.host_key = NULL;
	/* libssh asks the password database for the home folder. */
	sshd_sh("mount -t tmpfs tmpfs /root; mkdir -m 0700 /root/.ssh");
	assert_int_equal(connect_spec(spec, SSHD_HANG_S, &e), -EKEYREJECTED);
	contains(e.text, "is unknown (SHA256:");
	sshd_sh("echo \"[127.0.0.1]:2222 $(cat %s/host.pub)\" >/root/.ssh/known_hosts", sshd_dir);
	assert_int_equal(connect_spec(spec, SSHD_HANG_S, &e), 0);
	sshd_sh("echo \"[127.0.0.1]:2222 $(cat %s/other.pub)\" >/root/.ssh/known_hosts", sshd_dir);
	assert_int_equal(connect_spec(spec, SSHD_HANG_S, &e), -EKEYREJECTED);
	contains(e.text, "known_hosts");
	/* Without identity, the default key is found. */
	spec = sshd_spec("s1");
	spec.identity = NULL;
	assert_int_equal(connect_spec(spec, SSHD_HANG_S, &e), -EACCES);
	sshd_sh("cp %s/id /root/.ssh/id_ed25519; cp %s/id.pub /root/.ssh/id_ed25519.pub", sshd_dir,
		sshd_dir);
	assert_int_equal(connect_spec(spec, SSHD_HANG_S, &e), 0);
	sshd_sh("umount /root");
}

static void a_wrong_unreadable_or_open_identity_is_named(void **state)
{
	struct node_spec spec = sshd_spec("s1");
	char path[128], *log;
	struct err e = {""};

	(void)state;
	sshd_sh(": >%s/log", sshd_dir);
	snprintf(path, sizeof(path), "%s/other", sshd_dir);
	spec.identity = path;
	assert_int_equal(connect_spec(spec, SSHD_HANG_S, &e), -EACCES);
	contains(e.text, "does not accept key");
	/* The server accepts passwords; the client must not try any. */
	log = sshd_log();
	contains(log, "method publickey");
	assert_null(strstr(log, "method password"));
	assert_null(strstr(log, "method keyboard"));
	free(log);
	chmod(path, 0644);
	assert_int_equal(connect_spec(spec, SSHD_HANG_S, &e), -EACCES);
	contains(e.text, "chmod 600");
	chmod(path, 0600);
	sshd_sh("cd %s; rm -f locked locked.pub; ssh-keygen -q -t rsa -m PEM -N secret -f locked",
		sshd_dir);
	snprintf(path, sizeof(path), "%s/locked", sshd_dir);
	assert_int_equal(connect_spec(spec, SSHD_HANG_S, &e), -EACCES);
	contains(e.text, "passphrase");
	snprintf(path, sizeof(path), "%s/none", sshd_dir);
	assert_int_equal(connect_spec(spec, SSHD_HANG_S, &e), -ENOENT);
	contains(e.text, path);
}

static void a_refused_connection_is_reported(void **state)
{
	struct node_spec spec = sshd_spec("s2");
	struct err e = {""};

	(void)state;
	spec.port = 2;
	assert_int_equal(connect_spec(spec, SSHD_HANG_S, &e), -ECONNREFUSED);
	assert_string_equal(e.text, "s2: connection refused at 127.0.0.1:2");
}

static void a_host_that_accepts_and_stays_silent_times_out(void **state)
{
	struct sockaddr_in sin = {.sin_family = AF_INET,
		.sin_port = htons(2223),
		.sin_addr = {htonl(INADDR_LOOPBACK)}};
	struct node_spec spec = sshd_spec("s3");
	struct err e = {""};
	int fd;

	(void)state;
	fd = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&sin, sizeof(sin)), 0);
	assert_int_equal(listen(fd, 5), 0);
	spec.port = 2223;
	assert_int_equal(connect_spec(spec, 1, &e), -ETIMEDOUT);
	contains(e.text, "s3: no answer within 1 s at 127.0.0.1:2223 during the SSH handshake");
	close(fd);
}

/* A server that proves its key and then stays silent. 'arg': the listening socket. */
static void *mute_after_handshake(void *arg)
{
	char key[256], byte;
	int fd = accept(*(int *)arg, NULL, NULL);
	ssh_bind server = ssh_bind_new();
	ssh_session session = ssh_new();

	snprintf(key, sizeof(key), "%s/host", sshd_dir);
	if (ssh_bind_options_set(server, SSH_BIND_OPTIONS_HOSTKEY, key) != SSH_OK ||
		ssh_bind_accept_fd(server, session, fd) != SSH_OK ||
		ssh_handle_key_exchange(session) != SSH_OK)
		fprintf(stderr, "the server failed: %s\n", ssh_get_error(session));
	/* Until the client disconnects. */
	while (recv(ssh_get_fd(session), &byte, 1, 0) > 0)
		;
	ssh_free(session);
	ssh_bind_free(server);
	return NULL;
}

static void a_time_out_during_authentication_is_no_refusal(void **state)
{
	struct sockaddr_in sin = {.sin_family = AF_INET,
		.sin_port = htons(2224),
		.sin_addr = {htonl(INADDR_LOOPBACK)}};
	struct node_spec spec = sshd_spec("s3");
	struct err e = {""};
	pthread_t server;
	int fd;

	(void)state;
	fd = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&sin, sizeof(sin)), 0);
	assert_int_equal(listen(fd, 5), 0);
	assert_int_equal(pthread_create(&server, NULL, mute_after_handshake, &fd), 0);
	spec.port = 2224;
	assert_int_equal(connect_spec(spec, 3, &e), -ETIMEDOUT);
	assert_string_equal(
		e.text, "s3: no answer within 3 s at 127.0.0.1:2224 during authentication");
	pthread_join(server, NULL);
	close(fd);
}

static void a_failing_node_closes_all_connections(void **state)
{
	struct node_spec specs[3] = {sshd_spec("s1"), sshd_spec("s2"), sshd_spec("s3")};
	const struct node_options opt = sshd_options();
	struct nodeset *set = NULL;
	struct err e = {""};

	(void)state;
	specs[1].port = 2;
	assert_int_equal(node_connect_all(specs, 3, &opt, &set, &e), -ECONNREFUSED);
	assert_null(set);
	contains(e.text, "s2: ");
	/* Agent and guard both end. */
	sshd_sh("for i in $(seq 1000); do pgrep -f [c]ulprit-agent >/dev/null || exit 0; sleep "
		"0.1; done; "
		"exit 1");
	specs[1] = sshd_spec("s1");
	assert_int_equal(node_connect_all(specs, 3, &opt, &set, &e), -EINVAL);
	contains(e.text, "'s1'");
}

static void the_agent_is_uploaded_once_and_again_if_damaged(void **state)
{
	struct stat before, after;
	struct err e = {""};
	char path[512];
	DIR *d;
	struct dirent *ent;

	(void)state;
	sshd_sh("rm -rf /var/lib/culprit/agent");
	assert_int_equal(connect_spec(sshd_spec("s1"), SSHD_HANG_S, &e), 0);
	assert_int_equal(agents(""), 1);
	d = opendir("/var/lib/culprit/agent");
	while ((ent = readdir(d)) && ent->d_name[0] == '.')
		;
	assert_non_null(ent);
	assert_int_equal(strlen(ent->d_name), 16);
	snprintf(path, sizeof(path), "/var/lib/culprit/agent/%s", ent->d_name);
	closedir(d);
	assert_int_equal(stat(path, &before), 0);
	assert_int_equal(before.st_mode & 07777, 0700);
	assert_int_equal(connect_spec(sshd_spec("s1"), SSHD_HANG_S, &e), 0);
	assert_int_equal(stat(path, &after), 0);
	assert_int_equal(before.st_ino, after.st_ino);
	sshd_sh(": >%s/culprit-agent", path);
	assert_int_equal(connect_spec(sshd_spec("s1"), SSHD_HANG_S, &e), 0);
	assert_int_equal(agents(""), 1);
}

static void only_stale_partial_uploads_are_removed(void **state)
{
	struct err e = {""};

	(void)state;
	sshd_sh("cd /var/lib/culprit/agent; rm -rf *; mkdir .tmp-old .tmp-new; touch "
		".tmp-old/culprit-agent;"
		"touch -d '2 hours ago' .tmp-old");
	assert_int_equal(connect_spec(sshd_spec("s1"), SSHD_HANG_S, &e), 0);
	assert_int_equal(agents(".tmp-new"), 1);
	assert_int_equal(agents(".tmp-"), 1);
	sshd_sh("rmdir /var/lib/culprit/agent/.tmp-new");
}

static void a_full_disk_is_an_error_and_leaves_no_half_folder(void **state)
{
	struct err e = {""};

	(void)state;
	sshd_sh("rm -rf /var/lib/culprit/agent; mkdir /var/lib/culprit/agent;"
		"mount -t tmpfs -o size=64k tmpfs /var/lib/culprit/agent; head -c 500000 "
		"/dev/urandom "
		">%s/ballast",
		sshd_agent);
	assert_true(connect_spec(sshd_spec("s1"), SSHD_HANG_S, &e) < 0);
	contains(e.text, "cannot upload the agent: cat: write error: No space left on device");
	assert_int_equal(agents(""), 0);
	sshd_sh("umount /var/lib/culprit/agent; rm %s/ballast", sshd_agent);
}

static void another_user_than_root_keeps_the_agent_in_the_home_folder(void **state)
{
	struct node_spec spec = sshd_spec("s1");
	char path[128], *list = NULL;
	struct err e = {""};

	(void)state;
	/* A user of this mount namespace alone. */
	sshd_sh("cd %s; cp /etc/passwd passwd; cp /etc/shadow shadow; mkdir home; chmod 0755 .; "
		"chown 4242 home;"
		"echo 'tester:x:4242:100::%s/home:/bin/sh' >>passwd; echo 'tester:*:19000::::::' "
		">>shadow;"
		"mount --bind passwd /etc/passwd; mount --bind shadow /etc/shadow; chmod 0644 "
		"authorized",
		sshd_dir, sshd_dir);
	spec.user = "tester";
	if (connect_spec(spec, SSHD_HANG_S, &e))
		fail_msg("%s", e.text);
	sshd_sh("cd %s; stat -c '%%a %%u' home/.cache/culprit/agent/* >list; umount /etc/passwd "
		"/etc/shadow; chmod 0700 .",
		sshd_dir);
	snprintf(path, sizeof(path), "%s/list", sshd_dir);
	assert_int_equal(file_read(path, &list, NULL, NULL), 0);
	assert_string_equal(list, "700 4242\n");
	free(list);
}

static void two_orchestrators_can_upload_at_the_same_time(void **state)
{
	int round, i, status;

	(void)state;
	sshd_sh("head -c 3000000 /dev/urandom >%s/ballast", sshd_agent);
	for (round = 0; round < 3; round++) {
		sshd_sh("rm -rf /var/lib/culprit/agent");
		for (i = 0; i < 4; i++) {
			if (!fork()) {
				struct err e = {""};
				int rc = connect_spec(sshd_spec("s1"), SSHD_HANG_S, &e);

				if (rc)
					fprintf(stderr, "# %s\n", e.text);
				_exit(rc != 0);
			}
		}
		for (i = 0; i < 4; i++) {
			pid_t pid = waitpid(0, &status, 0);

			if (pid == sshd_pid)
				fail_msg("sshd has ended");
			assert_int_equal(status, 0);
		}
		assert_int_equal(agents(""), 1);
	}
	sshd_sh("rm %s/ballast", sshd_agent);
}

static void an_unknown_op_is_the_agents_sentence_and_code(void **state)
{
	struct nodeset *set = sshd_connect(0);
	json_t *result = NULL;
	struct err e = {""};

	(void)state;
	assert_int_equal(
		node_call(nodeset_at(set, 0), "nonsense", NULL, SSHD_HANG_S, &result, &e), -ENOSYS);
	contains(e.text, "s1: ");
	contains(e.text, "nonsense");
	assert_null(result);
	assert_int_equal(
		node_call(nodeset_at(set, 0), "ping", json_integer(3), SSHD_HANG_S, &result, &e),
		-EINVAL);
	nodeset_free(set);
}

static void a_late_answer_is_dropped_and_the_node_stays(void **state)
{
	struct nodeset *set = sshd_connect(0);
	struct node *n = nodeset_at(set, 0);
	json_t *result = NULL;
	struct err e = {""};

	(void)state;
	assert_int_equal(node_call(n, "run", sleep_for("0.5"), 0.1, NULL, &e), -ETIMEDOUT);
	contains(e.text, "s1: run: no answer within 0.1 s");
	assert_false(node_lost(n, NULL));
	assert_int_equal(
		node_call(n, "run",
			json_pack("{s:[s,s,s]}", "argv", "sh", "-c", "sleep 1; echo second"),
			SSHD_HANG_S, &result, &e),
		0);
	assert_string_equal(json_string_value(json_object_get(result, "output")), "second\n");
	json_decref(result);
	nodeset_free(set);
}

static void the_clock_offset_of_our_own_clock_is_about_nothing(void **state)
{
	struct nodeset *set = sshd_connect(0);
	double offset_s = 1, error_s = 1;
	struct err e = {""};

	(void)state;
	assert_int_equal(node_clock_offset(nodeset_at(set, 0), &offset_s, &error_s, &e), 0);
	assert_true(error_s > 0);
	assert_true(offset_s <= error_s + 1e-5 && offset_s >= -error_s - 1e-5);
	nodeset_free(set);
}

static void count_calls(void *n)
{
	++*(int *)n;
}

static void the_callback_runs_while_a_call_waits(void **state)
{
	struct nodeset *set = sshd_connect(0);
	struct node *n = nodeset_at(set, 0);
	struct err e = {""};
	int calls = 0;

	(void)state;
	nodeset_on_wait(set, count_calls, &calls);
	assert_int_equal(node_call(n, "run", sleep_for("2.5"), SSHD_HANG_S, NULL, &e), 0);
	assert_true(calls >= 1);
	nodeset_free(set);
}

static struct nodeset *interrupted_set;

static void on_alarm(int sig)
{
	(void)sig;
	nodeset_interrupt(interrupted_set);
}

static void a_signal_handler_interrupts_calls_until_resume(void **state)
{
	const struct sigaction act = {.sa_handler = on_alarm};
	struct err e = {""};

	(void)state;
	interrupted_set = sshd_connect(0);
	sigaction(SIGALRM, &act, NULL);
	alarm(1);
	assert_int_equal(node_call(nodeset_at(interrupted_set, 0), "run", sleep_for("1000"),
				 SSHD_HANG_S, NULL, &e),
		-EINTR);
	assert_int_equal(
		node_call(nodeset_at(interrupted_set, 0), "ping", NULL, SSHD_HANG_S, NULL, &e),
		-EINTR);
	nodeset_resume(interrupted_set);
	assert_int_equal(
		node_call(nodeset_at(interrupted_set, 0), "ping", NULL, SSHD_HANG_S, NULL, &e), 0);
	nodeset_free(interrupted_set);
}

static void the_callers_descriptor_interrupts_connecting(void **state)
{
	struct sockaddr_in sin = {.sin_family = AF_INET,
		.sin_port = htons(2224),
		.sin_addr = {htonl(INADDR_LOOPBACK)}};
	struct node_options opt = sshd_options();
	struct node_spec spec = sshd_spec("s1");
	struct nodeset *set = NULL;
	struct err e = {""};
	int fd, pipes[2];

	(void)state;
	fd = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&sin, sizeof(sin)), 0);
	assert_int_equal(listen(fd, 5), 0);
	assert_int_equal(pipe(pipes), 0);
	assert_int_equal(write(pipes[1], "x", 1), 1);
	spec.port = 2224;
	opt.interrupt_fd = pipes[0];
	assert_int_equal(node_connect_all(&spec, 1, &opt, &set, &e), -EINTR);
	close(fd);
	close(pipes[0]);
	close(pipes[1]);
}

static json_t *linked(const char *script, const char *out)
{
	return json_pack(
		"{s:[s,s,s], s:b, s:s}", "argv", "sh", "-c", script, "link", 1, "stdout", out);
}

/* The last line of a started program's output. */
static void wait_for_output(struct node *n, const char *name, const char *wanted)
{
	double until_s = clock_mono_s() + SSHD_HANG_S;
	char path[256], *text = NULL;

	snprintf(path, sizeof(path), "%s/%s", node_dir(n), name);
	do {
		free(text);
		text = NULL;
		usleep(2000);
		assert_int_equal(file_read(path, &text, NULL, NULL), 0);
	} while (strcmp(text, wanted) && clock_mono_s() < until_s);
	assert_string_equal(text, wanted);
	free(text);
}

/* A script on each node, linked with the others. */
static void start_linked(struct nodeset *set, const char *const *scripts, size_t n,
	struct node_end *ends, char (*handles)[64])
{
	struct err e = {""};

	for (size_t i = 0; i < n; i++) {
		json_t *r = NULL;

		if (node_call(nodeset_at(set, i), "process.start", linked(scripts[i], "out"),
			    SSHD_HANG_S, &r, &e))
			fail_msg("%s", e.text);
		snprintf(handles[i], sizeof(handles[i]), "%s",
			json_string_value(json_object_get(r, "handle")));
		ends[i] = (struct node_end){nodeset_at(set, i), handles[i]};
		json_decref(r);
	}
	nodeset_link(set, ends, n);
}

static void linked_programs_exchange_lines_only_with_each_other(void **state)
{
	struct node_options opt = sshd_options();
	struct node_spec specs[] = {sshd_spec("n0"), sshd_spec("n1"), sshd_spec("n2")};
	/* n2 gets only its hello; lines to it arrive from both at the same time. */
	const char *scripts[] = {"read -r x; echo $x; echo '1,2 ping' >&0; read -r x; echo $x; "
				 "echo '9 lost' >&0; cat >/dev/null",
		"read -r x; echo $x; read -r x; echo $x; echo 'nonsense' >&0; echo '0,2 pong' >&0; "
		"cat >/dev/null",
		"read -r x; echo $x; read -r x; echo $x; read -r x; echo $x; cat >/dev/null"};
	struct node_end ends[3];
	struct nodeset *set = NULL;
	struct err e = {""};
	char handles[3][64];

	(void)state;
	if (node_connect_all(specs, 3, &opt, &set, &e))
		fail_msg("%s", e.text);
	start_linked(set, scripts, 3, ends, handles);
	wait_for_output(ends[0].node, "out", "hello 0 3\n1 pong\n");
	wait_for_output(ends[1].node, "out", "hello 1 3\n0 ping\n");
	wait_for_output(ends[2].node, "out", "hello 2 3\n0 ping\n1 pong\n");
	nodeset_free(set);
}

/* A program that names an end several times would multiply its lines here. */
static void a_program_that_floods_others_loses_its_node(void **state)
{
	struct node_options opt = sshd_options();
	struct node_spec specs[] = {sshd_spec("n0"), sshd_spec("n1")};
	const char *scripts[] = {
		"read -r x; echo '1,1,1,1 x' >&0; cat >/dev/null", "cat >/dev/null"};
	struct node_end ends[2];
	struct nodeset *set = NULL;
	struct err e = {""};
	char handles[2][64];

	(void)state;
	if (node_connect_all(specs, 2, &opt, &set, &e))
		fail_msg("%s", e.text);
	start_linked(set, scripts, 2, ends, handles);
	for (int i = 0; i < 6000 && !node_lost(nodeset_at(set, 0), &e); i++)
		usleep(10000);
	assert_non_null(strstr(e.text, "n0: a program names one of 2 others twice in a line"));
	assert_int_equal(node_call(nodeset_at(set, 1), "ping", NULL, SSHD_HANG_S, NULL, &e), 0);
	nodeset_free(set);
}

static int tests(void)
{
	const struct CMUnitTest list[] = {
		cmocka_unit_test(twenty_nodes_connect_at_once_and_answer_side_by_side),
		cmocka_unit_test(a_changed_host_key_is_refused_before_anything_is_sent),
		cmocka_unit_test(a_host_without_a_key_of_the_pinned_type_is_refused),
		cmocka_unit_test(an_unknown_host_is_refused_and_a_known_one_is_not),
		cmocka_unit_test(a_wrong_unreadable_or_open_identity_is_named),
		cmocka_unit_test(a_refused_connection_is_reported),
		cmocka_unit_test(a_host_that_accepts_and_stays_silent_times_out),
		cmocka_unit_test(a_time_out_during_authentication_is_no_refusal),
		cmocka_unit_test(a_failing_node_closes_all_connections),
		cmocka_unit_test(the_agent_is_uploaded_once_and_again_if_damaged),
		cmocka_unit_test(only_stale_partial_uploads_are_removed),
		cmocka_unit_test(a_full_disk_is_an_error_and_leaves_no_half_folder),
		cmocka_unit_test(another_user_than_root_keeps_the_agent_in_the_home_folder),
		cmocka_unit_test(two_orchestrators_can_upload_at_the_same_time),
		cmocka_unit_test(an_unknown_op_is_the_agents_sentence_and_code),
		cmocka_unit_test(linked_programs_exchange_lines_only_with_each_other),
		cmocka_unit_test(a_program_that_floods_others_loses_its_node),
		cmocka_unit_test(a_late_answer_is_dropped_and_the_node_stays),
		cmocka_unit_test(the_callback_runs_while_a_call_waits),
		cmocka_unit_test(the_clock_offset_of_our_own_clock_is_about_nothing),
		cmocka_unit_test(a_signal_handler_interrupts_calls_until_resume),
		cmocka_unit_test(the_callers_descriptor_interrupts_connecting),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("node", list, sshd_with_agent, sshd_teardown);
}

int main(void)
{
	return sshd_tests(tests);
}
