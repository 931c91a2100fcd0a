/*
 * Tests the sampler on real sockets, disks and processes: its readings equal the known activity, to
 * the byte where possible. Each test waits for seconds to pass, so all run at the same time, each
 * in a separate process with network and mount namespaces.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "ci/tests/capture/sampling.h"
#include "ci/tests/side_by_side.h"
#include "faults/primitives/packets.h"

static char brick[64], brick_file[80];
static const char *watched; /* the storage: a folder or a device */

static int teardown(void **state)
{
	(void)state;
	umount2(brick, MNT_DETACH); /* if a test failed */
	return file_remove_tree(dir, NULL);
}

/* Sockets. */
static int listen_at(int family, struct sockaddr_storage *at)
{
	struct sockaddr_in *in = (void *)at;
	struct sockaddr_in6 *in6 = (void *)at;
	socklen_t len = sizeof(*at);
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	*at = (struct sockaddr_storage){.ss_family = (sa_family_t)family};
	if (family == AF_INET)
		in->sin_addr.s_addr = htonl(INADDR_ANY);
	else
		in6->sin6_addr = in6addr_loopback;
	assert_return_code(bind(fd, (void *)at, sizeof(*at)), errno);
	assert_return_code(listen(fd, 100), errno);
	assert_return_code(getsockname(fd, (void *)at, &len), errno);
	return fd;
}

