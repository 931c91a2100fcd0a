/* The guard: whatever dies or falls silent, the node is as it was before. */
#include "ci/tests/agent/agent_peer.h"

#include <sys/prctl.h>

#include "harness/agent/guard.h"
#include "harness/agent/node_id.h"

/* A hog with a family that tries to get away, and two packet drops; waits until all act. */
static void act(struct peer *p)
{
	static const char family[] = "(setsid sh -c 'sleep 1000 & sleep 1001' &) & "
				     "(trap '' TERM HUP; sleep 1002) & sleep 1003 & wait";
	char tag[128];
	json_t *result;
	int n = 0;

	result = peer_call(
		p, "process.start", json_pack("{s:[s,s,s]}", "argv", "sh", "-c", family));
	snprintf(tag, sizeof(tag), "%s/%s", p->session, take_text(result, "handle"));
	json_decref(peer_call(p, "packets.drop", json_pack("{s:f}", "percent", 5.0)));
	json_decref(peer_call(
		p, "packets.drop", json_pack("{s:i, s:s}", "percent", 100, "direction", "out")));
	/* sh, sh in its own session, the trap's subshell, and four sleeps: some shells exec the
	 * last. */
	for (double end = clock_mono_s() + PEER_TIMEOUT_S; n < 6 && clock_mono_s() < end;) {
		pid_t *pids = NULL;

		n = proc_find_tagged(PROCESS_TAG, tag, false, &pids);
		free(pids);
	}
	assert_true(n >= 6);
}

static pid_t guard_of(const struct peer *p)
{
	char path[64], *text;
	pid_t pid = 0;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)p->pid, (int)p->pid);
	assert_int_equal(file_read(path, &text, NULL, NULL), 0);
	for (char *save, *word = strtok_r(text, " ", &save); word && !pid;
		word = strtok_r(NULL, " ", &save)) {
		char comm[64], *name;

		snprintf(comm, sizeof(comm), "/proc/%s/comm", word);
		assert_int_equal(file_read(comm, &name, NULL, NULL), 0);
		if (!strcmp(name, "culprit-guard\n"))
			pid = atoi(word);
		free(name);
	}
	free(text);
	assert_true(pid > 0);
	return pid;
}

/* Kills it and waits until it holds no lock any more. */
static void kill_guard(pid_t guard)
{
	struct timespec nap = {.tv_nsec = 1000000};
	uint64_t ticks;

	kill(guard, SIGKILL);
	while (!proc_start_time(guard, &ticks))
		nanosleep(&nap, NULL);
}

static void agent_killed(void **unused)
{
	char *before = fingerprint();
	struct peer p;

	(void)unused;
	peer_start(&p, "10s", NULL, NULL);
	act(&p);
	kill(p.pid, SIGKILL);
	printf("# agent killed: clean after %.3f s\n", until_clean(before, 10));
	assert_int_equal(peer_end(&p), 128 + SIGKILL);
	free(before);
}

static void guard_killed(void **unused)
{
	char *before = fingerprint();
	struct peer p;
	json_t *end;

	(void)unused;
	peer_start(&p, "10s", NULL, NULL);
	act(&p);
	kill(guard_of(&p), SIGKILL);
	printf("# guard killed: clean after %.3f s\n", until_clean(before, 10));
	end = peer_event(&p, "end");
	assert_string_equal(json_string_value(json_object_get(end, "why")), "the guard died");
	assert_true(json_is_true(json_object_get(end, "undone")));
	json_decref(end);
	assert_int_equal(peer_end(&p), 4);
	free(before);
}

