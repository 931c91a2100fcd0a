/*
 * Tests in both tracers that each call is recorded with the file that the kernel uses, although no
 * call of its thread has changed the descriptor (ci/tests/helpers/descriptors.c).
 */
#include "ci/tests/capture/tracing.h"

#include <linux/magic.h>
#include <sys/vfs.h>

#include "diag/record/calls.h"

enum { NO_SUCH_CALLS = 77 };

static char prog[4096];
static bool has_ebpf;

static const char *const both[] = {"ebpf", "ptrace", NULL};

static int begin(void **state)
{
	struct err why;

	if (setup(state) || !built("helpers/descriptors", prog))
		return -1;
	has_ebpf = ebpf_allowed(&why);
	return 0;
}

static bool is_write(uint32_t nr)
{
	nr &= ~RECORD_ASYNC_NR;
	return nr == SYS_write || nr == SYS_pwrite64;
}

/* Checks the writes in the log: those of N bytes must be on a file named wN. */
static unsigned check_writes(void)
{
	struct fdtable *fds = fdtable_new();
	const struct record *rec;
	struct log_reader *r;
	unsigned n = 0;
	struct err e;
	int rc;

	assert_int_equal(log_reader_new(log_path, &r, &e), 0);
	while ((rc = log_next(r, &rec, &e)) == 1) {
		const struct record_call *c = &rec->call;
		const struct fd_state *s;
		char name[16];

		assert_int_equal(fdtable_feed(fds, rec), 0);
		if (rec->type == RECORD_END)
			assert_int_equal(rec->end.lost, 0);
		if (rec->type != RECORD_CALL)
			continue;
		s = fdtable_get(fds, c->pid, (int32_t)c->args[0]);
		/* The helper's reads and writes of one byte must be on a pipe. (A sanitizer reads
		 * /proc/PID/maps, sometimes only its last byte.) */
		if (c->result == 1 && (c->nr == SYS_read || c->nr == SYS_write)) {
			if (!s ||
				(strncmp(s->now.path, "pipe:", 5) != 0 &&
					strncmp(s->now.path, "/proc/", 6) != 0))
				fail_msg("one byte is on '%s'", s ? s->now.path : "(closed)");
			continue;
		}
		if (!is_write(c->nr))
			continue;
		snprintf(name, sizeof(name), "/w%d", (int)c->result);
		if (!s || !strstr(s->now.path, name))
			fail_msg("a write to '%s' is on '%s'", name + 1,
				s ? s->now.path : "(closed)");
		n++;
	}
	assert_int_equal(rc, 0);
	log_reader_free(r);
	fdtable_free(fds);
	return n;
}

/* The number of unseen activities of a kind in the log. */
static uint64_t not_seen(uint32_t what)
{
	const struct record *rec;
	struct log_reader *r;
	uint64_t n = 0;
	struct err e;

	assert_int_equal(log_reader_new(log_path, &r, &e), 0);
	while (log_next(r, &rec, &e) == 1)
		if (rec->type == RECORD_UNSEEN && rec->unseen.what == what)
			n += rec->unseen.count;
	log_reader_free(r);
	return n;
}

static void expect(const char *what, unsigned by_ebpf, unsigned by_ptrace)
{
	for (const char *const *tracer = both; *tracer; tracer++) {
		bool ebpf = !strcmp(*tracer, "ebpf");
		int code;

		if (ebpf && !has_ebpf) {
			print_message("# no ebpf tracer here\n");
			continue;
		}
		unlink(log_path);
		tracer_name = *tracer;
		code = wait_exit(trace((const char *const[]){"--", prog, what, dir, NULL}, NULL));
		if (code == NO_SUCH_CALLS)
			skip();
		assert_int_equal(code, 0);
		/* Kernels before 6.4 do not show eBPF the operations of a ring either. */
		ebpf = ebpf && !not_seen(UNSEEN_RINGS);
		assert_int_equal(check_writes(), ebpf ? by_ebpf : by_ptrace);
	}
}

static void a_table_may_be_shared_with_another_process(void **state)
{
	(void)state;
	expect("shared", 9, 9);
}

static void a_thread_may_have_a_separate_table(void **state)
{
	(void)state;
	expect("private", 10, 10);
}

static void a_descriptor_may_be_passed(void **state)
{
	(void)state;
	expect("passed", 2, 2);
}

