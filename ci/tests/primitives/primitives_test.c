/* The primitives limits, signal and pauses, and the fingerprint that they change. */
#include "ci/tests/agent/agent_peer.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "faults/primitives/limits.h"
#include "faults/primitives/signal.h"

/* A process with three more threads, all of which count, in memory shared with us; or a family of
 * four processes that do. */
struct counters {
	volatile unsigned long turns[4];
	volatile pid_t pids[4];
	volatile bool heir_wanted;
	volatile pid_t heir; /* forked once it was wanted */
};

static struct counters *shared;

static void *count(void *slot)
{
	struct timespec nap = {.tv_nsec = 1000000};

	for (;;) {
		++*(volatile unsigned long *)slot;
		nanosleep(&nap, NULL);
	}
	return NULL;
}

static void share(void)
{
	if (!shared)
		shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(shared, MAP_FAILED);
	memset(shared, 0, sizeof(*shared));
}

static pid_t start_target(void)
{
	pid_t pid;

	share();
	pid = fork();
	if (pid == 0) {
		pthread_t thread;

		for (int i = 1; i < 4; i++)
			pthread_create(&thread, NULL, count, (void *)&shared->turns[i]);
		count((void *)&shared->turns[0]);
	}
	assert_true(pid > 0);
	return pid;
}

/* All four threads continue. */
static void assert_counts(void)
{
	double deadline = clock_mono_s() + PEER_TIMEOUT_S;

	for (int i = 0; i < 4; i++) {
		unsigned long from = shared->turns[i];

		while (shared->turns[i] == from)
			assert_true(clock_mono_s() < deadline);
	}
}

static void be_member(int place)
{
	shared->pids[place] = getpid();
	for (;;) {
		++shared->turns[place];
		if (place == 1 && shared->heir_wanted && !shared->heir) {
			pid_t pid = fork();

			while (!pid)
				pause();
			shared->heir = pid;
		}
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	}
}

/* Forks without end, as a server whose clients come and go. */
static void be_forker(void)
{
	shared->pids[3] = getpid();
	for (;;) {
		if (!fork()) {
			++shared->turns[3];
			_exit(0);
		}
		wait(NULL);
	}
}

/* A server: 0, its children 1 and 3, and 2, the child of 1. They lead their own sessions. */
static pid_t start_family(void)
{
	pid_t pid;

	share();
	pid = fork();
	if (pid)
		return pid;
	if (!fork()) {
		setsid();
		if (!fork()) {
			setsid();
			be_member(2);
		}
		be_member(1);
	}
	if (!fork())
		be_forker();
	be_member(0);
	return 0;
}

