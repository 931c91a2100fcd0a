/* Questions in SQL: conditions spare reading but change no answer; nothing is written; what is
 * wrong is said; nothing runs for ever. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
/* cmocka wants those first */
#include <cmocka.h>

#include "ci/tests/query/drawn.h"
#include "ci/tests/scratch.h"
#include "diag/query/query.h"
#include "diag/query/source.h"
#include "diag/query/zones.h"

enum { RECORDS = 8000, LOGS = 3 };

static const int64_t first_ns = 1700000000000000000;
static char paths[LOGS][128];
static struct query_log logs[LOGS];

/* The first cell of the last row, as a number or a text, and how many rows there were. */
struct answer {
	int rows;
	long long number;
	char text[200];
};

static int take(void *ctx, int n, const struct query_cell *cells, struct err *e)
{
	struct answer *a = ctx;

	(void)e;
	assert_true(n > 0);
	a->rows++;
	a->number = cells->type == CELL_INT ? cells->number : 0;
	snprintf(a->text, sizeof(a->text), "%s", cells->type == CELL_TEXT ? cells->text : "");
	return 0;
}

static struct query *new_query(const struct query_spec *spec)
{
	struct query *q;
	struct err e = {.text = ""};

	assert_int_equal(query_new(spec, &q, &e), 0);
	return q;
}

static struct answer ask(struct query *q, const char *sql)
{
	struct answer a = {0};
	const struct query_sink sink = {.row = take, .ctx = &a};
	struct err e = {.text = ""};
	int rc = query_run(q, sql, &sink, &e);

	if (rc)
		fail_msg("%s: %s", sql, e.text);
	return a;
}

/* What is compared with what, by chance. With "+" before a column SQLite tells the table
 * nothing. */
static void condition(char *out, size_t size, const char *plus)
{
	static const char *const ops[] = {"=", "<", "<=", ">", ">="};
	const char *op = ops[draw(5)];
	const long long at_s = (long long)draw(16);

	switch (draw(17)) {
	case 0:
		snprintf(out, size, "%stime_ns %s %lld", plus, op,
			(long long)first_ns + at_s * 1000000000);
		break;
	case 1:
		snprintf(out, size, "%stime_ns %s %lld.5", plus, op, (long long)first_ns + at_s);
		break;
	case 2: snprintf(out, size, "%st %s %lld.25", plus, op, at_s); break;
	case 3: snprintf(out, size, "%st between %lld and %lld.5", plus, at_s, at_s + 1); break;
	case 4:
		snprintf(out, size, "%spid in (101, 104.0, 'x', null, 5000000000, -1)", plus);
		break;
	case 5: snprintf(out, size, "%stid %s %d", plus, op, 1100 + (int)draw(12)); break;
	case 6: snprintf(out, size, "%scall in ('fsync', 'read', 'nothing')", plus); break;
	case 7: snprintf(out, size, "%scall = 'FSYNC' collate nocase", plus); break;
	case 8: snprintf(out, size, "%sclass = 'write'", plus); break;
	case 9: snprintf(out, size, "%serrno is not null", plus); break;
	case 10: snprintf(out, size, "%serrno = 'EIO'", plus); break;
	case 11: snprintf(out, size, "%sresult %s %d", plus, op, -3 + (int)draw(6)); break;
	case 12: snprintf(out, size, "%sservice_ns %s %d", plus, op, 1 << draw(28)); break;
	case 13: snprintf(out, size, "%scell = %d", plus, (int)draw(3)); break;
	case 14: snprintf(out, size, "%sphase = '%s'", plus, draw(2) ? "during" : "after"); break;
	case 15: snprintf(out, size, "%snode %s 's1'", plus, op); break;
	default: snprintf(out, size, "%sowner in ('server', 'app')", plus); break;
	}
}

static void both(char *pushed, char *checked, size_t size)
{
	char one[200];
	uint64_t here = drawn_state;

	condition(one, sizeof(one), "");
	snprintf(pushed + strlen(pushed), size - strlen(pushed), " and %s", one);
	drawn_state = here;
	condition(one, sizeof(one), "+");
	snprintf(checked + strlen(checked), size - strlen(checked), " and %s", one);
}

