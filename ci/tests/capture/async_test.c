/*
 * Tests asynchronous disk I/O (io_submit, io_uring) in both tracers, on a program with known counts
 * (ci/tests/helpers/async.c): on a file, and on a block device under another name.
 */
#include "ci/tests/capture/tracing.h"

#include <linux/loop.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "diag/derive/derive.h"

enum { ROUNDS = 40, BLOCK = 4096, NO_SUCH_CALLS = 77, SIZE = 1 << 20, KEPT = 4096 };

static char async_prog[4096], storage[64], file[80], block_link[64];
static uint64_t device; /* 0: no loop devices here */
static int loop = -1;
static bool has_ebpf;

static const char *const both[] = {"ebpf", "ptrace", NULL};

/* Makes a loop device over a file; the kernel removes it when it is no longer open. */
static void make_device(void)
{
	char image[80], name[32];
	struct stat st;
	int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC), n, fd;

	snprintf(image, sizeof(image), "%s/image", dir);
	fd = open(image, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (control < 0 || fd < 0 || ftruncate(fd, SIZE) < 0)
		return;
	n = ioctl(control, LOOP_CTL_GET_FREE);
	close(control);
	snprintf(name, sizeof(name), "/dev/loop%d", n);
	if (n >= 0)
		loop = open(name, O_RDWR | O_CLOEXEC);
	if (loop >= 0 &&
		!ioctl(loop, LOOP_CONFIGURE,
			&(struct loop_config){
				.fd = (uint32_t)fd, .info.lo_flags = LO_FLAGS_AUTOCLEAR}) &&
		!fstat(loop, &st) && !symlink(name, block_link))
		device = st.st_rdev;
	close(fd);
}

static int begin(void **state)
{
	struct err why;
	int fd;

	if (setup(state) || !built("helpers/async", async_prog))
		return -1;
	snprintf(storage, sizeof(storage), "%s/storage", dir);
	snprintf(file, sizeof(file), "%s/data", storage);
	snprintf(block_link, sizeof(block_link), "%s/block", dir);
	if (mkdir(storage, 0700) < 0)
		return -1;
	fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || ftruncate(fd, SIZE) < 0)
		return -1;
	close(fd);
	make_device();
	has_ebpf = ebpf_allowed(&why);
	return 0;
}

static int finish(void **state)
{
	if (loop >= 0)
		close(loop);
	return teardown(state);
}

/* Runs the helper under a tracer to its end; skips the test on kernels without these calls. */
static void run_async(const char *tracer, bool sums, const char *what, const char *path, int rounds)
{
	const char *watched = path == file ? storage : path;
	char number[16];
	int code;

	unlink(log_path);
	tracer_name = tracer;
	snprintf(number, sizeof(number), "%d", rounds);
	code = wait_exit(
		trace(sums ? (const char *const[]){"--mode", "sums", "--path", watched, "--",
				     async_prog, what, path, number, NULL}
			   : (const char *const[]){"--", async_prog, what, path, number, NULL},
			NULL));
	if (code == NO_SUCH_CALLS) {
		print_message("# the kernel lacks these calls\n");
		skip();
	}
	assert_int_equal(code, 0);
}

/* The contents of the log. */
struct seen {
	unsigned done[2], failed, unfinished, syncs; /* done: reads, writes */
	uint64_t bytes[2], lost;
};

static struct seen look(void)
{
	const struct call_arch *arch = call_arch(ARCH);
	struct seen s = {0};
	const struct record *rec;
	struct log_reader *r;
	int64_t last_ns = 0;
	struct err e;
	int rc;

	assert_int_equal(log_reader_new(log_path, &r, &e), 0);
	while ((rc = log_next(r, &rec, &e)) == 1) {
		const struct record_call *c = &rec->call;
		const struct call_info *info;

		if (rec->type == RECORD_END)
			s.lost = rec->end.lost;
		if (rec->type != RECORD_CALL || !(c->nr & RECORD_ASYNC_NR))
			continue;
		info = call_info(arch, c->nr & ~RECORD_ASYNC_NR);
		assert_non_null(info);
		assert_true(c->service_ns > 0);
		/* The process may be preempted between reading the clock and the record. */
		assert_true(
			c->start_ns + c->service_ns + (int64_t)(patient_s(0.01) * 1e9) >= last_ns);
		last_ns = c->start_ns + c->service_ns;
		if (c->unfinished) {
			s.unfinished++;
		} else if (c->result < 0) {
			s.failed++;
		} else if (info->class == CALL_SYNC) {
			s.syncs++;
		} else {
			s.done[info->class == CALL_WRITE]++;
			s.bytes[info->class == CALL_WRITE] += (uint64_t)c->result;
			assert_int_equal(c->offset % BLOCK, 0);
			assert_int_equal(c->args[3], c->offset);
		}
	}
	assert_int_equal(rc, 0);
	log_reader_free(r);
	return s;
}