static int connect_to(const struct sockaddr_storage *at)
{
	int fd = socket(at->ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_return_code(connect(fd, (const void *)at, sizeof(*at)), errno);
	return fd;
}

/* Sends and receives all bytes, in one thread. */
static void transfer(int from, int to, size_t bytes)
{
	static char data[65536];
	size_t sent = 0, got = 0;

	while (got < bytes) {
		struct pollfd p[2] = {{from, sent < bytes ? POLLOUT : 0, 0}, {to, POLLIN, 0}};
		ssize_t n;

		assert_true(poll(p, 2, PATIENCE_S * 1000) > 0);
		if (p[0].revents & POLLOUT) {
			n = send(from, data,
				bytes - sent < sizeof(data) ? bytes - sent : sizeof(data),
				MSG_DONTWAIT);
			sent += n > 0 ? (size_t)n : 0;
		}
		if (p[1].revents & POLLIN) {
			n = recv(to, data, sizeof(data), MSG_DONTWAIT);
			assert_true(n > 0);
			got += (size_t)n;
		}
	}
}

enum { THERE = 3000000, BACK = 70001, SMALL = 1000, SHORT_ONES = 40 };

static int family;

static void exact_body(struct run *x)
{
	struct sockaddr_storage at;
	int l = listen_at(family, &at), old, old_end, c, s;

	old = connect_to(&at);
	old_end = accept(l, NULL, NULL);
	transfer(old, old_end, 5555); /* before the sampler starts: never counted */
	start(x, getpid(), NULL);
	wait_for_second(x, clock_real_ns());
	transfer(old, old_end, SMALL);
	c = connect_to(&at);
	s = accept(l, NULL, NULL);
	transfer(c, s, THERE);
	transfer(s, c, BACK);
	wait_for_second(x, clock_real_ns());
	assert_int_equal(end(x), 0);
	close(c);
	close(s);
	close(old);
	close(old_end);
	close(l);
}

static void bytes_are_exact(void **state)
{
	struct totals t;

	(void)state;
	for (int k = 0; k < 2; k++) {
		family = k ? AF_INET6 : AF_INET;
		without_gaps(exact_body, &t);
		assert_true(t.sum[READING_TCP_SENT][0] >= THERE + SMALL);
		/* Retransmitted bytes are counted again. */
		if (t.sum[READING_TCP_RETRANSMITTED][0] == 0)
			assert_true(t.sum[READING_TCP_SENT][0] == THERE + SMALL);
		assert_true(t.sum[READING_TCP_RECEIVED][1] == THERE + SMALL);
		assert_true(t.sum[READING_TCP_RECEIVED][0] == BACK);
		if (t.sum[READING_TCP_RETRANSMITTED][1] == 0)
			assert_true(t.sum[READING_TCP_SENT][1] == BACK);
		assert_true(t.sum[READING_TCP_SENT_SEGMENTS][0] >= 2);
		assert_true(t.sum[READING_TCP_RTT][0] > 0);
		assert_true(t.sum[READING_TCP_WINDOW][1] > 0);
		assert_int_equal(t.most[READING_TCP_SENT], 2);
		for (int r = 0; r < READING_TCP_FIRST; r++)
			if (r >= READING_CPU_BUSY && r != READING_CPU_PRESSURE &&
				r != READING_IO_PRESSURE && r != READING_MEMORY_PRESSURE)
				assert_true(t.records[r] >= t.seconds);
		for (int r = READING_TCP_FIRST; r < READING_TCP_END; r++)
			assert_true(t.records[r] > 0);
		for (int r = READING_MEMORY_TOTAL; r <= READING_MEMORY_SHARED; r++)
			assert_true(t.records[r] >= t.seconds);
		assert_true(t.records[READING_MEMORY_FAULTS] >= t.seconds);
		assert_true(t.sum[READING_LOOPBACK][0] >= THERE + BACK);
		/* No disk was given. */
		assert_int_equal(t.records[READING_DISK_READS], 0);
	}
}

static void short_body(struct run *x)
{
	struct sockaddr_storage at;
	int l = listen_at(AF_INET, &at), c, s;
	int64_t until;

	start(x, getpid(), NULL);
	wait_for_second(x, clock_real_ns());
	c = connect_to(&at);
	s = accept(l, NULL, NULL);
	until = clock_real_ns() + 1500000000;
	for (int i = 0; i < SHORT_ONES || clock_real_ns() < until; i++) {
		int c2 = connect_to(&at), s2 = accept(l, NULL, NULL);

		if (i < SHORT_ONES)
			transfer(c2, s2, SMALL);
		close(i % 2 ? c2 : s2);
		close(i % 2 ? s2 : c2);
		poll(NULL, 0, 10);
	}
	transfer(c, s, THERE);
	wait_for_second(x, clock_real_ns());
	assert_int_equal(end(x), 0);
	close(c);
	close(s);
	close(l);
}

static void sockets_come_and_go(void **state)
{
	struct totals t;

	(void)state;
	without_gaps(short_body, &t);
	assert_true(t.sum[READING_TCP_RECEIVED][1] >= THERE);
	assert_true(t.sum[READING_TCP_RECEIVED][1] <= THERE + SHORT_ONES * SMALL);
}

/* A link to another namespace, whose packets are dropped. */
static int here, there;
static bool both; /* both logs were without gaps, and examined */

static void lossy_body(struct run *x)
{
	struct sockaddr_storage at;
	struct run other;
	const pid_t me = getpid();
	int l, c, s;
	struct totals t, o;

	assert_return_code(setns(there, CLONE_NEWNET), errno);
	l = listen_at(AF_INET, &at);
	assert_return_code(setns(here, CLONE_NEWNET), errno);
	inet_pton(AF_INET, "10.9.0.2", &((struct sockaddr_in *)&at)->sin_addr);
	start(x, me, NULL);
	start_with(&other, &me, 1, NULL, NULL, there);
	wait_for_second(x, clock_real_ns());
	wait_for_second(&other, clock_real_ns());
	c = connect_to(&at);
	s = accept(l, NULL, NULL);
	transfer(s, c, THERE);
	wait_for_second(x, clock_real_ns());
	wait_for_second(&other, clock_real_ns());
	assert_int_equal(end(&other), 0);
	assert_int_equal(end(x), 0);
	close(c);
	close(s);
	close(l);
	add_up(x, &t);
	add_up(&other, &o);
	if (!gapless(&t) || !gapless(&o))
		return;
	/* The other end sends and retransmits; this end sees the gaps. Each sampler reads only its
	 * own namespace. */
	assert_true(o.sum[READING_TCP_RETRANSMITTED][1] > 0);
	assert_true(o.sum[READING_TCP_OUT_OF_ORDER][1] == 0);
	assert_true(o.sum[READING_TCP_SENT][1] > THERE);
	assert_true(o.records[READING_TCP_SENT] > 0);
	assert_true(t.sum[READING_TCP_OUT_OF_ORDER][0] > 0);
	assert_true(t.sum[READING_TCP_RECEIVED][0] == THERE);
	assert_true(t.sum[READING_TCP_RETRANSMITTED][1] == 0);
	assert_true(t.sum[READING_NIC_RECEIVED][0] > THERE);
	assert_true(o.sum[READING_NIC_SENT][0] > THERE);
	both = true;
}

static void loss_shows_at_both_ends(void **state)
{
	struct packets_spec spec = {.percent = 5};
	const struct packets_backend *backend;
	struct totals t;
	json_t *inverse;
	char line[128];
	struct err e;

	(void)state;
	if (packets_check(NULL, false, &backend, &e)) {
		print_message("%s\n", e.text);
		skip();
	}
	here = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	assert_return_code(unshare(CLONE_NEWNET), errno);
	there = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	assert_return_code(setns(here, CLONE_NEWNET), errno);
	snprintf(line, sizeof(line),
		"link add w0 gso_max_segs 1 type veth peer name w1 netns /proc/%d/fd/%d",
		(int)getpid(), there);
	ip(line);
	ip("addr add 10.9.0.1/24 dev w0");
	ip("link set w0 up");
	assert_return_code(setns(there, CLONE_NEWNET), errno);
	ip("addr add 10.9.0.2/24 dev w1");
	/* Makes each packet a segment. */
	ip("link set w1 gso_max_segs 1 up");
	assert_return_code(setns(here, CLONE_NEWNET), errno);
	inverse = packets_inverse(backend, "sampler", "1");
	assert_return_code(packets_drop(&spec, inverse, &e), EIO);
	for (int i = 0; i < TRIES && !both; i++)
		without_gaps(lossy_body, &t);
	assert_true(both);
	assert_return_code(primitive_revert(primitive_find("packets"), inverse, NULL, &e), EIO);
	json_decref(inverse);
	ip("link del w0");
	close(here);
	close(there);
}

/* The disk: a file system on a loop device. */
enum { DISK_BYTES = 8 << 20 };

static void read_directly(void)
{
	int fd = open(brick_file, O_RDONLY | O_DIRECT | O_CLOEXEC);
	static char block[1 << 20] __attribute__((aligned(4096)));

	assert_return_code(fd, errno);
	for (off_t at = 0; at < DISK_BYTES; at += sizeof(block))
		assert_int_equal(pread(fd, block, sizeof(block), at), sizeof(block));
	close(fd);
}

static void disk_body(struct run *x)
{
	start(x, getpid(), watched);
	wait_for_second(x, clock_real_ns());
	read_directly();
	wait_for_second(x, clock_real_ns());
	assert_int_equal(end(x), 0);
}

static void disk_reads_are_exact(void **state)
{
	char image[64], node[64];
	const char *const make[] = {"mkfs.ext4", "-q", "-F", image, "64M", NULL};
	const char *const mount_it[] = {"mount", "-o", "loop,noatime", image, brick, NULL};
	static char block[1 << 16];
	struct totals t;
	struct stat st;
	struct err e;
	FILE *f;

	(void)state;
	snprintf(image, sizeof(image), "%s/image", dir);
	snprintf(brick, sizeof(brick), "%s/brick", dir);
	snprintf(brick_file, sizeof(brick_file), "%s/file", brick);
	assert_return_code(mkdir(brick, 0700), errno);
	if (proc_run_ok(make, patient_s(60), NULL, &e) || proc_run_ok(mount_it, 30, NULL, &e)) {
		print_message("%s\n", e.text);
		skip();
	}
	f = fopen(brick_file, "we");
	assert_non_null(f);
	for (int n = 0; n < DISK_BYTES; n += (int)sizeof(block))
		assert_int_equal(fwrite(block, sizeof(block), 1, f), 1);
	fclose(f);
	sync();
	read_directly(); /* loads the missing parts of the file's map into memory */
	assert_return_code(stat(brick, &st), errno);
	snprintf(node, sizeof(node), "%s/block", dir);
	assert_return_code(mknod(node, S_IFBLK | 0600, st.st_dev), errno);
	for (const char *const *how = (const char *const[]){brick, node, NULL}; *how; how++) {
		watched = *how;
		without_gaps(disk_body, &t);
		assert_true(t.sum[READING_DISK_READ_BYTES][0] == DISK_BYTES);
		assert_true(t.sum[READING_DISK_READS][0] >= DISK_BYTES >> 20);
		assert_int_equal(t.records[READING_DISK_WRITES], t.seconds);
		assert_true(t.sum[READING_PROCESS_READ][0] >= DISK_BYTES);
	}
	assert_return_code(umount2(brick, MNT_DETACH), errno);
}

/* A process whose child works. */
static double spent_s;

static void spin(int tell)
{
	const int64_t work_ns = 800000000;
	int64_t ns;

	while ((ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID)) < work_ns)
		;
	if (write(tell, &ns, sizeof(ns)) == sizeof(ns))
		pause();
	_exit(0);
}