static void test_conditions_change_nothing(void **state)
{
	static const char *const what[] = {"count(*), sum(time_ns % 1000003)",
		"count(*) || '|' || ifnull(sum(length(path) + length(thread)), 0)",
		"count(*) || '|' || ifnull(sum(offset % 1009), 0) || ifnull(max(peer), '')"};
	const struct query_spec spec = {.logs = logs, .n_logs = LOGS, .index_least = 1};
	const struct query_spec plain = {.logs = logs, .n_logs = LOGS, .no_index = true};
	struct query *with = new_query(&spec), *without = new_query(&plain);
	uint64_t read, passed;
	int found = 0;

	(void)state;
	for (int i = 0; i < 120; i++) {
		char pushed[1000] = "", checked[1000] = "", sql[1400];
		const char *select = what[draw(3)];
		struct answer a, b;

		for (uint64_t k = draw(3) + 1; k; k--)
			both(pushed, checked, sizeof(pushed));
		snprintf(sql, sizeof(sql), "select %s from events where 1%s", select, pushed);
		a = ask(with, sql);
		snprintf(sql, sizeof(sql), "select %s from events where 1%s", select, checked);
		b = ask(without, sql);
		if (a.number != b.number || strcmp(a.text, b.text) != 0)
			fail_msg("%s: %lld %s, not %lld %s", pushed, a.number, a.text, b.number,
				b.text);
		found += a.number > 0 || (*a.text && *a.text != '0');
	}
	assert_true(found > 20);
	query_counts(with, &read, &passed);
	assert_true(passed > 50);
	query_free(with);
	query_free(without);
}

/* Summed rows give what grouping the events gives, whatever columns are named. */
static void test_totals(void **state)
{
	static const char *const named[] = {"cell, call", "thread", "node, class, errno",
		"path, owner", "file, peer", "pid, tid, phase", "log, kind, process", "errno"};
	const struct query_spec spec = {.logs = logs, .n_logs = LOGS, .index_least = 1};
	struct query *q = new_query(&spec);

	(void)state;
	for (size_t i = 0; i < sizeof(named) / sizeof(named[0]); i++) {
		char events[400], totals[400], where[200] = "1";
		struct answer a, b;

		if (i % 2)
			condition(where, sizeof(where), "");
		if (strstr(where, "time_ns") || strstr(where, "t ") == where ||
			strstr(where, "service_ns") || strstr(where, "result"))
			snprintf(where, sizeof(where), "pid > 103");
		snprintf(events, sizeof(events),
			"select group_concat(x, ' ') from (select count(*) || ',' || "
			"ifnull(sum(bytes), 0) || ',' || sum(service_ns) || ',' || "
			"max(service_ns) x "
			"from events where %s group by %s order by x)",
			where, named[i]);
		snprintf(totals, sizeof(totals),
			"select group_concat(x, ' ') from (select sum(calls) || ',' || sum(bytes) "
			"|| ',' || sum(total_ns) || ',' || max(max_ns) x from totals where %s "
			"group by "
			"%s order by x)",
			where, named[i]);
		a = ask(q, events);
		b = ask(q, totals);
		assert_string_equal(a.text, b.text);
	}
	assert_int_equal(
		ask(q, "select sum(calls) from totals where second between 3 and 5").number,
		ask(q, "select count(*) from events where t >= 3 and t < 6").number);
	assert_int_equal(ask(q, "select sum(errors) from totals").number,
		ask(q, "select count(*) from events where errno is not null").number);
	assert_int_equal(ask(q, "select count(*) from totals").number, 1);
	/* Estimated within a power of two. */
	assert_int_equal(
		ask(q,
			"select t.p50_ns between e.p / 2 and e.p * 2 and t.p99_ns <= t.max_ns from "
			"totals t, (select percentile(service_ns, 50) p from events) e")
			.number,
		1);
	query_free(q);
}

