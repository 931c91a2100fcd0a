/* What the agent starts itself for: loops and tracers; and that it needs no file of the host. */
#include "ci/tests/agent/agent_peer.h"

static void start(struct peer *p)
{
	peer_start(p, LONG_LEASE, NULL, NULL);
}

static void loop_repeats_and_stops(void **unused)
{
	char path[PATH_MAX + 64], *text;
	size_t size = 0;
	struct peer p;
	json_t *r;

	(void)unused;
	start(&p);
	r = peer_call(&p, "run",
		json_pack("{s:[s,s,s,s,s,s,s]}", "argv", agent_path_, "loop", "--max-runs", "3",
			"--", "echo", "x"));
	assert_string_equal(take_text(r, "output"), "x\nx\nx\n");
	r = peer_call(&p, "run",
		json_pack("{s:[s,s,s,s,s,s]}", "argv", agent_path_, "loop", "--", "sh", "-c",
			"exit 9"));
	assert_int_equal(take_int(r, "exit"), 9);
	json_decref(peer_call(&p, "process.start",
		json_pack("{s:[s,s,s], s:b, s:s}", "argv", "sh", "-c", "echo x", "loop", 1,
			"stdout", "o")));
	snprintf(path, sizeof(path), "%s/%s/o", state_dir, p.session);
	while (size < 10) {
		assert_int_equal(file_read(path, &text, &size, NULL), 0);
		free(text);
	}
	assert_int_equal(take_int(peer_call(&p, "process.stop", handle_args("p3")), "exit"), 0);
	assert_int_equal(peer_end(&p), 0);
}

/* The code of a command that fails is the loop's: as a shell's for one that a signal ended. */
static void a_loop_ends_with_its_commands_code(void **unused)
{
	static const struct {
		const char *command;
		int code;
	} cases[] = {{"exit 0", 0}, {"exit 1", 1}, {"exit 255", 255}, {"kill -KILL $$", 137},
		{"kill -TERM $$", 143}};

	(void)unused;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *const argv[] = {agent_path_, "loop", "--max-runs", "2", "--", "sh",
			"-c", cases[i].command, NULL};

		assert_int_equal(proc_run(argv, 30, NULL, NULL), cases[i].code);
	}
}

static void each_run_of_a_loop_reads_the_input(void **unused)
{
	char path[PATH_MAX + 64], *text = NULL;
	size_t size = 0;
	struct peer p;

	(void)unused;
	start(&p);
	json_decref(peer_call(&p, "process.start",
		json_pack("{s:[s], s:s, s:b, s:s}", "argv", "cat", "stdin", "one\ntwo\n", "loop", 1,
			"stdout", "o")));
	snprintf(path, sizeof(path), "%s/%s/o", state_dir, p.session);
	while (size < 24) {
		free(text);
		assert_int_equal(file_read(path, &text, &size, NULL), 0);
	}
	assert_memory_equal(text, "one\ntwo\none\ntwo\none\ntwo\n", 24);
	free(text);
	assert_int_equal(take_int(peer_call(&p, "process.stop", handle_args("p1")), "exit"), 0);
	assert_int_equal(peer_end(&p), 0);
}

static json_t *tell_args(const char *handle, const char *line)
{
	return json_pack("{s:s, s:s}", "handle", handle, "line", line);
}

static void linked_programs_hear_and_are_heard(void **unused)
{
	char *large;
	struct peer p;

	(void)unused;
	start(&p);
	json_decref(peer_call(&p, "process.start",
		json_pack("{s:[s,s,s], s:b}", "argv", "sh", "-c",
			"while read -r x; do echo \"heard $x\" >&0; done", "link", 1)));
	json_decref(peer_call(&p, "process.tell", tell_args("p1", "one \\ \"1\"")));
	assert_string_equal(take_text(peer_event(&p, "line"), "line"), "heard one \\ \"1\"");
	json_decref(peer_call(&p, "process.tell", tell_args("p1", "two")));
	assert_string_equal(take_text(peer_event(&p, "line"), "line"), "heard two");
	peer_refused(&p, "process.tell", tell_args("p1", "a\nb"), "one line", -EINVAL);
	large = calloc(1, 2000);
	memset(large, 'x', 1500);
	peer_refused(&p, "process.tell", tell_args("p1", large), "at most 1024", -EINVAL);
	free(large);
	json_decref(peer_call(&p, "process.stop", handle_args("p1")));
	peer_refused(&p, "process.tell", tell_args("p1", "x"), "there is no", -ENOENT);
	/* Without a link, and with two inputs. */
	json_decref(peer_call(&p, "process.start", sleep_args()));
	peer_refused(&p, "process.tell", tell_args("p2", "x"), "without link", -EINVAL);
	peer_refused(&p, "process.start",
		json_pack("{s:[s], s:b, s:s}", "argv", "cat", "link", 1, "stdin", "x"), "no stdin",
		-EINVAL);
	assert_int_equal(peer_end(&p), 0);
}