static void both_killed(void **unused)
{
	char *before = fingerprint(), *left, *text;
	json_t *cleaned;
	struct peer p;

	(void)unused;
	peer_start(&p, "10s", NULL, NULL);
	act(&p);
	/* The guard is stopped first, so that it cannot tidy up in between. */
	pid_t guard = guard_of(&p);
	kill(guard, SIGSTOP);
	kill(p.pid, SIGKILL);
	kill_guard(guard);
	assert_int_equal(peer_end(&p), 128 + SIGKILL);
	left = fingerprint();
	assert_string_not_equal(left, before);
	free(left);

	peer_start(&p, "10s", NULL, NULL);
	cleaned = json_object_get(p.hello, "cleaned");
	assert_int_equal(json_array_size(cleaned), 3);
	text = json_dumps(cleaned, 0);
	assert_non_null(strstr(text, "packets culprit_"));
	assert_non_null(strstr(text, "process "));
	free(text);
	assert_int_equal(json_array_size(json_object_get(p.hello, "unclean")), 0);
	assert_int_equal(peer_end(&p), 0);
	until_clean(before, 0);
	free(before);
}

static void input_closed(void **unused)
{
	char *before = fingerprint();
	struct peer p;

	(void)unused;
	peer_start(&p, "10s", NULL, NULL);
	act(&p);
	assert_int_equal(peer_end(&p), 0);
	until_clean(before, 0);
	free(before);
}

static void output_closed_with_the_agent(void **unused)
{
	char *before = fingerprint();
	struct peer p;

	/* Were the guard or a started program to hold it, SSH would wait for them. */
	(void)unused;
	peer_start(&p, "10s", NULL, NULL);
	act(&p);
	kill(p.pid, SIGKILL);
	while (peer_read(&p))
		;
	peer_end(&p);
	until_clean(before, 10);
	free(before);
}

static void silence(void **unused)
{
	char *before = fingerprint();
	struct peer p;
	double took;

	(void)unused;
	peer_start(&p, "1s", NULL, NULL);
	act(&p);
	took = until_clean(before, 10);
	printf("# silent with a lease of 1 s: clean after %.3f s\n", took);
	assert_int_equal(peer_end(&p), 128 + SIGKILL);
	free(before);
}

static void heartbeat_keeps_the_lease(void **unused)
{
	char *before = fingerprint(), *now;
	struct peer p;

	(void)unused;
	peer_start(&p, "500ms", NULL, NULL);
	act(&p);
	for (int i = 0; i < 30; i++) {
		struct timespec nap = {.tv_nsec = 50000000};

		json_decref(peer_call(&p, "ping", NULL));
		nanosleep(&nap, NULL);
	}
	now = fingerprint();
	assert_string_not_equal(now, before);
	free(now);
	assert_int_equal(peer_end(&p), 0);
	until_clean(before, 0);
	free(before);
}

static void agent_stopped(void **unused)
{
	char *before = fingerprint();
	struct peer p;

	(void)unused;
	peer_start(&p, "1s", NULL, NULL);
	act(&p);
	kill(p.pid, SIGSTOP);
	until_clean(before, 10);
	assert_int_equal(peer_end(&p), 128 + SIGKILL);
	free(before);
}

static void maximum_reached(void **unused)
{
	json_t *event, *result;
	struct peer p;
	char *before;

	(void)unused;
	peer_start(&p, "10s", NULL, NULL);
	before = fingerprint();
	json_decref(peer_call(
		&p, "packets.drop", json_pack("{s:f, s:f}", "percent", 5.0, "max_s", 0.2)));
	json_decref(peer_call(&p, "process.start",
		json_pack("{s:[s,s], s:f}", "argv", "sleep", "1000", "max_s", 0.2)));
	for (int i = 0; i < 2; i++) {
		event = peer_event(&p, "undone");
		assert_string_equal(json_string_value(json_object_get(event, "why")), "max_s");
		json_decref(event);
	}
	until_clean(before, 0);
	/* The handle can still be asked, and is there to be dropped. */
	result = peer_call(&p, "undo", json_pack("{s:s}", "handle", "d1"));
	assert_true(json_is_false(json_object_get(result, "undone")));
	json_decref(result);
	assert_int_equal(
		take_int(peer_call(&p, "process.stop", json_pack("{s:s}", "handle", "p2")), "exit"),
		137);
	free(before);
	assert_int_equal(peer_end(&p), 0);
}

