/* Tests the selection of calls, at the start and while a capture runs, and its words. */
#include "ci/tests/capture/tracing.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "diag/capture/choice.h"
#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/clock.h"

/* ---- words ---- */

static void test_words_are_printed_and_read_back(void **state)
{
	static const char *const lines[] = {
		"none",
		"process=glusterfsd,77",
		"calls=network,disk",
		"client=10.0.0.1,2001:db8::1",
		"process=a%20b calls=fuse,metadata,other client=127.0.0.1 path=/srv/a%2cb,/x%25",
	};
	struct choice c;
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		char *text;

		assert_int_equal(choice_parse(lines[i], &c, &e), 0);
		text = choice_text(&c);
		assert_string_equal(text, lines[i]);
		free(text);
	}
	assert_string_equal(c.paths[0], "/srv/a,b");
	assert_int_equal(choice_parse("  calls=disk\tprocess=x ", &c, &e), 0);
	assert_int_equal(c.calls, CHOICE_DISK);
	assert_string_equal(c.names[0], "x");
}

static void test_wrong_words(void **state)
{
	static const char *const wrong[][2] = {{"", "an empty filter"},
		{"none calls=disk", "must be the only word"}, {"calls=disc", "did you mean 'disk'"},
		{"proces=1", "did you mean 'process'"}, {"process=0", "not a process number"},
		{"process=4194305", "not a process number"},
		{"process=0123456789abcdef", "15 bytes"}, {"client=localhost", "not an IP address"},
		{"path=srv", "not absolute"}, {"path=/%0", "two digits"},
		{"path=/%00", "two digits"}, {"process=a,,b", "empty"},
		{"calls=disk calls=fuse", "twice"}, {"calls", "empty"}};
	auto_free char *longest = alloc_format("path=/%0300d", 0), *many = alloc_copy("process=1");
	struct choice c = {.n_pids = 1}, before = c;
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_int_equal(choice_parse(wrong[i][0], &c, &e), -EINVAL);
		if (!strstr(e.text, wrong[i][1]))
			fail_msg("'%s': %s", wrong[i][0], e.text);
	}
	assert_int_equal(choice_parse(longest, &c, &e), -EINVAL);
	for (int i = 0; i < CHOICE_PIDS; i++) {
		char *more = alloc_format("%s,1", many);

		free(many);
		many = more;
	}
	assert_int_equal(choice_parse(many, &c, &e), -EINVAL);
	assert_non_null(strstr(e.text, "too many entries for a filter"));
	assert_memory_equal(&c, &before, sizeof(c));
}

/* ---- a capture ---- */

/* The calls of a worker in each round. */
enum {
	READ_A = 1,   /* of a file in folder a, opened again */
	READ_B = 2,   /* in folder b */
	OPEN_A = 4,   /* by its path */
	OPEN_B = 8,   /* likewise */
	STAT_FD = 16, /* fstat of both */
	NET_1 = 32,   /* on a connection with 127.0.0.1 */
	NET_2 = 64,   /* with 127.0.0.2 */
	GETPPID = 128,
	ALL = 255,
};

enum { WORKERS = 2 };

static pid_t workers[WORKERS];
static char folders[2][80];

static int connected(const char *address, uint16_t to)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = to};
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	inet_pton(AF_INET, address, &at.sin_addr);
	if (fd < 0 || connect(fd, (struct sockaddr *)&at, sizeof(at)) < 0)
		_exit(1);
	return fd;
}

/* Rounds of each worker so far, at the beginning of the shared memory. */
static _Atomic uint64_t *rounds(int worker)
{
	return counter + worker;
}

/* Waits until each has begun and ended rounds from now on. The alarm in main limits the wait. */
static void wait_rounds(void)
{
	for (int i = 0; i < WORKERS; i++) {
		uint64_t seen = *rounds(i);

		while (*rounds(i) < seen + 3)
			usleep(1000);
	}
}

static _Noreturn void work(int worker, const char *name, uint16_t to)
{
	int net[2] = {connected("127.0.0.1", to), connected("127.0.0.2", to)};
	char path[2][96], buf[8], stat[256];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, name);
	for (int i = 0; i < 2; i++)
		snprintf(path[i], sizeof(path[i]), "%s/file", folders[i]);
	for (;;) {
		for (int i = 0; i < 2; i++) {
			long fd = syscall(SYS_openat, AT_FDCWD, path[i], O_RDONLY);

			syscall(SYS_pread64, fd, buf, sizeof(buf), 0);
			syscall(SYS_fstat, fd, stat);
			syscall(SYS_close, fd);
			syscall(SYS_recvfrom, net[i], buf, sizeof(buf), MSG_DONTWAIT, NULL, NULL);
		}
		syscall(SYS_getppid);
		(*rounds(worker))++;
		usleep(500);
	}
}

