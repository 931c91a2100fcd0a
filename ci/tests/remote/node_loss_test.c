/* harness/nodes against a real sshd: files, and every way to lose a node. */
#include "ci/tests/remote/node_sshd.h"

#include <dirent.h>

static void contains(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("'%s' is not in: %s", part, text);
}

struct seen {
	int events, lost;
	char last[300];
};

static void see(void *ctx, struct node *n, const json_t *event)
{
	const char *what = json_string_value(json_object_get(event, "event"));
	struct seen *s = ctx;

	assert_string_equal(node_name(n), "s1");
	s->events++;
	if (!strcmp(what, "lost")) {
		s->lost++;
		snprintf(s->last, sizeof(s->last), "%s",
			json_string_value(json_object_get(event, "why")));
	}
}

/* Waits for the loss, which must have this reason. */
static void expect_lost(struct nodeset *set, const char *words)
{
	struct node *n = nodeset_at(set, 0);
	double until_s = clock_mono_s() + SSHD_HANG_S;
	struct seen s = {0};
	struct err e = {""};

	while (!s.lost && clock_mono_s() < until_s)
		node_events(set, 1, see, &s);
	assert_int_equal(s.lost, 1);
	assert_true(node_lost(n, &e));
	contains(e.text, words);
	contains(e.text, "s1: ");
	assert_non_null(strstr(e.text, s.last));
	assert_int_equal(node_call(n, "ping", NULL, SSHD_HANG_S, NULL, &e), -ENOTCONN);
	contains(e.text, words);
}

/* Silence after which a node is lost, in tests of that: longer than the silence of a node that
 * only waits for a processor. */
#define SILENCE_S patient_s(2)

static const char *silence_words(void)
{
	static char words[64];

	snprintf(words, sizeof(words), "s1: no answer for %g s", SILENCE_S);
	return words;
}

static long agent_pid(struct nodeset *set)
{
	return (long)json_integer_value(json_object_get(node_hello(nodeset_at(set, 0)), "pid"));
}

static pid_t parent_of(long pid)
{
	char path[64], *text = NULL;
	int parent = 0;

	snprintf(path, sizeof(path), "/proc/%ld/status", pid);
	assert_int_equal(file_read(path, &text, NULL, NULL), 0);
	assert_int_equal(sscanf(strstr(text, "\nPPid:"), "\nPPid: %d", &parent), 1);
	free(text);
	return parent;
}

static void a_killed_agent_is_a_lost_node(void **state)
{
	struct nodeset *set = sshd_connect(0);

	(void)state;
	kill((pid_t)agent_pid(set), SIGKILL);
	expect_lost(set, "agent ended: killed by SIGKILL");
	nodeset_free(set);
}

static void a_killed_ssh_session_is_a_lost_node(void **state)
{
	struct nodeset *set = sshd_connect(0);

	(void)state;
	kill(parent_of(agent_pid(set)), SIGKILL);
	expect_lost(set, "connection lost");
	nodeset_free(set);
}

static void the_agents_last_output_is_the_reason(void **state)
{
	struct nodeset *set = sshd_connect(0);
	struct err e = {""};

	(void)state;
	assert_int_equal(
		node_call(nodeset_at(set, 0), "exit", NULL, SSHD_HANG_S, NULL, &e), -ENOTCONN);
	assert_string_equal(e.text, "s1: agent ended: the disk is on fire");
	expect_lost(set, "the disk is on fire");
	nodeset_free(set);
}

static void an_agent_with_invalid_messages_is_a_lost_node(void **state)
{
	struct nodeset *set = sshd_connect(0);
	struct err e = {""};

	(void)state;
	assert_int_equal(
		node_call(nodeset_at(set, 0), "junk", NULL, SSHD_HANG_S, NULL, &e), -ENOTCONN);
	contains(e.text, "invalid message: 'this is no JSON'");
	nodeset_free(set);
	set = sshd_connect(0);
	assert_int_equal(
		node_call(nodeset_at(set, 0), "long", NULL, SSHD_HANG_S, NULL, &e), -ENOTCONN);
	contains(e.text, "more than 1 MiB");
	nodeset_free(set);
}

