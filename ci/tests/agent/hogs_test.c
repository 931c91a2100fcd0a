/* The agent's hogs, and what the share of the time that they work makes of them. */
#include "ci/tests/agent/agent_peer.h"

#include <sched.h>

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
		json_t *r = peer_call(p, "process.status", handle_args(handle));

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

	assert_int_equal(proc_run_ok(argv, patient_s(60), NULL, NULL), 0);
}

static void zeros_are_sent_and_taken(void **unused)
{
	const char *taker, *sender, *stranger;
	char *clean, *open;
	struct peer p;

	(void)unused;
	loopback_up();
	peer_start(&p, LONG_LEASE, NULL, NULL);
	clean = agent_fingerprint(&p, 1);
	/* The sender starts first, and tries until the sink listens. */
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
	json_decref(peer_call(&p, "undo", handle_args(sender)));
	json_decref(peer_call(&p, "undo", handle_args(taker)));
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
	json_t *r = peer_call(&p, "process.status", handle_args(taker));
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
	peer_start(&p, LONG_LEASE, NULL, NULL);
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

static double counter(struct peer *p, const char *handle, const char *member)
{
	json_t *r = peer_call(p, "process.status", handle_args(handle));
	double value = json_number_value(json_object_get(r, member));

	assert_true(json_is_true(json_object_get(r, "running")));
	json_decref(r);
	return value;
}

/* Bytes a second that 'member' grew by, of each of the handles, over the same seconds. */
static void growth(
	struct peer *p, const char *const handles[], int n, const char *member, double rate[])
{
	struct timespec nap = {.tv_sec = 2}; /* ten of a hog's periods */
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

/* As start_own, before all other processes: how busy the machine is does not count. For one that
 * waits for a wire nearly always. */
static const char *start_first(
	struct peer *p, const char *a, const char *b, const char *c, const char *d, const char *e)
{
	const struct sched_param first = {.sched_priority = 1};
	json_t *r = peer_call(p, "process.start", own_process(a, b, c, d, e));

	sched_setscheduler(
		(pid_t)json_integer_value(json_object_get(r, "pid")), SCHED_FIFO, &first);
	return take_text(r, "handle");
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
	if (proc_run_ok(narrow, patient_s(60), NULL, NULL) || proc_run_ok(shape, 10, NULL, NULL)) {
		free(clean);
		skip();
	}
	peer_start(&p, LONG_LEASE, NULL, NULL);
	taker = start_first(&p, "sink", "--listen", "127.0.0.1:47201", "--from", "127.0.0.1");
	for (int i = 0; i < 3; i++) {
		sender = start_first(&p, "send", "--share", shares[i], "127.0.0.1:47201", NULL);
		until(&p, sender, "wchar", 1e5);
		growth(&p, &taker, 1, "rchar", &rate[i]);
		json_decref(peer_call(&p, "undo", handle_args(sender)));
	}
	printf("# arrived: whole %.0f, half %.0f, a tenth %.0f kB/s\n", rate[0] / 1e3,
		rate[1] / 1e3, rate[2] / 1e3);
	assert_true(rate[1] > 0.25 * rate[0] && rate[1] < 0.8 * rate[0]);
	assert_true(rate[2] > 0.03 * rate[0] && rate[2] < 0.3 * rate[0]);
	json_decref(peer_call(&p, "undo", handle_args(taker)));
	assert_int_equal(peer_end(&p), 0);
	assert_int_equal(proc_run_ok(unshape, patient_s(60), NULL, NULL), 0);
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
	peer_start(&p, LONG_LEASE, NULL, NULL);
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

/* In its own pid namespace, so its memory is its own only under a limit. */
static void a_machine_is_described(void **unused)
{
	struct peer p;
	json_t *r;

	(void)unused;
	peer_start(&p, LONG_LEASE, NULL, NULL);
	r = peer_call(&p, "machine", json_object());
	assert_true(json_number_value(json_object_get(r, "processors")) > 0);
	assert_true(json_number_value(json_object_get(r, "processors")) <=
		(double)json_integer_value(json_object_get(r, "online")));
	assert_true(json_number_value(json_object_get(r, "busy_s")) > 0);
	assert_true(json_integer_value(json_object_get(r, "available_bytes")) <=
		json_integer_value(json_object_get(r, "memory_bytes")));
	assert_true(json_integer_value(json_object_get(r, "available_bytes")) <=
		json_integer_value(json_object_get(r, "host_available_bytes")));
	assert_true(json_integer_value(json_object_get(r, "available_bytes")) > 0);
	assert_true(json_is_boolean(json_object_get(r, "own_memory")));
	json_decref(r);
	peer_end(&p);
}

static int tests(void)
{
	const struct CMUnitTest list[] = {
		cmocka_unit_test(a_machine_is_described),
		cmocka_unit_test(zeros_are_sent_and_taken),
		cmocka_unit_test(cpu_and_memory_are_taken),
		cmocka_unit_test(half_a_sender_sends_half),
		cmocka_unit_test(a_tenth_of_a_reader_reads_less),
		cmocka_unit_test(hogs_refuse),
	};

	return cmocka_run_group_tests_name("hogs", list, peer_setup, peer_teardown);
}

int main(void)
{
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return in_own_namespaces(tests);
}