/* Far more than a socket holds waits for a program that gets no processor, up to a limit. */
static void a_program_that_reads_late_hears_all(void **unused)
{
	char line[1001], go[PATH_MAX + 64];
	struct peer p;
	FILE *file;

	(void)unused;
	start(&p);
	memset(line, 'x', 1000);
	line[1000] = '\0';
	snprintf(go, sizeof(go), "%s/go", state_dir);
	json_decref(peer_call(&p, "process.start",
		json_pack("{s:[s,s,s,s,s], s:b}", "argv", "sh", "-c",
			"while [ ! -e \"$1\" ]; do sleep 0.02; done; n=0; while read -r x; do "
			"n=$((n + 1)); [ \"$x\" != last ] || echo $n >&0; done",
			"sh", go, "link", 1)));
	for (int i = 0; i < 2000; i++)
		json_decref(peer_call(&p, "process.tell", tell_args("p1", line)));
	json_decref(peer_call(&p, "process.tell", tell_args("p1", "last")));
	file = fopen(go, "w");
	assert_non_null(file);
	fclose(file);
	assert_string_equal(take_text(peer_event(&p, "line"), "line"), "2001");
	unlink(go);
	json_decref(peer_call(&p, "process.start",
		json_pack("{s:[s,s], s:b}", "argv", "sleep", "1000", "link", 1)));
	for (int i = 0; i < (16 << 20) / 1001; i++)
		json_decref(peer_call(&p, "process.tell", tell_args("p2", line)));
	for (int i = 0; i < 2000; i++) {
		json_t *answer = peer_answer(
			&p, peer_ask(&p, "process.tell", tell_args("p2", line)));
		bool refused = json_object_get(answer, "error");

		json_decref(answer);
		if (refused)
			break;
	}
	peer_refused(&p, "process.tell", tell_args("p2", line), "has ended", -ESRCH);
	assert_int_equal(peer_end(&p), 0);
}

/* What is no line, or more than one may be, ends the link and nothing else. */
static void a_link_that_is_flooded_ends(void **unused)
{
	struct peer p;

	(void)unused;
	start(&p);
	json_decref(peer_call(&p, "process.start",
		json_pack("{s:[s,s,s], s:b}", "argv", "sh", "-c",
			"exec 3>&0; head -c 3000 /dev/zero | tr '\\0' x >&3; read -r line; exit 7",
			"link", 1)));
	assert_int_equal(take_int(peer_event(&p, "exit"), "exit"), 7);
	peer_refused(&p, "process.tell", tell_args("p1", "x"), "has ended", -ESRCH);
	assert_int_equal(peer_end(&p), 0);
}

