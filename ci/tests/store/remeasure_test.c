/* A recorded run measured again: from its traces alone, all or nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants those four first */
#include <arpa/inet.h>
#include <cmocka.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ci/tests/scratch.h"
#include "diag/record/calls.h"
#include "diag/record/log.h"
#include "harness/base/file.h"
#include "harness/scenario/plan.h"
#include "harness/judging/reduce.h"
#include "harness/judging/remeasure.h"

#define SECOND 1000000000LL

enum { SERVERS = 3, SECONDS = 8, CELLS = 3 };

static const int64_t start_ns = 1700000000 * SECOND;
static char folder[96];
static char *servers[] = {"s1", "s2", "s3"};

/* Whoever has most in its disk's queue, and how much is the evidence. */
static const char deepest[] =
	"return { name = 'deepest', summary = 's',\n"
	"  diagnose = function(run)\n"
	"    local worst, most = nil, -1\n"
	"    local queues = run.series.disk_queue_s or {}\n"
	"    for _, s in ipairs(run.servers) do\n"
	"      local depth = queues[s] and queues[s].mean:sum() or 0 / 0\n"
	"      if depth > most then worst, most = s, depth end\n"
	"    end\n"
	"    return { { metric = 'any', indicted = { worst }, abstain = worst == nil, evidence = "
	"{ most = most } } }\n"
	"  end }\n";

static void write_text(const char *name, const char *text)
{
	char path[160];
	struct err e;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	assert_int_equal(file_write_atomic(path, 0600, text, strlen(text), &e), 0);
}

static struct log_writer *begin(
	const char *attempt, const char *node, const char *file, const char *tracer)
{
	struct log_writer *w;
	char path[192];
	struct err e;

	snprintf(path, sizeof(path), "%s/%s/%s.%s", folder, attempt, node, file);
	if (log_writer_new(path, tracer, &w, &e))
		fail_msg("%s", e.text);
	return w;
}

static void end(struct log_writer *w)
{
	struct err e;

	assert_int_equal(log_writer_end(w, 0, &e), 0);
}

static void put(struct log_writer *w, struct record r)
{
	struct err e;

	assert_int_equal(log_write(w, &r, &e), 0);
}

/* Reads of 1 ms, and a queue that is 'depth' deep. */
static void write_server(const char *attempt, const char *node, double depth)
{
	struct log_writer *trace = begin(attempt, node, "fs.trace", "ebpf"),
			  *samples = begin(attempt, node, "fs.samples", "sampler");

	for (int second = 0; second < SECONDS; second++) {
		struct record sum = {.type = RECORD_SUM,
			.sum = {.start_ns = start_ns + second * SECOND,
				.pid = 7,
				.class = CALL_READ,
				.fd_class = FD_CLASS_DISK,
				.selected = true,
				.count = 5,
				.bytes = 500,
				.total_ns = 5000000,
				.max_ns = 1000000}};
		struct record reading = {.type = RECORD_READING,
			.reading = {.start_ns = start_ns + second * SECOND,
				.what = READING_DISK_QUEUE,
				.count = 1,
				.sum = depth,
				.max = depth}};

		put(trace, sum);
		put(samples, reading);
	}
	end(trace);
	end(samples);
}

/* A client's reads from s1: responses of 100 bytes, and one transfer of 20000 in each second. */
static void write_client(const char *attempt)
{
	struct log_writer *w = begin(attempt, "c1", "fs.trace", "ptrace");
	struct record open = {.type = RECORD_FD,
		.fd = {.start_ns = start_ns,
			.pid = 9,
			.fd = 6,
			.open = true,
			.kind = FD_SOCKET,
			.path = "socket:[7]",
			.sock_type = SOCK_STREAM}};
	struct sockaddr_in *to = (struct sockaddr_in *)&open.fd.remote;
	struct record call = {.type = RECORD_CALL,
		.call = {.pid = 9, .tid = 9, .service_ns = 1000000, .offset = -1}};

	*to = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(24007)};
	inet_pton(AF_INET, "10.0.0.1", &to->sin_addr);
	put(w, open);
	for (int i = 0; i < 2 * SECONDS; i++) {
		call.call.start_ns = start_ns + i * SECOND / 2;
		call.call.nr = (uint32_t)call_number("x86_64", "read");
		call.call.args[0] = 6;
		call.call.args[2] = (uint64_t)(call.call.result = i % 2 ? 20000 : 100);
		put(w, call);
		call.call.start_ns += SECOND / 4;
		call.call.nr = (uint32_t)call_number("x86_64", "epoll_wait");
		call.call.args[0] = 3;
		call.call.result = 1;
		put(w, call);
	}
	end(w);
}