/* SQLite makes a scan for each side of an OR, and tells by rowids which rows it has had. */
static void test_either(void **state)
{
	const struct query_spec spec = {.logs = logs, .n_logs = LOGS, .index_least = 1};
	struct query *q = new_query(&spec);
	int64_t n;

	(void)state;
	n = ask(q, "select sum(pid = 103 or call = 'fsync') from events").number;
	assert_true(n > 10);
	assert_int_equal(
		ask(q, "select count(*) from events where pid = 103 or call = 'fsync'").number, n);
	assert_int_equal(
		ask(q, "select sum(calls) from totals where pid = 103 or call = 'fsync'").number,
		n);
	assert_int_equal(
		ask(q,
			"select count(*) from (select distinct log, number from events "
			"where (pid = 103 and tid = 103) or (pid = 104 and call = 'read'))")
			.number,
		ask(q,
			"select sum((pid = 103 and tid = 103) or (pid = 104 and call = 'read')) "
			"from events")
			.number);
	query_free(q);
}

/* A source of three rows, numbered, that notes a problem; or of none, for a reason. */
struct made {
	int opened, at;
	bool fails;
	const struct query_ask *ask;
};

static bool made_has(void *ctx, const struct query_table *table)
{
	(void)ctx;
	return !strcmp(table->name, "requests");
}

static int made_open(void *ctx, const struct query_ask *want, void **rows, struct err *e)
{
	struct made *m = ctx;

	(void)e;
	m->opened++;
	m->at = 0;
	m->ask = want;
	want->note(want->ctx, "a log is missing");
	*rows = m;
	return 0;
}

static int made_next(void *rows, struct err *e)
{
	struct made *m = rows;

	if (m->fails)
		return err_set(e, -ENODATA, "no milk");
	return ++m->at <= 3 && !m->ask->stop(m->ask->ctx);
}

static void made_get(void *rows, int column, struct column_value *out)
{
	const struct made *m = rows;

	if (!strcmp(m->ask->table->columns[column].name, "number"))
		*out = (struct column_value){.type = VALUE_INT, .number = m->at};
}

static int64_t made_rowid(void *rows)
{
	return ((const struct made *)rows)->at;
}

static void made_close(void *rows)
{
	(void)rows;
}

/* Its rows are asked for when a query names its table, and only then; so are its problems. */
static void test_made_tables(void **state)
{
	struct made m = {0};
	const struct query_source source = {.ctx = &m,
		.has = made_has,
		.open = made_open,
		.next = made_next,
		.get = made_get,
		.rowid = made_rowid,
		.close = made_close};
	const struct query_spec spec = {.logs = logs, .n_logs = LOGS, .made = &source};
	struct query *q = new_query(&spec);
	const struct query_sink sink = {.row = take, .ctx = &(struct answer){0}};
	struct err e;
	size_t n = 0;

	(void)state;
	assert_int_equal(ask(q, "select count(*) from processes").number > 0, 1);
	assert_int_equal(m.opened, 0);
	while (query_problem(q, n))
		n++;
	assert_int_equal(ask(q, "select sum(number) from requests").number, 6);
	assert_int_equal(ask(q, "select count(*) from requests where number > 1").number, 2);
	assert_int_equal(m.opened, 2);
	assert_string_equal(query_problem(q, n), "a log is missing");
	assert_null(query_problem(q, n + 1));
	m.fails = true;
	assert_int_equal(query_run(q, "select number from requests", &sink, &e), -ENODATA);
	assert_string_equal(e.text, "no milk");
	assert_int_equal(query_run(q, "select * from failures", &sink, &e), -ENODATA);
	assert_int_equal(query_run(q, "delete from requests", &sink, &e), -EINVAL);
	query_free(q);
}

