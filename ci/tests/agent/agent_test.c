/* The agent's protocol, and the process primitive. */
#include <sys/sysmacros.h>

#include "ci/tests/agent/agent_peer.h"

static void start(struct peer *p)
{
	peer_start(p, LONG_LEASE, NULL, NULL);
}

static void hello_says_who_and_where(void **unused)
{
	struct stat st;
	struct peer p;

	(void)unused;
	start(&p);
	assert_int_equal(json_integer_value(json_object_get(p.hello, "protocol")), 1);
	assert_int_equal(json_integer_value(json_object_get(p.hello, "pid")), p.pid);
	assert_true(json_is_true(json_object_get(p.hello, "root")));
	assert_return_code(stat(json_string_value(json_object_get(p.hello, "dir")), &st), errno);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_true(take_int(peer_call(&p, "ping", NULL), "time_ns") > 1500000000000000000);
	assert_int_equal(peer_end(&p), 0);
}

static void a_block_device_is_described_by_itself(void **unused)
{
	json_t *info;
	struct stat st;
	struct peer p;
	char node[80], number[32];

	(void)unused;
	if (stat("/dev/loop0", &st) || !S_ISBLK(st.st_mode)) {
		print_message("# no loop devices here\n");
		skip();
	}
	snprintf(node, sizeof(node), "/tmp/agent-test.%d.block", getpid());
	snprintf(number, sizeof(number), "%u:%u", major(st.st_rdev), minor(st.st_rdev));
	assert_return_code(symlink("/dev/loop0", node), errno);
	start(&p);
	info = peer_call(&p, "fs.info", json_pack("{s:s}", "path", node));
	assert_string_equal(json_string_value(json_object_get(info, "type")), "block device");
	assert_string_equal(json_string_value(json_object_get(info, "device")), number);
	assert_string_equal(json_string_value(json_object_get(info, "source")), "/dev/loop0");
	assert_string_equal(json_string_value(json_object_get(info, "point")), "");
	json_decref(info);
	assert_int_equal(peer_end(&p), 0);
	unlink(node);
}