static json_t *describe(void)
{
	json_t *list = json_array();
	char address[32];

	for (int i = 0; i < SERVERS; i++) {
		snprintf(address, sizeof(address), "10.0.0.%d", i + 1);
		json_array_append_new(list,
			json_pack("{s:s, s:s, s:i, s:s, s:i, s:b}", "name", servers[i], "address",
				address, "port", 24007, "storage", "/srv/brick", "clock_offset_ns",
				0, "sampled", 1));
	}
	return json_pack("{s:o, s:[{s:s, s:s, s:i, s:b}], s:{s:i, s:i}}", "servers", list,
		"clients", "name", "c1", "mount", "/mnt/fs", "clock_offset_ns", 0, "sampled", 0,
		"bulk", "above", 16408, "header", 24);
}

/* One cell as a run leaves it. */
static void record(struct store *s, size_t cell)
{
	static const char *const files[] = {"s1.fs.trace", "s1.fs.samples", "s2.fs.trace",
		"s2.fs.samples", "s3.fs.trace", "s3.fs.samples", "c1.fs.trace", "c1.app.trace"};
	json_t *cluster = describe(), *detail = json_pack("{s:O}", "reduction", cluster);
	struct attempt_row row = {.cell = cell,
		.number = 1,
		.outcome = OUTCOME_CONFIRMED,
		.start_ns = start_ns,
		.seconds = SECONDS,
		.detail = detail};
	struct reduce_spec spec = {.cluster = cluster, .start_ns = start_ns, .seconds = SECONDS};
	struct reduction *r;
	char attempt[32], full[160], path[160];
	struct err e;

	snprintf(attempt, sizeof(attempt), "cells/%04zu.1", cell);
	snprintf(full, sizeof(full), "%s/%s", folder, attempt);
	assert_int_equal(file_mkdirs(full, 0700, &e), 0);
	for (int i = 0; i < SERVERS; i++)
		write_server(attempt, servers[i], i == 1 ? 6 : 0.5);
	write_client(attempt);
	end(begin(attempt, "c1", "app.trace", "ptrace"));
	spec.folder = full;
	if (reduce_traces(&spec, &r, &e) || store_put_attempt(s, &row, &e) ||
		reduce_store(r, s, row.id, &e))
		fail_msg("%s", e.text);
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", attempt, files[i]);
		if (store_put_file(s, row.id, path, &e))
			fail_msg("%s", e.text);
	}
	reduce_free(r);
	json_decref(detail);
	json_decref(cluster);
}

static struct judge *judge_of(struct store *s)
{
	char path[128];
	json_t *list, *names = json_pack("[s, s, s]", servers[0], servers[1], servers[2]);
	struct judge *j;
	struct err e;

	snprintf(path, sizeof(path), "%s/deepest.lua", dir);
	list = json_pack("[{s:s, s:{}}]", "name", path, "params");
	if (judge_new(list, names, s, &j, &e))
		fail_msg("%s", e.text);
	json_decref(list);
	json_decref(names);
	return j;
}

/* A run of one training cell, one fault and the control, in its own folder. */
static struct store *a_run(const char *name)
{
	struct scenario *sc = NULL;
	struct store *s;
	struct plan *p;
	char path[128];
	struct err e;

