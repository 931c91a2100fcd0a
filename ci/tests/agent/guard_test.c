/* The guard and the standby: whatever dies or falls silent, the node is as it was before. */
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
		/* Seven programs start in more time than a short lease, where it is busy. */
		json_decref(peer_call(p, "ping", NULL));
	}
	assert_true(n >= 6);
}

static void begin(struct session *s, const char *lease)
{
	session_begin(s, lease);
	act(&s->p);
}

static void agent_killed(void **unused)
{
	struct session s;

	(void)unused;
	begin(&s, LONG_LEASE);
	kill(s.p.pid, SIGKILL);
	printf("# agent killed: clean after %.3f s\n", session_end(&s, 128 + SIGKILL, 10));
}

static void guard_killed(void **unused)
{
	struct session s;
	json_t *end;

	(void)unused;
	begin(&s, LONG_LEASE);
	kill(peer_guard(&s.p), SIGKILL);
	end = peer_event(&s.p, "end");
	assert_string_equal(json_string_value(json_object_get(end, "why")), "the guard died");
	assert_true(json_is_true(json_object_get(end, "undone")));
	json_decref(end);
	printf("# guard killed: clean after %.3f s\n", session_end(&s, 4, 10));
}

/* The standby undoes all, and the tracer detaches, without any further contact with the node. */
static void both_killed(void **unused)
{
	pid_t target = start_pausing(), standby;
	char path[64], *text;
	struct session s;
	json_t *args;

	(void)unused;
	begin(&s, LONG_LEASE);
	json_decref(peer_call(&s.p, "trace.start", trace_args(target)));
	args = json_pack("{s:[s,s,s], s:b}", "argv", "cpu", "--threads", "1", "self", 1);
	json_decref(peer_call(&s.p, "process.start", args));
	args = json_pack(
		"{s:[s,s,s], s:b}", "argv", "dd", "if=/dev/zero", "of=/dev/null", "loop", 1);
	json_decref(peer_call(&s.p, "process.start", args));
	standby = peer_standby(&s.p, 0);
	peer_kill_all(&s.p, false);
	printf("# agent and guard killed: clean after %.3f s\n",
		session_end(&s, 128 + SIGKILL, 20));
	wait_dead(standby);
	snprintf(path, sizeof(path), "/proc/%d/status", (int)target);
	assert_int_equal(file_read(path, &text, NULL, NULL), 0);
	assert_non_null(strstr(text, "TracerPid:\t0\n"));
	assert_non_null(strstr(text, "State:\tS"));
	free(text);
	end_target(target);
}

/* One that is killed is replaced, as often as it takes; then agent and guard die. */
static void standby_replaced(void **unused)
{
	struct session s;
	pid_t standby;

	(void)unused;
	begin(&s, LONG_LEASE);
	standby = peer_standby(&s.p, 0);
	for (int i = 0; i < 3; i++) {
		pid_t killed = standby;

		kill(killed, SIGKILL);
		standby = peer_standby(&s.p, killed);
	}
	peer_kill_all(&s.p, false);
	printf("# a third standby: clean after %.3f s\n", session_end(&s, 128 + SIGKILL, 20));
	wait_dead(standby);
}

/* The guard is killed, and the agent cannot undo: it is stopped. */
static void guard_killed_agent_stopped(void **unused)
{
	struct session s;
	pid_t standby;

	(void)unused;
	begin(&s, short_lease());
	standby = peer_standby(&s.p, 0);
	kill(s.p.pid, SIGSTOP);
	kill(peer_guard(&s.p), SIGKILL);
	printf("# guard killed, agent stopped, with a lease of %s: clean after %.3f s\n",
		short_lease(), session_end(&s, 128 + SIGKILL, 20));
	wait_dead(standby);
}

/* In order too if the standby does not hear: it is killed. */
static void standby_stopped(void **unused)
{
	struct session s;
	pid_t standby;

	(void)unused;
	session_begin(&s, LONG_LEASE);
	standby = peer_standby(&s.p, 0);
	kill(standby, SIGSTOP);
	session_end(&s, 0, 0);
	wait_dead(standby);
}

