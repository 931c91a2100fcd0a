/*
 * Traces the same load by two tracers at once: one writes a record for each call, the other adds up
 * in the kernel. The metrics of both must be equal in counts and bytes, and similar in times.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants those four first */
#include <arpa/inet.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <math.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ci/tests/built.h"
#include "diag/derive/derive.h"
#include "diag/derive/message.h"
#include "diag/record/log.h"
#include "harness/base/file.h"

enum { ROUNDS = 250, HEAD = 4, SECONDS = 1800 }; /* upper limit of the run */

/* Messages of up to 1004 bytes count as headers, of more than 30000 as bulk data. */
static const struct bulk_rule rule = {.above = 30000, .header = 1004};

static char dir[] = "/tmp/culprit-sums-events-XXXXXX", storage[64], agent[4096], calls_path[64],
	    sums_path[64];
static struct sockaddr_in service;
static pid_t server, client, tracers[2];
static int go[2];

static int die(const char *what)
{
	perror(what);
	_exit(1);
}

/* The size of round i's body. */
static uint32_t body_size(int i)
{
	return 1 + (uint32_t)(i * 7919) % 60000;
}

/* Uses files of the storage and others, also with calls that fail. */
static void use_files(int in, int out, int read_only)
{
	static char data[5000];
	size_t n = 1 + (size_t)rand() % sizeof(data);
	off_t at = rand() % 100000;

	if (pwrite(in, data, n, at) < 0 || pread(in, data, n, at / 2) < 0 ||
		write(out, data, n) < 0)
		die("files");
	if (write(read_only, data, n) != -1 || read(read_only, data, n) < 0)
		die("a file that is open for reading");
}

static int open_at(const char *folder, const char *name, int flags)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, flags | O_CREAT, 0600);
	return fd < 0 ? die(path) : fd;
}

/* Reads up to 'n' bytes, by one of three calls. */
static ssize_t read_by(int way, int fd, char *to, size_t n)
{
	struct iovec parts[] = {{to, n / 3}, {to + n / 3, n - n / 3}};
	struct msghdr msg = {.msg_iov = parts, .msg_iovlen = 2};

	if (way == 0)
		return read(fd, to, n);
	return way == 1 ? readv(fd, parts, 2) : recvmsg(fd, &msg, 0);
}

/* Reads like programs that take the length from a header and ask for exactly that (metrics.h
 * describes messages). Some try again until EAGAIN, others wait after each short read. */
static void read_message(int epoll, int fd, int round)
{
	struct epoll_event ev;
	char head[HEAD], data[65536];
	uint32_t want = HEAD, got = 0, body = 0;

	epoll_wait(epoll, &ev, 1, -1);
	while (got < want) {
		bool in_head = got < HEAD;
		size_t most = (in_head ? HEAD : want) - got;
		ssize_t n = read_by(round % 3, fd, in_head ? head + got : data, most);

		if (n < 0 && errno == EAGAIN) {
			epoll_wait(epoll, &ev, 1, -1);
			continue;
		}
		if (n <= 0)
			die("read");
		got += (uint32_t)n;
		if (got == HEAD) {
			memcpy(&body, head, HEAD);
			want = HEAD + body;
		} else if ((size_t)n < most && round % 2) {
			epoll_wait(epoll, &ev, 1, -1);
		}
	}
}

static void write_message(int fd, uint32_t size)
{
	char data[65536] = "";
	size_t done = 0, all = HEAD + size;

	memcpy(data, &size, HEAD);
	while (done < all) {
		/* In pieces, so that the other side waits inside a message. */
		ssize_t n = write(fd, data + done, all - done > 20000 ? 20000 : all - done);

		if (n < 0 && errno == EAGAIN) {
			struct pollfd room = {.fd = fd, .events = POLLOUT};

			poll(&room, 1, -1);
			continue;
		}
		if (n < 0)
			die("write");
		done += (size_t)n;
		if (size % 5 == 0)
			usleep(1000);
	}
}

static int watch(int fd)
{
	struct epoll_event ev = {.events = EPOLLIN};
	int epoll = epoll_create1(0), on = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	fcntl(fd, F_SETFL, O_NONBLOCK);
	return epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &ev) < 0 ? die("epoll") : epoll;
}

static void wait_go(void)
{
	char c;

	close(go[1]);
	if (read(go[0], &c, 1) != 0)
		die("go");
}