static void bad_requests_are_named(void **unused)
{
	static const char *const pairs[][2] = {
		{"{\"id\":7,\"op\":\"fly\"}", "there is no op 'fly'"},
		{"{\"id\":7}", "needs a string 'op'"},
		{"{\"id\":7,\"op\":5}", "needs a string 'op'"},
		{"{\"id\":7,\"op\":\"ping\",\"x\":1}", "ping has no argument 'x'; there are: none"},
		{"{\"id\":7,\"op\":\"run\",\"argv\":[\"true\"],\"timeout\":1}",
			"run has no argument 'timeout'; there are: argv, timeout_s, stdin"},
		{"{\"id\":7,\"op\":\"process.stop\",\"handle\":\"p1\",\"signal\":\"TER\"}",
			"signal must be one of TERM|"},
		{"{\"id\":7,\"op\":\"service.restart\",\"pid\":2,\"storage\":{\"path\":\"/x\","
		 "\"size_bytes\":4096}}",
			"storage.size_bytes must be above 1048575"},
		{"{\"id\":7,\"op\":\"service.limit\",\"pid\":2,\"limits\":{\"cpu\":1}}",
			"limits has no member 'cpu'; there are: nofile, fsize, as"},
		{"{\"id\":7,\"op\":\"fs.info\",\"path\":\"x\"}", "path must be an absolute path"},
		{"{\"id\":7,\"op\":\"run\"}", "run needs the argument 'argv'"},
		{"{\"id\":7,\"op\":\"run\",\"argv\":[]}", "argv must be a list of strings"},
		{"{\"id\":7,\"op\":\"run\",\"argv\":[1]}", "argv must be a list of strings"},
		{"{\"id\":7,\"op\":\"run\",\"argv\":[\"true\"],\"timeout_s\":\"5\"}",
			"timeout_s must be a number"},
		{"{\"id\":7,\"op\":\"run\",\"argv\":[\"true\"],\"timeout_s\":-1}",
			"timeout_s must be above 0"},
		{"{\"id\":7,\"op\":\"run\",\"argv\":[\"/none\"]}", "cannot run '/none'"},
		{"{\"id\":7,\"op\":\"process.start\",\"argv\":[\"true\"],\"env\":{\"A\":1}}",
			"env must be an object of strings"},
		{"{\"id\":7,\"op\":\"process.start\",\"argv\":[\"true\"],\"cwd\":\"/none\"}",
			"No such file"},
		{"{\"id\":7,\"op\":\"process.start\",\"argv\":[\"true\"],\"stdout\":\"/none/x\"}",
			"cannot open '/none/x'"},
		{"{\"id\":7,\"op\":\"process.start\",\"argv\":[\"true\"],\"trace\":{}}",
			"trace needs the member 'tracer'"},
		{"{\"id\":7,\"op\":\"process.start\",\"argv\":[\"true\"],"
		 "\"trace\":{\"out\":\"x\",\"tracer\":\"ptrace\",\"y\":1}}",
			"no member 'y'"},
		{"{\"id\":7,\"op\":\"process.stop\",\"handle\":\"p9\"}",
			"there is no process 'p9'"},
		{"{\"id\":7,\"op\":\"packets.drop\",\"percent\":0}", "percent must be above 0"},
		{"{\"id\":7,\"op\":\"packets.drop\",\"percent\":5,\"direction\":\"up\"}",
			"direction must be one of in|out"},
		{"{\"id\":7,\"op\":\"packets.drop\",\"percent\":5,\"from\":[\"a.b\"]}",
			"'a.b' is not an IPv4 or IPv6"},
		{"{\"id\":7,\"op\":\"packets.drop\",\"percent\":5,"
		 "\"from\":[\"::1\"],\"to\":[\"10.0.0.1\"]}",
			"in common"},
		{"{\"id\":7,\"op\":\"trace.start\",\"tracer\":\"ptrace\","
		 "\"pids\":[0],\"out\":\"x\"}",
			"pids must be above 0"},
		{"{\"id\":7,\"op\":\"trace.start\",\"pids\":[1],\"out\":\"x\"}",
			"needs the argument 'tracer'"},
		{"{\"id\":7,\"op\":\"process.start\",\"argv\":[\"true\"],"
		 "\"trace\":{\"out\":\"x\"}}",
			"'tracer'"},
		{"{\"id\":7,\"op\":\"trace.start\",\"tracer\":\"-x\",\"pids\":[1],\"out\":\"x\"}",
			"tracer must be a word"},
		{"{\"id\":7,\"op\":\"check\",\"what\":\"fly\"}", "cannot check 'fly'"},
	};
	char *before;
	struct peer p;

	(void)unused;
	start(&p);
	before = fingerprint();
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		json_t *answer;
		const char *said;

		peer_send(&p, pairs[i][0]);
		answer = peer_answer(&p, 7);
		said = json_string_value(json_object_get(answer, "error"));
		if (!said || !strstr(said, pairs[i][1]))
			fail_msg("'%s' was answered with '%s'", pairs[i][0], said);
		assert_true(json_integer_value(json_object_get(answer, "code")) < 0);
		json_decref(answer);
	}
	/* What was struck off may still be on its way. */
	json_decref(peer_call(&p, "run", json_pack("{s:[s]}", "argv", "true")));
	until_clean(before, 0);
	free(before);
	assert_int_equal(peer_end(&p), 0);
}

static void ends_with(const char *line, const char *why)
{
	char *before = fingerprint();
	json_t *end;
	struct peer p;

	start(&p);
	json_decref(peer_call(&p, "process.start", sleep_args()));
	json_decref(peer_call(&p, "packets.drop", json_pack("{s:i}", "percent", 100)));
	/* The agent may leave before it has read all of a long line. */
	if (fd_write_all(p.in, line, strlen(line)) == 0)
		fd_write_all(p.in, "\n", 1);
	end = peer_event(&p, "end");
	assert_non_null(strstr(json_string_value(json_object_get(end, "why")), why));
	json_decref(end);
	assert_int_equal(peer_end(&p), 2);
	until_clean(before, 0);
	free(before);
}

static void no_json_ends_the_session(void **unused)
{
	(void)unused;
	ends_with("hello?", "not a JSON object");
	ends_with("[1]", "not a JSON object");
	ends_with("{\"id\":1,\"id\":2,\"op\":\"ping\"}", "not a JSON object");
}

static void long_line_ends_the_session(void **unused)
{
	char *line = malloc((1 << 20) + 3);

	(void)unused;
	memset(line, ' ', (1 << 20) + 2);
	line[(1 << 20) + 2] = '\0';
	ends_with(line, "longer than 1 MiB");
	free(line);
}

