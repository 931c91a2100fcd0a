/* harness/nodes with the real agent: whatever happens to the orchestrator or the network, the
 * node returns to its previous state. */
#include "ci/tests/remote/node_sshd.h"

/* A lease that must expire in the test: longer than agent and orchestrator are silent when they
 * only wait for a processor. */
#define LEASE_S patient_s(3)

/* The state that must be undone, as text. 'set' is an observer, whose own session is included. */
static char *fingerprint(struct nodeset *set)
{
	json_t *result = NULL;
	struct err e = {""};
	char *text;

	if (node_call(nodeset_at(set, 0), "fingerprint", NULL, SSHD_HANG_S, &result, &e))
		fail_msg("%s", e.text);
	/* Loop devices are shared by the whole machine: others may attach some in the meantime. */
	json_object_del(result, "block_devices");
	text = json_dumps(result, JSON_SORT_KEYS);
	json_decref(result);
	return text;
}

static void no_table(struct nodeset *set)
{
	char *now = fingerprint(set);

	if (!strstr(now, "\"nft\": []"))
		fail_msg("there is a table left: %s", now);
	free(now);
}

static void is_as_before(struct nodeset *set, const char *before, double within_s)
{
	double until_s = clock_mono_s() + within_s;
	char *now;

	for (;;) {
		now = fingerprint(set);
		if (!strcmp(now, before))
			break;
		if (clock_mono_s() > until_s)
			fail_msg("%s\nis not as before: %s", now, before);
		free(now);
		usleep(50000);
	}
	free(now);
}

static void act(struct nodeset *set)
{
	struct err e = {""};

	if (node_call(nodeset_at(set, 0), "process.start",
		    json_pack("{s:[s,s]}", "argv", "sleep", "1000"), SSHD_HANG_S, NULL, &e) ||
		node_call(nodeset_at(set, 0), "packets.drop",
			json_pack("{s:i,s:[s]}", "percent", 50, "from", "10.99.0.77"), SSHD_HANG_S,
			NULL, &e))
		fail_msg("%s", e.text);
}

static void an_orchestrator_that_is_killed_leaves_the_node_as_it_was(void **state)
{
	pid_t far = sshd_far(), orchestrator;
	struct nodeset *observer = sshd_far_connect(0, 0);
	char *before = fingerprint(observer), *now, c;
	int pipes[2];

	(void)state;
	assert_int_equal(pipe(pipes), 0);
	orchestrator = fork();
	if (!orchestrator) {
		struct nodeset *set = sshd_far_connect(0, 0);

		act(set);
		_exit(write(pipes[1], "x", 1) == 1 && pause());
	}
	close(pipes[1]);
	assert_int_equal(read(pipes[0], &c, 1), 1);
	close(pipes[0]);
	now = fingerprint(observer);
	assert_string_not_equal(now, before);
	assert_non_null(strstr(now, "culprit"));
	free(now);
	kill(orchestrator, SIGKILL);
	waitpid(orchestrator, NULL, 0);
	is_as_before(observer, before, SSHD_HANG_S);

	/* A stopped orchestrator counts as gone: the lease expires. */
	assert_int_equal(pipe(pipes), 0);
	orchestrator = fork();
	if (!orchestrator) {
		struct nodeset *set = sshd_far_connect(0, LEASE_S);

		act(set);
		_exit(write(pipes[1], "x", 1) == 1 && pause());
	}
	close(pipes[1]);
	assert_int_equal(read(pipes[0], &c, 1), 1);
	close(pipes[0]);
	kill(orchestrator, SIGSTOP);
	is_as_before(observer, before, SSHD_HANG_S);
	kill(orchestrator, SIGKILL);
	waitpid(orchestrator, NULL, 0);
	free(before);
	nodeset_free(observer);
	sshd_far_stop(far);
}

static void a_fault_that_cuts_ssh_itself_is_undone_within_the_lease(void **state)
{
	pid_t far = sshd_far();
	struct nodeset *set = sshd_far_connect(LEASE_S - 1, LEASE_S);
	struct node_options opt = sshd_options();
	struct node_spec spec = sshd_spec("s1");
	struct err e = {""};
	char words[64];
	double cut_s;

	(void)state;
	if (node_call(nodeset_at(set, 0), "packets.drop", json_pack("{s:i}", "percent", 100),
		    SSHD_HANG_S, NULL, &e))
		fail_msg("%s", e.text);
	cut_s = clock_mono_s();
	assert_int_equal(node_call(nodeset_at(set, 0), "run", json_pack("{s:[s]}", "argv", "true"),
				 SSHD_HANG_S, NULL, &e),
		-ENOTCONN);
	snprintf(words, sizeof(words), "s1: no answer for %g s", LEASE_S - 1);
	assert_non_null(strstr(e.text, words));
	nodeset_free(set);
	set = NULL;
	/* TCP tries again after 1, 2, 4 s: within the limit once the guard has acted. */
	spec.address = "10.99.0.2";
	if (node_connect_all(&spec, 1, &opt, &set, &e))
		fail_msg("%s", e.text);
	printf("# reachable again %.1f s after the cut, lease %g s\n", clock_mono_s() - cut_s,
		LEASE_S);
	assert_int_equal(
		json_array_size(json_object_get(node_hello(nodeset_at(set, 0)), "cleaned")), 0);
	nodeset_free(set);
	sshd_far_stop(far);
}

static void agent_and_guard_killed_the_next_contact_cleans(void **state)
{
	pid_t far = sshd_far();
	struct nodeset *set = sshd_far_connect(0, 0);
	const json_t *hello;

	(void)state;
	act(set);
	/* The PID namespace shows only this test's processes; they are stopped first, so that
	 * none sees another one end. */
	sshd_sh("pkill -STOP -f [c]ulprit-agent; pkill -KILL -f [c]ulprit-agent");
	nodeset_free(set);
	set = sshd_far_connect(0, 0);
	hello = node_hello(nodeset_at(set, 0));
	assert_true(json_array_size(json_object_get(hello, "cleaned")) >= 1);
	no_table(set);
	nodeset_free(set);
	sshd_sh("(! pgrep -x sleep)");
	sshd_far_stop(far);
}

static void bye_leaves_no_session_behind(void **state)
{
	pid_t far = sshd_far();
	struct nodeset *set = sshd_far_connect(0, 0);
	char *dir = strdup(node_dir(nodeset_at(set, 0)));

	(void)state;
	act(set);
	assert_int_equal(access(dir, F_OK), 0);
	nodeset_free(set);
	assert_int_not_equal(access(dir, F_OK), 0);
	free(dir);
	sshd_sh("(! pgrep -f [c]ulprit-agent); (! pgrep -x sleep); ls -A /var/lib/culprit | (! "
		"grep -v -e "
		"agent -e undo);"
		"test -z \"$(ls /var/lib/culprit/undo)\"");
	set = sshd_far_connect(0, 0);
	assert_int_equal(
		json_array_size(json_object_get(node_hello(nodeset_at(set, 0)), "cleaned")), 0);
	no_table(set);
	nodeset_free(set);
	sshd_far_stop(far);
}

static int tests(void)
{
	const struct CMUnitTest list[] = {
		cmocka_unit_test(an_orchestrator_that_is_killed_leaves_the_node_as_it_was),
		cmocka_unit_test(a_fault_that_cuts_ssh_itself_is_undone_within_the_lease),
		cmocka_unit_test(agent_and_guard_killed_the_next_contact_cleans),
		cmocka_unit_test(bye_leaves_no_session_behind),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("node_guard", list, sshd_with_agent, sshd_teardown);
}

int main(void)
{
	return sshd_tests(tests);
}