static void traces_are_whole(void **unused)
{
	char path[PATH_MAX + 64], *text, *untraced;
	json_t *r, *trace;
	struct peer p;
	long long pid;

	(void)unused;
	start(&p);
	pid = take_int(
		peer_call(&p, "process.start", json_pack("{s:[s,s]}", "argv", "sleep", "1000")),
		"pid");
	r = peer_call(&p, "trace.start",
		json_pack("{s:[I], s:s, s:s}", "pids", (json_int_t)pid, "out", "t", "tracer",
			"ptrace"));
	assert_string_equal(take_text(r, "handle"), "t2");
	/* The program under the tracer gets the signal; the tracer ends with it, and in order. */
	r = peer_call(&p, "process.stop", handle_args("p1"));
	assert_int_equal(take_int(r, "exit"), 143);
	assert_int_equal(take_int(peer_event(&p, "exit"), "exit"), 0);
	trace = peer_call(&p, "trace.stop", handle_args("t2"));
	assert_true(json_is_true(json_object_get(trace, "whole")));
	assert_int_equal(json_integer_value(json_object_get(trace, "lost")), 0);
	assert_true(json_integer_value(json_object_get(trace, "records")) > 0);
	json_decref(trace);

	/* Started under the tracer: once that is answered, sleep runs and is traced. */
	json_decref(peer_call(&p, "process.start",
		json_pack("{s:[s,s], s:{s:s, s:s}}", "argv", "sleep", "1000", "trace", "out", "u",
			"tracer", "ptrace")));
	r = peer_call(&p, "process.stop", handle_args("p3"));
	assert_int_equal(json_integer_value(json_object_get(r, "exit")), 143);
	trace = json_object_get(r, "trace");
	assert_true(json_is_true(json_object_get(trace, "whole")));
	assert_true(json_integer_value(json_object_get(trace, "records")) > 0);
	json_decref(r);

	/* One that cannot be started, and one that ends at once: their end is told. */
	for (int there = 0; there < 2; there++) {
		json_decref(peer_call(&p, "process.start",
			json_pack("{s:[s,s], s:s, s:{s:s, s:s}}", "argv", there ? "ls" : "/no/ls",
				"/proc/self/fd", "stdout", "fds", "trace", "out", there ? "x" : "y",
				"tracer", "ptrace")));
		r = peer_event(&p, "exit");
		assert_int_equal(json_integer_value(json_object_get(r, "exit")), there ? 0 : 127);
		json_decref(r);
		json_decref(peer_call(&p, "process.stop", handle_args(there ? "p5" : "p4")));
	}
	/* It has the descriptors that it has without a tracer. */
	json_decref(peer_call(&p, "process.start",
		json_pack("{s:[s,s], s:s}", "argv", "ls", "/proc/self/fd", "stdout", "untraced")));
	json_decref(peer_event(&p, "exit"));
	snprintf(path, sizeof(path), "%s/%s/fds", state_dir, p.session);
	assert_int_equal(file_read(path, &text, NULL, NULL), 0);
	snprintf(path, sizeof(path), "%s/%s/untraced", state_dir, p.session);
	assert_int_equal(file_read(path, &untraced, NULL, NULL), 0);
	assert_string_equal(text, untraced);
	free(text);
	free(untraced);

	/* One that won't end, alone or in a loop: killed under the tracer, whose log is whole all
	 * the same. */
	for (int loop = 0; loop < 2; loop++) {
		json_decref(peer_call(&p, "process.start",
			json_pack("{s:[s,s,s], s:b, s:s, s:{s:s, s:s}}", "argv", "sh", "-c",
				"trap '' TERM INT; echo on; while :; do read x; done", "loop", loop,
				"stdout", loop ? "o2" : "o1", "trace", "out", loop ? "w" : "v",
				"tracer", "ptrace")));
		snprintf(path, sizeof(path), "%s/%s/%s", state_dir, p.session, loop ? "o2" : "o1");
		for (size_t size = 0; !size; free(text))
			assert_int_equal(file_read(path, &text, &size, NULL), 0);
		r = peer_call(&p, "process.stop",
			json_pack("{s:s, s:f}", "handle", loop ? "p8" : "p7", "grace_s", 0.1));
		assert_int_equal(json_integer_value(json_object_get(r, "exit")), 137);
		assert_true(json_is_true(json_object_get(json_object_get(r, "trace"), "whole")));
		json_decref(r);
	}
	assert_int_equal(peer_end(&p), 0);
}

static double number(const json_t *v, const char *member)
{
	return json_number_value(json_object_get(v, member));
}

static json_t *cpu_of(struct peer *p, long long pid)
{
	return peer_call(p, "cpu", json_pack("{s:[I]}", "pids", (json_int_t)pid));
}