/* A line of /proc/PID/FILE that begins with 'key', as a number. */
static long number_of(pid_t pid, const char *file, const char *key)
{
	char path[64], *text, *at;
	long value;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	assert_int_equal(file_read(path, &text, NULL, NULL), 0);
	at = strstr(text, key);
	assert_non_null(at);
	value = strtol(at + strlen(key), NULL, 10);
	free(text);
	return value;
}

/* May a process here ask to be spared when memory runs out? */
static bool may_be_spared(void)
{
	int status, fd;
	pid_t pid = fork();

	if (pid == 0) {
		fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
		_exit(write(fd, "-1000", 5) != 5);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) && !WEXITSTATUS(status);
}

/* It shields itself once it is there. */
static void wait_locked(pid_t pid)
{
	double deadline = clock_mono_s() + PEER_TIMEOUT_S;
	long kb;

	while (!(kb = number_of(pid, "status", "VmLck:"))) {
		assert_true(clock_mono_s() < deadline);
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	}
	printf("# %ld kB locked\n", kb);
}

/* The memory of guard and standby is locked, that of the agent is not. */
static void memory_locked(void **unused)
{
	struct session s;

	(void)unused;
#ifdef __SANITIZE_ADDRESS__
	print_message("# SKIP: the sanitizer makes mlockall() do nothing\n");
	skip();
#endif
	session_begin(&s, LONG_LEASE);
	wait_locked(peer_guard(&s.p));
	wait_locked(peer_standby(&s.p, 0));
	assert_int_equal(number_of(s.p.pid, "status", "VmLck:"), 0);
	session_end(&s, 0, 0);
}

/* When memory runs out, the kernel chooses neither guard nor standby. A command of an undo is not
 * spared. */
static void spared_when_memory_runs_out(void **unused)
{
	static const char score[] = "cat /proc/self/oom_score_adj >\"$0\"";
	char path[PATH_MAX + 16], *text;
	pid_t standby;
	struct session s;

	(void)unused;
	if (!may_be_spared()) {
		puts("# SKIP: lowering an OOM score needs CAP_SYS_RESOURCE");
		skip();
	}
	session_begin(&s, LONG_LEASE);
	standby = peer_standby(&s.p, 0);
	wait_locked(standby);
	assert_int_equal(number_of(peer_guard(&s.p), "oom_score_adj", ""), -1000);
	assert_int_equal(number_of(standby, "oom_score_adj", ""), -1000);
	assert_int_equal(number_of(s.p.pid, "oom_score_adj", ""), 0);
	snprintf(path, sizeof(path), "%s/score", state_dir);
	json_decref(peer_call(&s.p, "command",
		json_pack("{s:[s], s:[s,s,s,s], s:[s]}", "argv", "true", "inverse", "sh", "-c",
			score, path, "check", "false")));
	assert_int_equal(peer_end(&s.p), 0);
	assert_int_equal(file_read(path, &text, NULL, NULL), 0);
	assert_string_equal(text, "0\n");
	free(text);
	assert_int_equal(unlink(path), 0);
	until_clean(s.before, 0);
	free(s.before);
}

/* Without the standby, the next agent on the node cleans. */
static void all_three_killed(void **unused)
{
	char *left, *text;
	json_t *cleaned;
	struct session s;

	(void)unused;
	begin(&s, LONG_LEASE);
	peer_kill_all(&s.p, true);
	assert_int_equal(peer_end(&s.p), 128 + SIGKILL);
	left = fingerprint();
	assert_string_not_equal(left, s.before);
	free(left);

	peer_start(&s.p, LONG_LEASE, NULL, NULL);
	cleaned = json_object_get(s.p.hello, "cleaned");
	assert_int_equal(json_array_size(cleaned), 3);
	text = json_dumps(cleaned, 0);
	assert_non_null(strstr(text, "packets culprit_"));
	assert_non_null(strstr(text, "process "));
	free(text);
	assert_int_equal(json_array_size(json_object_get(s.p.hello, "unclean")), 0);
	session_end(&s, 0, 0);
}