static struct sample total(enum metric metric, const char *path, uint64_t number)
{
	struct stream_server it = {
		.name = "s", .storage = path == file ? storage : path, .storage_device = number};
	struct stream_spec spec = {.servers = &it, .n_servers = 1, .owner = OWNER_SERVER};
	struct sample sum = {.metric = metric};
	const struct sample *s;
	struct log_reader *r;
	struct metrics *m;
	int64_t start_ns;
	uint64_t lost = 1;
	struct err e;

	assert_int_equal(log_reader_new(log_path, &r, &e), 0);
	start_ns = log_reader_head(r)->start_ns / 1000000000 * 1000000000;
	log_reader_free(r);
	((struct sockaddr_in *)&it.address)->sin_family = AF_INET;
	assert_int_equal(metrics_new(1, start_ns, 100, &m, &e), 0);
	assert_int_equal(derive_log(log_path, &spec, m, NULL, &lost, &e), 0);
	assert_int_equal(lost, 0);
	for (size_t i = 0, n = metrics_samples(m, &s); i < n; i++)
		if (s[i].metric == metric) {
			sum.count += s[i].count;
			sum.bytes += s[i].bytes;
			sum.sum_s += s[i].sum_s;
		}
	metrics_free(m);
	return sum;
}

static void expect_metrics(const char *path, uint64_t number, unsigned reads, unsigned writes)
{
	struct sample r = total(METRIC_DREAD, path, number), w = total(METRIC_DWRITE, path, number);

	assert_int_equal(r.count, reads);
	assert_int_equal(w.count, writes);
	assert_int_equal(r.bytes, reads * BLOCK);
	assert_int_equal(w.bytes, writes * BLOCK);
	assert_true(r.sum_s > 0 && r.sum_s < 60);
	assert_true(w.sum_s > 0 && w.sum_s < 60);
}

static bool can_trace(const char *tracer)
{
	if (strcmp(tracer, "ebpf") || has_ebpf)
		return true;
	print_message("# no ebpf tracer here\n");
	return false;
}

static void same_counts(const char *path, uint64_t number)
{
	for (const char *const *tracer = both; *tracer; tracer++) {
		struct seen s;

		if (!can_trace(*tracer))
			continue;
		run_async(*tracer, false, "aio", path, ROUNDS);
		s = look();
		assert_int_equal(s.lost, 0);
		assert_int_equal(s.syncs, ROUNDS);
		assert_int_equal(s.failed + s.unfinished, 0);
		expect_metrics(path, number, 2 * ROUNDS, 3 * ROUNDS);
		if (strcmp(*tracer, "ebpf"))
			continue;
		run_async(*tracer, true, "aio", path, ROUNDS);
		assert_int_equal(look().done[0], 0);
		expect_metrics(path, number, 2 * ROUNDS, 3 * ROUNDS);
	}
}

static void a_file_below_the_storage_counts_once_in_all_tracers(void **state)
{
	(void)state;
	same_counts(file, 0);
}

static void a_device_counts_under_another_name(void **state)
{
	(void)state;
	if (!device) {
		print_message("# no loop device here\n");
		skip();
	}
	same_counts(block_link, device);
}

static void another_file_does_not_count(void **state)
{
	(void)state;
	if (!can_trace("ebpf"))
		skip();
	run_async("ebpf", true, "aio", file, ROUNDS);
	/* Not selected: the filter had another folder. */
	unlink(log_path);
	assert_int_equal(wait_exit(trace((const char *const[]){"--path", "/proc", "--", async_prog,
						 "aio", file, "2", NULL},
				 NULL)),
		0);
	assert_int_equal(look().done[0] + look().done[1] + look().syncs, 0);
	assert_int_equal(look().lost, 0);
}

static void hostile_requests_confuse_no_tracer(void **state)
{
	(void)state;
	for (const char *const *tracer = both; *tracer; tracer++) {
		struct seen s;

		if (!can_trace(*tracer))
			continue;
		run_async(*tracer, false, "hostile", file, 1);
		s = look();
		assert_int_equal(s.done[1], 4);
		assert_int_equal(s.bytes[1], 4 * BLOCK);
		assert_int_equal(s.done[0], 0);
		assert_int_equal(s.failed, 1);
		assert_int_equal(s.unfinished, 0);
		assert_int_equal(s.lost, 0);
	}
}