static void an_agent_that_floods_with_events_is_a_lost_node(void **state)
{
	struct nodeset *set = sshd_connect(0);
	struct err e = {""};

	(void)state;
	assert_int_equal(node_call(nodeset_at(set, 0), "flood", NULL, 10 * SSHD_HANG_S, NULL, &e),
		-ENOTCONN);
	contains(e.text, "sends too many events");
	nodeset_free(set);
}

static void an_agent_that_falls_silent_is_a_lost_node(void **state)
{
	struct nodeset *set = sshd_connect(SILENCE_S);
	struct err e = {""};

	(void)state;
	/* The call's own limit is much longer. */
	assert_int_equal(
		node_call(nodeset_at(set, 0), "mute", NULL, SSHD_HANG_S, NULL, &e), -ENOTCONN);
	assert_string_equal(e.text, silence_words());
	nodeset_free(set);
	/* The same if the SSH server stops. */
	set = sshd_connect(SILENCE_S);
	kill(parent_of(agent_pid(set)), SIGSTOP);
	expect_lost(set, silence_words());
	kill(parent_of(agent_pid(set)), SIGKILL);
	nodeset_free(set);
}

static void events_of_the_agent_reach_the_caller(void **state)
{
	struct nodeset *set = sshd_connect(0);
	struct seen s = {0};
	struct err e = {""};

	(void)state;
	assert_int_equal(node_events(set, 0, see, &s), 0);
	assert_int_equal(node_call(nodeset_at(set, 0), "event", NULL, SSHD_HANG_S, NULL, &e), 0);
	assert_int_equal(node_events(set, SSHD_HANG_S, see, &s), 1);
	assert_int_equal(s.events, 1);
	nodeset_free(set);
}

static void a_network_that_goes_away_is_a_lost_node(void **state)
{
	struct node_transfer fetch = {.remote = "/run/culprit-node-test/big"};
	struct nodeset *set;
	struct err e = {""};
	char local[128];
	pid_t pid = sshd_far();

	(void)state;
	set = sshd_far_connect(SILENCE_S, 0);
	sshd_sh("ip link set near down");
	expect_lost(set, silence_words());
	nodeset_free(set);

	/* In the middle of a transfer, while the library waits. */
	sshd_sh("ip link set near up; truncate -s 200M %s/big;"
		"nsenter -t %d -n tc qdisc add dev far root tbf rate 80mbit burst 64k latency 50ms",
		sshd_dir, pid);
	set = sshd_far_connect(SILENCE_S, 0);
	fetch.node = nodeset_at(set, 0);
	snprintf(local, sizeof(local), "%s/fetched", sshd_dir);
	fetch.local = local;
	if (!fork()) {
		sshd_sh("until ls %s | grep -q part; do sleep 0.05; done; ip link set near down",
			sshd_dir);
		_exit(0);
	}
	assert_int_equal(node_fetch_all(&fetch, 1, SSHD_HANG_S, &e), -ENOTCONN);
	contains(e.text, silence_words());
	nodeset_free(set);
	assert_int_not_equal(access(local, F_OK), 0);
	sshd_sh("ls %s | (! grep part); rm %s/big", sshd_dir, sshd_dir);
	sshd_far_stop(pid);
}