static void worker_body(struct run *x)
{
	int go[2], tell[2];
	pid_t parent;
	int64_t ns;
	char c;

	assert_return_code(pipe(go), errno);
	assert_return_code(pipe(tell), errno);
	fflush(stdout);
	parent = fork();
	if (parent == 0) {
		close(go[1]);
		if (read(go[0], &c, 1) == 1 && fork() == 0)
			spin(tell[1]);
		/* Runs until the test closes the pipe; then its child must also end. */
		if (read(go[0], &c, 1) <= 0)
			kill(0, SIGKILL);
		_exit(0);
	}
	setpgid(parent, parent);
	start(x, parent, NULL);
	wait_for_second(x, clock_real_ns());
	assert_int_equal(write(go[1], "x", 1), 1);
	assert_int_equal(read(tell[0], &ns, sizeof(ns)), sizeof(ns));
	spent_s = (double)ns / 1e9;
	wait_for_second(x, clock_real_ns());
	assert_int_equal(end(x), 0);
	kill(-parent, SIGKILL);
	waitpid(parent, NULL, 0);
	close(go[0]);
	close(go[1]);
	close(tell[0]);
	close(tell[1]);
}

static void children_count_with_their_parents(void **state)
{
	struct totals t;

	(void)state;
	without_gaps(worker_body, &t);
	assert_int_equal(t.most[READING_PROCESS_CPU], 2);
	/* The kernel's resolution is a tick, for user and system time separately. */
	assert_true(t.sum[READING_PROCESS_CPU][0] >= spent_s - 0.03);
	assert_true(t.sum[READING_PROCESS_CPU][0] <= spent_s + 0.05);
	assert_true(t.sum[READING_CPU_BUSY][0] >= spent_s * 0.9);
	assert_int_equal(t.records[READING_TCP_SENT], 0);
}