static void run_collects(void **unused)
{
	json_t *r;
	struct peer p;
	char *before;

	(void)unused;
	start(&p);
	before = fingerprint();
	r = peer_call(&p, "run",
		json_pack("{s:[s,s,s], s:s}", "argv", "sh", "-c", "cat; echo no >&2; exit 3",
			"stdin", "in\n"));
	assert_int_equal(json_integer_value(json_object_get(r, "exit")), 3);
	assert_string_equal(take_text(r, "output"), "in\nno\n");
	/* Bytes that are no UTF-8, and more than is kept. */
	assert_string_equal(
		take_text(peer_call(&p, "run", json_pack("{s:[s,s]}", "argv", "printf", "a\\377b")),
			"output"),
		"a?b");
	r = peer_call(&p, "run",
		json_pack("{s:[s,s,s,s]}", "argv", "head", "-c", "1000000", "/dev/zero"));
	assert_int_equal(json_string_length(json_object_get(r, "output")), 65536);
	assert_true(json_is_true(json_object_get(r, "truncated")));
	json_decref(r);
	assert_int_equal(
		take_int(peer_call(&p, "run",
				 json_pack("{s:[s,s,s]}", "argv", "sh", "-c", "kill -9 $$")),
			"exit"),
		137);
	/* What it leaves in the background goes, though it holds the output open. */
	assert_string_equal(take_text(peer_call(&p, "run",
					      json_pack("{s:[s,s,s]}", "argv", "sh", "-c",
						      "setsid sleep 1000 & echo left")),
				    "output"),
		"left\n");
	until_clean(before, 0);
	free(before);
	assert_int_equal(peer_end(&p), 0);
}

static void run_ends_in_time(void **unused)
{
	json_t *answer;
	struct peer p;
	char *before;
	int slow, ping;

	(void)unused;
	start(&p);
	before = fingerprint();
	slow = peer_ask(&p, "run",
		json_pack("{s:[s,s,s], s:f}", "argv", "sh", "-c", "sleep 1000 & sleep 1001",
			"timeout_s", 0.3));
	/* The quick one is answered first. */
	ping = peer_ask(&p, "ping", NULL);
	json_decref(peer_answer(&p, ping));
	assert_int_equal(json_array_size(p.events), 0);
	answer = peer_answer(&p, slow);
	assert_int_equal(json_integer_value(json_object_get(answer, "code")), -ETIMEDOUT);
	json_decref(answer);
	until_clean(before, 0);
	free(before);
	assert_int_equal(peer_end(&p), 0);
}

static void process_is_supervised(void **unused)
{
	char path[PATH_MAX + 64], *text;
	struct stat st;
	struct peer p;
	json_t *r;

	(void)unused;
	start(&p);
	r = peer_call(&p, "process.start",
		json_pack("{s:[s,s,s], s:s, s:s, s:{s:s}, s:s}", "argv", "sh", "-c",
			"pwd; echo $A >&2; exit 5", "stdout", "o", "stderr", "e", "env", "A", "b c",
			"cwd", "/usr"));
	assert_string_equal(take_text(r, "handle"), "p1");
	assert_int_equal(take_int(peer_event(&p, "exit"), "exit"), 5);
	r = peer_call(&p, "process.status", handle_args("p1"));
	assert_true(json_is_false(json_object_get(r, "running")));
	json_decref(r);
	assert_int_equal(take_int(peer_call(&p, "process.stop", handle_args("p1")), "exit"), 5);
	snprintf(path, sizeof(path), "%s/%s/o", state_dir, p.session);
	assert_return_code(stat(path, &st), errno);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(file_read(path, &text, NULL, NULL), 0);
	assert_string_equal(text, "/usr\n");
	free(text);
	snprintf(path, sizeof(path), "%s/%s/e", state_dir, p.session);
	assert_int_equal(file_read(path, &text, NULL, NULL), 0);
	assert_string_equal(text, "b c\n");
	free(text);
	assert_int_equal(peer_end(&p), 0);
}