	snprintf(folder, sizeof(folder), "%s/%s", dir, name);
	snprintf(path, sizeof(path), "%s/scenario.lua", dir);
	write_text("deepest.lua", deepest);
	write_text("scenario.lua",
		"return { name = 't', workloads = { 'ddw' }, faults = { 'none', 'disk-hog' }, "
		"detectors = { 'always-healthy' },"
		" training = { workloads = { 'ddw' } } }");
	if (scenario_load(path, &sc, &e) || plan_new(sc, SERVERS, 1, NULL, &p, &e) ||
		store_create(folder, &s, &e) || store_put_plan(s, sc, p, servers, &e) ||
		store_set(s, "judged_seconds", "999", &e))
		fail_msg("%s", e.text);
	assert_int_equal(p->n, CELLS);
	for (size_t cell = 1; cell <= CELLS; cell++)
		record(s, cell);
	plan_free(p);
	scenario_free(sc);
	return s;
}

static int list_series(void *ctx, const char *metric, const char *server,
	const struct sample *samples, size_t n, struct err *e)
{
	(void)e;
	for (size_t i = 0; i < n; i++)
		json_array_append_new(ctx,
			json_sprintf("%s %s %d %llu %.17g %.17g %llu", metric, server,
				samples[i].second, (unsigned long long)samples[i].count,
				samples[i].sum_s, samples[i].max_s,
				(unsigned long long)samples[i].bytes));
	return 0;
}

/* All that is measured and said, to be compared. */
static json_t *all_of(struct store *s)
{
	json_t *samples = json_array(), *events = json_array(), *verdicts = NULL, *rows;
	struct err e;

	for (int64_t attempt = 1; attempt <= CELLS; attempt++) {
		assert_int_equal(store_samples(s, attempt, list_series, samples, &e), 0);
		assert_int_equal(store_rows(s, ROWS_EVENTS, attempt, &rows, &e), 0);
		json_array_append_new(events, rows);
	}
	assert_int_equal(store_rows(s, ROWS_VERDICTS, 0, &verdicts, &e), 0);
	return json_pack("[o, o, o]", samples, events, verdicts);
}

/* The samples that begin so. */
static size_t samples_of(const json_t *all, const char *start)
{
	size_t n = 0, i;
	json_t *one;

	json_array_foreach(json_array_get(all, 0), i, one)
		n += !strncmp(json_string_value(one), start, strlen(start));
	return n;
}

static int again(struct store *s, struct err *e)
{
	struct judge *j = judge_of(s);
	size_t cells = 0;
	int rc = remeasure_check(s, e);

	if (!rc)
		rc = remeasure_run(s, folder, false, j, &cells, e);
	if (!rc)
		assert_int_equal(cells, CELLS);
	judge_free(j);
	return rc;
}

static void remeasuring_adds_metrics_of_newer_versions(void **state)
{
	struct store *s = a_run("older");
	struct sample less[] = {{METRIC_DREAD, 0, 0, 1, 1, 1, 1}};
	json_t *whole, *now, *row;
	struct err e;
	size_t i;

	(void)state;
	if (again(s, &e))
		fail_msg("%s", e.text);
	whole = all_of(s);
	assert_int_equal(json_array_size(json_array_get(whole, 0)),
		CELLS * (SERVERS * SECONDS * 2 + SECONDS * 2));
	assert_int_equal(samples_of(whole, "ncread s1 "), CELLS * SECONDS);
	assert_int_equal(samples_of(whole, "ncbulk s1 "), CELLS * SECONDS);
	json_array_foreach(json_array_get(whole, 2), i, row)
		if (!strcmp(json_string_value(json_object_get(row, "detector")), "deepest"))
			assert_string_equal(json_string_value(json_array_get(
						    json_object_get(json_object_get(row, "verdict"),
							    "indicted"),
						    0)),
				"s2");
	for (int64_t attempt = 1; attempt <= CELLS; attempt++) {
		assert_int_equal(store_drop(s, "series", attempt, &e), 0);
		assert_int_equal(store_put_samples(s, attempt, servers, less, 1, &e), 0);
	}
	row = json_pack("{s:s, s:[s]}", "metric", "any", "indicted", "s3");
	assert_int_equal(store_put_verdict(s, 2, "gone", row, &e), 0);
	json_decref(row);
	store_close(s);
	assert_int_equal(store_open(folder, &s, &e), 0);
	if (again(s, &e))
		fail_msg("%s", e.text);
	now = all_of(s);
	assert_true(json_equal(whole, now));
	json_decref(now);
	json_decref(whole);
	store_close(s);
}