/* An agent of our own that dies at a chosen moment. 'moment': 0 after the journal, before the act;
 * 1 after the act, before it told the guard. */
static void die_at(int moment, const char *primitive)
{
	struct process_gate gate;
	const char *argv[] = {"sleep", "1000", NULL};
	char session[33], tag[64];
	struct guard *g;
	json_t *inverse;

	snprintf(session, sizeof(session), "%08x%08x", (unsigned)getpid(), (unsigned)moment);
	if (guard_start(state_dir, session, 10, &g, NULL))
		_exit(1);
	snprintf(tag, sizeof(tag), "%s/h1", session);
	if (!strcmp(primitive, "process")) {
		if (process_fork(&(struct process_spec){.argv = argv,
					 .tag = tag,
					 .in = -1,
					 .out = -1,
					 .err = -1,
					 .pass = -1},
			    &gate, &inverse, NULL) ||
			guard_record(g, "h1", primitive, inverse, 0, NULL))
			_exit(1);
		if (moment)
			process_release(&gate, "sleep", NULL);
	} else {
		const struct packets_spec s = {.percent = 5};

		inverse = packets_inverse(packets_backend_find("nftables"), session, "h1");
		if (guard_record(g, "h1", primitive, inverse, 0, NULL))
			_exit(1);
		if (moment)
			packets_drop(&s, inverse, NULL);
	}
	raise(SIGKILL);
}

static void killed_around_the_act(void **unused)
{
	char *before = fingerprint();

	(void)unused;
	for (int i = 0; i < 4; i++) {
		int status;
		pid_t pid = fork();

		assert_true(pid >= 0);
		if (pid == 0)
			die_at(i & 1, i & 2 ? "process" : "packets");
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
		until_clean(before, 10);
	}
	free(before);
}

/* In the midst of a burst of acts, at moments that move through it, the agent, the guard or both
 * die. */
static void killed_at_any_moment(void **unused)
{
	static const char *const burst[] = {
		"{\"id\":1,\"op\":\"process.start\",\"argv\":[\"sh\",\"-c\",\"setsid sleep 1000 & sleep 1001\"]}",
		"{\"id\":2,\"op\":\"packets.drop\",\"percent\":5}",
		"{\"id\":3,\"op\":\"run\",\"argv\":[\"sh\",\"-c\",\"sleep 1000 & true\"]}",
		"{\"id\":4,\"op\":\"packets.drop\",\"percent\":100,\"direction\":\"out\"}",
		"{\"id\":5,\"op\":\"undo\",\"handle\":\"d2\"}",
		"{\"id\":6,\"op\":\"process.stop\",\"handle\":\"p1\"}",
	};
	char *before = fingerprint();
	double longest = 0;

	(void)unused;
	for (int i = 0; i < 60; i++) {
		struct timespec nap = {.tv_nsec = (i / 3) * 700000};
		struct peer p;
		pid_t guard;

		peer_start(&p, "10s", NULL, NULL);
		guard = guard_of(&p);
		for (size_t j = 0; j < sizeof(burst) / sizeof(burst[0]); j++)
			peer_send(&p, burst[j]);
		nanosleep(&nap, NULL);
		if (i % 3 == 2)
			kill(guard, SIGSTOP);
		if (i % 3 != 1)
			kill(p.pid, SIGKILL);
		if (i % 3 != 0)
			kill_guard(guard);
		if (i % 3 == 2) {
			/* The next one on the node cleans. */
			peer_end(&p);
			peer_start(&p, "10s", NULL, NULL);
			assert_int_equal(json_array_size(json_object_get(p.hello, "unclean")), 0);
			assert_int_equal(peer_end(&p), 0);
			until_clean(before, 0);
		} else {
			double took = until_clean(before, 10);

			longest = took > longest ? took : longest;
			assert_int_equal(peer_end(&p), i % 3 ? 4 : 128 + SIGKILL);
		}
	}
	printf("# killed at any moment: clean after %.3f s at most\n", longest);
	free(before);
}