static void process_is_stopped(void **unused)
{
	struct peer p;
	json_t *r;

	(void)unused;
	start(&p);
	json_decref(peer_call(&p, "process.start", sleep_args()));
	r = peer_call(&p, "process.status", handle_args("p1"));
	assert_true(json_is_true(json_object_get(r, "running")));
	assert_true(json_is_null(json_object_get(r, "exit")));
	json_decref(r);
	assert_int_equal(take_int(peer_call(&p, "process.stop", handle_args("p1")), "exit"), 143);
	/* One that won't: SIGKILL after the grace. It says when it has its trap. */
	json_decref(peer_call(&p, "process.start",
		json_pack("{s:[s,s,s]}", "argv", "sh", "-c",
			"trap '' TERM; kill -STOP $$; sleep 1000")));
	for (;;) {
		char path[64], *stat;
		bool stopped;

		r = peer_call(&p, "process.status", handle_args("p2"));
		snprintf(path, sizeof(path), "/proc/%lld/stat", take_int(r, "pid"));
		assert_int_equal(file_read(path, &stat, NULL, NULL), 0);
		stopped = strstr(stat, ") T ") != NULL;
		free(stat);
		if (stopped)
			break;
	}
	r = peer_call(&p, "process.stop", json_pack("{s:s, s:f}", "handle", "p2", "grace_s", 0.1));
	assert_int_equal(take_int(r, "exit"), 137);
	assert_int_equal(peer_end(&p), 0);
}

static void descendants_are_caught(void **unused)
{
	char *before, *busy;
	struct peer p;

	(void)unused;
	start(&p);
	before = fingerprint();
	json_decref(peer_call(&p, "process.start",
		json_pack("{s:[s,s,s]}", "argv", "sh", "-c",
			"(setsid sh -c 'setsid sleep 1000 & sleep 1001 & sleep 1002' &) & exec "
			"sleep 0.2")));
	assert_int_equal(take_int(peer_event(&p, "exit"), "exit"), 0);
	busy = fingerprint();
	assert_string_not_equal(busy, before);
	free(busy);
	assert_true(json_is_true(json_object_get(p.hello, "root")));
	json_decref(peer_call(&p, "undo", handle_args("p1")));
	until_clean(before, 0);
	free(before);
	assert_int_equal(peer_end(&p), 0);
}

/* A fork bomb of a kind: each generation ends as soon as it has made the next. */
static void relay_is_caught(void **unused)
{
	char *before;
	struct peer p;

	(void)unused;
	start(&p);
	before = fingerprint();
	json_decref(peer_call(&p, "process.start",
		json_pack("{s:[s,s,s]}", "argv", "sh", "-c", "f() { (f &) ; exit 0; }; f")));
	assert_int_equal(take_int(peer_event(&p, "exit"), "exit"), 0);
	json_decref(peer_call(&p, "undo", handle_args("p1")));
	until_clean(before, 0);
	free(before);
	assert_int_equal(peer_end(&p), 0);
}

static void figures_are_those_of_the_whole_family(void **unused)
{
	/* dd's bytes are counted once, whether it is seen alive, as a child reaped, or as a
	 * zombie. */
	static const char family[] =
		"dd if=/dev/zero of=/dev/null bs=1M count=64; dd if=/dev/zero of=/dev/null bs=1M "
		"count=64";
	long long wchar;
	struct peer p;
	json_t *r;

	(void)unused;
	start(&p);
	json_decref(peer_call(
		&p, "process.start", json_pack("{s:[s,s,s]}", "argv", "sh", "-c", family)));
	while (!json_array_size(p.events)) {
		struct pollfd f = {.fd = p.out, .events = POLLIN};

		json_decref(peer_call(&p, "process.status", handle_args("p1")));
		if (poll(&f, 1, 0) > 0)
			json_array_append_new(p.events, peer_read(&p));
	}
	r = peer_call(&p, "process.stop", handle_args("p1"));
	assert_true(json_integer_value(json_object_get(r, "rchar")) >= 128 << 20);
	wchar = take_int(r, "wchar");
	assert_in_range(wchar, 128 << 20, (128 << 20) + 65536);
	assert_int_equal(peer_end(&p), 0);
}

static void processes_are_listed(void **unused)
{
	struct peer p;
	json_t *r, *list;
	long long pid;

	(void)unused;
	start(&p);
	pid = take_int(
		peer_call(&p, "process.start", json_pack("{s:[s,s]}", "argv", "sleep", "987")),
		"pid");
	r = peer_call(&p, "processes", json_pack("{s:s}", "exe", "sleep"));
	list = json_object_get(r, "processes");
	assert_int_equal(json_array_size(list), 1);
	assert_int_equal(json_integer_value(json_object_get(json_array_get(list, 0), "pid")), pid);
	assert_string_equal(json_string_value(json_array_get(
				    json_object_get(json_array_get(list, 0), "cmdline"), 1)),
		"987");
	json_decref(r);
	assert_int_equal(peer_end(&p), 0);
}