static void test_tables(void **state)
{
	static const char *const columns[] = {"number", "fault", NULL};
	const struct query_spec spec = {.logs = logs, .n_logs = LOGS};
	struct query *q = new_query(&spec);
	json_t *rows = json_pack("[{s:i, s:s}, {s:i}]", "number", 1, "fault", "none", "number", 2);
	struct err e;

	(void)state;
	assert_int_equal(query_add_table(q, "cells", columns, rows, &e), 0);
	json_decref(rows);
	assert_int_equal(ask(q, "select count(*) from cells where fault is null").number, 1);
	assert_string_equal(
		ask(q,
			"select c.fault from events e join cells c on c.number = e.cell "
			"where e.cell = 1 limit 1")
			.text,
		"none");
	/* Each table can be read, and the types of records add up. */
	for (const struct query_table *t = query_tables; t->name; t++) {
		char sql[100];

		/* Requests are of runs: ci/tests/ship/ship.t. */
		snprintf(sql, sizeof(sql), "select * from %s", t->name);
		if (!t->made)
			ask(q, sql);
	}
	assert_int_equal(
		ask(q,
			"select (select count(*) from events) + (select count(*) from "
			"descriptors) + (select count(*) from processes) + (select count(*) "
			"from losses)")
			.number,
		LOGS * RECORDS);
	assert_true(ask(q, "select count(*) from files").number > 20);
	assert_true(ask(q, "select count(*) from threads").number > 10);
	assert_string_equal(ask(q,
				    "select percentile(value, 50) || '|' || percentile(value, 95) "
				    "from (select 1 value union all select 2 union all select 10 "
				    "union all select null)")
				    .text,
		"2.0|9.2");
	query_free(q);
}

static int refused(const char *sql, char why[1024])
{
	const struct query_spec spec = {.logs = logs, .n_logs = 1, .timeout_s = 0.05};
	const struct query_sink sink = {.row = take, .ctx = &(struct answer){0}};
	struct query *q = new_query(&spec);
	struct err e = {.text = ""};
	int rc = query_run(q, sql, &sink, &e);

	snprintf(why, 1024, "%s", e.text);
	query_free(q);
	return rc;
}

static void test_refused(void **state)
{
	static const char *const writes[] = {"delete from files", "create table x (y)",
		"insert into events (pid) values (1)", "drop view files", "attach 'x' as y",
		"pragma journal_mode = wal", "pragma writable_schema = 1", "vacuum into '/tmp/x'",
		"begin", "select load_extension('x')", "with a as (select 1) delete from files",
		"create temp view v as select 1", "detach main", "reindex", "analyze"};
	char why[1024];

	(void)state;
	for (size_t i = 0; i < sizeof(writes) / sizeof(writes[0]); i++)
		assert_int_equal(refused(writes[i], why), -EINVAL);
	assert_non_null(strstr(why, "only SELECT is allowed"));
	assert_int_equal(refused("select pid from evnts", why), -EINVAL);
	assert_non_null(strstr(why, "no such table: evnts"));
	assert_int_equal(refused("select pid,, tid from events", why), -EINVAL);
	assert_non_null(strstr(why, "at character 12, ', tid from events'"));
	assert_int_equal(refused("select \"read\" from events", why), -EINVAL);
	assert_int_equal(refused("select 1; select 2", why), -EINVAL);
	assert_int_equal(refused(" ; ", why), -EINVAL);
	assert_int_equal(refused("select percentile(pid, 101) from events", why), -EINVAL);
	assert_int_equal(refused("select zeroblob(2000000000)", why), -EINVAL);
}

/* Both SQLite's own loops and those of the tables end at the time limit. */
static void test_never_ends(void **state)
{
	char why[1024];

	(void)state;
	assert_int_equal(refused("with recursive n(i) as (select 1 union all select i + 1 from n) "
				 "select count(*) from n",
				 why),
		-ETIME);
	assert_non_null(strstr(why, "--timeout"));
	assert_int_equal(refused("select count(*) from events a, events b, events c "
				 "where a.service_ns + b.service_ns + c.service_ns < 0",
				 why),
		-ETIME);
}

