/* The primitives limits and signal, the agent's own hogs, and the fingerprint that they change. */
#include "ci/tests/agent/agent_peer.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "faults/primitives/limits.h"
#include "faults/primitives/signal.h"
#include "harness/agent/duty.h"

/* A process with three more threads, all of which count, in memory shared with us. */
struct counters {
	volatile unsigned long turns[4];
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

static pid_t start_target(void)
{
	pid_t pid;

	if (!shared)
		shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(shared, MAP_FAILED);
	memset(shared, 0, sizeof(*shared));
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

static void end_target(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* All four threads go on. */
static void assert_counts(void)
{
	double deadline = clock_mono_s() + PEER_TIMEOUT_S;

	for (int i = 0; i < 4; i++) {
		unsigned long from = shared->turns[i];

		while (shared->turns[i] == from)
			assert_true(clock_mono_s() < deadline);
	}
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

static char *agent_fingerprint(struct peer *p, pid_t pid)
{
	json_t *r = peer_call(p, "fingerprint", json_pack("{s:[i]}", "pids", (int)pid));
	char *text = json_dumps(r, JSON_COMPACT | JSON_SORT_KEYS);

	json_decref(r);
	return text;
}

static json_t *limit_arguments(pid_t pid, int soft)
{
	return json_pack("{s:i, s:s, s:i}", "pid", (int)pid, "resource", "nofile", "soft", soft);
}

static json_t *stop_arguments(pid_t pid)
{
	return json_pack("{s:i}", "pid", (int)pid);
}

static void refused(struct peer *p, const char *op, json_t *args, const char *why)
{
	json_t *answer = peer_answer(p, peer_ask(p, op, args));
	const char *said = json_string_value(json_object_get(answer, "error"));

	if (!said || !strstr(said, why))
		fail_msg("%s says '%s', not '%s'", op, said ? said : "yes", why);
	json_decref(answer);
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
	peer_start(&p, "10s", NULL, NULL);
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
	refused(&p, "limits.set", limit_arguments(pid, 40), "holds that of process");
	assert_int_equal(soft_limit(pid), 50);
	all = peer_call(&p, "undo", json_pack("{s:s}", "handle", handle));
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
	peer_start(&p, "10s", NULL, NULL);
	refused(&p, "limits.set", limit_arguments(pid, 901), "hard limit nofile");
	refused(&p, "limits.set", limit_arguments(pid, -1), "hard limit nofile");
	refused(&p, "limits.set", limit_arguments(pid, -2), "must be 0 or above");
	refused(&p, "limits.set", limit_arguments(1, 50), "above 1");
	refused(&p, "limits.set", limit_arguments(p.pid, 50), "own");
	refused(&p, "limits.set", limit_arguments(gone, 50), "there is no process");
	refused(&p, "limits.set",
		json_pack("{s:i, s:s, s:i}", "pid", (int)pid, "resource", "files", "soft", 1),
		"no resource 'files'");
	refused(&p, "limits.get", json_pack("{s:i}", "pid", (int)gone), "no process");
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
	peer_start(&p, "10s", NULL, NULL);
	clean = agent_fingerprint(&p, pid);
	assert_counts();
	handle = take_text(peer_call(&p, "signal.stop", stop_arguments(pid)), "handle");
	assert_still();
	refused(&p, "signal.stop", stop_arguments(pid), "stopped already");
	after = agent_fingerprint(&p, pid);
	assert_non_null(strstr(after, "stopped: "));
	free(after);
	json_decref(peer_call(&p, "undo", json_pack("{s:s}", "handle", handle)));
	assert_counts();
	after = agent_fingerprint(&p, pid);
	assert_string_equal(after, clean);
	assert_int_equal(peer_end(&p), 0);
	end_target(pid);
	free(clean);
	free(after);
}

static void stop_under_a_tracer(void **unused)
{
	pid_t pid = start_target();
	const char *trace, *stop;
	json_t *r;
	struct peer p;

	(void)unused;
	peer_start(&p, "10s", NULL, NULL);
	trace = take_text(peer_call(&p, "trace.start",
				  json_pack("{s:[i], s:s, s:s}", "pids", (int)pid, "out", "x",
					  "tracer", "ptrace")),
		"handle");
	stop = take_text(peer_call(&p, "signal.stop", stop_arguments(pid)), "handle");
	assert_still();
	json_decref(peer_call(&p, "undo", json_pack("{s:s}", "handle", stop)));
	assert_counts();
	r = peer_call(&p, "trace.stop", json_pack("{s:s}", "handle", trace));
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
	peer_start(&p, "10s", NULL, NULL);
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
	peer_start(&p, "10s", NULL, NULL);
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

static json_t *own_process(
	const char *a, const char *b, const char *c, const char *d, const char *e)
{
	json_t *argv = json_array();

	for (const char *const *w = (const char *const[]){a, b, c, d, e, NULL}; *w; w++)
		json_array_append_new(argv, json_string(*w));
	return json_pack("{s:b, s:o}", "self", true, "argv", argv);
}

/* Until 'member' of its status is at least 'least'. */
static void until(struct peer *p, const char *handle, const char *member, double least)
{
	double deadline = clock_mono_s() + PEER_TIMEOUT_S, value;

	do {
		json_t *r = peer_call(p, "process.status", json_pack("{s:s}", "handle", handle));

		if (!json_is_true(json_object_get(r, "running")))
			fail_msg("it has ended with %lld",
				json_integer_value(json_object_get(r, "exit")));
		value = json_number_value(json_object_get(r, member));
		json_decref(r);
		assert_true(clock_mono_s() < deadline);
	} while (value < least);
}

static void loopback_up(void)
{
	const char *const argv[] = {"ip", "link", "set", "lo", "up", NULL};

	assert_int_equal(proc_run_ok(argv, 10, NULL, NULL), 0);
}

static void zeros_are_sent_and_taken(void **unused)
{
	const char *taker, *sender, *stranger;
	char *clean, *open;
	struct peer p;

	(void)unused;
	loopback_up();
	peer_start(&p, "10s", NULL, NULL);
	clean = agent_fingerprint(&p, 1);
	/* The sender is there first, and tries until somebody listens. */
	sender = take_text(peer_call(&p, "process.start",
				   own_process("send", "127.0.0.1:47200", NULL, NULL, NULL)),
		"handle");
	taker = take_text(
		peer_call(&p, "process.start",
			own_process("sink", "--listen", "127.0.0.1:47200", "--from", "127.0.0.1")),
		"handle");
	until(&p, taker, "rchar", 50e6);
	until(&p, sender, "wchar", 50e6);
	open = agent_fingerprint(&p, 1);
	assert_non_null(strstr(open, "0100007F port 47200"));
	free(open);
	json_decref(peer_call(&p, "undo", json_pack("{s:s}", "handle", sender)));
	json_decref(peer_call(&p, "undo", json_pack("{s:s}", "handle", taker)));
	open = agent_fingerprint(&p, 1);
	assert_string_equal(open, clean);
	free(open);

	/* From a stranger nothing is taken. */
	taker = take_text(
		peer_call(&p, "process.start",
			own_process("sink", "--listen", "127.0.0.1:47200", "--from", "127.0.0.9")),
		"handle");
	stranger = take_text(peer_call(&p, "process.start",
				     own_process("send", "127.0.0.1:47200", NULL, NULL, NULL)),
		"handle");
	until(&p, stranger, "wchar", 1);
	json_t *r = peer_call(&p, "process.status", json_pack("{s:s}", "handle", taker));
	assert_true(json_integer_value(json_object_get(r, "rchar")) < 1000000);
	json_decref(r);
	assert_int_equal(peer_end(&p), 0);
	free(clean);
}

static void cpu_and_memory_are_taken(void **unused)
{
	const char *cpu, *memory;
	struct peer p;

	(void)unused;
	peer_start(&p, "10s", NULL, NULL);
	cpu = take_text(
		peer_call(&p, "process.start", own_process("cpu", "--threads", "2", NULL, NULL)),
		"handle");
	until(&p, cpu, "cpu_s", 0.05);
	memory = take_text(peer_call(&p, "process.start",
				   own_process("memory", "--bytes", "50000000", NULL, NULL)),
		"handle");
	until(&p, memory, "rss_bytes", 50e6);
	assert_int_equal(peer_end(&p), 0);
}

/* What its own clock calls work, beside what ours does: pieces shorter than the period, and longer
 * ones. */
static void a_share_of_the_time_is_kept(void **unused)
{
	static const struct {
		const char *text;
		double share;
		long piece_ns;
	} cases[] = {{"50%", 0.5, 7000000}, {"10%", 0.1, 7000000}, {"25%", 0.25, 90000000}};
	struct duty d;

	(void)unused;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct timespec piece = {.tv_nsec = cases[i].piece_ns};
		double begin = clock_mono_s(), worked = 0, from;

		assert_int_equal(duty_parse(cases[i].text, &d), 0);
		do {
			from = clock_mono_s();
			duty_begin(&d);
			nanosleep(&piece, NULL);
			worked += clock_mono_s() - from;
			duty_end(&d);
		} while (clock_mono_s() - begin < 3);
		worked /= clock_mono_s() - begin;
		printf("# %s: %.3f of the time\n", cases[i].text, worked);
		assert_true(worked > cases[i].share * 0.5 && worked < cases[i].share * 1.5);
	}
	for (const char *const *bad =
			(const char *const[]){"0", "0%", "101%", "-5%", "5", "x", "", "nan%", NULL};
		*bad; bad++)
		assert_int_equal(duty_parse(*bad, &d), -EINVAL);
}

static double counter(struct peer *p, const char *handle, const char *member)
{
	json_t *r = peer_call(p, "process.status", json_pack("{s:s}", "handle", handle));
	double value = json_number_value(json_object_get(r, member));

	assert_true(json_is_true(json_object_get(r, "running")));
	json_decref(r);
	return value;
}

/* Bytes a second that 'member' grew by, of each of the handles, over the same seconds. */
static void growth(
	struct peer *p, const char *const handles[], int n, const char *member, double rate[])
{
	struct timespec nap = {.tv_sec = 3};
	double begin = clock_mono_s(), seconds;

	for (int i = 0; i < n; i++)
		rate[i] = counter(p, handles[i], member);
	nanosleep(&nap, NULL);
	seconds = clock_mono_s() - begin;
	for (int i = 0; i < n; i++)
		rate[i] = (counter(p, handles[i], member) - rate[i]) / seconds;
}

static const char *start_own(
	struct peer *p, const char *a, const char *b, const char *c, const char *d, const char *e)
{
	return take_text(peer_call(p, "process.start", own_process(a, b, c, d, e)), "handle");
}

/* Over a wire of 16 Mbit/s, so that it is the wire that limits: what arrives from half a sender is
 * half of what arrives from a whole one, buffers and all. */
static void half_a_sender_sends_half(void **unused)
{
	const char *const narrow[] = {"ip", "link", "set", "lo", "mtu", "1500",
		NULL}; /* it sends what has gathered at once */
	const char *const shape[] = {"tc", "qdisc", "replace", "dev", "lo", "root", "tbf", "rate",
		"16mbit", "burst", "5kb", "latency", "200ms", NULL};
	const char *const unshape[] = {"tc", "qdisc", "del", "dev", "lo", "root", NULL};
	static const char *const shares[] = {"100%", "50%", "10%"};
	double rate[3];
	char *clean = fingerprint();
	const char *taker, *sender;
	struct peer p;

	(void)unused;
	loopback_up();
	if (proc_run_ok(narrow, 10, NULL, NULL) || proc_run_ok(shape, 10, NULL, NULL)) {
		free(clean);
		skip();
	}
	peer_start(&p, "10s", NULL, NULL);
	taker = start_own(&p, "sink", "--listen", "127.0.0.1:47201", "--from", "127.0.0.1");
	for (int i = 0; i < 3; i++) {
		sender = start_own(&p, "send", "--share", shares[i], "127.0.0.1:47201", NULL);
		until(&p, sender, "wchar", 1e5);
		growth(&p, &taker, 1, "rchar", &rate[i]);
		json_decref(peer_call(&p, "undo", json_pack("{s:s}", "handle", sender)));
	}
	printf("# arrived: whole %.0f, half %.0f, a tenth %.0f kB/s\n", rate[0] / 1e3,
		rate[1] / 1e3, rate[2] / 1e3);
	assert_true(rate[1] > 0.25 * rate[0] && rate[1] < 0.8 * rate[0]);
	assert_true(rate[2] > 0.03 * rate[0] && rate[2] < 0.3 * rate[0]);
	json_decref(peer_call(&p, "undo", json_pack("{s:s}", "handle", taker)));
	assert_int_equal(peer_end(&p), 0);
	assert_int_equal(proc_run_ok(unshape, 10, NULL, NULL), 0);
	until_clean(clean, 10);
	free(clean);
}

/* Two readers side by side, so that whatever else the machine does happens to both. */
static void a_tenth_of_a_reader_reads_less(void **unused)
{
	static const size_t size = 4u << 20;
	char *clean = fingerprint(), path[PATH_MAX + 8], *data = calloc(1, size);
	const char *reader[2];
	double rate[2];
	int direct;
	struct peer p;

	(void)unused;
	snprintf(path, sizeof(path), "%s/disk", state_dir);
	assert_int_equal(file_write_atomic(path, 0600, data, size, NULL), 0);
	free(data);
	direct = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC);
	if (direct < 0) {
		print_message("no direct reads in %s\n", state_dir);
		unlink(path);
		free(clean);
		skip();
	}
	close(direct);
	peer_start(&p, "10s", NULL, NULL);
	reader[0] = start_own(&p, "read", path, NULL, NULL, NULL);
	reader[1] = start_own(&p, "read", "--share=10%", "--block", "65536", path);
	for (int i = 0; i < 2; i++)
		until(&p, reader[i], "rchar",
			2 * (double)size); /* from the end to the start, too */
	growth(&p, reader, 2, "rchar", rate);
	printf("# read: whole %.0f, a tenth %.0f MB/s\n", rate[0] / 1e6, rate[1] / 1e6);
	assert_true(rate[1] > 0.002 * rate[0] && rate[1] < 0.5 * rate[0]);

	/* It ends with its guard, whatever becomes of the agent. */
	kill(p.pid, SIGKILL);
	unlink(path);
	until_clean(clean, 10);
	assert_int_equal(peer_end(&p), 128 + SIGKILL);
	free(clean);
}

static void hogs_refuse(void **unused)
{
	static const char *const bad[][4] = {
		{"sink", "--listen", "nowhere:1", "--from"},
		{"sink"},
		{"send", "10.0.0.1"},
		{"send", "[::1]"},
		{"cpu", "--threads", "0"},
		{"memory"},
		{"memory", "--bytes", "1x"},
		{"send", "--share", "0%", "127.0.0.1:1"},
		{"read"},
		{"read", "--block", "1000", "/dev/zero"},
		{"read", "--share=200%", "/dev/zero"},
	};

	(void)unused;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		const char *const argv[] = {
			agent_path_, bad[i][0], bad[i][1], bad[i][2], bad[i][3], NULL};

		assert_int_equal(proc_run(argv, 10, NULL, NULL), 2);
	}
}

/* Equal while nothing changes, and different once each thing has. */
static void fingerprint_is_stable_and_quick(void **unused)
{
	char *first, *again;
	pid_t pid = start_target();
	double begin, best = 1e9;
	struct peer p;

	(void)unused;
	peer_start(&p, "10s", NULL, NULL);
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

static int tests(void)
{
	const struct CMUnitTest list[] = {
		cmocka_unit_test(limit_is_set_and_undone),
		cmocka_unit_test(limits_refuse),
		cmocka_unit_test(stop_holds_all_threads),
		cmocka_unit_test(stop_under_a_tracer),
		cmocka_unit_test(guard_undoes_when_the_agent_is_killed),
		cmocka_unit_test(max_s_ends_them),
		cmocka_unit_test(process_that_ended_is_left_alone),
		cmocka_unit_test(zeros_are_sent_and_taken),
		cmocka_unit_test(cpu_and_memory_are_taken),
		cmocka_unit_test(a_share_of_the_time_is_kept),
		cmocka_unit_test(half_a_sender_sends_half),
		cmocka_unit_test(a_tenth_of_a_reader_reads_less),
		cmocka_unit_test(hogs_refuse),
		cmocka_unit_test(fingerprint_is_stable_and_quick),
	};

	return cmocka_run_group_tests_name("primitives", list, peer_setup, peer_teardown);
}

int main(void)
{
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return in_own_namespaces(tests);
}
