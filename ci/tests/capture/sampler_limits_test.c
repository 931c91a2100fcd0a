/*
 * Tests the sampler on the effects of a service's own limits and its network's queues: packets
 * dropped by a queueing discipline, a quota of processor time, a rate limit of its disk. In
 * namespaces and control groups made by the test.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "ci/tests/capture/sampling.h"
#include "ci/tests/side_by_side.h"
#include "harness/base/cgroup.h"

static int teardown(void **state)
{
	(void)state;
	return file_remove_tree(dir, NULL);
}

/* If 'rc' is an error, prints it and skips the test. */
static void needs(int rc, const char *what, const struct err *e)
{
	if (!rc)
		return;
	print_message("%s: %s\n", what, e ? e->text : strerror(-rc));
	skip();
}

/* ---- queues ---- */

enum { PACKETS = 20, PAYLOAD = 1000 };

static uint64_t tc_says(const char *word)
{
	const char *const argv[] = {"tc", "-s", "qdisc", "show", "dev", "w0", "root", NULL};
	uint64_t n = 0;
	char *out, *at;
	struct err e;

	assert_return_code(proc_run_ok(argv, patient_s(60), &out, &e), EIO);
	at = strstr(out, word);
	assert_non_null(at);
	assert_int_equal(sscanf(at + strlen(word), " %" SCNu64, &n), 1);
	free(out);
	return n;
}

static uint64_t dropped, overlimits;

/* More packets at once than the queue holds. */
static void queue_body(struct run *x)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(9)};
	const uint64_t before[] = {tc_says("dropped"), tc_says("overlimits")};
	static const char payload[PAYLOAD];
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	inet_pton(AF_INET, "10.9.3.2", &to.sin_addr);
	start(x, getpid(), NULL);
	wait_for_second(x, clock_real_ns());
	for (int i = 0; i < PACKETS; i++)
		sendto(fd, payload, sizeof(payload), 0, (void *)&to, sizeof(to));
	wait_for_second(x, clock_real_ns());
	dropped = tc_says("dropped") - before[0];
	overlimits = tc_says("overlimits") - before[1];
	assert_int_equal(end(x), 0);
	close(fd);
}

static void drops_of_queues_are_counted(void **state)
{
	const char *const shape[] = {"tc", "qdisc", "add", "dev", "w0", "root", "tbf", "rate",
		"8kbit", "burst", "2000", "limit", "3000", NULL};
	struct totals t;
	struct err e;

	(void)state;
	ip("link add w0 type veth peer name w1");
	/* The device sends no packets by itself. */
	ip("link set w0 addrgenmode none");
	ip("link set w1 addrgenmode none");
	ip("addr add 10.9.3.1/24 dev w0");
	ip("link set w0 up");
	ip("link set w1 up");
	ip("neigh add 10.9.3.2 lladdr 02:00:00:00:00:01 dev w0 nud permanent");
	needs(proc_run_ok(shape, patient_s(60), NULL, &e), "no tbf", &e);
	without_gaps(queue_body, &t);
	assert_true(dropped >= PACKETS / 2);
	assert_true(t.sum[READING_QDISC_DROPPED][0] == (double)dropped);
	/* The last second ends before tc was queried, while the queue still moves. */
	assert_true(t.sum[READING_QDISC_OVERLIMITS][0] > 0);
	assert_true(t.sum[READING_QDISC_OVERLIMITS][0] <= (double)overlimits);
	assert_true(t.sum[READING_QDISC_BACKLOG][0] > 0);
	assert_int_equal(t.most[READING_QDISC_DROPPED], 2); /* interfaces, without lo */
	/* The device itself has dropped nothing. */
	assert_true(t.sum[READING_NIC_DROPPED][0] < (double)dropped);
}

/* ---- control groups ---- */

static char groups[2][PATH_MAX + 64]; /* to be removed */
static size_t n_groups;

/* NULL, with errno: no group can be made. */
static const char *new_group(const char *root)
{
	char *at = groups[n_groups];

	snprintf(at, sizeof(groups[0]), "%s/culprit-sampler-%d", root, (int)getpid());
	if (mkdir(at, 0755) < 0)
		return NULL;
	n_groups++;
	return at;
}

/* 0, or -errno. */
static int put(const char *group, const char *file, const char *text)
{
	char path[PATH_MAX + 128];
	ssize_t n;
	int fd, rc;

	snprintf(path, sizeof(path), "%s/%s", group, file);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : write(fd, text, strlen(text));
	rc = n < 0 ? -errno : 0;
	if (fd >= 0)
		close(fd);
	return rc;
}

static void enter(void)
{
	for (size_t i = 0; i < n_groups; i++)
		if (put(groups[i], "cgroup.procs", "0"))
			_exit(97);
}

static int remove_groups(void **state)
{
	/* A killed process leaves its group a moment after its parent is notified. */
	for (size_t i = 0; i < n_groups; i++)
		for (int k = 0; rmdir(groups[i]) < 0 && errno == EBUSY && k < 1000; k++)
			poll(NULL, 0, 10);
	return teardown(state);
}

static void (*work)(void); /* run by a process in the groups */

