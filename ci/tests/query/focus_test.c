/* A focus changes no answer: it is what the same conditions, written into the SQL, would give.
 * Slots of totals; parameters; what is wrong is found without running it. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
/* cmocka wants those first */
#include <cmocka.h>

#include <pthread.h>

#include "ci/tests/query/drawn.h"
#include "ci/tests/scratch.h"
#include "diag/query/query.h"
#include "harness/base/alloc.h"
#include "harness/base/auto.h"

enum { RECORDS = 6000, LOGS = 2 };

static char paths[LOGS][128];
static struct query_log logs[LOGS];

static int take(void *ctx, int n, const struct query_cell *cells, struct err *e)
{
	(void)e;
	assert_int_equal(n, 1);
	*(long long *)ctx = cells->type == CELL_INT ? cells->number
		: cells->type == CELL_REAL          ? (long long)(cells->real * 1000)
						    : -1;
	return 0;
}

static long long ask(const struct query_spec *spec, const char *sql)
{
	long long answer = -2;
	const struct query_sink sink = {.row = take, .ctx = &answer};
	struct err e = {.text = ""};
	struct query *q;

	assert_int_equal(query_new(spec, &q, &e), 0);
	if (query_run(q, sql, &sink, &e))
		fail_msg("%s: %s", sql, e.text);
	query_free(q);
	return answer;
}

static void test_focus_is_a_condition(void **state)
{
	static const struct {
		struct query_focus focus;
		const char *where; /* the same in SQL; '+': SQLite tells the table nothing */
	} cases[] = {
		{{0}, "1"},
		{{.in_time = true, .from_ns = 2000000000, .to_ns = 5000000000},
			"+t >= 2 and +t < 5"},
		{{.in_time = true, .from_ns = 3000000000}, "+t >= 3"},
		{{.call = "fsync"}, "+call = 'fsync'"},
		{{.class = "read"}, "+class = 'read'"},
		{{.thread = "name3"}, "+thread = 'name3'"},
		{{.path = "data/1"}, "(instr(path, 'data/1') or instr(path2, 'data/1'))"},
		{{.id = 101}, "(+pid = 101 or +tid = 101)"},
		{{.failed = true}, "errno || '' is not null"},
		{{.node = "s2"}, "node || '' = 's2'"},
		{{.in_time = true,
			 .from_ns = 1000000000,
			 .to_ns = 9000000000,
			 .class = "write",
			 .thread = "name1",
			 .path = "/data"},
			"+t >= 1 and +t < 9 and +class = 'write' and +thread = 'name1' and "
			"(instr(path, '/data') or instr(path2, '/data'))"},
	};
	long long all = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct query_spec with = {.logs = logs, .n_logs = LOGS, .index_least = 1},
				  without = {.logs = logs, .n_logs = LOGS, .no_index = true};
		char sql[500];
		long long n;

		with.focus = cases[i].focus;
		snprintf(sql, sizeof(sql), "select count(*) from events where %s", cases[i].where);
		n = ask(&without, sql);
		all = i ? all : n;
		assert_true(n > 0 && (i == 0 || n < all));
		assert_int_equal(ask(&with, "select count(*) from events"), n);
		assert_int_equal(ask(&with, "select sum(calls) from totals"), n);
		snprintf(sql, sizeof(sql), "select sum(service_ns) from events where %s",
			cases[i].where);
		assert_int_equal(
			ask(&with, "select sum(total_ns) from totals"), ask(&without, sql));
	}
}

static void test_slots(void **state)
{
	struct query_spec spec = {.logs = logs, .n_logs = LOGS};
	const char *by_second = "select count(distinct slot) * 1000 + min(slot % 1000000000) + "
				"(select count(distinct second) from totals) from totals";
	long long seconds;

	(void)state;
	seconds = ask(&spec, "select count(distinct second) from totals");
	assert_int_equal(ask(&spec, by_second), seconds * 1001); /* a slot is a second */
	spec.slot_ns = 250000000;
	assert_true(ask(&spec, "select count(distinct slot) from totals") > 2 * seconds);
	assert_int_equal(ask(&spec, "select count(*) from totals where slot % 250000000"), 0);
	assert_int_equal(ask(&spec,
				 "select sum(calls) from totals where slot between 500000000 and "
				 "1250000000"),
		ask(&spec, "select count(*) from events where t >= 0.5 and t < 1.5"));
}

