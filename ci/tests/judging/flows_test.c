/* The logs of an attempt as flows: missing data is named, according to each log's own
 * description. */
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
#include "diag/record/log.h"
#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/clock.h"
#include "harness/base/file.h"
#include "harness/base/jget.h"
#include "harness/judging/flows.h"
#include "harness/judging/run_logs.h"
#include "harness/judging/writings.h"

static char root[] = "/tmp/culprit-flows-test-XXXXXX";
static unsigned runs;

static int setup(void **state)
{
	(void)state;
	return !mkdtemp(root);
}

static int teardown(void **state)
{
	(void)state;
	return file_remove_tree(root, NULL);
}

static void write_log(const char *folder, const char *name, uint32_t how, const char *mark)
{
	auto_free char *path = alloc_format("%s/cells/0001.1/%s", folder, name);
	struct record rec = {
		.type = RECORD_MARK, .mark = {.start_ns = clock_real_ns(), .text = mark}};
	struct log_writer *w;
	struct err e;

	assert_int_equal(log_writer_new(path, "ebpf", &w, &e), 0);
	log_writer_how(w, how);
	if (mark)
		assert_int_equal(log_write(w, &rec, &e), 0);
	assert_int_equal(log_writer_end(w, 0, &e), 0);
}

static const int64_t start_ns = 1700000000000000000;

/* A run of one server and one client, without an application's log. 'extra': further members of
 * the attempt's detail. */
static struct store *make_run_with(
	uint32_t server, uint32_t client, const char *mark, json_t *extra)
{
	auto_free char *folder = alloc_format("%s/%u", root, ++runs),
		       *cells = alloc_format("%s/cells/0001.1", folder);
	auto_json json_t *detail = json_pack("{s:{s:[{s:s, s:s, s:i, s:i}], s:[{s:s, s:s, s:i}]}}",
		"reduction", "servers", "name", "s1", "address", "192.0.2.1", "port", 49152,
		"clock_offset_ns", 0, "clients", "name", "c1", "mount", "/mnt/fs",
		"clock_offset_ns", 0);
	struct attempt_row row = {.cell = 1,
		.number = 1,
		.outcome = OUTCOME_CONFIRMED,
		.start_ns = start_ns,
		.seconds = 50,
		.detail = detail};
	struct store *s;
	struct err e;

	json_object_update(detail, extra);
	assert_int_equal(store_create(folder, &s, &e), 0);
	assert_int_equal(store_set(s, "file_system_type", "glusterfs", &e), 0);
	assert_int_equal(file_mkdirs(cells, 0700, &e), 0);
	write_log(folder, "s1.fs.trace", server, NULL);
	write_log(folder, "c1.fs.trace", client, mark);
	assert_int_equal(store_put_cell(s, 1, "recording", &e), 0);
	assert_int_equal(store_put_attempt(s, &row, &e), 0);
	return s;
}

static struct store *make_run(uint32_t server, uint32_t client, const char *mark, bool recorded)
{
	auto_json json_t *extra = recorded ? json_pack("{s:{}}", "recording") : json_object();

	return make_run_with(server, client, mark, extra);
}

/* The missing data in such a run. */
static void look(uint32_t server, uint32_t client, const char *mark, const char *missing)
{
	struct store *s = make_run(server, client, mark, true);
	const struct flow_sink sink = {0};
	auto_json json_t *rows = NULL;
	char why[512] = "";
	struct flows *f;
	struct err e;

	assert_int_equal(store_rows(s, ROWS_TRACED, 0, &rows, &e), 0);
	assert_int_equal(json_array_size(rows), 1);
	if (flows_new(s, json_array_get(rows, 0), NULL, &sink, &f, &e))
		fail_msg("%s", e.text);
	assert_int_equal(flow_run(flows_flow(f), &e), 0);
	assert_false(flows_complete(f, why, sizeof(why)));
	if (!strstr(why, missing))
		fail_msg("'%s' does not say '%s'", why, missing);
	flows_free(f);
	store_close(s);
}