static void what_is_left_under_way_has_no_result(void **state)
{
	(void)state;
	for (const char *const *tracer = both; *tracer; tracer++) {
		struct seen s;

		if (!can_trace(*tracer))
			continue;
		run_async(*tracer, false, "leave", file, 1);
		s = look();
		assert_int_equal(s.unfinished, 4);
		assert_int_equal(s.done[0] + s.done[1] + s.failed, 0);
		assert_int_equal(s.lost, 0);
	}
}

static void events_taken_without_a_call_are_lost_and_told(void **state)
{
	(void)state;
	for (const char *const *tracer = both; *tracer; tracer++) {
		struct seen s;

		if (!can_trace(*tracer))
			continue;
		run_async(*tracer, false, "ring", file, 1);
		s = look();
		assert_int_equal(s.lost, 2);
		assert_int_equal(s.unfinished, 1);
		assert_int_equal(s.done[0], 0);
	}
}

static void more_than_can_be_kept_is_lost_and_told(void **state)
{
	(void)state;
	for (const char *const *tracer = both; *tracer; tracer++) {
		struct seen s;

		if (!can_trace(*tracer))
			continue;
		run_async(*tracer, false, "many", file, KEPT + 100);
		s = look();
		assert_int_equal(s.done[0], KEPT);
		assert_int_equal(s.lost, 100);
	}
}

/* Operations submitted before the tracer attached are neither recorded nor lost. */
static void what_was_under_way_before_is_not_recorded(void **state)
{
	(void)state;
	for (const char *const *name = both; *name; name++) {
		int in, out[2];
		pid_t pid, tracer;
		struct seen s;
		char c;

		if (!can_trace(*name))
			continue;
		unlink(log_path);
		tracer_name = *name;
		assert_int_equal(pipe2(out, O_CLOEXEC), 0);
		in = dup(1);
		dup2(out[1], 1);
		{
			int keep = in;

			pid = start((const char *const[]){async_prog, "before", file, NULL}, &in);
			dup2(keep, 1);
			close(keep);
		}
		close(out[1]);
		busy_pid = pid;
		assert_int_equal(write(in, "x", 1), 1);
		if (read(out[0], &c, 1) != 1) {
			close(in);
			busy_pid = 0;
			assert_int_equal(wait_exit(pid), NO_SUCH_CALLS);
			skip();
		}
		close(out[0]);
		tracer = trace_pid(pid);
		assert_int_equal(write(in, "x", 1), 1);
		busy_pid = 0;
		assert_int_equal(wait_exit(pid), 0);
		close(in);
		assert_int_equal(wait_exit(tracer), 0);
		s = look();
		assert_int_equal(s.done[0], 1);
		assert_int_equal(s.unfinished, 0);
		assert_int_equal(s.lost, 0);
	}
}

static void io_uring_counts_where_the_kernel_shows_it(void **state)
{
	struct seen s;

	(void)state;
	if (!can_trace("ebpf"))
		skip();
	run_async("ebpf", false, "uring", file, ROUNDS);
	s = look();
	if (!s.done[0]) {
		print_message("# the kernel has no tracepoints of io_uring\n");
		skip();
	}
	assert_int_equal(s.syncs, ROUNDS);
	assert_int_equal(s.lost + s.failed + s.unfinished, 0);
	expect_metrics(file, 0, 2 * ROUNDS, 2 * ROUNDS);
	run_async("ebpf", true, "uring", file, ROUNDS);
	expect_metrics(file, 0, 2 * ROUNDS, 2 * ROUNDS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_file_below_the_storage_counts_once_in_all_tracers, fresh, kill_busy),
		cmocka_unit_test_setup_teardown(
			a_device_counts_under_another_name, fresh, kill_busy),
		cmocka_unit_test_setup_teardown(another_file_does_not_count, fresh, kill_busy),
		cmocka_unit_test_setup_teardown(
			hostile_requests_confuse_no_tracer, fresh, kill_busy),
		cmocka_unit_test_setup_teardown(
			what_is_left_under_way_has_no_result, fresh, kill_busy),
		cmocka_unit_test_setup_teardown(
			events_taken_without_a_call_are_lost_and_told, fresh, kill_busy),
		cmocka_unit_test_setup_teardown(
			more_than_can_be_kept_is_lost_and_told, fresh, kill_busy),
		cmocka_unit_test_setup_teardown(
			what_was_under_way_before_is_not_recorded, fresh, kill_busy),
		cmocka_unit_test_setup_teardown(
			io_uring_counts_where_the_kernel_shows_it, fresh, kill_busy),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	patient_alarm(600);
	return cmocka_run_group_tests(tests, begin, finish);
}