static void end_family(pid_t pid)
{
	if (shared->heir)
		kill(shared->heir, SIGKILL);
	for (int i = 3; i >= 0; i--)
		kill(shared->pids[i], SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void assert_still(void)
{
	struct timespec nap = {.tv_nsec = 30000000};
	struct counters before = *shared;

	nanosleep(&nap, NULL);
	assert_memory_equal(&before, shared, sizeof(before));
}

static rlim_t soft_limit(pid_t pid)
{
	struct rlimit limit;

	assert_return_code(prlimit(pid, RLIMIT_NOFILE, NULL, &limit), errno);
	return limit.rlim_cur;
}

static json_t *limit_arguments(pid_t pid, int soft)
{
	return json_pack("{s:i, s:s, s:i}", "pid", (int)pid, "resource", "nofile", "soft", soft);
}

static json_t *stop_arguments(pid_t pid)
{
	return json_pack("{s:i}", "pid", (int)pid);
}

static void limit_is_set_and_undone(void **unused)
{
	pid_t pid = start_target();
	rlim_t before = soft_limit(pid);
	char *clean, *set, *after;
	const char *handle;
	struct peer p;
	json_t *all;

	(void)unused;
	peer_start(&p, LONG_LEASE, NULL, NULL);
	clean = agent_fingerprint(&p, pid);
	handle = take_text(peer_call(&p, "limits.set", limit_arguments(pid, 50)), "handle");
	assert_int_equal(soft_limit(pid), 50);
	all = peer_call(&p, "limits.get", json_pack("{s:i}", "pid", (int)pid));
	assert_int_equal(
		json_integer_value(json_object_get(json_object_get(all, "nofile"), "soft")), 50);
	assert_int_equal(
		json_integer_value(json_object_get(json_object_get(all, "as"), "soft")), -1);
	json_decref(all);
	set = agent_fingerprint(&p, pid);
	assert_string_not_equal(set, clean);
	peer_refused(&p, "limits.set", limit_arguments(pid, 40), "holds that of process", 0);
	assert_int_equal(soft_limit(pid), 50);
	all = peer_call(&p, "undo", handle_args(handle));
	assert_true(json_is_true(json_object_get(all, "undone")));
	json_decref(all);
	assert_int_equal(soft_limit(pid), before);
	after = agent_fingerprint(&p, pid);
	assert_string_equal(after, clean);
	assert_int_equal(peer_end(&p), 0);
	end_target(pid);
	free(clean);
	free(set);
	free(after);
}

static void limits_refuse(void **unused)
{
	pid_t pid = start_target(), gone = fork();
	struct rlimit limit;
	struct peer p;

	(void)unused;
	if (gone == 0)
		_exit(0);
	waitpid(gone, NULL, 0);
	assert_return_code(prlimit(pid, RLIMIT_NOFILE, NULL, &limit), errno);
	limit.rlim_max = 900;
	limit.rlim_cur = 800;
	assert_return_code(prlimit(pid, RLIMIT_NOFILE, &limit, NULL), errno);
	peer_start(&p, LONG_LEASE, NULL, NULL);
	peer_refused(&p, "limits.set", limit_arguments(pid, 901), "hard limit nofile", 0);
	peer_refused(&p, "limits.set", limit_arguments(pid, -1), "hard limit nofile", 0);
	peer_refused(&p, "limits.set", limit_arguments(pid, -2), "must be 0 or above", 0);
	peer_refused(&p, "limits.set", limit_arguments(1, 50), "above 1", 0);
	peer_refused(&p, "limits.set", limit_arguments(p.pid, 50), "own", 0);
	peer_refused(&p, "limits.set", limit_arguments(gone, 50), "there is no process", 0);
	peer_refused(&p, "limits.set",
		json_pack("{s:i, s:s, s:i}", "pid", (int)pid, "resource", "files", "soft", 1),
		"no resource 'files'", 0);
	peer_refused(&p, "limits.get", json_pack("{s:i}", "pid", (int)gone), "no process", 0);
	assert_int_equal(soft_limit(pid), 800);
	assert_int_equal(peer_end(&p), 0);
	end_target(pid);
}

static void stop_holds_all_threads(void **unused)
{
	pid_t pid = start_target();
	char *clean, *after;
	const char *handle;
	struct peer p;

	(void)unused;
	peer_start(&p, LONG_LEASE, NULL, NULL);
	clean = agent_fingerprint(&p, pid);
	assert_counts();
	handle = take_text(peer_call(&p, "signal.stop", stop_arguments(pid)), "handle");
	assert_still();
	peer_refused(&p, "signal.stop", stop_arguments(pid), "stopped already", 0);
	after = agent_fingerprint(&p, pid);
	assert_non_null(strstr(after, "state=stopped"));
	free(after);
	json_decref(peer_call(&p, "undo", handle_args(handle)));
	assert_counts();
	after = agent_fingerprint(&p, pid);
	assert_string_equal(after, clean);
	assert_int_equal(peer_end(&p), 0);
	end_target(pid);
	free(clean);
	free(after);
}

static void stop_holds_descendants(void **unused)
{
	pid_t pid = start_family();
	const char *handle;
	struct peer p;

	(void)unused;
	assert_counts();
	peer_start(&p, LONG_LEASE, NULL, NULL);
	handle = take_text(peer_call(&p, "signal.stop", stop_arguments(pid)), "handle");
	assert_still();
	json_decref(peer_call(&p, "undo", handle_args(handle)));
	assert_counts();
	kill(shared->pids[2], SIGSTOP);
	while (!signal_is_stopped(shared->pids[2]))
		;
	peer_refused(&p, "signal.stop", stop_arguments(pid), "stopped already", 0);
	kill(shared->pids[2], SIGCONT);
	assert_counts();
	assert_int_equal(peer_end(&p), 0);
	end_family(pid);
}

/* The guard knows descendants from its journal, also once their parent has ended. */
static void guard_lets_descendants_go_on(void **unused)
{
	pid_t pid = start_family();
	char *clean;
	struct peer p;

	(void)unused;
	assert_counts();
	clean = fingerprint();
	peer_start(&p, LONG_LEASE, NULL, NULL);
	json_decref(peer_call(&p, "signal.stop", stop_arguments(pid)));
	assert_still();
	kill(pid, SIGKILL);
	wait_dead(pid);
	kill(p.pid, SIGKILL);
	until_clean(clean, 10);
	for (int i = 1; i < 4; i++)
		for (unsigned long from = shared->turns[i]; shared->turns[i] == from;)
			;
	assert_int_equal(peer_end(&p), 128 + SIGKILL);
	for (int i = 1; i < 4; i++)
		kill(shared->pids[i], SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	free(clean);
}

static void limit_reaches_descendants(void **unused)
{
	struct rlimit own;
	pid_t pid = start_family();
	rlim_t before;
	const char *handle;
	struct peer p;

	(void)unused;
	assert_counts();
	before = soft_limit(pid);
	assert_return_code(prlimit(shared->pids[2], RLIMIT_NOFILE, NULL, &own), errno);
	own.rlim_cur = 77;
	assert_return_code(prlimit(shared->pids[2], RLIMIT_NOFILE, &own, NULL), errno);
	peer_start(&p, LONG_LEASE, NULL, NULL);
	handle = take_text(peer_call(&p, "limits.set", limit_arguments(pid, 50)), "handle");
	shared->heir_wanted = true;
	while (!shared->heir)
		;
	assert_int_equal(soft_limit(shared->heir), 50);
	for (int i = 0; i < 4; i++)
		assert_int_equal(soft_limit(shared->pids[i]), 50);
	json_decref(peer_call(&p, "undo", handle_args(handle)));
	for (int i = 0; i < 4; i++)
		assert_int_equal(soft_limit(shared->pids[i]), i == 2 ? 77 : before);
	assert_int_equal(soft_limit(shared->heir), before);
	assert_int_equal(peer_end(&p), 0);
	end_family(pid);
}

static void stop_under_a_tracer(void **unused)
{
	pid_t pid = start_target();
	const char *trace, *stop;
	json_t *r;
	struct peer p;

	(void)unused;
	peer_start(&p, LONG_LEASE, NULL, NULL);
	trace = take_text(peer_call(&p, "trace.start", trace_args(pid)), "handle");
	stop = take_text(peer_call(&p, "signal.stop", stop_arguments(pid)), "handle");
	assert_still();
	json_decref(peer_call(&p, "undo", handle_args(stop)));
	assert_counts();
	r = peer_call(&p, "trace.stop", handle_args(trace));
	assert_true(json_is_true(json_object_get(r, "whole")));
	json_decref(r);
	assert_counts();
	assert_int_equal(peer_end(&p), 0);
	end_target(pid);
}

static void guard_undoes_when_the_agent_is_killed(void **unused)
{
	pid_t pid = start_target();
	rlim_t before = soft_limit(pid);
	char *clean = fingerprint();
	struct peer p;

	(void)unused;
	peer_start(&p, LONG_LEASE, NULL, NULL);
	json_decref(peer_call(&p, "limits.set", limit_arguments(pid, 50)));
	json_decref(peer_call(&p, "signal.stop", stop_arguments(pid)));
	assert_still();
	kill(p.pid, SIGKILL);
	printf("# agent killed: clean after %.3f s\n", until_clean(clean, 10));
	assert_counts();
	assert_int_equal(soft_limit(pid), before);
	assert_int_equal(peer_end(&p), 128 + SIGKILL);
	end_target(pid);
	free(clean);
}

static void max_s_ends_them(void **unused)
{
	pid_t pid = start_target();
	struct peer p;
	json_t *args;

	(void)unused;
	peer_start(&p, LONG_LEASE, NULL, NULL);
	args = stop_arguments(pid);
	json_object_set_new(args, "max_s", json_real(0.2));
	json_decref(peer_call(&p, "signal.stop", args));
	json_decref(peer_event(&p, "undone"));
	assert_counts();
	assert_int_equal(peer_end(&p), 0);
	end_target(pid);
}

static void process_that_ended_is_left_alone(void **unused)
{
	const struct primitive *limits = primitive_find("limits"), *stop = primitive_find("signal");
	pid_t pid = start_target(), other;
	json_t *inverse, *held;
	uint64_t ticks;
	bool was;

	(void)unused;
	assert_int_equal(limits_inverse(pid, "nofile", &inverse, NULL), 0);
	assert_int_equal(signal_inverse(pid, &held, NULL), 0);
	assert_int_equal(limits_set(inverse, 50, NULL), 0);
	end_target(pid);
	assert_int_equal(primitive_revert(limits, inverse, &was, NULL), 0);
	assert_int_equal(primitive_revert(stop, held, &was, NULL), 0);

	/* Another one, started a tick later at least, has the number now: its limit is its own, and
	 * so is its stop. */
	for (other = start_target(); !proc_start_time(other, &ticks) &&
		ticks == (uint64_t)json_integer_value(json_object_get(inverse, "start_ticks"));
		other = start_target())
		end_target(other);
	json_object_set_new(inverse, "pid", json_integer(other));
	json_object_set_new(inverse, "soft", json_integer(77));
	json_object_set_new(held, "pid", json_integer(other));
	kill(other, SIGSTOP);
	while (!signal_is_stopped(other))
		;
	assert_int_equal(primitive_revert(limits, inverse, &was, NULL), 0);
	assert_int_equal(primitive_revert(stop, held, &was, NULL), 0);
	assert_int_not_equal(soft_limit(other), 77);
	assert_true(signal_is_stopped(other));
	assert_int_equal(limits_set(inverse, 50, NULL), -ESRCH);
	assert_int_equal(signal_stop(held, NULL), -ESRCH);
	end_target(other);
	json_decref(inverse);
	json_decref(held);
}

/* Equal while nothing changes, and different once each thing has. */
static void fingerprint_is_stable_and_quick(void **unused)
{
	char *first, *again;
	pid_t pid = start_target();
	double begin, best = 1e9;
	struct peer p;

	(void)unused;
	peer_start(&p, LONG_LEASE, NULL, NULL);
	first = agent_fingerprint(&p, pid);
	for (int i = 0; i < 20; i++) {
		begin = clock_mono_s();
		again = agent_fingerprint(&p, pid);
		best = clock_mono_s() - begin < best ? clock_mono_s() - begin : best;
		assert_string_equal(again, first);
		free(again);
	}
	printf("# a fingerprint takes %.1f ms\n", best * 1000);
	assert_return_code(mount("none", state_dir, "tmpfs", 0, "size=1M"), errno);
	again = agent_fingerprint(&p, pid);
	assert_string_not_equal(again, first);
	free(again);
	assert_return_code(mount("none", state_dir, NULL, MS_REMOUNT | MS_RDONLY, NULL), errno);
	again = agent_fingerprint(&p, pid);
	assert_non_null(strstr(again, " tmpfs none ro"));
	free(again);
	assert_return_code(umount(state_dir), errno);
	end_target(pid);
	again = agent_fingerprint(&p, pid);
	assert_non_null(strstr(again, "[\"gone\"]"));
	free(again);
	assert_int_equal(peer_end(&p), 0);
	free(first);
}

/* ---- pauses ---- */

static json_t *pause_arguments(pid_t pid, double pause_s, double every_s)
{
	json_t *args = json_pack("{s:[i], s:f}", "pids", (int)pid, "pause_s", pause_s);

	if (every_s > 0)
		json_object_set_new(args, "every_s", json_real(every_s));
	return args;
}

/* What has been done, once there were so many stops and, if 'whole', a whole period. */
static json_t *until_stops(struct peer *p, const char *handle, int stops, bool whole)
{
	double deadline = clock_mono_s() + PEER_TIMEOUT_S;

	for (;;) {
		json_t *now = peer_call(p, "signal.pauses", handle_args(handle));

		if (json_integer_value(json_object_get(now, "stops")) >= stops &&
			(!whole || json_real_value(json_object_get(now, "whole_s")) > 0))
			return now;
		json_decref(now);
		assert_true(clock_mono_s() < deadline);
		nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
	}
}

/* The share of a second's looks, 5 ms apart, that find the process stopped. */
static double share_stopped(pid_t pid)
{
	double end = clock_mono_s() + 1;
	int looks = 0, stopped = 0;

	while (clock_mono_s() < end) {
		looks++;
		stopped += signal_is_stopped(pid);
		nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
	}
	return (double)stopped / looks;
}

static void pauses_take_their_share(void **unused)
{
	pid_t pid = start_target();
	double share, stopped_s, whole_s;
	char *clean, *after;
	const char *handle;
	struct peer p;
	json_t *now;

	(void)unused;
	peer_start(&p, LONG_LEASE, NULL, NULL);
	clean = agent_fingerprint(&p, pid);
	handle = take_text(peer_call(&p, "signal.pause", pause_arguments(pid, 0.1, 0.2)), "handle");
	json_decref(until_stops(&p, handle, 1, false));
	share = share_stopped(pid);
	now = until_stops(&p, handle, 5, true);
	stopped_s = json_real_value(json_object_get(now, "stopped_s"));
	whole_s = json_real_value(json_object_get(now, "whole_s"));
	assert_true(json_is_true(json_object_get(now, "running")));
	json_decref(now);
	printf("# stopped at %.0f %% of looks; by its own count %.3f s of %.3f s\n", share * 100,
		stopped_s, whole_s);
	assert_true(share > 0.3 && share < 0.7);
	assert_true(stopped_s > 0.3 * whole_s && stopped_s < 0.6 * whole_s);
	json_decref(peer_call(&p, "undo", handle_args(handle)));
	assert_true(share_stopped(pid) == 0);
	assert_counts();
	after = agent_fingerprint(&p, pid);
	assert_string_equal(after, clean);
	assert_int_equal(peer_end(&p), 0);
	end_target(pid);
	free(clean);
	free(after);
}

/* A pause stops a family as a whole; it is one only, and ends by itself. */
static void a_single_pause(void **unused)
{
	pid_t pid = start_family();
	const char *handle;
	struct peer p;
	json_t *now;

	(void)unused;
	assert_counts();
	peer_start(&p, LONG_LEASE, NULL, NULL);
	handle = take_text(peer_call(&p, "signal.pause", pause_arguments(pid, 2, 0)), "handle");
	json_decref(until_stops(&p, handle, 1, false));
	assert_still();
	now = until_stops(&p, handle, 1, true);
	assert_counts();
	assert_int_equal(json_integer_value(json_object_get(now, "stops")), 1);
	assert_true(json_real_value(json_object_get(now, "stopped_s")) > 1);
	assert_true(json_is_true(json_object_get(now, "running")));
	json_decref(now);
	assert_true(share_stopped(pid) == 0);
	json_decref(peer_call(&p, "undo", handle_args(handle)));
	assert_int_equal(peer_end(&p), 0);
	end_family(pid);
}

static void pauses_refuse(void **unused)
{
	pid_t pid = start_target();
	const char *stop, *again;
	struct peer p;

	(void)unused;
	peer_start(&p, LONG_LEASE, NULL, NULL);
	peer_refused(&p, "signal.pause", pause_arguments(pid, 0.2, 0.2),
		"every_s must be above pause_s, 0.2 s, not 0.2 s", -EINVAL);
	peer_refused(&p, "signal.pause", pause_arguments(pid, 0, 1), "pause_s must be above 0", 0);
	peer_refused(&p, "signal.pause", pause_arguments(1, 0.1, 1), "above 1", 0);
	peer_refused(&p, "signal.pause", pause_arguments(p.pid, 0.1, 1), "own", 0);
	peer_refused(&p, "signal.pause", pause_arguments(peer_guard(&p), 0.1, 1), "guard", 0);
	again = take_text(peer_call(&p, "signal.pause", pause_arguments(pid, 0.05, 1)), "handle");
	json_decref(until_stops(&p, again, 1, true));
	peer_refused(&p, "signal.pause", pause_arguments(pid, 0.1, 1), "", 0);
	peer_refused(&p, "signal.stop", stop_arguments(pid), "", 0);
	json_decref(peer_call(&p, "undo", handle_args(again)));
	stop = take_text(peer_call(&p, "signal.stop", stop_arguments(pid)), "handle");
	peer_refused(
		&p, "signal.pause", pause_arguments(pid, 0.1, 1), "stopped already", -EALREADY);
	json_decref(peer_call(&p, "undo", handle_args(stop)));
	assert_counts();
	assert_int_equal(peer_end(&p), 0);
	end_target(pid);
}

/* Whoever dies in the middle of a pause, the server continues: its program, which the undo
 * repairs; the agent; agent and guard together; and when the time is up. */
static void pauses_end_with_those_who_began_them(void **unused)
{
	char *clean = fingerprint();
	enum { PROGRAM, AGENT, BOTH, MAX_S, DEATHS };

	(void)unused;
	for (int death = 0; death < DEATHS; death++) {
		pid_t pid = start_target(), program;
		json_t *args = pause_arguments(pid, 100, 0), *now;
		const char *handle;
		struct peer p;

		if (death == MAX_S)
			json_object_set_new(args, "max_s", json_real(0.5));
		peer_start(&p, LONG_LEASE, NULL, NULL);
		handle = take_text(peer_call(&p, "signal.pause", args), "handle");
		json_decref(until_stops(&p, handle, 1, false));
		if (death != MAX_S)
			assert_still();
		if (death == PROGRAM) {
			program = child_of(p.pid, "culprit-agent");
			assert_true(program > 0);
			kill(program, SIGKILL);
			json_decref(peer_event(&p, "exit"));
			now = peer_call(&p, "signal.pauses", handle_args(handle));
			assert_true(json_is_false(json_object_get(now, "running")));
			json_decref(now);
			json_decref(peer_call(&p, "undo", handle_args(handle)));
		} else if (death == AGENT) {
			kill(p.pid, SIGKILL);
		} else if (death == BOTH) {
			peer_kill_all(&p, false);
		} else {
			json_decref(peer_event(&p, "undone"));
		}
		if (death == AGENT || death == BOTH)
			until_clean(clean, 30);
		assert_counts();
		assert_true(share_stopped(pid) == 0);
		peer_end(&p);
		end_target(pid);
	}
	free(clean);
}

static int tests(void)
{
	const struct CMUnitTest list[] = {
		cmocka_unit_test(limit_is_set_and_undone),
		cmocka_unit_test(limits_refuse),
		cmocka_unit_test(stop_holds_all_threads),
		cmocka_unit_test(stop_holds_descendants),
		cmocka_unit_test(guard_lets_descendants_go_on),
		cmocka_unit_test(limit_reaches_descendants),
		cmocka_unit_test(stop_under_a_tracer),
		cmocka_unit_test(guard_undoes_when_the_agent_is_killed),
		cmocka_unit_test(max_s_ends_them),
		cmocka_unit_test(process_that_ended_is_left_alone),
		cmocka_unit_test(pauses_take_their_share),
		cmocka_unit_test(a_single_pause),
		cmocka_unit_test(pauses_refuse),
		cmocka_unit_test(pauses_end_with_those_who_began_them),
		cmocka_unit_test(fingerprint_is_stable_and_quick),
	};

	return cmocka_run_group_tests_name("primitives", list, peer_setup, peer_teardown);
}

int main(void)
{
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return in_own_namespaces(tests);
}