static void test_missing_data_is_named(void **state)
{
	const uint32_t all = LOG_FLOW | LOG_HEADS;

	(void)state;
	look(LOG_EVENTS, all, NULL, "s1.fs.trace is not a flow log");
	look(all, LOG_FLOW, NULL, "c1.fs.trace is a flow log without heads");
	look(all, all | LOG_RING, NULL, "no client's call reached a server");
	look(all, all, "on", "no client's call reached a server whose calls are recorded");
	look(all, all, "on filter calls=disk",
		"c1.fs.trace was recorded with limits: on filter calls=disk");
	look(all, all, "off", "recorded with limits: off");
	/* Older logs have no description; then their content decides. */
	look(0, 0, NULL, "no client's call reached a server");
}

static void test_a_run_has_its_applications(void **state)
{
	struct store *s = make_run(LOG_FLOW, LOG_FLOW, NULL, false);
	const struct flow_sink sink = {0};
	auto_json json_t *rows = NULL;
	struct flows *f;
	struct err e;

	(void)state;
	assert_int_equal(store_rows(s, ROWS_TRACED, 0, &rows, &e), 0);
	assert_int_equal(flows_new(s, json_array_get(rows, 0), NULL, &sink, &f, &e), 0);
	assert_int_equal(flow_run(flows_flow(f), &e), 0);
	assert_non_null(strstr(flows_trouble(f, 0), "c1.app.trace"));
	assert_null(flows_trouble(f, 1));
	flows_free(f);
	store_close(s);
}

/* ---- what a flight recorder wrote ---- */

static json_t *traced_row(struct store *s)
{
	auto_json json_t *rows = NULL;
	struct err e;

	assert_int_equal(store_rows(s, ROWS_TRACED, 0, &rows, &e), 0);
	return json_incref(json_array_get(rows, 0));
}

/* The scenario's tracer recorded sums, the recorder flows: twice. */
static struct store *make_recorded(json_t *recorder)
{
	auto_json json_t *extra = json_pack("{s:o}", "recorder", recorder);
	struct store *s = make_run_with(LOG_SUMS, LOG_SUMS, NULL, extra);
	const size_t n = json_array_size(jget(recorder, "written"));
	struct err e;

	for (size_t i = 1; i <= n; i++) {
		auto_free char *folder = alloc_format(
			"%s/cells/0001.1/recorder.%zu", store_folder(s), i);
		auto_free char *server = alloc_format("recorder.%zu/s1.fs.trace", i),
			       *client = alloc_format("recorder.%zu/c1.fs.trace", i);

		assert_int_equal(file_mkdirs(folder, 0700, &e), 0);
		write_log(store_folder(s), server, LOG_FLOW | LOG_HEADS | LOG_RING, NULL);
		write_log(store_folder(s), client, LOG_FLOW | LOG_HEADS | LOG_RING, NULL);
	}
	return s;
}

static json_t *recorder_detail(int64_t first_ns, int64_t second_ns)
{
	return json_pack("{s:f, s:[{s:s, s:I}, {s:s, s:I}], s:[]}", "ring_s", 30.0, "written",
		"why", "5 s after the onset", "at_ns", (json_int_t)first_ns, "why",
		"the end of the fault", "at_ns", (json_int_t)second_ns, "troubles");
}