/* Processor time of processes and of tracers, and of a run with what its tracer took before it. */
static void processor_time_is_counted(void **unused)
{
	char path[PATH_MAX + 64];
	json_t *r, *before, *line, *answer;
	struct peer p;
	long long pid;

	(void)unused;
	start(&p);
	pid = take_int(peer_call(&p, "process.start",
			       json_pack("{s:[s,s,s]}", "argv", "sh", "-c", "while :; do :; done")),
		"pid");
	for (before = cpu_of(&p, pid); number(before, "processes_s") < 0.05;
		before = cpu_of(&p, pid))
		json_decref(before);
	assert_true(number(before, "tracers_s") == 0);
	/* The account has clock ticks, of which there are four sums. */
	answer = peer_call(&p, "process.status", handle_args("p1"));
	assert_true(number(answer, "cpu_s") > number(before, "processes_s") - 0.04);
	r = cpu_of(&p, pid);
	assert_true(number(answer, "cpu_s") < number(r, "processes_s") + 1e-6);
	json_decref(answer);
	json_decref(before);
	json_decref(r);
	json_decref(peer_call(&p, "trace.start",
		json_pack("{s:[I], s:s, s:s}", "pids", (json_int_t)pid, "out", "t", "tracer",
			"ptrace")));
	r = cpu_of(&p, pid);
	assert_true(number(r, "tracers_s") > 0);
	json_decref(r);
	json_decref(peer_call(&p, "trace.stop", handle_args("t2")));
	r = cpu_of(&p, pid);
	assert_true(number(r, "tracers_s") == 0);
	json_decref(r);
	json_decref(peer_call(&p, "process.stop", handle_args("p1")));
	answer = peer_answer(
		&p, peer_ask(&p, "cpu", json_pack("{s:[I]}", "pids", (json_int_t)pid)));
	assert_int_equal(json_integer_value(json_object_get(answer, "code")), -ESRCH);
	json_decref(answer);

	json_decref(peer_call(&p, "process.start",
		json_pack("{s:[s,s,s], s:s, s:{s:s, s:s}}", "argv", "sh", "-c",
			"i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done", "times", "times",
			"trace", "out", "u", "tracer", "ptrace")));
	json_decref(peer_event(&p, "exit"));
	snprintf(path, sizeof(path), "%s/%s/times", state_dir, p.session);
	line = json_load_file(path, 0, NULL);
	assert_non_null(line);
	r = peer_call(&p, "process.stop", handle_args("p3"));
	assert_true(number(line, "cpu_s") > 0.001 && number(line, "parent_cpu_s") > 0);
	assert_true(number(r, "cpu_s") > number(line, "cpu_s") + number(line, "parent_cpu_s"));
	assert_true(number(json_object_get(r, "trace"), "calls") > 0 &&
		number(json_object_get(r, "trace"), "calls") <=
			number(json_object_get(r, "trace"), "records"));
	json_decref(line);
	json_decref(r);
	assert_int_equal(peer_end(&p), 0);
}