/* A session that ends in order leaves no standby behind. */
static void standby_ends_with_the_session(void **unused)
{
	struct session s;
	uint64_t ticks;
	pid_t standby;

	(void)unused;
	session_begin(&s, LONG_LEASE);
	standby = peer_standby(&s.p, 0);
	session_end(&s, 0, 0);
	assert_int_equal(proc_start_time(standby, &ticks), -ESRCH);
}

static void input_closed(void **unused)
{
	struct session s;

	(void)unused;
	begin(&s, LONG_LEASE);
	session_end(&s, 0, 0);
}

/* If the guard, the standby or a started program held it, SSH would wait for them. */
static void output_closed_with_the_agent(void **unused)
{
	struct session s;

	(void)unused;
	begin(&s, LONG_LEASE);
	kill(s.p.pid, SIGKILL);
	while (peer_read(&s.p))
		;
	session_end(&s, 128 + SIGKILL, 10);
}

static void silence(void **unused)
{
	struct session s;

	(void)unused;
	begin(&s, short_lease());
	printf("# silent with a lease of %s: clean after %.3f s\n", short_lease(),
		session_end(&s, 128 + SIGKILL, 10));
}

static void heartbeat_keeps_the_lease(void **unused)
{
	struct session s;
	char *now;

	(void)unused;
	begin(&s, short_lease());
	for (double end = clock_mono_s() + 2 * short_lease_s(); clock_mono_s() < end;) {
		json_decref(peer_call(&s.p, "ping", NULL));
		nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
	}
	now = fingerprint();
	assert_string_not_equal(now, s.before);
	free(now);
	session_end(&s, 0, 0);
}

static void agent_stopped(void **unused)
{
	struct session s;

	(void)unused;
	begin(&s, short_lease());
	kill(s.p.pid, SIGSTOP);
	session_end(&s, 128 + SIGKILL, 10);
}