static void worker_body(struct run *x)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		enter();
		work();
	}
	start(x, pid, NULL);
	wait_for_second(x, clock_real_ns() + 2000000000);
	assert_int_equal(end(x), 0);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void spin(void)
{
	for (;;)
		;
}

static void a_quota_of_the_server_shows(void **state)
{
	struct cgroup_place p = cgroup_own(CGROUP_CPU);
	struct totals t;
	const char *g;

	(void)state;
	needs(p.version ? 0 : -ENOENT, "no control groups for processors", NULL);
	g = new_group(p.root);
	needs(g ? 0 : -errno, "no control group can be made", NULL);
	needs(p.version == 2 ? put(g, "cpu.max", "20000 100000")
			     : put(g, "cpu.cfs_quota_us", "20000"),
		"no quotas of processor time", NULL);
	work = spin;
	without_gaps(worker_body, &t);
	/* Eight tenths of each second, minus time that a busy machine did not give. */
	assert_true(t.sum[READING_PROCESS_THROTTLED][0] > 0.2 * t.seconds);
	assert_true(t.sum[READING_PROCESS_THROTTLED][0] < 1.2 * t.seconds);
	assert_int_equal(t.records[READING_PROCESS_THROTTLED], t.seconds);
	assert_int_equal(t.most[READING_PROCESS_THROTTLED], 1);
	/* The sampler's own group is a different one. */
	if (t.records[READING_CPU_THROTTLED])
		assert_true(t.sum[READING_CPU_THROTTLED][0] < 0.2 * t.seconds);
	assert_true(t.records[READING_CPU_STEAL] == t.seconds);
}

static char device[64];

static void read_slowly(void)
{
	int fd = open(device, O_RDONLY | O_DIRECT | O_CLOEXEC);
	static char block[65536] __attribute__((aligned(4096)));

	for (off_t at = 0;; at = (at + (off_t)sizeof(block)) % (32 << 20))
		if (pread(fd, block, sizeof(block), at) != sizeof(block))
			_exit(1);
}

/* Writes 'text' to a group's file of limits. */
static int limit_reads(const char *g, unsigned version)
{
	char text[64];
	struct stat st;

	assert_return_code(stat(device, &st), errno);
	snprintf(text, sizeof(text), version == 2 ? "%u:%u rbps=262144" : "%u:%u 262144",
		major(st.st_rdev), minor(st.st_rdev));
	return put(g, version == 2 ? "io.max" : "blkio.throttle.read_bps_device", text);
}

/* Version 1 has the limit in a separate hierarchy, which cgroup.h does not support. */
static int limit_by_version_one(void)
{
	const char *g = new_group("/sys/fs/cgroup/blkio");

	return g ? limit_reads(g, 1) : -errno;
}

static void a_rate_of_the_servers_disk_shows(void **state)
{
	struct cgroup_place p = cgroup_own(CGROUP_PRESSURE);
	char image[80];
	const char *const make[] = {"truncate", "-s", "32M", image, NULL};
	const char *const attach[] = {"losetup", "-f", "--show", image, NULL};
	const char *const detach[] = {"losetup", "-d", device, NULL};
	char *pressure, *out;
	struct totals t = {0};
	struct err e;
	const char *g;
	int rc;

	(void)state;
	needs(p.version ? 0 : -ENOENT, "no control groups of version 2", NULL);
	g = new_group(p.root);
	needs(g ? 0 : -errno, "no control group can be made", NULL);
	pressure = cgroup_read(g, "io.pressure");
	needs(pressure ? 0 : -ENOENT, "no pressure of groups (psi=1)", NULL);
	free(pressure);
	snprintf(image, sizeof(image), "%s/image", dir);
	assert_return_code(proc_run_ok(make, patient_s(60), NULL, &e), EIO);
	needs(proc_run_ok(attach, patient_s(60), &out, &e), "no loop devices", &e);
	snprintf(device, sizeof(device), "%.*s", (int)strcspn(out, "\n"), out);
	free(out);
	rc = limit_reads(g, 2);
	if (rc)
		rc = limit_by_version_one();
	work = read_slowly;
	if (!rc)
		without_gaps(worker_body, &t);
	proc_run_ok(detach, patient_s(60), NULL, &e);
	needs(rc, "no limits of a disk's rate", NULL);
	assert_int_equal(t.records[READING_PROCESS_IO_PRESSURE], t.seconds);
	assert_true(t.sum[READING_PROCESS_IO_PRESSURE][0] > 0.5 * t.seconds);
	assert_true(t.sum[READING_PROCESS_IO_PRESSURE][0] < 1.1 * t.seconds);
	assert_int_equal(t.records[READING_PROCESS_MEMORY_PRESSURE], t.seconds);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(drops_of_queues_are_counted),
		cmocka_unit_test(a_quota_of_the_server_shows),
		cmocka_unit_test(a_rate_of_the_servers_disk_shows),
	};

	if (geteuid() != 0) {
		puts("1..0 # SKIP needs root");
		return 0;
	}
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return run_side_by_side(
		tests, sizeof(tests) / sizeof(tests[0]), sampling_setup, remove_groups, NULL);
}