static void write_journal(
	const char *session, const char *boot, const char *net, const char *pid, const char *rest)
{
	char path[PATH_MAX + 64], *text;

	snprintf(path, sizeof(path), "%s/undo", state_dir);
	assert_int_equal(file_mkdirs(path, 0700, NULL), 0);
	snprintf(path, sizeof(path), "%s/undo/%s.json", state_dir, session);
	assert_true(
		asprintf(&text,
			"{\"journal\":1,\"session\":\"%s\",\"boot_id\":\"%s\",\"net\":\"%s\",\"pid\":\"%s\","
			"\"dir\":\"%s/%s\"}\n%s",
			session, boot, net, pid, state_dir, session, rest) > 0);
	assert_int_equal(file_write_atomic(path, 0600, text, strlen(text), NULL), 0);
	free(text);
	snprintf(path, sizeof(path), "%s/%s", state_dir, session);
	assert_int_equal(file_mkdirs(path, 0700, NULL), 0);
}

/* A process that is nobody's: what a journal of before a reboot might seem to mean. */
static pid_t bystander(uint64_t *ticks)
{
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pause();
		_exit(0);
	}
	assert_int_equal(proc_start_time(pid, ticks), 0);
	return pid;
}

static void journal_of_before_a_reboot(void **unused)
{
	char *before = fingerprint(), line[256];
	struct node_id id;
	struct peer p;
	uint64_t ticks;
	pid_t pid = bystander(&ticks);

	(void)unused;
	assert_int_equal(node_id_read(&id, NULL), 0);
	snprintf(line, sizeof(line),
		"{\"add\":\"p1\",\"primitive\":\"process\",\"inverse\":{\"tag\":\"aa/p1\",\"pid\":%d,"
		"\"start_ticks\":%llu,\"grace_s\":0.0}}\n",
		(int)pid, (unsigned long long)ticks);
	write_journal("aa", "00000000-0000-0000-0000-000000000000", id.net, id.pid, line);
	peer_start(&p, "10s", NULL, NULL);
	assert_int_equal(json_array_size(json_object_get(p.hello, "cleaned")), 0);
	assert_int_equal(peer_end(&p), 0);
	until_clean(before, 0);
	assert_int_equal(proc_start_time(pid, &ticks), 0);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	free(before);
}

static void journal_of_another_node(void **unused)
{
	char *before = fingerprint(), *after;
	struct node_id id;
	struct peer p;

	(void)unused;
	assert_int_equal(node_id_read(&id, NULL), 0);
	write_journal("bb", id.boot_id, "net:[1]", id.pid, "");
	after = fingerprint();
	peer_start(&p, "10s", NULL, NULL);
	assert_int_equal(peer_end(&p), 0);
	until_clean(after, 0);
	file_remove_tree(state_dir, NULL);
	free(after);
	free(before);
}

static void journal_cut_short(void **unused)
{
	char *before = fingerprint();
	struct node_id id;
	struct peer p;

	(void)unused;
	assert_int_equal(node_id_read(&id, NULL), 0);
	write_journal("cc", id.boot_id, id.net, id.pid, "{\"add\":\"p1\",\"primi");
	peer_start(&p, "10s", NULL, NULL);
	assert_int_equal(json_array_size(json_object_get(p.hello, "unclean")), 0);
	assert_int_equal(peer_end(&p), 0);
	until_clean(before, 0);
	free(before);
}

static void journal_that_cannot_be_undone(void **unused)
{
	char *before = fingerprint(), path[PATH_MAX + 64];
	struct node_id id;
	struct peer p;

	(void)unused;
	assert_int_equal(node_id_read(&id, NULL), 0);
	write_journal("dd", id.boot_id, id.net, id.pid,
		"{\"add\":\"d1\",\"primitive\":\"packets\",\"inverse\":{\"table\":\"filter\"}}\n");
	peer_start(&p, "10s", NULL, NULL);
	assert_int_equal(json_array_size(json_object_get(p.hello, "unclean")), 1);
	assert_int_equal(peer_end(&p), 0);
	snprintf(path, sizeof(path), "%s/undo/dd.json", state_dir);
	assert_int_equal(access(path, F_OK), 0);
	assert_int_equal(unlink(path), 0);
	snprintf(path, sizeof(path), "%s/dd", state_dir);
	assert_int_equal(rmdir(path), 0);
	until_clean(before, 0);
	free(before);
}