static void the_heartbeat_continues_during_a_large_fetch(void **state)
{
	struct node_options opt = sshd_options();
	const struct node_spec spec = sshd_spec("s1");
	struct node_transfer t[2];
	char local[128], more[128];
	struct nodeset *set = NULL;
	json_t *result = NULL;
	struct err e = {""};
	double begin_s;

	(void)state;
	/* Four heartbeats, shorter than the transfer; the stand-in ends without heartbeats. */
	opt.lease_s = patient_s(1) < 2 ? patient_s(1) : 2;
	sshd_sh("head -c 50000000 /dev/urandom >%s/big; echo small >%s/small", sshd_dir, sshd_dir);
	if (node_connect_all(&spec, 1, &opt, &set, &e))
		fail_msg("%s", e.text);
	/* At this rate it takes 4 s, which are 8 heartbeats or more. */
	sshd_sh("tc qdisc add dev lo root tbf rate 100mbit burst 256k latency 100ms");
	snprintf(local, sizeof(local), "%s/fetched", sshd_dir);
	snprintf(more, sizeof(more), "%s/fetched-small", sshd_dir);
	t[0] = (struct node_transfer){
		.node = nodeset_at(set, 0), .local = local, .remote = "/run/culprit-node-test/big"};
	t[1] = (struct node_transfer){.node = nodeset_at(set, 0),
		.local = more,
		.remote = "/run/culprit-node-test/small"};
	begin_s = clock_mono_s();
	if (node_fetch_all(t, 2, SSHD_HANG_S, &e))
		fail_msg("%s", e.text);
	sshd_sh("tc qdisc del dev lo root; cmp %s/big %s; cmp %s/small %s", sshd_dir, local,
		sshd_dir, more);
	assert_int_equal(node_call(nodeset_at(set, 0), "pings", NULL, SSHD_HANG_S, &result, &e), 0);
	assert_in_range(json_integer_value(json_object_get(result, "pings")),
		(uintmax_t)(8 / opt.lease_s), (uintmax_t)(8 + 4 * (clock_mono_s() - begin_s)));
	json_decref(result);
	nodeset_free(set);
	sshd_sh("cd %s; rm big fetched fetched-small small", sshd_dir);
}

static void a_put_is_complete_and_replaces_the_file(void **state)
{
	struct nodeset *set = sshd_connect(0);
	struct node_transfer t = {.node = nodeset_at(set, 0),
		.local = "/run/culprit-node-test/here",
		.remote = "there"};
	struct err e = {""};

	(void)state;
	assert_string_equal(node_dir(t.node), "/var/lib/culprit");
	sshd_sh("cd %s; head -c 3000001 /dev/urandom >here; echo before >/var/lib/culprit/there",
		sshd_dir);
	if (node_put_all(&t, 1, SSHD_HANG_S, &e))
		fail_msg("%s", e.text);
	sshd_sh("cmp %s/here /var/lib/culprit/there; ls -a /var/lib/culprit | (! grep part)",
		sshd_dir);
	sshd_sh(": >%s/here", sshd_dir);
	assert_int_equal(node_put_all(&t, 1, SSHD_HANG_S, &e), 0);
	sshd_sh("cmp %s/here /var/lib/culprit/there", sshd_dir);
	nodeset_free(set);
}

static void failed_transfers_give_a_reason_and_leave_no_file(void **state)
{
	struct nodeset *set = sshd_connect(0);
	struct node_transfer t = {.node = nodeset_at(set, 0),
		.local = "/run/culprit-node-test/none",
		.remote = "/nowhere/file"};
	struct err e = {""};

	(void)state;
	assert_int_equal(node_fetch_all(&t, 1, SSHD_HANG_S, &e), -ENOENT);
	contains(e.text, "s1: cannot open '/nowhere/file' there: No such file");
	assert_int_equal(node_put_all(&t, 1, SSHD_HANG_S, &e), -ENOENT);
	contains(e.text, "/run/culprit-node-test/none");
	t.local = "/nowhere/here";
	t.remote = "/etc/hostname";
	assert_int_equal(node_fetch_all(&t, 1, SSHD_HANG_S, &e), -ENOENT);
	contains(e.text, "/nowhere/here");
	sshd_sh("truncate -s 300M %s/big", sshd_dir);
	t.remote = "/run/culprit-node-test/big";
	t.local = "/run/culprit-node-test/part-of-big";
	assert_int_equal(node_fetch_all(&t, 1, 0.2, &e), -ETIMEDOUT);
	/* The thread lets go of it at the next part: a small transfer then runs at once. */
	t.remote = "/etc/hostname";
	t.local = "/run/culprit-node-test/hostname";
	assert_int_equal(node_fetch_all(&t, 1, SSHD_HANG_S, &e), 0);
	sshd_sh("cd %s; cmp hostname /etc/hostname; rm big hostname; ls | (! grep part)", sshd_dir);
	nodeset_free(set);
}

