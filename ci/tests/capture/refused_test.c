/*
 * Tests that calls refused by seccomp filters (ci/tests/helpers/filtered.c) are in the logs of both
 * tracers, with the result that the program saw.
 */
#include "ci/tests/capture/tracing.h"

enum { NO_FILTERS = 77 };

static char prog[4096];
static bool has_ebpf;

static int begin(void **state)
{
	struct err why;

	if (setup(state) || !built("helpers/filtered", prog))
		return -1;
	has_ebpf = ebpf_allowed(&why);
	return 0;
}

/* Each call occurs once, with its result; 'unfinished' has none. */
struct refused {
	uint32_t nr;
	bool unfinished;
	int64_t result;
	unsigned seen;
};

static void take(const struct record_call *c, const struct fdtable *fds, struct refused *r)
{
	const struct fd_state *s = fdtable_get(fds, c->pid, (int32_t)c->args[0]);

	for (; r->nr; r++)
		if (r->nr == c->nr) {
			r->seen++;
			assert_int_equal(c->unfinished, r->unfinished);
			assert_int_equal(c->result, r->result);
		}
	if (c->nr == SYS_unlinkat)
		assert_non_null(strstr(c->path, "/kept"));
	if (c->nr == SYS_write && c->result == 2)
		assert_true(s && strstr(s->now.path, "/kept")); /* close was refused */
}

static void look(struct refused *refused)
{
	struct fdtable *fds = fdtable_new();
	const struct record *rec;
	struct log_reader *r;
	struct err e;
	int rc;

	assert_int_equal(log_reader_new(log_path, &r, &e), 0);
	while ((rc = log_next(r, &rec, &e)) == 1) {
		assert_int_equal(fdtable_feed(fds, rec), 0);
		/* Descriptor 40 is not recorded as closed while the process lives. */
		if (rec->type == RECORD_FD && rec->fd.fd == 40)
			assert_true(rec->fd.open);
		if (rec->type == RECORD_CALL &&
			(rec->call.nr != SYS_close || (int)rec->call.args[0] == 40))
			take(&rec->call, fds, refused);
	}
	assert_int_equal(rc, 0);
	log_reader_free(r);
	fdtable_free(fds);
	for (; refused->nr; refused++)
		if (refused->seen != 1)
			fail_msg("%s was seen %u times", call_name(ARCH, refused->nr),
				refused->seen);
}

static void refused_by(const char *tracer)
{
	struct refused refused[] = {{SYS_unlinkat, false, -EPERM, 0}, {SYS_pwrite64, false, 0, 0},
		{SYS_close, false, -EPERM, 0}, {SYS_getpgid, true, 0, 0}, {SYS_getppid, true, 0, 0},
		{SYS_getsid, true, 0, 0}, {0}};
	int code;

	tracer_name = tracer;
	code = wait_exit(trace((const char *const[]){"--", prog, dir, NULL}, NULL));
	if (code == NO_FILTERS)
		skip();
	assert_int_equal(code, 0);
	look(refused);
}

static void ebpf_has_calls_that_a_filter_refuses(void **state)
{
	(void)state;
	if (!has_ebpf)
		skip();
	refused_by("ebpf");
}

static void ptrace_has_calls_that_a_filter_refuses(void **state)
{
	(void)state;
	refused_by("ptrace");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(ebpf_has_calls_that_a_filter_refuses, fresh),
		cmocka_unit_test_setup(ptrace_has_calls_that_a_filter_refuses, fresh),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	patient_alarm(120);
	return cmocka_run_group_tests(tests, begin, teardown);
}