static void serve(int listener)
{
	int in, out, read_only, fd, epoll;

	wait_go();
	in = open_at(storage, "in", O_RDWR);
	out = open_at(dir, "out", O_WRONLY);
	close(open_at(storage, "read-only", O_RDONLY));
	read_only = open_at(storage, "read-only", O_RDONLY);
	fd = accept(listener, NULL, NULL);
	epoll = watch(fd);
	for (int i = 0; i < ROUNDS; i++) {
		read_message(epoll, fd, i);
		use_files(in, out, read_only);
		write_message(fd, body_size(i + 1));
	}
}

static void ask(void)
{
	int fd, epoll;

	wait_go();
	fd = socket(AF_INET, SOCK_STREAM, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&service, sizeof(service)) < 0)
		die("connect");
	epoll = watch(fd);
	for (int i = 0; i < ROUNDS; i++) {
		write_message(fd, body_size(i));
		read_message(epoll, fd, i);
		usleep(10000); /* the load lasts some seconds, and each has new sums */
	}
	/* Waiting again, or trying to, shows that the last message was whole. */
	epoll_wait(epoll, &(struct epoll_event){0}, 1, 0);
}

static void start_load(void)
{
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t n = sizeof(service);

	service = (struct sockaddr_in){
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	assert_true(listener >= 0 &&
		bind(listener, (struct sockaddr *)&service, sizeof(service)) == 0 &&
		listen(listener, 1) == 0 &&
		getsockname(listener, (struct sockaddr *)&service, &n) == 0);
	assert_int_equal(pipe2(go, O_CLOEXEC), 0);
	server = fork();
	if (server == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		serve(listener);
		_exit(0);
	}
	client = fork();
	if (client == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		ask();
		_exit(0);
	}
	close(listener);
	close(go[0]);
}

/* True once it has attached; false, with its exit code, if it has ended instead. */
static bool start_tracer(int which, const char *mode, const char *out, int *code)
{
	char pids[2][16], line[8];
	char *argv[] = {agent, (char *)"trace", (char *)"--tracer", (char *)"ebpf",
		(char *)"--mode", (char *)mode, (char *)"--out", (char *)out, (char *)"--ready-fd",
		(char *)"3", (char *)"-p", pids[0], (char *)"-p", pids[1],
		which ? (char *)"--path" : NULL, storage, (char *)"--bulk", (char *)"30000,1004",
		NULL};
	int ready[2], status;
	pid_t pid;

	snprintf(pids[0], sizeof(pids[0]), "%d", (int)server);
	snprintf(pids[1], sizeof(pids[1]), "%d", (int)client);
	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		dup2(ready[1], 3);
		execv(argv[0], argv);
		_exit(126);
	}
	close(ready[1]);
	tracers[which] = pid;
	if (read(ready[0], line, sizeof(line)) > 0) {
		close(ready[0]);
		return true;
	}
	close(ready[0]);
	waitpid(pid, &status, 0);
	tracers[which] = 0;
	*code = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
	return false;
}

static int setup(void **state)
{
	(void)state;
	if (!mkdtemp(dir) || !built("agent/culprit-agent", agent))
		return -1;
	snprintf(storage, sizeof(storage), "%s/storage", dir);
	snprintf(calls_path, sizeof(calls_path), "%s/calls", dir);
	snprintf(sums_path, sizeof(sums_path), "%s/sums", dir);
	setenv("ASAN_OPTIONS", "detect_leaks=0", 0);
	return mkdir(storage, 0700);
}

static int teardown(void **state)
{
	const pid_t all[] = {server, client, tracers[0], tracers[1]};

	(void)state;
	for (size_t i = 0; i < 4; i++)
		if (all[i] > 0) {
			kill(all[i], i < 2 ? SIGKILL : SIGTERM);
			waitpid(all[i], NULL, 0);
		}
	return file_remove_tree(dir, NULL);
}

static void ended(pid_t *pid)
{
	int status;

	assert_int_equal(waitpid(*pid, &status, 0), *pid);
	*pid = 0;
	assert_int_equal(status, 0);
}

static struct metrics *measure(const char *path, int32_t self, int64_t start_ns)
{
	struct stream_server it = {.name = "s", .storage = storage};
	struct stream_spec spec = {
		.servers = &it, .n_servers = 1, .owner = self < 0 ? OWNER_DAEMON : OWNER_SERVER};
	struct metrics *m;
	uint64_t lost = 1;
	struct err e;

	memcpy(&it.address, &service, sizeof(service));
	assert_int_equal(metrics_new(1, start_ns, SECONDS, &m, &e), 0);
	metrics_bulk(m, &rule);
	if (derive_log(path, &spec, m, NULL, &lost, &e))
		fail_msg("%s", e.text);
	assert_int_equal(lost, 0);
	return m;
}

static struct sample total(struct metrics *m, enum metric metric)
{
	struct sample sum = {.metric = metric};
	const struct sample *s;

