/* Errors of servers that applications never saw: planted in a recorded run, whose own calls all
 * succeeded or were answers. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "ci/tests/patience.h"
#include "ci/tests/scratch.h"
#include "diag/record/log.h"
#include "harness/base/file.h"
#include "harness/judging/findings.h"
#include "harness/judging/run_tables.h"

static char run[160], server[200], application[200], whole[200];

static void copy(const char *from, const char *to)
{
	struct err e;
	size_t size;
	char *text;

	assert_int_equal(file_read(from, &text, &size, &e), 0);
	assert_int_equal(file_write_atomic(to, 0600, text, size, &e), 0);
	free(text);
}

/* Rewrites the log 'whole' as 'log'. Its n-th call named 'name' that moved bytes gets the result;
 * 'twice': the call is repeated at once, with success. */
static void plant(const char *log, const char *name, int n, int64_t result, bool twice)
{
	const uint32_t nr = (uint32_t)call_number("x86_64", name);
	const struct record *r;
	struct log_writer *w;
	struct log_reader *from;
	struct err e;
	int rc;

	unlink(log);
	assert_int_equal(log_reader_new(whole, &from, &e), 0);
	assert_int_equal(log_writer_new(log, "ebpf", &w, &e), 0);
	log_writer_how(w, log_reader_head(from)->how);
	while ((rc = log_next(from, &r, &e)) == 1) {
		struct record out = *r;

		if (r->type == RECORD_END)
			continue;
		if (r->type == RECORD_CALL && r->call.nr == nr && r->call.result > 0 && !--n) {
			out.call.result = result;
			out.call.service_ns = twice ? r->call.service_ns / 3 : r->call.service_ns;
			assert_int_equal(log_write(w, &out, &e), 0);
			out = *r;
			out.call.start_ns += r->call.service_ns / 2;
			out.call.service_ns /= 2;
			if (!twice)
				continue;
		}
		assert_int_equal(log_write(w, &out, &e), 0);
	}
	assert_int_equal(rc, 0);
	log_reader_free(from);
	assert_int_equal(log_writer_end(w, 0, &e), 0);
	assert_true(n <= 0);
}

struct found {
	int n;
	char text[1024], evidence[1024];
};

static int take(void *ctx, const struct finding *f, struct err *e)
{
	struct found *found = ctx;

	(void)e;
	found->n++;
	snprintf(found->text, sizeof(found->text), "%s", f->text);
	snprintf(found->evidence, sizeof(found->evidence), "%s", f->evidence);
	return 0;
}

static int count(void *ctx, int n, const struct query_cell *cells, struct err *e)
{
	(void)n, (void)cells, (void)e;
	++*(int *)ctx;
	return 0;
}

/* 'rows' of the table, and what the finding says; the evidence is two calls. */
static struct found look(const char *finding, int *rows)
{
	const struct query_sink sink = {.row = count, .ctx = rows};
	const struct run_tables_spec of = {.cell = 0};
	const struct query_spec spec = {.slot_ns = 0};
	struct found found = {0};
	struct run_tables *tables;
	struct query *q;
	struct store *s;
	struct err e;
	int shown = 0;
	const struct query_sink evidence = {.row = count, .ctx = &shown};

	assert_int_equal(store_open(run, &s, &e), 0);
	assert_int_equal(run_tables_new(s, &of, &tables, &e), 0);
	store_close(s);
	assert_int_equal(run_tables_query(tables, &spec, &q, &e), 0);
	*rows = 0;
	if (query_run(q, "select * from failures where errno = 'EIO'", &sink, &e) ||
		findings_search(q, finding, take, &found, &e))
		fail_msg("%s", e.text);
	if (found.n) {
		assert_int_equal(query_run(q, found.evidence, &evidence, &e), 0);
		if (shown != 2)
			fail_msg("%d rows: %s", shown, found.evidence);
	}
	query_free(q);
	run_tables_free(tables);
	return found;
}

static void keep(const char *log)
{
	copy(log, whole);
}

static void test_swallowed(void **state)
{
	struct found f;
	int rows;

	(void)state;
	keep(server);
	plant(server, "pread64", 5, -EIO, false);
	f = look("swallowed-error", &rows);
	assert_int_equal(rows, 1);
	assert_int_equal(f.n, 1);
	assert_non_null(strstr(f.text,
		"pread64 failed on s3 with EIO, for a READ request of c1 (by thread); "
		"there read of dd ("));
	copy(whole, server);
}

/* As recorded, servers fail only with answers, such as a missing attribute. */
static void test_healthy(void **state)
{
	int rows;

	(void)state;
	assert_int_equal(look("swallowed-error", &rows).n, 0);
	assert_int_equal(rows, 0);
}

static void test_done_again(void **state)
{
	int rows;

	(void)state;
	keep(server);
	plant(server, "pread64", 5, -EIO, true);
	assert_int_equal(look("swallowed-error", &rows).n, 0);
	assert_int_equal(rows, 1);
	copy(whole, server);
}

/* All reads of the application fail, including those whose server calls failed. */
static void test_errors_that_applications_saw(void **state)
{
	int rows;

	(void)state;
	keep(server);
	plant(server, "pread64", 5, -EIO, false);
	keep(application);
	for (int n = 1; n <= 200; n++) {
		int before = 0;

		plant(application, "read", n, -EIO, false);
		if (!look("swallowed-error", &rows).n)
			break;
		before = n;
		assert_true(before < 200);
	}
	assert_int_equal(rows, 1);
	copy(whole, application);
}

/* Without flows the table does not exist, and the finding is skipped. */
static void test_no_flows(void **state)
{
	const struct query_spec spec = {0};
	struct found found = {0};
	int rows = 0;
	const struct query_sink sink = {.row = count, .ctx = &rows};
	struct query *q;
	struct err e;

	(void)state;
	assert_int_equal(query_new(&spec, &q, &e), 0);
	assert_int_equal(query_run(q, "select count(*) from failures", &sink, &e), -ENODATA);
	assert_non_null(strstr(e.text, "failures: only runs that were recorded with flows"));
	assert_int_equal(query_run(q, "select count(*) from requests", &sink, &e), -ENODATA);
	assert_int_equal(findings_search(q, "swallowed-error", take, &found, &e), -ENODATA);
	assert_int_equal(findings_search(q, NULL, take, &found, &e), 0);
	assert_int_equal(query_run(q, "select 1", &sink, &e), 0);
	query_free(q);
}

static int setup(void **state)
{
	char command[300];

	if (make_dir(state) || setenv("XDG_CACHE_HOME", dir, 1))
		return 1;
	snprintf(run, sizeof(run), "%s/tiny", dir);
	snprintf(server, sizeof(server), "%s/cells/0002.1/s3.fs.trace", run);
	snprintf(application, sizeof(application), "%s/cells/0002.1/c1.app.trace", run);
	snprintf(whole, sizeof(whole), "%s/whole", dir);
	snprintf(command, sizeof(command), "tar -xzf ci/tests/data/lab-flow.tar.gz -C %s", dir);
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_healthy),
		cmocka_unit_test(test_swallowed),
		cmocka_unit_test(test_done_again),
		cmocka_unit_test(test_errors_that_applications_saw),
		cmocka_unit_test(test_no_flows),
	};

	patient_alarm(600);
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("failures", tests, setup, remove_dir);
}