static void append(const char *name, const char *text)
{
	char path[192];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	f = fopen(path, "a");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void damage_changes_nothing(void **state)
{
	struct store *s = a_run("damaged");
	json_t *before, *after;
	char path[192];
	struct err e;

	(void)state;
	assert_int_equal(again(s, &e), 0);
	before = all_of(s);
	append("cells/0003.1/s2.fs.samples", "x");
	assert_int_equal(again(s, &e), -EBADMSG);
	assert_non_null(strstr(e.text, "cell 3: its file 'cells/0003.1/s2.fs.samples'"));
	snprintf(path, sizeof(path), "%s/cells/0003.1/s2.fs.samples", folder);
	unlink(path);
	assert_int_equal(again(s, &e), -EBADMSG);
	assert_non_null(strstr(e.text, "missing"));
	after = all_of(s);
	assert_true(json_equal(before, after));
	json_decref(after);
	json_decref(before);
	store_close(s);
}

/* What goes wrong only after the look: the last trace cannot be read, the first two cells have been
 * written. */
static void a_trace_that_fails_late_undoes_what_was_done(void **state)
{
	struct store *s = a_run("late");
	json_t *before, *after;
	struct judge *j;
	size_t cells = 0;
	struct err e;

	(void)state;
	assert_int_equal(again(s, &e), 0);
	for (int64_t attempt = 1; attempt <= CELLS; attempt++)
		assert_int_equal(store_drop(s, "series", attempt, &e), 0);
	before = all_of(s);
	append("cells/0003.1/s3.fs.trace", "no record");
	j = judge_of(s);
	assert_int_not_equal(remeasure_run(s, folder, false, j, &cells, &e), 0);
	judge_free(j);
	assert_int_equal(cells, 0);
	after = all_of(s);
	assert_int_equal(json_array_size(json_array_get(after, 0)), 0);
	assert_true(json_equal(before, after));
	json_decref(after);
	json_decref(before);
	store_close(s);
}

static void a_run_without_the_data_is_refused_with_a_reason(void **state)
{
	struct attempt_row row = {.cell = 1, .number = 2, .outcome = OUTCOME_CONFIRMED};
	struct store *s = a_run("refused");
	char packed[160];
	struct err e;

	(void)state;
	snprintf(packed, sizeof(packed), "%s/packed", dir);
	assert_int_equal(store_pack(s, packed, false, &e), 0);
	assert_int_equal(store_set(s, "measure", "runtime", &e), 0);
	assert_int_equal(remeasure_check(s, &e), -EINVAL);
	assert_non_null(strstr(e.text, "run times"));
	assert_int_equal(store_set(s, "measure", "verdicts", &e), 0);
	assert_int_equal(store_spoil(s, 1, 1, "for the test", &e), 0);
	assert_int_equal(store_put_attempt(s, &row, &e), 0);
	assert_int_equal(remeasure_check(s, &e), -EINVAL);
	assert_non_null(strstr(e.text, "cell 1 is of an older version, which did not keep"));
	store_close(s);
	assert_int_equal(store_open(packed, &s, &e), 0);
	assert_int_equal(remeasure_check(s, &e), -EINVAL);
	assert_non_null(strstr(e.text, "is a corpus"));
	store_close(s);
}

/* 'make FOLDER': FOLDER/run, with traces, and the detector FOLDER/deepest.lua, for readings.t. */
int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(remeasuring_adds_metrics_of_newer_versions),
		cmocka_unit_test(damage_changes_nothing),
		cmocka_unit_test(a_trace_that_fails_late_undoes_what_was_done),
		cmocka_unit_test(a_run_without_the_data_is_refused_with_a_reason),
	};

	if (argc == 3 && !strcmp(argv[1], "make")) {
		struct store *s;
		struct err e;
		int rc;

		snprintf(dir, sizeof(dir), "%s", argv[2]);
		s = a_run("run");
		rc = store_set(s, "servers", "[\"s1\", \"s2\", \"s3\"]", &e)
			?: store_set(s, "detectors", "[{\"name\": \"always-healthy\"}]", &e);
		store_close(s);
		return rc != 0;
	}
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