	for (size_t i = 0, n = metrics_samples(m, &s); i < n; i++)
		if (s[i].metric == metric) {
			sum.count += s[i].count;
			sum.bytes += s[i].bytes;
			sum.sum_s += s[i].sum_s;
			sum.max_s = fmax(sum.max_s, s[i].max_s);
			sum.second++;
		}
	return sum;
}

/* Seconds must be equal, except that a call that ends at the border of two may count in either. */
static void compare_seconds(struct metrics *calls, struct metrics *sums, enum metric metric)
{
	uint64_t of[2][SECONDS] = {0};
	const struct sample *s;

	for (int which = 0; which < 2; which++)
		for (size_t i = 0, n = metrics_samples(which ? sums : calls, &s); i < n; i++)
			if (s[i].metric == metric)
				of[which][s[i].second] = s[i].count;
	for (int i = 0; i < SECONDS; i++)
		if (of[0][i] > of[1][i] + 2 || of[1][i] > of[0][i] + 2)
			fail_msg("%s, second %d: %llu from calls, %llu from sums",
				metric_name(metric), i, (unsigned long long)of[0][i],
				(unsigned long long)of[1][i]);
}

static void compare(int32_t self, enum metric metric, int64_t start_ns, uint64_t count)
{
	struct metrics *calls = measure(calls_path, self, start_ns),
		       *sums = measure(sums_path, self, start_ns);
	struct sample a = total(calls, metric), b = total(sums, metric);

	if (a.count != b.count || a.bytes != b.bytes || a.count != count)
		fail_msg("%s: %llu (%llu bytes) from calls, %llu (%llu bytes) from sums, %llu made",
			metric_name(metric), (unsigned long long)a.count,
			(unsigned long long)a.bytes, (unsigned long long)b.count,
			(unsigned long long)b.bytes, (unsigned long long)count);
	print_message("# %s: %llu, %llu bytes; %.6f s from calls, %.6f s from sums\n",
		metric_name(metric), (unsigned long long)a.count, (unsigned long long)a.bytes,
		a.sum_s, b.sum_s);
	/* Each tracer times the call a little earlier or later than the other. */
	if (fabs(a.sum_s - b.sum_s) > 0.2 * a.sum_s + 5e-6 * (double)count)
		fail_msg("%s: %.6f s from calls, %.6f s from sums", metric_name(metric), a.sum_s,
			b.sum_s);
	assert_true(a.second >= 2);
	compare_seconds(calls, sums, metric);
	metrics_free(calls);
	metrics_free(sums);
}

/* Of the messages from round 'first' on. */
static uint64_t count_of(int first, enum message_kind kind)
{
	uint64_t n = 0;

	for (int i = first; i < first + ROUNDS; i++) {
		uint32_t bytes = HEAD + body_size(i);

		n += kind ==
			(bytes > rule.above                    ? MESSAGE_BULK
					: bytes <= rule.header ? MESSAGE_HEADER
							       : MESSAGE_REQUEST);
	}
	return n;
}

static void sums_and_events_give_the_same_metrics(void **state)
{
	struct log_reader *r;
	int64_t start_ns;
	struct err e;
	int code = 0;

	(void)state;
	if (geteuid() != 0) {
		print_message("# needs root, to trace in the kernel\n");
		skip();
	}
	start_load();
	if (!start_tracer(0, "events", calls_path, &code) ||
		!start_tracer(1, "sums", sums_path, &code)) {
		assert_int_equal(code, 2); /* the kernel refuses; anything else is a defect */
		print_message("# no ebpf tracer here, or no sums\n");
		skip();
	}
	close(go[1]);
	ended(&server);
	ended(&client);
	ended(&tracers[0]);
	ended(&tracers[1]);
	assert_int_equal(log_reader_new(calls_path, &r, &e), 0);
	start_ns = log_reader_head(r)->start_ns / 1000000000 * 1000000000;
	log_reader_free(r);
	compare(0, METRIC_DREAD, start_ns, 2 * ROUNDS);
	compare(0, METRIC_DWRITE, start_ns, ROUNDS);
	assert_true(count_of(0, MESSAGE_HEADER) > 0);
	compare(0, METRIC_NSREAD, start_ns, count_of(0, MESSAGE_REQUEST));
	compare(0, METRIC_NSBULK, start_ns, count_of(0, MESSAGE_BULK));
	compare(-1, METRIC_NCREAD, start_ns, count_of(1, MESSAGE_REQUEST));
	compare(-1, METRIC_NCBULK, start_ns, count_of(1, MESSAGE_BULK));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sums_and_events_give_the_same_metrics),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, setup, teardown);
}