static void a_file_size_from_a_node_is_checked(void **state)
{
	struct nodeset *set = sshd_connect(0);
	struct node_transfer t = {.node = nodeset_at(set, 0),
		.local = "/run/culprit-node-test/believed",
		.remote = "/etc/hostname"};
	struct err e = {""};

	(void)state;
	sshd_sh("echo '{\"size\":-1}' >%s/lie", sshd_dir);
	assert_int_equal(node_fetch_all(&t, 1, SSHD_HANG_S, &e), -EPROTO);
	contains(e.text, "says that '/etc/hostname' has -1 bytes");
	sshd_sh("echo '{\"size\":4611686018427387904}' >%s/lie", sshd_dir);
	assert_int_equal(node_fetch_all(&t, 1, SSHD_HANG_S, &e), -ENOSPC);
	contains(e.text, "has 4611686018427387904 bytes, but this machine has room for");
	sshd_sh("echo '{\"size\":9}' >%s/lie", sshd_dir);
	assert_int_equal(node_fetch_all(&t, 1, SSHD_HANG_S, &e), -EPROTO);
	contains(e.text, "a line too long");
	sshd_sh("cd %s; rm lie; ls | (! grep believed)", sshd_dir);
	assert_int_equal(node_fetch_all(&t, 1, SSHD_HANG_S, &e), 0);
	nodeset_free(set);
}

static int uploads(const char *prefix)
{
	DIR *d = opendir("/var/lib/culprit/agent");
	struct dirent *ent;
	int n = 0;

	while (d && (ent = readdir(d)))
		n += !strncmp(ent->d_name, prefix, strlen(prefix)) &&
			strspn(ent->d_name, ".") != strlen(ent->d_name);
	if (d)
		closedir(d);
	return n;
}

static void an_interrupted_upload_is_never_used(void **state)
{
	const struct node_options opt = sshd_options();
	const struct node_spec spec = sshd_spec("s1");
	struct nodeset *set = NULL;
	struct err e = {""};
	pid_t pid;
	int i, status;

	(void)state;
	/* At this rate it takes minutes, so it is in progress whenever this process checks. */
	sshd_sh("rm -rf /var/lib/culprit/agent; head -c 20000000 /dev/urandom >%s/ballast;"
		"tc qdisc add dev lo root tbf rate 2mbit burst 256k latency 100ms",
		sshd_agent);
	pid = fork();
	if (!pid)
		_exit(node_connect_all(&spec, 1, &opt, &set, &e) ? 1 : 0);
	for (i = 0; i < 6000 && !uploads(".tmp-"); i++)
		usleep(10000);
	assert_int_equal(uploads(".tmp-"), 1);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	/* The shell on the node may have removed its half in the meantime. */
	assert_int_equal(uploads("") - uploads(".tmp-"), 0);
	sshd_sh("tc qdisc del dev lo root; cd /var/lib/culprit/agent; "
		"find . -name '.tmp-*' -exec touch -d '2 hours ago' {} +");
	if (node_connect_all(&spec, 1, &opt, &set, &e))
		fail_msg("%s", e.text);
	nodeset_free(set);
	assert_int_equal(uploads(".tmp-"), 0);
	assert_int_equal(uploads(""), 1);
	sshd_sh("rm %s/ballast", sshd_agent);
}

static int tests(void)
{
	const struct CMUnitTest list[] = {
		cmocka_unit_test(a_killed_agent_is_a_lost_node),
		cmocka_unit_test(a_killed_ssh_session_is_a_lost_node),
		cmocka_unit_test(the_agents_last_output_is_the_reason),
		cmocka_unit_test(an_agent_with_invalid_messages_is_a_lost_node),
		cmocka_unit_test(an_agent_that_floods_with_events_is_a_lost_node),
		cmocka_unit_test(an_agent_that_falls_silent_is_a_lost_node),
		cmocka_unit_test(events_of_the_agent_reach_the_caller),
		cmocka_unit_test(a_network_that_goes_away_is_a_lost_node),
		cmocka_unit_test(the_heartbeat_continues_during_a_large_fetch),
		cmocka_unit_test(a_put_is_complete_and_replaces_the_file),
		cmocka_unit_test(a_file_size_from_a_node_is_checked),
		cmocka_unit_test(failed_transfers_give_a_reason_and_leave_no_file),
		cmocka_unit_test(an_interrupted_upload_is_never_used),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("node_loss", list, sshd_with_standin, sshd_teardown);
}

int main(void)
{
	return sshd_tests(tests);
}