static int start_workers(void **state)
{
	struct sockaddr_in at = {.sin_family = AF_INET};
	socklen_t size = sizeof(at);
	int l = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	fresh(state);
	if (bind(l, (struct sockaddr *)&at, size) < 0 || listen(l, 8) < 0 ||
		getsockname(l, (struct sockaddr *)&at, &size) < 0)
		return -1;
	for (int i = 0; i < 2; i++) {
		auto_free char *path = NULL;

		snprintf(folders[i], sizeof(folders[i]), "%s/%c", dir, "ab"[i]);
		mkdir(folders[i], 0700);
		path = alloc_format("%s/file", folders[i]);
		if (file_write_atomic(path, 0600, "content", 7, NULL) < 0)
			return -1;
	}
	for (int i = 0; i < WORKERS; i++) {
		workers[i] = fork();
		if (workers[i] == 0)
			work(i, i ? "work two" : "work-one", at.sin_port);
	}
	return 0;
}

static int stop_workers(void **state)
{
	(void)state;
	for (int i = 0; i < WORKERS; i++) {
		kill(workers[i], SIGKILL);
		waitpid(workers[i], NULL, 0);
	}
	return 0;
}

static int control; /* our end */

static const char *order(const char *line)
{
	static char answer[8192];
	size_t n = 0;

	assert_int_equal(dprintf(control, "%s\n", line), strlen(line) + 1);
	while (n < sizeof(answer) - 1 && (!n || answer[n - 1] != '\n'))
		assert_int_equal(read(control, answer + n++, 1), 1);
	answer[n - 1] = '\0';
	return answer;
}

static pid_t record(const char *option, const char *value)
{
	char number[WORKERS][16], fd[16];
	int ends[2];
	pid_t tracer;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	assert_int_equal(fcntl(ends[0], F_SETFD, FD_CLOEXEC), 0);
	snprintf(fd, sizeof(fd), "%d", ends[1]);
	for (int i = 0; i < WORKERS; i++)
		snprintf(number[i], sizeof(number[i]), "%d", workers[i]);
	tracer = trace((const char *const[]){option, value, "--control-fd", fd, "-p", number[0],
			       "-p", number[1], NULL},
		NULL);
	close(ends[1]);
	control = ends[0];
	return tracer;
}

static unsigned file_bits(const struct fd_state *f, unsigned a, unsigned b)
{
	assert_non_null(f); /* descriptors are followed all the time */
	return !strncmp(f->now.path, folders[0], strlen(folders[0]))    ? a
		: !strncmp(f->now.path, folders[1], strlen(folders[1])) ? b
									: 0;
}

static unsigned bits_of(const struct record_call *c, const struct fdtable *fds)
{
	const struct fd_state *f = fdtable_get(fds, c->pid, (int32_t)c->args[0]);
	char peer[64] = "";

	switch (c->nr) {
	case SYS_getppid: return GETPPID;
	case SYS_pread64: return file_bits(f, READ_A, READ_B);
	case SYS_fstat: return file_bits(f, STAT_FD, STAT_FD);
	case SYS_openat:
		assert_non_null(c->path);
		return strstr(c->path, "/a/file")    ? OPEN_A
			: strstr(c->path, "/b/file") ? OPEN_B
						     : 0;
	case SYS_recvfrom:
		assert_non_null(f);
		inet_ntop(AF_INET, &((const struct sockaddr_in *)&f->now.remote)->sin_addr, peer,
			sizeof(peer));
		return !strcmp(peer, "127.0.0.1") ? NET_1 : !strcmp(peer, "127.0.0.2") ? NET_2 : 0;
	default: return 0;
	}
}

struct epoch {
	const char *order; /* NULL: none, the options apply */
	const char *mark;
	unsigned bits[WORKERS];
};

/* A mark says when the new filter applied; between the order and the mark either may apply. At both
 * ends, clocks are compared: the log's times are the kernel's, moved to CLOCK_REALTIME. */
#define SLACK_NS 20000000

static int64_t sent_ns[9]; /* when the order of each epoch was sent */

static void nap(void)
{
	nanosleep(&(struct timespec){.tv_nsec = 2 * SLACK_NS}, NULL);
}

/* Between a mark and the next order, exactly these calls of each worker began. */
static void check_epochs(const struct epoch *epochs, size_t n)
{
	struct fdtable *fds = fdtable_new();
	unsigned seen[8][WORKERS] = {{0}};
	int64_t since_ns = 0;
	const struct record *rec;
	struct log_reader *r;
	size_t at = 0; /* marks so far */
	struct err e;
	int rc;

	assert_int_equal(log_reader_new(log_path, &r, &e), 0);
	assert_int_equal(log_reader_head(r)->how, LOG_EVENTS);
	while ((rc = log_next(r, &rec, &e)) == 1) {
		if (rec->type == RECORD_MARK) {
			assert_true(at < n);
			assert_string_equal(rec->mark.text, epochs[at++].mark);
			since_ns = rec->mark.start_ns;
		}
		if (rec->type == RECORD_CALL && at && rec->call.start_ns > since_ns + SLACK_NS &&
			(at == n || rec->call.start_ns < sent_ns[at] - SLACK_NS))
			for (int i = 0; i < WORKERS; i++)
				if (rec->call.pid == (uint32_t)workers[i])
					seen[at - 1][i] |= bits_of(&rec->call, fds);
		if (rec->type == RECORD_END)
			assert_int_equal(rec->end.lost, 0);
		assert_int_equal(fdtable_feed(fds, rec), 0);
	}
	assert_int_equal(rc, 0);
	log_reader_free(r);
	fdtable_free(fds);
	assert_int_equal(at, n);
	for (size_t k = 0; k < n; k++)
		for (int i = 0; i < WORKERS; i++)
			if (seen[k][i] != epochs[k].bits[i])
				fail_msg("'%s', worker %d: %#x, wanted %#x", epochs[k].mark, i,
					seen[k][i], epochs[k].bits[i]);
}