/* No journal entry, no act. */
static void no_act_when_the_disk_is_full(void **unused)
{
	char path[PATH_MAX + 64], block[4096] = {0}, *before;
	json_t *answer;
	struct peer p;
	int fd;

	(void)unused;
	assert_return_code(mount("tmpfs", state_dir, "tmpfs", 0, "size=64k"), errno);
	peer_start(&p, "10s", NULL, NULL);
	snprintf(path, sizeof(path), "%s/%s/filler", state_dir, p.session);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	while (write(fd, block, sizeof(block)) > 0)
		;
	close(fd);
	/* The head's page has room left; the journal must not find any. */
	for (int i = 0; i < 40; i++) {
		answer = peer_answer(
			&p, peer_ask(&p, "packets.drop", json_pack("{s:f}", "percent", 5.0)));
		if (json_object_get(answer, "error"))
			break;
		json_decref(answer);
	}
	assert_non_null(
		strstr(json_string_value(json_object_get(answer, "error")), "undo journal"));
	json_decref(answer);
	before = fingerprint();
	answer = peer_answer(&p, peer_ask(&p, "packets.drop", json_pack("{s:f}", "percent", 5.0)));
	assert_int_equal(json_integer_value(json_object_get(answer, "code")), -ENOSPC);
	json_decref(answer);
	answer = peer_answer(
		&p, peer_ask(&p, "process.start", json_pack("{s:[s,s]}", "argv", "sleep", "1000")));
	assert_int_equal(json_integer_value(json_object_get(answer, "code")), -ENOSPC);
	json_decref(answer);
	until_clean(before, 0);
	free(before);
	assert_int_equal(peer_end(&p), 0);
	assert_return_code(umount(state_dir), errno);
}

static int tests(void)
{
	const struct CMUnitTest all[] = {
		cmocka_unit_test_setup_teardown(agent_killed, peer_setup, peer_teardown),
		cmocka_unit_test_setup_teardown(guard_killed, peer_setup, peer_teardown),
		cmocka_unit_test_setup_teardown(both_killed, peer_setup, peer_teardown),
		cmocka_unit_test_setup_teardown(input_closed, peer_setup, peer_teardown),
		cmocka_unit_test_setup_teardown(
			output_closed_with_the_agent, peer_setup, peer_teardown),
		cmocka_unit_test_setup_teardown(silence, peer_setup, peer_teardown),
		cmocka_unit_test_setup_teardown(
			heartbeat_keeps_the_lease, peer_setup, peer_teardown),
		cmocka_unit_test_setup_teardown(agent_stopped, peer_setup, peer_teardown),
		cmocka_unit_test_setup_teardown(maximum_reached, peer_setup, peer_teardown),
		cmocka_unit_test_setup_teardown(killed_around_the_act, peer_setup, peer_teardown),
		cmocka_unit_test_setup_teardown(killed_at_any_moment, peer_setup, peer_teardown),
		cmocka_unit_test_setup_teardown(
			journal_of_before_a_reboot, peer_setup, peer_teardown),
		cmocka_unit_test_setup_teardown(journal_of_another_node, peer_setup, peer_teardown),
		cmocka_unit_test_setup_teardown(journal_cut_short, peer_setup, peer_teardown),
		cmocka_unit_test_setup_teardown(
			journal_that_cannot_be_undone, peer_setup, peer_teardown),
		cmocka_unit_test_setup_teardown(
			no_act_when_the_disk_is_full, peer_setup, peer_teardown),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("guard", all, NULL, NULL);
}

int main(void)
{
	return in_own_namespaces(tests);
}
