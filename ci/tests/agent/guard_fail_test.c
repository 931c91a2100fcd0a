/*
 * Each allocation and each write of a session's agent, guard and standby fails once, as when memory
 * or the disk of the undo journal is full; then the session ends in order, or agent, or agent and
 * guard, are killed. What was done is undone, by the session itself or by the next contact.
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

#include <sys/prctl.h>
#include <sys/syscall.h>

#include "faults/primitives/signal.h"
#include "harness/agent/guard.h"
#include "harness/agent/journal.h"
#include "harness/base/jget.h"

TAKE(int, fdatasync, "fdatasync", (int fd), (fd), -1, ENOSPC)
TAKE(int, fsync, "fsync", (int fd), (fd), -1, ENOSPC)
TAKE(int, mkdir, "mkdir", (const char *path, mode_t mode), (path, mode), -1, ENOSPC)
TAKE(int, rename, "rename", (const char *from, const char *to), (from, to), -1, ENOSPC)

/* With CULPRIT_SOAK every place, else each twentieth. */
#define STEP 20

enum death { IN_ORDER, AGENT, AGENT_AND_GUARD };

/* Files of a journal that was not finished as well. */
static int count_hidden(void)
{
	char path[PATH_MAX + 8];
	struct dirent *d;
	DIR *dir;
	int n = 0;

	snprintf(path, sizeof(path), "%s/undo", state_dir);
	dir = opendir(path);
	while (dir && (d = readdir(dir)))
		n += d->d_name[0] == '.';
	if (dir)
		closedir(dir);
	return dir ? n - 2 : 0;
}

static char *everything(void)
{
	char *left = fingerprint(), *all;

	assert_true(asprintf(&all, "%s; %d hidden files; target %s", left, count_hidden(),
			    signal_is_stopped(target) ? "stopped" : "running") > 0);
	free(left);
	return all;
}

/* As ops_acts.c does it: no act without its entry in the journal. */
static void act(struct guard *g)
{
	const struct packets_spec spec = {.percent = 5};
	json_t *inverse = NULL;

	if (!signal_inverse(target, &inverse, NULL) &&
		!guard_record(g, "h1", "signal", inverse, 0, NULL)) {
		signal_stop(inverse, NULL);
		guard_acted(g, "h1");
	}
	inverse = packets_inverse(packets_backend_find("nftables"), "0123456789abcdef", "h2");
	if (inverse && !guard_record(g, "h2", "packets", inverse, 0, NULL)) {
		packets_drop(&spec, inverse, NULL);
		guard_acted(g, "h2");
	}
}

/* As serve.c's. */
static void say_bye(struct guard *g)
{
	struct guard_message m;
	int rc;

	guard_undo(g, "h1");
	guard_bye(g);
	for (;;) {
		poll(&(struct pollfd){.fd = guard_fd(g), .events = POLLIN}, 1, 1000);
		rc = guard_next(g, &m);
		if (rc < 0)
			guard_take_over(g, NULL);
		if (rc < 0 || (rc > 0 && !*m.handle))
			return;
		/* If the message was lost, the lease ends the wait. */
	}
}

static __attribute__((noinline)) void agent(enum death death)
{
	struct guard *g;

	CHAINS_END_HERE();
	if (guard_start(state_dir, "0123456789abcdef", 0.5, &g, NULL))
		_exit(1);
	act(g);
	if (death == IN_ORDER) {
		say_bye(g);
		guard_free(g);
		_exit(0);
	}
	/* Not by kill(), which may fail here. */
	if (death == AGENT_AND_GUARD) {
		syscall(SYS_kill, guard_pid(g), SIGSTOP);
		syscall(SYS_kill, guard_pid(g), SIGKILL);
	}
	raise(SIGKILL);
}

/* Returns when no process of the session is left. */
static void run(enum death death)
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_CHILD_SUBREAPER, 1);
		pid = fork();
		if (pid == 0)
			agent(death);
		while (waitpid(-1, NULL, 0) >= 0 || errno == EINTR)
			;
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	disarm();
}

/* True if it took the next contact. */
static bool mended(const char *before, int place)
{
	json_t *cleaned = json_array(), *unclean = json_array();
	char *now = everything(), *text;
	bool needed = strcmp(now, before) != 0;

	free(now);
	journal_clean_left(state_dir, cleaned, unclean);
	text = json_dumps(unclean, 0);
	now = everything();
	if (json_array_size(unclean) || strcmp(now, before))
		fail_msg("%s failing at place %d: %s, not %s; %s", plan->name, place, now, before,
			text);
	free(text);
	free(now);
	json_decref(cleaned);
	json_decref(unclean);
	return needed;
}

static void try_all(enum death death)
{
	static uint64_t chains[MAX_CHAINS];
	int n, tried = 0, met = 0, contacts = 0, step = getenv("CULPRIT_SOAK") ? 1 : STEP;
	char *before = everything();

	arm_chain(0);
	run(death);
	assert_false(mended(before, -1));
	n = atomic_load(&plan->chains);
	assert_true(n > 50 && n < MAX_CHAINS);
	memcpy(chains, plan->chain, (size_t)n * sizeof(*chains));
	for (int i = getenv("CULPRIT_SOAK") ? 0 : (int)death * STEP / 3; i < n; i += step) {
		arm_chain(chains[i]);
		run(death);
		tried++;
		met += atomic_load(&plan->met);
		contacts += mended(before, i);
	}
	printf("# %d of %d places, %d met, %d mended by the next contact\n", tried, n, met,
		contacts);
	/* Some are reached only when a process is late. */
	assert_true(met > tried / 2);
	free(before);
}

static void in_order(void **unused)
{
	(void)unused;
	try_all(IN_ORDER);
}

static void agent_killed(void **unused)
{
	(void)unused;
	try_all(AGENT);
}

static void agent_and_guard_killed(void **unused)
{
	(void)unused;
	try_all(AGENT_AND_GUARD);
}

static int tests(void)
{
	const struct CMUnitTest list[] = {
		cmocka_unit_test(in_order),
		cmocka_unit_test(agent_killed),
		cmocka_unit_test(agent_and_guard_killed),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("failing guard", list, setup, teardown);
}

int main(void)
{
	return in_own_namespaces(tests);
}

#endif