static void play(const char *option, const char *value, const struct epoch *epochs, size_t n)
{
	pid_t tracer;

	wait_rounds();
	tracer = record(option, value);
	for (size_t k = 0; k < n; k++) {
		sent_ns[k] = clock_real_ns();
		if (epochs[k].order)
			assert_string_equal(order(epochs[k].order), epochs[k].order);
		nap();
		wait_rounds();
		nap();
	}
	kill(tracer, SIGTERM);
	assert_int_equal(wait_exit(tracer), 0);
	close(control);
	check_epochs(epochs, n);
}

#define BOTH(bits)                                                                                 \
	{                                                                                          \
		bits, bits                                                                         \
	}

static void test_filters_change_while_it_runs(void **state)
{
	auto_free char *path = alloc_format("filter path=%s", folders[0]),
		       *path_mark = alloc_format("on filter path=%s", folders[0]),
		       *pid = alloc_format("filter process=%d", (int)workers[0]),
		       *pid_mark = alloc_format("on filter process=%d", (int)workers[0]);
	const struct epoch epochs[] = {
		{NULL, "on filter calls=network,other", BOTH(NET_1 | NET_2 | GETPPID)},
		{"filter calls=disk", "on filter calls=disk", BOTH(READ_A | READ_B)},
		{"filter calls=metadata", "on filter calls=metadata",
			BOTH(OPEN_A | OPEN_B | STAT_FD)},
		{path, path_mark, BOTH(READ_A | OPEN_A | STAT_FD)},
		{"filter client=127.0.0.2", "on filter client=127.0.0.2", BOTH(ALL & ~NET_1)},
		{pid, pid_mark, {ALL, 0}},
		{"filter process=work%20two calls=network,disk client=127.0.0.1",
			"on filter process=work%20two calls=network,disk client=127.0.0.1",
			{0, READ_A | READ_B | NET_1}},
		{"filter none", "on", BOTH(ALL)},
	};

	(void)state;
	play("--calls", "network,other", epochs, sizeof(epochs) / sizeof(epochs[0]));
}

static void test_filters_at_the_start(void **state)
{
	const struct epoch by_name[] = {
		{NULL, "on filter process=work-one", {ALL, 0}},
		{"off", "off filter process=work-one", BOTH(0)},
		{"filter calls=other", "off filter calls=other", BOTH(0)},
		{"on", "on filter calls=other", BOTH(GETPPID)},
	};

	(void)state;
	play("--process", "work-one", by_name, 4);
}

static void test_refused(void **state)
{
	const char *const wrong[][2] = {{"--calls", "disc"}, {"--client", "nobody"},
		{"--process", ""}, {"--path", "/no/such"}};
	const struct epoch all[] = {
		{"filter calls=disk", "on filter calls=disk", BOTH(READ_A | READ_B)}};
	pid_t tracer;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(wait_exit(trace((const char *const[]){wrong[i][0], wrong[i][1],
							 "--", "/bin/true", NULL},
					 NULL)),
			2);
	assert_int_equal(wait_exit(trace((const char *const[]){"--mode", "sums", "--calls", "disk",
						 "--", "/bin/true", NULL},
				 NULL)),
		2);
	tracer_name = "ptrace";
	assert_int_equal(
		wait_exit(trace(
			(const char *const[]){"--calls", "disk", "--", "/bin/true", NULL}, NULL)),
		2);
	tracer_name = "ebpf";
	/* A refused order changes nothing, and makes no mark. */
	wait_rounds();
	tracer = record("--mode", "events");
	assert_string_equal(order(all[0].order), all[0].order);
	assert_non_null(strstr(order("filter calls=disc"), "error: calls: unknown kind"));
	assert_non_null(strstr(order("filter path=/etc/passwd/x"), "error: cannot filter by"));
	nap();
	wait_rounds();
	kill(tracer, SIGTERM);
	assert_int_equal(wait_exit(tracer), 0);
	close(control);
	check_epochs(all, 1);
}

int main(void)
{
	struct err why;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words_are_printed_and_read_back),
		cmocka_unit_test(test_wrong_words),
		cmocka_unit_test_setup_teardown(
			test_filters_change_while_it_runs, start_workers, stop_workers),
		cmocka_unit_test_setup_teardown(
			test_filters_at_the_start, start_workers, stop_workers),
		cmocka_unit_test_setup_teardown(test_refused, start_workers, stop_workers),
	};

	if (!ebpf_allowed(&why)) {
		printf("1..0 # SKIP %s\n", why.text);
		return 0;
	}
	tracer_name = "ebpf";
	patient_alarm(600);
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, setup, teardown);
}