static void hide(void)
{
	assert_return_code(unshare(CLONE_NEWNS), errno);
	assert_return_code(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), errno);
	assert_return_code(mount("/dev/null", "/proc/diskstats", NULL, MS_BIND, NULL), errno);
	assert_return_code(mount("/dev/null", "/proc/meminfo", NULL, MS_BIND, NULL), errno);
	if (access("/proc/pressure", F_OK) == 0)
		assert_return_code(mount("none", "/proc/pressure", "tmpfs", 0, NULL), errno);
}

static void missing_things_are_left_out(void **state)
{
	const pid_t me = getpid();
	struct totals t;
	struct run x;

	(void)state;
	start_with(&x, &me, 1, dir, hide, -1);
	wait_for_second(&x, clock_real_ns());
	assert_int_equal(end(&x), 0);
	add_up(&x, &t);
	assert_true(t.whole);
	assert_true(t.records[READING_PROCESS_CPU] > 0);
	assert_true(t.records[READING_CPU_IDLE] > 0);
	for (int r = READING_DISK_READS; r <= READING_DISK_QUEUE; r++)
		assert_int_equal(t.records[r], 0);
	assert_int_equal(t.records[READING_MEMORY_AVAILABLE], 0);
	assert_int_equal(t.records[READING_IO_PRESSURE], 0);
}

