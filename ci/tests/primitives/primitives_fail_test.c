/*
 * Each allocation and system call of a primitive fails once, in turn, until the act, and then its
 * undo, runs without meeting the failure. An act that failed leaves nothing after its undo; what an
 * undo that failed has left, the next one undoes.
 */
#ifdef __SANITIZE_ADDRESS__
#include <stdio.h>

int main(void)
{
	puts("1..0 # SKIP the sanitizer has taken over the same calls");
	return 0;
}
#else

#include "ci/tests/agent/failing_target.h"

#include "faults/primitives/command.h"
#include "faults/primitives/delay.h"
#include "faults/primitives/disk.h"
#include "faults/primitives/group.h"
#include "faults/primitives/limits.h"
#include "faults/primitives/procfs.h"
#include "faults/primitives/signal.h"
#include "harness/base/cgroup.h"

/* ---- the acts ---- */

/* The inverse as soon as there is one: the agent would have it in its journal before it goes on. */
typedef int (*act_fn)(json_t **inverse, struct err *e);

static int set_limit(json_t **inverse, struct err *e)
{
	int rc = limits_inverse(target, "nofile", inverse, e);

	return rc ? rc : limits_set(*inverse, 50, e);
}

static int stop(json_t **inverse, struct err *e)
{
	int rc = signal_inverse(target, inverse, e);

	return rc ? rc : signal_stop(*inverse, e);
}

static int drop(json_t **inverse, struct err *e)
{
	const struct packets_spec spec = {.percent = 5};
	const struct packets_backend *backend;
	int rc = packets_check("nftables", false, &backend, e);

	if (rc)
		return rc;
	*inverse = packets_inverse(backend, "0123456789abcdef", "d1");
	return *inverse ? packets_drop(&spec, *inverse, e) : -ENOMEM;
}

/* Any block device will do: the limit is the group's. */
static int limit_disk(json_t **inverse, struct err *e)
{
	json_t *pids = json_pack("[i]", (int)target);
	const struct disk_spec spec = {
		.path = "/dev/loop0", .rate = 1e6, .pids = pids, .backend = "cgroup"};
	int rc = disk_prepare(&spec, state_dir, "01234567-b1", inverse, e);

	json_decref(pids);
	return rc ? rc : disk_act(*inverse, e);
}

static char *mark;

/* A command as a user's: a file is there, or is not. */
static int run(json_t **inverse, struct err *e)
{
	json_t *act = json_pack("[s, s]", "touch", mark),
	       *back = json_pack("[s, s, s]", "rm", "-f", mark),
	       *check = json_pack("[s, s, s]", "test", "-e", mark);
	int rc = -ENOMEM;

	if (act && back && check && (*inverse = command_inverse(back, check, 20)))
		rc = command_act(act, 20, e);
	json_decref(act);
	json_decref(back);
	json_decref(check);
	return rc;
}

static pid_t child;

/* A program that starts another one. Its input and output are never the agent's. */
static int start(json_t **inverse, struct err *e)
{
	const char *const argv[] = {"sh", "-c", "sleep 1000 & sleep 1001", NULL};
	const struct process_spec spec = {.argv = argv,
		.tag = "0123456789abcdef/p1",
		.in = -1,
		.out = -1,
		.err = -1,
		.pass = -1};
	struct process_gate gate;
	int rc = process_fork(&spec, &gate, inverse, e);

	if (rc)
		return rc;
	child = gate.pid;
	rc = process_release(&gate, argv[0], e);
	if (rc)
		child = 0;
	for (int fd = 0; !rc && fd < 3; fd++) {
		char path[64], to[64] = "/dev/null";

		snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)child, fd);
		if (readlink(path, to, sizeof(to) - 1) >= 0)
			assert_string_equal(to, "/dev/null");
	}
	return rc;
}

/* A program that keeps the time, here by doing nothing, and a target that it has stopped. */
static int stop_again(json_t **inverse, struct err *e)
{
	json_t *held = NULL, *servers = json_array();
	int rc = start(inverse, e);

	if (!rc)
		rc = signal_inverse(target, &held, e);
	if (!rc &&
		(json_array_append(servers, held) || json_object_set(*inverse, "servers", servers)))
		rc = -ENOMEM;
	if (!rc)
		rc = signal_stop(held, e);
	json_decref(held);
	json_decref(servers);
	return rc;
}

/* A quota, where the kernel keeps it in version 1; 'groups' is the target's /proc/PID/cgroup. */
static int limit_group(json_t **inverse, struct err *e)
{
	json_t *pids = json_pack("[i]", (int)target);
	const struct group_spec spec = {.pids = pids, .cpus = 0.1};
	int rc = group_inverse(&spec, "fail_g1", inverse, e);

	json_decref(pids);
	return rc ? rc : group_act(*inverse, e);
}

static char *groups_of_target(void)
{
	char path[64], *text;

	snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)target);
	assert_int_equal(file_read(path, &text, NULL, NULL), 0);
	return text;
}

static void reap(void)
{
	if (child)
		assert_int_equal(waitpid(child, NULL, 0), child);
	child = 0;
}

/* ---- what is compared ---- */

static int count_fds(void)
{
	json_t *list = json_array();
	int n;

	list_folder("/proc/self/fd", list);
	n = (int)json_array_size(list);
	json_decref(list);
	return n;
}

/* The agent's fingerprint, and what else these acts touch: limits and state of the target, our own
 * descriptors and children. */