static void test_extent(void **state)
{
	struct query_spec spec = {.logs = logs, .n_logs = LOGS, .index_least = 1};
	struct query_extent x, y;
	struct query *q;
	struct err e;

	(void)state;
	assert_int_equal(query_new(&spec, &q, &e), 0);
	assert_int_equal(query_extent(q, &x, &e), 0);
	query_free(q);
	assert_true(x.records >= (uint64_t)ask(&spec, "select count(*) from events"));
	assert_true(x.first_ns / 1000000 <= ask(&spec, "select min(t) from events"));
	assert_true(x.last_ns / 1000000 >= ask(&spec, "select max(t) from events"));
	spec.focus = (struct query_focus){
		.in_time = true, .from_ns = 2000000000, .to_ns = 4000000000};
	assert_int_equal(query_new(&spec, &q, &e), 0);
	assert_int_equal(query_extent(q, &y, &e), 0);
	query_free(q);
	assert_int_equal((long long)y.records, ask(&spec, "select count(*) from events"));
	assert_true(y.first_ns >= 2000000000 && y.last_ns < 4000000000);
}

static void test_parameters(void **state)
{
	const struct query_param params[] = {{.name = ":n", .type = PARAM_INT, .number = 7},
		{.name = ":half", .type = PARAM_REAL, .real = .5},
		{.name = ":text", .type = PARAM_TEXT, .text = "it's"}, {.name = ":none"}, {0}};
	const struct query_spec spec = {.logs = logs, .n_logs = LOGS, .params = params};
	struct err e = {.text = ""};
	struct query *q;
	int at;

	(void)state;
	assert_int_equal(
		ask(&spec, "select :n + (:none is null) + length(:text) + cast(:half * 4 as int)"),
		14);
	assert_int_equal(query_new(&spec, &q, &e), 0);
	assert_int_equal(query_check(q, "select :m", &at, &e), -EINVAL);
	assert_non_null(strstr(e.text, "':m'"));
	assert_int_equal(query_check(q, "select ?", &at, &e), -EINVAL);
	assert_int_equal(query_check(q, "select pid,, tid from events", &at, &e), -EINVAL);
	assert_int_equal(at, 11);
	assert_int_equal(query_check(q, "select pid from events", &at, &e), 0);
	assert_int_equal(at, -1);
	query_free(q);
}

static bool at_once(void *ctx)
{
	return ++*(int *)ctx > 3;
}

/* Who no longer wants the answer is asked while a query runs. */
static void test_unwanted(void **state)
{
	int asked = 0;
	const struct query_spec spec = {
		.logs = logs, .n_logs = LOGS, .unwanted = at_once, .ctx = &asked};
	long long n;
	const struct query_sink sink = {.row = take, .ctx = &n};
	struct err e;
	struct query *q;

	(void)state;
	assert_int_equal(query_new(&spec, &q, &e), 0);
	assert_int_equal(query_run(q,
				 "with recursive n(i) as (select 1 union all select i + 1 from n) "
				 "select count(*) from n",
				 &sink, &e),
		-EINTR);
	assert_true(asked > 3);
	query_free(q);
}

static void *in_a_thread(void *arg)
{
	const struct query_spec spec = {.logs = logs, .n_logs = LOGS, .index_least = 1};
	long long *sum = arg;

	for (int i = 0; i < 3; i++)
		*sum += ask(&spec, "select count(*) from events where errno is not null");
	return NULL;
}

/* A page asks in several threads, of which each may be the one that makes the index. */
static void test_threads(void **state)
{
	const struct query_spec plain = {.logs = logs, .n_logs = LOGS, .no_index = true};
	const long long failed = ask(&plain, "select count(*) from events where errno is not null");
	auto_free char *cache = alloc_format("%s/culprit", dir);
	pthread_t threads[6];
	long long sums[6] = {0};

	(void)state;
	assert_int_equal(file_remove_tree(cache, NULL), 0);
	for (int i = 0; i < 6; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, in_a_thread, &sums[i]), 0);
	for (int i = 0; i < 6; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < 6; i++)
		assert_int_equal(sums[i], 3 * failed);
}

static int setup(void **state)
{
	struct err e;

	if (make_dir(state))
		return -1;
	setenv("XDG_CACHE_HOME", dir, 1);
	for (int i = 0; i < LOGS; i++) {
		snprintf(paths[i], sizeof(paths[i]), "%s/log%d", dir, i);
		if (drawn_log(paths[i], RECORDS, true, &e))
			return -1;
		logs[i] = (struct query_log){.path = paths[i],
			.name = paths[i],
			.node = i ? "s2" : "s1",
			.in_attempt = true,
			.cell = 1,
			.attempt = 1,
			.start_ns = 1700000000000000000};
	}
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_focus_is_a_condition),
		cmocka_unit_test(test_slots),
		cmocka_unit_test(test_extent),
		cmocka_unit_test(test_parameters),
		cmocka_unit_test(test_unwanted),
		cmocka_unit_test(test_threads),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, setup, remove_dir);
}
