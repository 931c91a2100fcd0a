/* The primitive group: a server gets a quota of processor time, and loses it, whoever dies. In
 * version 1 of control groups against the kernel; the files of version 2 as far as undo reads and
 * writes them. */
#include "ci/tests/agent/agent_peer.h"

#include <sys/mman.h>

#include "faults/primitives/group.h"
#include "faults/primitives/procfs.h"
#include "harness/base/cgroup.h"

/* A server that computes, and one that it has forked. */
struct family {
	volatile pid_t child, heir;
	volatile bool heir_wanted;
};

static struct family *shared;

static _Noreturn void compute(void)
{
	for (;;)
		if (shared->heir_wanted && !shared->heir && getpid() == shared->child) {
			pid_t pid = fork();

			if (pid)
				shared->heir = pid;
		}
}

static pid_t start_server(void)
{
	pid_t pid;

	shared = mmap(
		NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(shared, MAP_FAILED);
	pid = fork();
	if (pid == 0) {
		if (!fork()) {
			setsid();
			shared->child = getpid();
			compute();
		}
		compute();
	}
	while (!shared->child)
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	return pid;
}

static void end_server(pid_t pid)
{
	if (shared->heir)
		kill(shared->heir, SIGKILL);
	kill(shared->child, SIGKILL);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	munmap(shared, sizeof(*shared));
}

/* /proc/PID/cgroup; the caller frees. */
static char *groups(pid_t pid)
{
	char path[64], *text;

	snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
	assert_int_equal(file_read(path, &text, NULL, NULL), 0);
	return text;
}

static void same_groups(pid_t pid, const char *before)
{
	char *now = groups(pid);

	assert_string_equal(now, before);
	free(now);
}

/* Processor time of the server and its child in a second. */
static double computed_s(pid_t pid)
{
	double first, again, child, child_again, begin = clock_mono_s();

	assert_true(procfs_cpu(pid, &first) && procfs_cpu(shared->child, &child));
	nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
	assert_true(procfs_cpu(pid, &again) && procfs_cpu(shared->child, &child_again));
	return (again - first + child_again - child) / (clock_mono_s() - begin);
}

static json_t *limit_arguments(pid_t pid, double cpus)
{
	return json_pack("{s:[i], s:f}", "pids", (int)pid, "cpus", cpus);
}

/* Is there a group of ours? */
static bool groups_left(void)
{
	struct cgroup_place place = cgroup_own(CGROUP_CPU);
	json_t *list = json_array(), *name;
	bool found = false;
	size_t i;

	list_folder(place.own, list);
	json_array_foreach(list, i, name) {
		found |= !strncmp(json_string_value(name), "culprit_", 8);
	}
	json_decref(list);
	return found;
}

static bool version_1(void)
{
	if (cgroup_own(CGROUP_CPU).version == 1)
		return true;
	puts("# the controller 'cpu' is not in version 1 here");
	return false;
}

static void a_quota_is_set_and_undone(void **unused)
{
	double free_s, held_s, throttled_s;
	char *before, *in;
	const char *handle;
	struct peer p;
	pid_t pid;
	json_t *u;

	(void)unused;
	if (!version_1())
		skip();
	pid = start_server();
	before = groups(pid);
	free_s = computed_s(pid);
	peer_start(&p, LONG_LEASE, NULL, NULL);
	handle = take_text(peer_call(&p, "group.limit", limit_arguments(pid, 0.2)), "handle");
	in = groups(pid);
	assert_string_not_equal(in, before);
	same_groups(shared->child, in);
	shared->heir_wanted = true;
	while (!shared->heir)
		;
	same_groups(shared->heir, in);
	kill(shared->heir, SIGKILL);
	held_s = computed_s(pid);
	u = peer_call(&p, "group.usage", handle_args(handle));
	throttled_s = json_real_value(json_object_get(u, "throttled_s"));
	assert_true(json_integer_value(json_object_get(u, "throttled")) > 10);
	json_decref(u);
	printf("# processors: %.2f before, %.2f under a quota of 0.2, which held %.2f s back\n",
		free_s, held_s, throttled_s);
	assert_true(held_s < 0.3 && free_s > held_s && throttled_s > 0.1);
	peer_refused(&p, "group.limit", limit_arguments(pid, 0.1), "limited already", -EBUSY);
	json_decref(peer_call(&p, "undo", handle_args(handle)));
	same_groups(pid, before);
	same_groups(shared->child, before);
	assert_false(groups_left());
	assert_int_equal(peer_end(&p), 0);
	end_server(pid);
	free(before);
	free(in);
}

static void limits_that_limit_nothing_are_refused(void **unused)
{
	struct peer p;
	pid_t pid;
	json_t *able, *args;

	(void)unused;
	if (!version_1())
		skip();
	pid = start_server();
	peer_start(&p, LONG_LEASE, NULL, NULL);
	peer_refused(&p, "group.limit", limit_arguments(pid, 1000), "limits nothing", -EINVAL);
	peer_refused(
		&p, "group.limit", limit_arguments(pid, 0.01), "below the least, 0.05", -EINVAL);
	peer_refused(&p, "group.limit", limit_arguments(pid, -1), "cpus must be above 0", 0);
	peer_refused(&p, "group.limit", limit_arguments(p.pid, 0.2), "own", 0);
	peer_refused(&p, "group.limit", json_pack("{s:[i]}", "pids", (int)pid), "either", 0);
	args = json_pack("{s:[i], s:i}", "pids", (int)pid, "memory_pct", 80);
	if (cgroup_own(CGROUP_MEMORY).version == 1)
		peer_refused(&p, "group.limit", args, "memory.high needs", -EOPNOTSUPP);
	else
		json_decref(args);
	able = peer_call(&p, "check",
		json_pack("{s:s, s:o}", "what", "group.limit", "with", limit_arguments(pid, 1000)));
	assert_true(json_is_false(json_object_get(able, "able")));
	json_decref(able);
	able = peer_call(&p, "check",
		json_pack("{s:s, s:o}", "what", "group.limit", "with", limit_arguments(pid, 0.2)));
	assert_true(json_is_true(json_object_get(able, "able")));
	json_decref(able);
	assert_false(groups_left());
	assert_int_equal(peer_end(&p), 0);
	end_server(pid);
}

/* The agent; agent and guard together; or the server under the limit, whose child stays. */
static void whoever_dies_the_group_goes(void **unused)
{
	char *clean = fingerprint();

	(void)unused;
	if (!version_1())
		skip();
	for (int death = 0; death < 3; death++) {
		pid_t pid = start_server();
		char *before = groups(pid);
		struct peer p;

		peer_start(&p, LONG_LEASE, NULL, NULL);
		json_decref(peer_call(&p, "group.limit", limit_arguments(pid, 0.1)));
		if (death == 2) {
			kill(pid, SIGKILL);
			wait_dead(pid);
		}
		if (death == 1)
			peer_kill_all(&p, false);
		else
			kill(p.pid, SIGKILL);
		until_clean(clean, 30);
		same_groups(shared->child, before);
		if (death < 2)
			same_groups(pid, before);
		assert_false(groups_left());
		peer_end(&p);
		end_server(pid);
		free(before);
	}
	free(clean);
}

static void put(const char *folder, const char *name, const char *text)
{
	char path[PATH_MAX + 32];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	assert_int_equal(file_write_atomic(path, 0600, text, strlen(text), NULL), 0);
}

/* A group of version 2 is set, and set back to what it held; one that is gone needs no undo. */
static void a_setting_is_taken_back(void **unused)
{
	const struct primitive *group = primitive_find("group");
	char folder[] = "/tmp/culprit-group-XXXXXX", *text;
	struct group_usage u;
	json_t *inverse;
	bool was = false;

	(void)unused;
	assert_non_null(mkdtemp(folder));
	put(folder, "memory.high", "max\n");
	put(folder, "memory.events", "low 0\nhigh 17\nmax 0\n");
	inverse = json_pack("{s:s, s:s, s:s, s:s}", "group", folder, "file", "memory.high", "was",
		"max", "text", "12345678");
	assert_int_equal(group_act(inverse, NULL), 0);
	text = cgroup_read(folder, "memory.high");
	assert_memory_equal(text, "12345678", 8);
	free(text);
	assert_int_equal(group->verify_undone(inverse, NULL), -EBUSY);
	assert_int_equal(group_read(inverse, &u, NULL), 0);
	assert_int_equal(u.reclaims, 17);
	/* A file of the kernel's is written as a whole. */
	put(folder, "memory.high", "12345678\n");
	assert_int_equal(group->undo(inverse, &was, NULL), 0);
	assert_true(was);
	put(folder, "memory.high", "max\n");
	assert_int_equal(group->verify_undone(inverse, NULL), 0);
	assert_int_equal(file_remove_tree(folder, NULL), 0);
	assert_int_equal(primitive_revert(group, inverse, &was, NULL), 0);
	assert_false(was);
	json_object_set_new(inverse, "file", json_string("../memory.high"));
	assert_int_equal(group->undo(inverse, &was, NULL), -EBADMSG);
	json_decref(inverse);
}

static int tests(void)
{
	const struct CMUnitTest list[] = {
		cmocka_unit_test(a_quota_is_set_and_undone),
		cmocka_unit_test(limits_that_limit_nothing_are_refused),
		cmocka_unit_test(whoever_dies_the_group_goes),
		cmocka_unit_test(a_setting_is_taken_back),
	};

	return cmocka_run_group_tests_name("group", list, peer_setup, peer_teardown);
}

int main(void)
{
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return in_own_namespaces(tests);
}