static void a_descriptor_may_change_inside_a_call(void **state)
{
	(void)state;
	expect("replaced", 2, 2);
}

/* ptrace does not see the writes of a ring. */
static void a_ring_opens_and_closes(void **state)
{
	(void)state;
	expect("ring", 8, 4);
}

static void a_ring_without_calls_opens_and_closes(void **state)
{
	(void)state;
	expect("polled", 7, 3);
}

static void a_ring_without_calls_needs_no_leader(void **state)
{
	(void)state;
	expect("leaderless", 7, 3);
}

/* Likewise in sums: the bytes written by calls and requests. */
static void a_ring_without_calls_is_summed_up(void **state)
{
	const struct record *rec;
	struct log_reader *r;
	uint64_t bytes = 0;
	struct err e;
	int code;

	(void)state;
	if (!has_ebpf)
		skip();
	tracer_name = "ebpf";
	code = wait_exit(trace(
		(const char *const[]){"--mode", "sums", "--", prog, "polled", dir, NULL}, NULL));
	if (code == NO_SUCH_CALLS)
		skip();
	assert_int_equal(code, 0);
	if (not_seen(UNSEEN_RINGS))
		skip();
	assert_int_equal(log_reader_new(log_path, &r, &e), 0);
	while (log_next(r, &rec, &e) == 1)
		if (rec->type == RECORD_SUM && rec->sum.class == CALL_WRITE &&
			rec->sum.fd_class == FD_CLASS_DISK)
			bytes += rec->sum.bytes;
	log_reader_free(r);
	assert_int_equal(bytes, 2 * 41 + 4 * 42 + 43);
}

static void run_by(const char *tracer, const char *what)
{
	int code;

	if (!strcmp(tracer, "ebpf") && !has_ebpf)
		skip();
	unlink(log_path);
	tracer_name = tracer;
	code = wait_exit(trace((const char *const[]){"--", prog, what, dir, NULL}, NULL));
	if (code == NO_SUCH_CALLS)
		skip();
	assert_int_equal(code, 0);
}

static void shared_mappings_of_files_are_counted(void **state)
{
	struct statfs fs;

	(void)state;
	if (statfs(dir, &fs) || fs.f_type == TMPFS_MAGIC)
		skip(); /* the file cannot be waited for */
	run_by("ptrace", "mapped");
	assert_int_equal(not_seen(UNSEEN_MAPPINGS), 2);
	run_by("ebpf", "mapped");
	assert_int_equal(not_seen(UNSEEN_MAPPINGS), 2);
}

static void unseen_rings_are_counted(void **state)
{
	(void)state;
	run_by("ptrace", "ring");
	assert_true(not_seen(UNSEEN_RINGS) > 8);
	assert_int_equal(not_seen(UNSEEN_MAPPINGS), 0);
	run_by("ebpf", "ring");
	if (!not_seen(UNSEEN_RINGS))
		assert_int_equal(not_seen(UNSEEN_REQUESTS), 5); /* opens and closes */
}

static void changes_without_a_call_are_counted(void **state)
{
	(void)state;
	for (const char *const *tracer = both; *tracer; tracer++) {
		run_by(*tracer, "passed");
		assert_int_equal(not_seen(UNSEEN_CHANGES), 0);
		run_by(*tracer, "shared");
		assert_int_equal(not_seen(UNSEEN_CHANGES), 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_table_may_be_shared_with_another_process, fresh),
		cmocka_unit_test_setup(a_thread_may_have_a_separate_table, fresh),
		cmocka_unit_test_setup(a_descriptor_may_be_passed, fresh),
		cmocka_unit_test_setup(a_descriptor_may_change_inside_a_call, fresh),
		cmocka_unit_test_setup(a_ring_opens_and_closes, fresh),
		cmocka_unit_test_setup(a_ring_without_calls_opens_and_closes, fresh),
		cmocka_unit_test_setup(a_ring_without_calls_needs_no_leader, fresh),
		cmocka_unit_test_setup(a_ring_without_calls_is_summed_up, fresh),
		cmocka_unit_test_setup(shared_mappings_of_files_are_counted, fresh),
		cmocka_unit_test_setup(unseen_rings_are_counted, fresh),
		cmocka_unit_test_setup(changes_without_a_call_are_counted, fresh),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	patient_alarm(300);
	return cmocka_run_group_tests(tests, begin, teardown);
}