static void test_interrupted(void **state)
{
	volatile sig_atomic_t interrupted = 1;
	const struct query_spec spec = {.logs = logs, .n_logs = 1, .interrupted = &interrupted};
	struct answer a = {0};
	const struct query_sink sink = {.row = take, .ctx = &a};
	struct query *q = new_query(&spec);
	struct err e;

	(void)state;
	assert_int_equal(query_run(q, "select pid from events", &sink, &e), -EINTR);
	interrupted = 0;
	assert_int_equal(query_run(q, "select 1", &sink, &e), 0); /* it can continue */
	query_free(q);
}

static int only_two(void *ctx, int n, const struct query_cell *cells, struct err *e)
{
	(void)n, (void)cells, (void)e;
	return ++*(int *)ctx == 2;
}

static void test_reader_has_enough(void **state)
{
	const struct query_spec spec = {.logs = logs, .n_logs = 1};
	int rows = 0;
	const struct query_sink sink = {.row = only_two, .ctx = &rows};
	struct query *q = new_query(&spec);
	struct err e;

	(void)state;
	assert_int_equal(query_run(q, "select pid from events", &sink, &e), 1);
	assert_int_equal(rows, 2);
	query_free(q);
}

/* What stands before the damage is asked, what is behind it is told; once, with its place. */
static void test_problems(void **state)
{
	struct query_log bad[3] = {{.path = paths[0], .name = "cut", .in_attempt = true},
		{.path = "/nowhere/log", .name = "gone", .in_attempt = true}, logs[1]};
	const struct query_spec spec = {.logs = bad, .n_logs = 3};
	struct query *q;
	struct err e;

	(void)state;
	assert_int_equal(drawn_log(paths[0], 1000, false, &e), 0);
	q = new_query(&spec);
	ask(q, "select 1 from events a, losses b limit 1");
	assert_int_equal(
		ask(q, "select count(*) from events where log in ('cut', 'gone')").number > 800, 1);
	assert_non_null(strstr(query_problem(q, 0), "is cut short at byte"));
	assert_non_null(strstr(query_problem(q, 0), "after 1000 records"));
	assert_non_null(strstr(query_problem(q, 1), "/nowhere/log"));
	assert_null(query_problem(q, 2));
	query_free(q);
	bad[1].in_attempt = false; /* a log by itself must be there */
	assert_int_equal(query_new(&spec, &q, &e), -ENOENT);
}

static int setup(void **state)
{
	struct err e;

	if (make_dir(state) || setenv("XDG_CACHE_HOME", dir, 1))
		return -1;
	for (int i = 0; i < LOGS; i++) {
		snprintf(paths[i], sizeof(paths[i]), "%s/%d", dir, i);
		logs[i] = (struct query_log){.path = paths[i], .name = paths[i], .node = "s1"};
		if (drawn_log(paths[i], RECORDS, true, &e))
			return -1;
	}
	logs[1].node = "c1";
	logs[1].in_attempt = true;
	logs[1].cell = 1;
	logs[1].attempt = 7;
	logs[1].start_ns = first_ns + 2000000000;
	logs[1].onset_ns = first_ns + 5000000000;
	logs[1].offset_ns = first_ns + 9000000000;
	logs[1].spec = (struct stream_spec){.owner = OWNER_APP, .clock_offset_ns = 300000000};
	logs[2] = logs[1];
	logs[2].path = logs[2].name = paths[2];
	logs[2].cell = 2;
	logs[2].onset_ns = logs[2].offset_ns = 0;
	logs[2].spec.owner = OWNER_DAEMON;
	return 0;
}

/* A condition without COLLATE: SQLite 3.40 makes IN of two of them and forgets it, with any
 * index. */
static void condition_to_join(char *out, size_t size, const char *plus)
{
	condition(out, size, plus);
	if (strstr(out, "collate"))
		snprintf(out, size, "%stid = 1103", plus);
}