static void bye_is_answered(void **unused)
{
	char *before = fingerprint();
	struct peer p;

	(void)unused;
	start(&p);
	json_decref(peer_call(&p, "process.start", sleep_args()));
	json_decref(peer_call(&p, "bye", NULL));
	until_clean(before, 0);
	free(before);
	assert_int_equal(peer_end(&p), 0);
}

static unsigned next_random(unsigned *seed)
{
	*seed = *seed * 1103515245u + 12345u;
	return *seed >> 8;
}

/* Lines bent at random bytes: each is answered or ends the session in order, and nothing is
 * left. */
static void bent_lines(void **unused)
{
	static const char *const lines[] = {
		"{\"id\":1,\"op\":\"process.start\",\"argv\":[\"sleep\","
		"\"1000\"],\"stdout\":\"o\",\"max_s\":5.5}",
		"{\"id\":2,\"op\":\"packets.drop\",\"percent\":5,"
		"\"direction\":\"in\",\"from\":[\"10.0.0.1\",\"fe80::1\"]}",
		"{\"id\":3,\"op\":\"run\",\"argv\":[\"true\"],\"timeout_s\":2,\"stdin\":\"abc\"}",
		"{\"id\":4,\"op\":\"undo\",\"handle\":\"p1\"}",
		"{\"id\":5,\"op\":\"process.stop\",\"handle\":\"p1\","
		"\"signal\":\"INT\",\"grace_s\":0.5}",
		"{\"id\":6,\"op\":\"packets.counters\",\"handle\":\"d2\"}",
		"{\"id\":7,\"op\":\"trace.start\",\"tracer\":\"ptrace\","
		"\"pids\":[99999],\"out\":\"t\"}",
		"{\"id\":8,\"op\":\"processes\",\"exe\":\"sleep\"}",
	};
	static const char bytes[] = "\"{}[],:0123456789.-eE\\u\x01\x80\xff p1d2ntf";
	char *before = fingerprint();
	unsigned seed = 20260101, ends[3] = {0};

	(void)unused;
	for (int session = 0; session < 60; session++) {
		struct peer p;
		int code;

		start(&p);
		for (int i = 0; i < 25; i++) {
			char line[256];
			size_t n;

			n = (size_t)snprintf(
				line, sizeof(line) - 1, "%s\n", lines[next_random(&seed) % 8]);
			/* Every other session stays JSON: only letters become other letters. */
			for (unsigned bends = next_random(&seed) % 3; bends; bends--) {
				char *at = &line[next_random(&seed) % (n - 1)];

				if (session % 2)
					*at = bytes[next_random(&seed) % (sizeof(bytes) - 1)];
				else if (*at >= 'a' && *at <= 'z')
					*at = (char)('a' + next_random(&seed) % 26);
			}
			if (fd_write_all(p.in, line, n))
				break;
		}
		close(p.in);
		p.in = -1;
		for (json_t *v; (v = peer_read(&p));)
			json_decref(v);
		code = peer_end(&p);
		assert_true(code == 0 || code == 2);
		ends[code]++;
		until_clean(before, 0);
	}
	free(before);
	/* Both kinds of end were seen, else the lines were not bent well. */
	assert_true(ends[0] > 0 && ends[2] > 0);
}

static int tests(void)
{
	const struct CMUnitTest all[] = {
		TEST(hello_says_who_and_where),
		TEST(a_block_device_is_described_by_itself),
		TEST(bad_requests_are_named),
		TEST(no_json_ends_the_session),
		TEST(long_line_ends_the_session),
		TEST(run_collects),
		TEST(run_ends_in_time),
		TEST(process_is_supervised),
		TEST(process_is_stopped),
		TEST(descendants_are_caught),
		TEST(relay_is_caught),
		TEST(figures_are_those_of_the_whole_family),
		TEST(processes_are_listed),
		TEST(bye_is_answered),
		TEST(bent_lines),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("agent", all, NULL, NULL);
}

int main(void)
{
	return in_own_namespaces(tests);
}