static void it_ends_with_the_last_process(void **state)
{
	pid_t pids[2];
	struct totals t;
	struct run x;
	int status;

	(void)state;
	fflush(stdout);
	for (int i = 0; i < 2; i++) {
		pids[i] = fork();
		if (pids[i] == 0) {
			pause();
			_exit(0);
		}
	}
	start_with(&x, pids, 2, NULL, NULL, -1);
	wait_for_second(&x, clock_real_ns());
	kill(pids[0], SIGKILL);
	waitpid(pids[0], NULL, 0);
	wait_for_second(&x, clock_real_ns() + 1000000000);
	assert_int_equal(waitpid(x.pid, &status, WNOHANG), 0);
	kill(pids[1], SIGKILL); /* a zombie does not count as a process */
	assert_int_equal(waitpid(x.pid, &status, 0), x.pid);
	assert_int_equal(trace_exit_code(status), 0);
	waitpid(pids[1], NULL, 0);
	add_up(&x, &t);
	assert_true(t.whole);
	assert_int_equal(t.most[READING_PROCESS_CPU], 2);
}

static int sample_aside(const pid_t *pids, size_t n, const char *log, char **command)
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
		_exit(sample(pids, n, NULL, log, -1, command));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return trace_exit_code(status);
}

static void commands_and_their_codes(void **state)
{
	char *seven[] = {(char *)"sh", (char *)"-c", (char *)"exit 7", NULL},
	     *none[] = {(char *)"/no/such/program", NULL};
	const pid_t nobody = 4194303;
	char log[128];

	(void)state;
	snprintf(log, sizeof(log), "%s/command", dir);
	assert_int_equal(sample_aside(NULL, 0, log, none), TRACE_EXIT_NO_PROGRAM);
	assert_int_equal(access(log, F_OK), -1);
	assert_int_equal(sample_aside(&nobody, 1, log, NULL), TRACE_EXIT_USAGE);
	assert_int_equal(access(log, F_OK), -1);
	assert_int_equal(sample_aside(NULL, 0, log, seven), 7);
	assert_return_code(log_read_end(log, &(struct record_end){0}, NULL, NULL), EBADMSG);
	assert_int_equal(
		sample_aside(NULL, 0, log, seven), TRACE_EXIT_USAGE); /* it exists already */
}

static void filters_are_refused(void **state)
{
	const char *two[] = {"/a", "/b"};
	const uint32_t call = 1;
	const pid_t me = getpid();
	const struct trace_request refused[] = {
		{.mode = TRACE_SUMS},
		{.filter = {.calls = &call, .n_calls = 1}},
		{.filter = {.tids = &me, .n_tids = 1}},
		{.filter = {.cgroup = "/sys/fs/cgroup"}},
		{.filter = {.paths = two, .n_paths = 2}},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		struct trace_request r = refused[i];
		struct err e = {""};

		r.pids = &me;
		r.n_pids = 1;
		r.out = "/nowhere/at/all";
		assert_int_equal(trace_run(trace_kind("sampler"), &r, &e), -EOPNOTSUPP);
		assert_non_null(strstr(e.text, "the sampler"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_are_exact),
		cmocka_unit_test(sockets_come_and_go),
		cmocka_unit_test(loss_shows_at_both_ends),
		cmocka_unit_test(disk_reads_are_exact),
		cmocka_unit_test(children_count_with_their_parents),
		cmocka_unit_test(missing_things_are_left_out),
		cmocka_unit_test(it_ends_with_the_last_process),
		cmocka_unit_test(commands_and_their_codes),
		cmocka_unit_test(filters_are_refused),
	};

	if (geteuid() != 0) {
		puts("1..0 # SKIP needs root");
		return 0;
	}
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return run_side_by_side(
		tests, sizeof(tests) / sizeof(tests[0]), sampling_setup, teardown, NULL);
}