static void maximum_reached(void **unused)
{
	json_t *event, *result;
	struct peer p;
	char *before;

	(void)unused;
	peer_start(&p, LONG_LEASE, NULL, NULL);
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
		"{\"id\":1,\"op\":\"process.start\",\"argv\":[\"sh\",\"-c\",\"setsid sleep 1000 & "
		"sleep 1001\"]}",
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

		peer_start(&p, LONG_LEASE, NULL, NULL);
		pid_t guard = peer_guard(&p);
		for (size_t j = 0; j < sizeof(burst) / sizeof(burst[0]); j++)
			peer_send(&p, burst[j]);
		nanosleep(&nap, NULL);
		if (i % 3 == 0)
			kill(p.pid, SIGKILL);
		else if (i % 3 == 1)
			kill(guard, SIGKILL);
		else
			peer_kill_all(&p, i % 2);
		if (i % 3 == 2) {
			/* The next agent on the node cleans, or waits for the standby. */
			peer_end(&p);
			peer_start(&p, LONG_LEASE, NULL, NULL);
			assert_int_equal(json_array_size(json_object_get(p.hello, "unclean")), 0);
			assert_int_equal(peer_end(&p), 0);
			until_clean(before, 0);
		} else {
			double took = until_clean(before, 50);

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
	assert_true(asprintf(&text,
			    "{\"journal\":1,\"session\":\"%s\",\"boot_id\":\"%s\","
			    "\"net\":\"%s\",\"pid\":\"%s\","
			    "\"dir\":\"%s/%s\"}\n%s",
			    session, boot, net, pid, state_dir, session, rest) > 0);
	assert_int_equal(file_write_atomic(path, 0600, text, strlen(text), NULL), 0);
	free(text);
	snprintf(path, sizeof(path), "%s/%s", state_dir, session);
	assert_int_equal(file_mkdirs(path, 0700, NULL), 0);
}

/* A process that has nothing to do with us, though an old journal has its number. */
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

/* Writes the journal of session 'name', and starts and ends an agent: 'unclean' sentences in its
 * hello, nothing cleaned. */
static void next_agent_finds(const char *name, const char *boot, const char *net, const char *rest,
	size_t unclean, const char *after)
{
	struct node_id id;
	struct peer p;

	assert_int_equal(node_id_read(&id, NULL), 0);
	write_journal(name, boot ? boot : id.boot_id, net ? net : id.net, id.pid, rest);
	peer_start(&p, LONG_LEASE, NULL, NULL);
	assert_int_equal(json_array_size(json_object_get(p.hello, "cleaned")), 0);
	assert_int_equal(json_array_size(json_object_get(p.hello, "unclean")), unclean);
	assert_int_equal(peer_end(&p), 0);
	if (after)
		until_clean(after, 0);
}

static void journal_of_before_a_reboot(void **unused)
{
	char *before = fingerprint(), line[256];
	uint64_t ticks;
	pid_t pid = bystander(&ticks);

	(void)unused;
	snprintf(line, sizeof(line),
		"{\"add\":\"p1\",\"primitive\":\"process\",\"inverse\":{\"tag\":\"aa/p1\","
		"\"pid\":%d,"
		"\"start_ticks\":%llu,\"grace_s\":0.0}}\n",
		(int)pid, (unsigned long long)ticks);
	next_agent_finds("aa", "00000000-0000-0000-0000-000000000000", NULL, line, 0, before);
	assert_int_equal(proc_start_time(pid, &ticks), 0);
	end_target(pid);
	free(before);
}

static void journal_of_another_node(void **unused)
{
	char *after, path[PATH_MAX + 64];

	(void)unused;
	next_agent_finds("bb", NULL, "net:[1]", "", 0, NULL);
	snprintf(path, sizeof(path), "%s/undo/bb.json", state_dir);
	assert_int_equal(access(path, F_OK), 0);
	after = fingerprint();
	assert_non_null(strstr(after, "\"bb\""));
	free(after);
}

static void journal_cut_short(void **unused)
{
	char *before = fingerprint();

	(void)unused;
	next_agent_finds("cc", NULL, NULL, "{\"add\":\"p1\",\"primi", 0, before);
	free(before);
}

static void journal_that_cannot_be_undone(void **unused)
{
	char *before = fingerprint(), path[PATH_MAX + 64];

	(void)unused;
	next_agent_finds("dd", NULL, NULL,
		"{\"add\":\"d1\",\"primitive\":\"packets\",\"inverse\":{\"table\":\"filter\"}}\n",
		1, NULL);
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
	peer_start(&p, LONG_LEASE, NULL, NULL);
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
	peer_refused(&p, "packets.drop", json_pack("{s:f}", "percent", 5.0), "", -ENOSPC);
	peer_refused(&p, "process.start", sleep_args(), "", -ENOSPC);
	until_clean(before, 0);
	free(before);
	assert_int_equal(peer_end(&p), 0);
	assert_return_code(umount(state_dir), errno);
}

static int tests(void)
{
	const struct CMUnitTest all[] = {
		TEST(agent_killed),
		TEST(guard_killed),
		TEST(both_killed),
		TEST(standby_replaced),
		TEST(guard_killed_agent_stopped),
		TEST(standby_stopped),
		TEST(memory_locked),
		TEST(spared_when_memory_runs_out),
		TEST(all_three_killed),
		TEST(standby_ends_with_the_session),
		TEST(input_closed),
		TEST(output_closed_with_the_agent),
		TEST(silence),
		TEST(heartbeat_keeps_the_lease),
		TEST(agent_stopped),
		TEST(maximum_reached),
		TEST(killed_around_the_act),
		TEST(killed_at_any_moment),
		TEST(journal_of_before_a_reboot),
		TEST(journal_of_another_node),
		TEST(journal_cut_short),
		TEST(journal_that_cannot_be_undone),
		TEST(no_act_when_the_disk_is_full),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("guard", all, NULL, NULL);
}

int main(void)
{
	return in_own_namespaces(tests);
}