static void test_writings_of_a_recorder(void **state)
{
	const int64_t s = 1000000000;
	struct store *store = make_recorded(recorder_detail(start_ns + 15 * s, start_ns + 40 * s));
	auto_json json_t *row = traced_row(store), *first = NULL, *second = NULL, *last = NULL,
			 *none = NULL;
	const struct flow_sink sink = {0};
	char why[512] = "";
	struct flows *f;
	struct err e;
	bool never;

	(void)state;
	assert_int_equal(writing_count(row, &never), 2);
	assert_false(never);
	first = writing_row(row, 1);
	second = writing_row(row, 2);
	assert_null(writing_row(row, 0));
	assert_null(writing_row(row, 3));
	/* The first begins with the cell, though the ring is longer. */
	assert_float_equal(jget_real(jget(first, "written"), "from_s"), 0, 1e-6);
	assert_float_equal(jget_real(jget(first, "written"), "to_s"), 15, 1e-6);
	assert_float_equal(jget_real(jget(second, "written"), "from_s"), 10, 1e-6);
	assert_int_equal(writing_choose(row, 0, &last, &e), 0);
	assert_true(json_equal(last, second));
	assert_int_equal(writing_choose(row, 3, &none, &e), -ENOENT);
	assert_null(none);
	assert_string_equal(
		e.text, "cell 1: its flight recorder wrote 2 times, so there is no recording 3");
	/* Its own logs are read: they are flow logs without flows. */
	assert_int_equal(flows_new(store, second, NULL, &sink, &f, &e), 0);
	assert_int_equal(flow_run(flows_flow(f), &e), 0);
	assert_false(flows_complete(f, why, sizeof(why)));
	assert_string_equal(why, "no client's call reached a server whose calls are recorded");
	assert_null(flows_trouble(f, 0)); /* a recorder does not log applications */
	flows_free(f);
	assert_int_equal(flows_new(store, row, NULL, &sink, &f, &e), 0);
	assert_int_equal(flow_run(flows_flow(f), &e), 0);
	assert_false(flows_complete(f, why, sizeof(why)));
	assert_non_null(strstr(why, "s1.fs.trace is not a flow log"));
	flows_free(f);
	store_close(store);
}

static void test_queries_see_it(void **state)
{
	struct store *store = make_recorded(recorder_detail(start_ns + 1, start_ns + 2));
	const struct query_log *logs;
	struct run_logs *r;
	size_t n;
	struct err e;

	(void)state;
	assert_int_equal(run_logs_new(store, 1, 0, &r, &e), 0);
	logs = run_logs_list(r, &n);
	assert_int_equal(n, 6);
	assert_string_equal(logs[0].name, "cells/0001.1/c1.fs.trace");
	assert_string_equal(logs[2].name, "cells/0001.1/recorder.1/c1.fs.trace");
	assert_string_equal(logs[5].name, "cells/0001.1/recorder.2/s1.fs.trace");
	assert_string_equal(logs[5].node, "s1");
	assert_int_equal(logs[5].spec.owner, OWNER_SERVER);
	assert_int_equal(logs[5].cell, 1);
	run_logs_free(r);
	assert_int_equal(run_logs_new(store, 0, 2, &r, &e), 0);
	logs = run_logs_list(r, &n);
	assert_int_equal(n, 2);
	assert_string_equal(logs[0].name, "cells/0001.1/recorder.2/c1.fs.trace");
	run_logs_free(r);
	assert_int_equal(run_logs_new(store, 0, 3, &r, &e), -EINVAL);
	assert_non_null(strstr(e.text, "has no recording 3 of a flight recorder"));
	store_close(store);
}

static void test_a_recorder_that_never_wrote(void **state)
{
	struct store *store = make_recorded(json_pack("{s:f, s:[], s:{s:i, s:i}, s:[]}", "ring_s",
		30.0, "written", "trigger", "asked", 31, "held", 0, "troubles"));
	auto_json json_t *row = traced_row(store), *same = NULL;
	auto_free char *why = written_never(row);
	struct err e;
	bool never;

	(void)state;
	assert_int_equal(writing_count(row, &never), 0);
	assert_true(never);
	assert_string_equal(why,
		"its flight recorder never wrote: its trigger was called 31 times and was true 0 "
		"times");
	assert_int_equal(writing_choose(row, 0, &same, &e), 0);
	assert_true(same == row);
	store_close(store);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_missing_data_is_named),
		cmocka_unit_test(test_a_run_has_its_applications),
		cmocka_unit_test(test_writings_of_a_recorder),
		cmocka_unit_test(test_queries_see_it),
		cmocka_unit_test(test_a_recorder_that_never_wrote),
	};

	patient_alarm(600);
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("flows", tests, setup, teardown);
}