/* SQLite may ask for the rows of each side, and knows by their numbers which ones it has had. */
static void test_either_condition(void **state)
{
	const struct query_spec spec = {.logs = logs, .n_logs = LOGS, .index_least = 1};
	const struct query_spec plain = {.logs = logs, .n_logs = LOGS, .no_index = true};
	struct query *with = new_query(&spec), *without = new_query(&plain);
	char pushed[900], checked[900], one[200], other[200];
	uint64_t here;
	int found = 0;

	(void)state;
	for (int i = 0; i < 300; i++) {
		const bool totals = draw(4) == 0;
		const char *from = totals ? "sum(calls) from totals" : "count(*) from events";

		here = drawn_state;
		for (int plus = 0; plus < 2; plus++) {
			drawn_state = here;
			if (totals) {
				static const char *const of[] = {"%serrno = 'EIO'",
					"%scall = 'read'", "%stid = 1103", "%ssecond < 3",
					"%snode = 's1'"};

				snprintf(one, sizeof(one), of[draw(5)], plus ? "+" : "");
				snprintf(other, sizeof(other), of[draw(5)], plus ? "+" : "");
			} else {
				condition_to_join(one, sizeof(one), plus ? "+" : "");
				condition_to_join(other, sizeof(other), plus ? "+" : "");
			}
			snprintf(plus ? checked : pushed, sizeof(pushed),
				"select %s where %s or %s", from, one, other);
		}
		if (ask(with, pushed).number != ask(without, checked).number)
			fail_msg("%s: %lld rows; %s: %lld", pushed, ask(with, pushed).number,
				checked, ask(without, checked).number);
		found += ask(with, pushed).number > 0;
	}
	assert_true(found > 100);
	query_free(with);
	query_free(without);
}

/* Asks a log of this kind, which has no records. */
static void expect_no_calls(
	const char *tracer, uint32_t how, bool in_run, const char *sql, const char *why)
{
	char path[300];
	struct query_log log = {.path = path, .name = "s1/fs.trace", .in_attempt = in_run};
	const struct query_spec spec = {.logs = &log, .n_logs = 1};
	struct log_writer *w;
	struct query *q;
	struct err e;

	snprintf(path, sizeof(path), "%s/of-a-kind", dir);
	unlink(path);
	assert_int_equal(log_writer_new(path, tracer, &w, &e), 0);
	log_writer_how(w, how);
	assert_int_equal(log_writer_end(w, 0, &e), 0);
	q = new_query(&spec);
	assert_null(query_no_calls(q));
	ask(q, sql);
	if (why)
		assert_string_equal(query_no_calls(q), why);
	else
		assert_null(query_no_calls(q));
	query_free(q);
}

/* Logs of sums and of readings have no calls; an answer about calls says so. */
static void test_logs_without_calls(void **state)
{
	static const char events[] = "select count(*) from events",
			  totals[] = "select sum(calls) from totals";

	(void)state;
	expect_no_calls("ebpf", LOG_SUMS, true, events,
		"s1/fs.trace is no log of calls, but of sums (table 'sums'), and no other was "
		"read: run the scenario with tracer = { \"ebpf\", mode = \"events\" }");
	expect_no_calls("ebpf", LOG_SUMS, false, totals,
		"s1/fs.trace is no log of calls, but of sums (table 'sums'), and no other was "
		"read: trace with --mode events");
	expect_no_calls("sampler", 0, false, events,
		"s1/fs.trace is no log of calls, but of readings (table 'readings'), and no other "
		"was read: trace with --mode events");
	expect_no_calls("ebpf", LOG_SUMS, true, "select count(*) from sums", NULL);
	expect_no_calls("ebpf", LOG_EVENTS, true, events, NULL);
	expect_no_calls("ebpf", LOG_FLOW, true, events, NULL);
	expect_no_calls("ptrace", 0, true, events, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_conditions_change_nothing),
		cmocka_unit_test(test_either_condition),
		cmocka_unit_test(test_totals),
		cmocka_unit_test(test_either),
		cmocka_unit_test(test_tables),
		cmocka_unit_test(test_made_tables),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_never_ends),
		cmocka_unit_test(test_interrupted),
		cmocka_unit_test(test_reader_has_enough),
		cmocka_unit_test(test_problems),
		cmocka_unit_test(test_logs_without_calls),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, setup, remove_dir);
}