/* A tracer that goes, in order or not, leaves what it traced running. */
static void traced_process_outlives_the_session(void **unused)
{
	char *before = fingerprint();
	pid_t pid = fork();
	uint64_t ticks;

	(void)unused;
	if (pid == 0) {
		for (;;)
			getppid();
	}
	for (int i = 0; i < 2; i++) {
		char path[64], *text;
		struct peer p;

		start(&p);
		json_decref(peer_call(&p, "trace.start",
			json_pack("{s:[i], s:s, s:s}", "pids", (int)pid, "out", "t", "tracer",
				"ptrace")));
		if (i)
			kill(p.pid, SIGKILL);
		peer_end(&p);
		until_clean(before, 10);
		assert_int_equal(proc_start_time(pid, &ticks), 0);
		snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
		assert_int_equal(file_read(path, &text, NULL, NULL), 0);
		assert_non_null(strstr(text, "TracerPid:\t0\n"));
		assert_non_null(strstr(text, "State:\tR"));
		free(text);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	free(before);
}

static void failed_trace_says_why(void **unused)
{
	struct peer p;
	json_t *answer;
	char *before;

	(void)unused;
	start(&p);
	before = fingerprint();
	answer = peer_answer(&p,
		peer_ask(&p, "trace.start",
			json_pack("{s:[i], s:s, s:s}", "pids", 31999, "out", "t", "tracer",
				"ptrace")));
	assert_non_null(strstr(json_string_value(json_object_get(answer, "error")), "31999"));
	json_decref(answer);
	until_clean(before, 0);
	free(before);
	assert_int_equal(peer_end(&p), 0);
}

/* What a node is asked while a tracer is tried there is answered at once; its lease is renewed. */
static void a_check_of_a_tracer_holds_nothing_up(void **unused)
{
	json_t *first, *second;
	struct peer p;
	char *before;

	(void)unused;
	start(&p);
	before = fingerprint();
	peer_send(&p,
		"{\"id\":1,\"op\":\"check\",\"what\":\"trace.ptrace\"}\n"
		"{\"id\":2,\"op\":\"ping\"}");
	first = peer_read(&p);
	second = peer_read(&p);
	assert_int_equal(json_integer_value(json_object_get(first, "id")), 2);
	assert_int_equal(json_integer_value(json_object_get(second, "id")), 1);
	assert_true(json_is_true(json_object_get(json_object_get(second, "result"), "able")));
	json_decref(first);
	json_decref(second);
	until_clean(before, 0);
	free(before);
	assert_int_equal(peer_end(&p), 0);
}

/* Started through its loader where there is nothing but /proc and /dev/null. */
static void bundle_needs_nothing_else(void **unused)
{
	char root[PATH_MAX], path[PATH_MAX + 64], folder[PATH_MAX], loader[300] = "",
								    *output = NULL;
	const char *copy[] = {"cp", "-rT", folder, path, NULL};
	struct dirent *d;
	struct peer p;
	json_t *r;
	DIR *dir;

	(void)unused;
	strcpy(folder, agent_path_);
	dirname(folder);
	dir = opendir(folder);
	assert_non_null(dir);
	while ((d = readdir(dir)))
		if (!strncmp(d->d_name, "ld-", 3))
			snprintf(loader, sizeof(loader), "/a/%.200s", d->d_name);
	closedir(dir);
	assert_true(*loader);
	snprintf(root, sizeof(root), "%s/root", state_dir);
	snprintf(path, sizeof(path), "%s/proc", root);
	assert_int_equal(file_mkdirs(path, 0755, NULL), 0);
	assert_return_code(mount("proc", path, "proc", 0, NULL), errno);
	snprintf(path, sizeof(path), "%s/dev", root);
	assert_int_equal(file_mkdirs(path, 0755, NULL), 0);
	snprintf(path, sizeof(path), "%s/dev/null", root);
	close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666));
	assert_return_code(mount("/dev/null", path, NULL, MS_BIND, NULL), errno);
	snprintf(path, sizeof(path), "%s/a", root);
	assert_int_equal(proc_run_ok(copy, patient_s(60), &output, NULL), 0);
	free(output);

	peer_exec(&p, root,
		(const char *[]){
			loader, "--library-path", "/a", "/a/culprit-agent", "serve", NULL});
	json_decref(peer_call(&p, "packets.drop", json_pack("{s:i}", "percent", 5)));
	r = peer_call(&p, "process.start",
		json_pack("{s:[s,s,s,s,s], s:b}", "argv", loader, "--library-path", "/a",
			"/a/culprit-agent", "--version", "loop", 1));
	/* Itself once more, as its own tracer. */
	json_decref(peer_call(&p, "trace.start",
		json_pack("{s:[I], s:s, s:s}", "pids", (json_int_t)take_int(r, "pid"), "out", "t",
			"tracer", "ptrace")));
	r = peer_call(&p, "trace.stop", handle_args("t3"));
	assert_true(json_is_true(json_object_get(r, "whole")));
	json_decref(r);
	assert_int_equal(peer_end(&p), 0);
	/* The guard may need a moment more to end, with /dev/null open. */
	snprintf(path, sizeof(path), "%s/dev/null", root);
	assert_return_code(umount2(path, MNT_DETACH), errno);
	snprintf(path, sizeof(path), "%s/proc", root);
	assert_return_code(umount2(path, MNT_DETACH), errno);
}

static int tests(void)
{
	const struct CMUnitTest all[] = {
		TEST(loop_repeats_and_stops),
		TEST(a_loop_ends_with_its_commands_code),
		TEST(each_run_of_a_loop_reads_the_input),
		TEST(linked_programs_hear_and_are_heard),
		TEST(a_program_that_reads_late_hears_all),
		TEST(a_link_that_is_flooded_ends),
		TEST(traces_are_whole),
		TEST(processor_time_is_counted),
		TEST(traced_process_outlives_the_session),
		TEST(failed_trace_says_why),
		TEST(a_check_of_a_tracer_holds_nothing_up),
		TEST(bundle_needs_nothing_else),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("programs", all, NULL, NULL);
}

int main(void)
{
	return in_own_namespaces(tests);
}