static char *everything(void)
{
	char *left = fingerprint(), *groups = groups_of_target(), *all;
	struct rlimit limit;

	assert_return_code(prlimit(target, RLIMIT_NOFILE, NULL, &limit), errno);
	/* The target alone is a child of ours, and it lives. */
	assert_int_equal(waitpid(-1, NULL, WNOHANG), 0);
	assert_true(asprintf(&all, "%s; limit %ju; %s; %d descriptors; %s", left,
			    (uintmax_t)limit.rlim_cur,
			    signal_is_stopped(target) ? "stopped" : "running", count_fds(),
			    groups) > 0);
	free(left);
	free(groups);
	return all;
}

static void same(const char *before, const char *name, const char *when, int place)
{
	char *now = everything();

	if (strcmp(now, before))
		fail_msg("%s: %s with %s failing at place %d: %s, not %s", name, when, plan->name,
			place, now, before);
	free(now);
}

static void undo(const char *name, const json_t *inverse)
{
	struct err e = {""};

	if (primitive_revert(primitive_find(name), inverse, NULL, &e))
		fail_msg("%s: %s", name, e.text);
	reap();
}

/* A queue, a program, which serves none here, and a rule. */
static int slow_down(json_t **inverse, struct err *e)
{
	const struct delay_spec slow = {.latency_s = 1};
	const struct packets_backend *backend;
	struct packets_spec spec = {.percent = 100};
	json_t *rule = NULL;
	int fd = -1,
	    rc = packets_check("nftables", true, &backend, e)
		?: delay_open(&slow, &spec.queue, &fd, e);

	if (!rc && !(rule = packets_inverse(backend, "0123456789abcdef", "q1")))
		rc = -ENOMEM;
	rc = rc ?: start(inverse, e);
	/* The agent has no record of it then, and ends the program at its gate. */
	if (*inverse && json_object_update(*inverse, rule)) {
		undo("process", *inverse);
		json_decref(*inverse);
		*inverse = NULL;
		rc = -ENOMEM;
	}
	rc = rc ?: packets_drop(&spec, *inverse, e);
	json_decref(rule);
	fd_close(fd);
	return rc;
}

static void try_all(const char *name, act_fn act)
{
	char *before = everything();
	json_t *inverse = NULL;
	struct err e = {""};
	int place, act_places, rc;

	for (place = 1;; place++) {
		inverse = NULL;
		arm(place);
		rc = act(&inverse, &e);
		disarm();
		if (inverse)
			undo(name, inverse);
		json_decref(inverse);
		same(before, name, "act", place);
		if (!atomic_load(&plan->met))
			break;
	}
	if (rc)
		fail_msg("%s: with nothing failing: %s", name, e.text);
	act_places = place - 1;
	for (place = 1;; place++) {
		inverse = NULL;
		assert_int_equal(act(&inverse, &e), 0);
		arm(place);
		rc = primitive_revert(primitive_find(name), inverse, NULL, &e);
		disarm();
		if (rc)
			undo(name, inverse);
		else
			reap();
		json_decref(inverse);
		same(before, name, rc ? "undo, tried again," : "undo", place);
		if (!atomic_load(&plan->met))
			break;
	}
	printf("# %s: %d places in the act, %d in the undo\n", name, act_places, place - 1);
	assert_true(act_places > 3 && place > 3);
	free(before);
}

static void limits(void **unused)
{
	(void)unused;
	try_all("limits", set_limit);
}

static void signals(void **unused)
{
	(void)unused;
	try_all("signal", stop);
}

static void pauses(void **unused)
{
	(void)unused;
	try_all("pauses", stop_again);
}

static void group(void **unused)
{
	(void)unused;
	if (cgroup_own(CGROUP_CPU).version != 1)
		skip();
	try_all("group", limit_group);
}

static void packets(void **unused)
{
	const struct packets_backend *backend;

	(void)unused;
	if (packets_check("nftables", false, &backend, NULL))
		skip();
	try_all("packets", drop);
}

static void delay(void **unused)
{
	const struct packets_backend *backend;

	(void)unused;
	if (packets_check("nftables", true, &backend, NULL))
		skip();
	try_all("delay", slow_down);
}

static void disk(void **unused)
{
	json_t *inverse = NULL;
	struct err e;
	int rc = limit_disk(&inverse, &e);

	(void)unused;
	if (inverse)
		undo("disk", inverse);
	json_decref(inverse);
	if (rc == -ENOTSUP || rc == -ENOENT) {
		printf("# %s\n", e.text);
		skip();
	}
	try_all("disk", limit_disk);
}

static void command(void **unused)
{
	(void)unused;
	assert_true(asprintf(&mark, "%s/mark", state_dir) > 0);
	try_all("command", run);
	free(mark);
}

static void process(void **unused)
{
	(void)unused;
	try_all("process", start);
}

static int tests(void)
{
	const struct CMUnitTest list[] = {
		cmocka_unit_test(limits),
		cmocka_unit_test(signals),
		cmocka_unit_test(pauses),
		cmocka_unit_test(group),
		cmocka_unit_test(packets),
		cmocka_unit_test(delay),
		cmocka_unit_test(disk),
		cmocka_unit_test(process),
		cmocka_unit_test(command),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("failing primitives", list, setup, teardown);
}

int main(void)
{
	return in_own_namespaces(tests);
}

#endif
