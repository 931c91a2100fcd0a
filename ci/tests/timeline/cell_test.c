/*
 * A recorded cell on a timeline: requests of a made-up cluster (ci/tests/flow/cluster.h), whose
 * clocks are minutes apart, as slices that lie where they belong; windows, and runs that lack
 * something.
 *
 *     cell_test            the tests
 *     cell_test make RUN   makes the run that they use, for run.t
 *     cell_test hold RUN   so, of one cell, as a run that continues; each line on standard input is
 *                          another cell, its end the run's
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
/* cmocka needs those */
#include <cmocka.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "ci/tests/flow/cluster.h"
#include "ci/tests/scratch.h"
#include "diag/record/reading.h"
#include "harness/base/auto.h"
#include "harness/base/file.h"
#include "harness/base/jget.h"
#include "harness/store/lock.h"
#include "harness/timeline/cell.h"
#include "harness/timeline/cell_impl.h"

enum { CELL_CONTROL = 1, CELL_FAULT, CELL_CUT, CELL_EVENTS, CELL_SUMS, CELLS = CELL_SUMS };
enum { CLIENTS = 2, SERVERS = 3, MS = 1000000 };

static const struct cluster_spec made = {.seed = 7,
	.clients = CLIENTS,
	.servers = SERVERS,
	.apps = 2,
	.io_threads = 2,
	.ops = 40,
	.fan = 2,
	.offset_s = 120,
	.cut = CUT_BY_MARK,
	.bytes = 2000};
static const struct cluster_spec *making = &made;
static const char hostile[] = "<script>boom=1";

static void must(int rc, const struct err *e)
{
	if (rc) {
		fprintf(stderr, "%s\n", e->text);
		abort();
	}
}

static void node_name(int node, char *out, size_t size)
{
	snprintf(out, size, "%c%d", node < CLIENTS ? 'c' : 's',
		node < CLIENTS ? node + 1 : node - CLIENTS + 1);
}

/* ---- logs ---- */

static void write_name(struct log_writer *w, const char *name)
{
	struct record r = {.type = RECORD_PROCESS,
		.process = {.start_ns = cluster_epoch - 120 * 1000000000ll,
			.pid = 100,
			.tid = 911,
			.what = PROCESS_NAME,
			.name = name}};
	struct err e;

	must(log_write(w, &r, &e), &e);
}

/* Of a cell without calls: what the sampler would have written there as well. */
static void write_readings(struct log_writer *w, int64_t from_ns, double busy)
{
	struct err e;

	for (int s = 0; s < 5; s++) {
		const enum reading what[] = {READING_DISK_BUSY, READING_CPU_BUSY, READING_CPU_BUSY};

		for (int i = 0; i < 3; i++) {
			struct record r = {.type = RECORD_READING,
				.reading = {.start_ns = from_ns + s * 1000000000ll,
					.what = (uint16_t)what[i],
					.count = 1,
					.sum = busy,
					.max = busy}};

			if (i == 2) {
				r.reading.peer.ss_family = AF_UNIX;
				memcpy((char *)&r.reading.peer + sizeof(sa_family_t), "cpu0", 5);
			}
			must(log_write(w, &r, &e), &e);
		}
	}
}

static struct log_writer *open_log(const char *folder, const char *node, const char *file)
{
	auto_free char *path = alloc_format("%s/%s.%s", folder, node, file);
	struct log_writer *w;
	struct err e;

	must(log_writer_new(path, "ebpf", &w, &e), &e);
	return w;
}

static void end_log(struct log_writer *w)
{
	struct err e;

	must(log_writer_end(w, 0, &e), &e);
}

static void write_node(struct cluster *c, const char *folder, int node, int cell)
{
	const struct record *rec;
	char name[16];
	struct log_writer *w;
	struct err e;

	node_name(node, name, sizeof(name));
	w = open_log(folder, name, "fs.trace");
	write_name(w, node == CLIENTS ? hostile : "io");
	while (cell != CELL_SUMS && cluster_log_next(&c->logs[node], &rec, &e) == 1) {
		struct record one = *rec;

		if (cell == CELL_EVENTS && one.type == RECORD_FUSE)
			continue;
		if (cell == CELL_EVENTS && one.type == RECORD_CALL) {
			one.call.positioned = false;
			one.call.head_size = 0;
			one.call.head = NULL;
		}
		must(log_write(w, &one, &e), &e);
	}
	end_log(w);
	if (node < CLIENTS)
		end_log(open_log(folder, name, "app.trace"));
	w = open_log(folder, name, "fs.samples");
	write_readings(w, cluster_epoch + c->offset_ns[node], node == CLIENTS + 1 ? .9 : .1);
	end_log(w);
}

/* ---- the store ---- */

/* The run's measurement of clocks over SSH is wrong by some milliseconds. */
static json_t *describe(const struct cluster *c)
{
	json_t *servers = json_array(), *clients = json_array();
	char name[16], address[32];

	for (int i = 0; i < c->n_nodes; i++) {
		node_name(i, name, sizeof(name));
		snprintf(address, sizeof(address), "10.0.0.%d", i + 1);
		json_array_append_new(i < CLIENTS ? clients : servers,
			json_pack("{s:s, s:s, s:i, s:s, s:I, s:b}", "name", name, "address",
				address, "port", 24007, i < CLIENTS ? "mount" : "storage",
				i < CLIENTS ? "/mnt/fs" : "/srv", "clock_offset_ns",
				(json_int_t)(c->offset_ns[i] + (i - 2) * 3 * MS), "sampled", 1));
	}
	return json_pack("{s:{s:o, s:o}}", "reduction", "servers", servers, "clients", clients);
}

static void put_cell(const char *run, struct store *s, const struct cluster *c, int cell)
{
	const bool faulty = cell == CELL_FAULT;
	auto_free char *db = alloc_format("%s/run.db", run);
	auto_free char *sql = alloc_format(
		"INSERT INTO cell (number, training, workload, fault, victims) VALUES (%d, 0, "
		"'load', '%s', %s)",
		cell, faulty ? "disk-hog" : "none", faulty ? "'[\"s2\"]'" : "NULL");
	auto_free char *file = alloc_format("cells/%04d.1/s1.fs.trace", cell);
	json_t *detail = describe(c);
	struct attempt_row row = {.cell = (size_t)cell,
		.number = 1,
		.outcome = OUTCOME_CONFIRMED,
		.started_ns = cluster_epoch,
		.start_ns = cluster_epoch,
		.onset_ns = faulty ? cluster_epoch + 200 * MS : 0,
		.offset_ns = faulty ? cluster_epoch + 400 * MS : 0,
		.ended_ns = cluster_epoch + 5000ll * MS,
		.seconds = 5,
		.detail = detail};
	json_t *verdict = json_pack(
		"{s:[s], s:s, s:{s:f}}", "indicted", "s2", "metric", "any", "time_s", "s2", .3);
	sqlite3 *direct;
	struct err e;

	if (sqlite3_open(db, &direct) || sqlite3_exec(direct, sql, NULL, NULL, NULL))
		abort();
	sqlite3_close(direct);
	must(store_put_attempt(s, &row, &e), &e);
	must(store_put_file(s, row.id, file, &e), &e);
	if (faulty)
		must(store_put_verdict(s, row.id, "peer-robust", verdict, &e), &e);
	json_decref(verdict);
	json_decref(detail);
}

static void make_cell(const char *run, struct store *s, int cell, struct cluster *c)
{
	auto_free char *cells = alloc_format("%s/cells", run);
	auto_free char *folder = alloc_format("%s/%04d.1", cells, cell);
	struct stat st;

	cluster_make(c, making);
	mkdir(cells, 0700);
	mkdir(folder, 0700);
	for (int i = 0; i < c->n_nodes; i++)
		write_node(c, folder, i, cell);
	if (cell == CELL_CUT) {
		auto_free char *path = alloc_format("%s/s1.fs.trace", folder);

		if (stat(path, &st) || truncate(path, st.st_size * 2 / 3))
			abort();
	}
	put_cell(run, s, c, cell);
}

static struct store *make_run(const char *run, int cells, struct cluster *kept)
{
	struct cluster c;
	struct store *s;
	struct err e;

	must(store_create(run, &s, &e), &e);
	must(store_set(s, "file_system_type", "glusterfs", &e), &e);
	for (int i = 1; i <= cells; i++) {
		make_cell(run, s, i, &c);
		if (i == cells && kept)
			*kept = c;
		else
			cluster_clear(&c);
	}
	return s;
}

/* ---- the tests ---- */

static struct store *store;
static struct cluster truth;

static json_t *spans_of(int cell, const struct cell_options *o, struct cell_found *found)
{
	struct timeline *t;
	json_t *row, *spans = json_array(), *export, *r, *scope, *span;
	char *text;
	size_t size, i, k, n;
	FILE *f = alloc_text(&text, &size);
	struct err e;

	*found = (struct cell_found){0};
	must(cell_choose(store, cell, 0, &row, &e), &e);
	must(timeline_new(&t, &e), &e);
	must(cell_timeline(store, row, o, t, found, &e), &e);
	must(timeline_otlp(t, f, &e), &e);
	fclose(f);
	export = json_loads(text, 0, NULL);
	json_array_foreach(jget(export, "resourceSpans"), i, r)
		json_array_foreach(jget(r, "scopeSpans"), k, scope)
			json_array_foreach(jget(scope, "spans"), n, span)
				json_array_append(spans, span);
	json_decref(export);
	json_decref(row);
	free(text);
	timeline_free(t);
	return spans;
}

static const char *category(const json_t *span)
{
	json_t *a;
	size_t i;

	json_array_foreach(jget(span, "attributes"), i, a)
		if (!strcmp(jget_text(a, "key"), "culprit.category"))
			return jget_text(jget(a, "value"), "stringValue");
	return "";
}

static size_t count(const json_t *spans, const char *what)
{
	json_t *span;
	size_t i, n = 0;

	json_array_foreach(spans, i, span)
		n += !strcmp(category(span), what);
	return n;
}

static long long at(const json_t *span, const char *key)
{
	return atoll(jget_text(span, key));
}

static const json_t *parent(const json_t *spans, const json_t *span)
{
	const char *id = jget_text(span, "parentSpanId");
	json_t *other;
	size_t i;

	json_array_foreach(spans, i, other)
		if (id && !strcmp(jget_text(other, "spanId"), id))
			return other;
	return NULL;
}

/* Spans of 'what' whose cause is of category 'of' and around them, within the clocks' doubt. */
static size_t inside(const json_t *spans, const char *what, const char *of)
{
	json_t *span;
	size_t i, n = 0;

	json_array_foreach(spans, i, span) {
		const json_t *p = strcmp(category(span), what) ? NULL : parent(spans, span);

		n += p && !strcmp(category(p), of) &&
			at(span, "startTimeUnixNano") > at(p, "startTimeUnixNano") - MS &&
			at(span, "endTimeUnixNano") < at(p, "endTimeUnixNano") + MS;
	}
	return n;
}

static void requests_have_the_right_times(void **state)
{
	struct cell_found found;
	json_t *spans = spans_of(CELL_FAULT, &(struct cell_options){0}, &found);
	const size_t ops = CLIENTS * 2 * 40;

	(void)state;
	assert_string_equal(found.missing, "");
	assert_int_equal(found.requests, truth.n_truth);
	assert_int_equal(count(spans, "request"), truth.n_truth);
	assert_int_equal(count(spans, "FUSE request"), ops);
	assert_int_equal(count(spans, "application call"), ops);
	assert_int_equal(count(spans, "disk call"), truth.disk_calls);
	assert_int_equal(count(spans, "message"), 0);
	assert_int_equal(inside(spans, "FUSE request", "application call"), ops);
	assert_int_equal(inside(spans, "request", "FUSE request"), truth.n_truth);
	assert_int_equal(inside(spans, "request at the server", "request"), truth.n_truth);
	assert_int_equal(inside(spans, "disk call", "request at the server"), truth.disk_calls);
	assert_int_equal(found.n_nodes, CLIENTS + SERVERS);
	assert_string_equal(found.names[0], "s1");
	cell_found_clear(&found);
	json_decref(spans);
}

static void a_window_and_slow_ones(void **state)
{
	struct cell_found found;
	json_t *all = spans_of(CELL_FAULT, &(struct cell_options){0}, &found), *some, *span;
	const long long start = cluster_epoch;
	size_t i, expected = 0, slow = 0;

	(void)state;
	cell_found_clear(&found);
	json_array_foreach(all, i, span) {
		const long long begin = at(span, "startTimeUnixNano");

		expected += !strcmp(category(span), "request") && begin >= start + 50ll * MS &&
			begin < start + 150ll * MS;
		slow += !strcmp(category(span), "request") &&
			at(span, "endTimeUnixNano") - begin >= 4 * MS;
	}
	assert_in_range(expected, 10, count(all, "request") - 10);
	assert_in_range(slow, 10, count(all, "request") - 10);
	some = spans_of(CELL_FAULT, &(struct cell_options){.from_s = .05, .to_s = .15}, &found);
	assert_int_equal(count(some, "request"), expected);
	cell_found_clear(&found);
	json_decref(some);
	some = spans_of(CELL_FAULT, &(struct cell_options){.slower_s = .004}, &found);
	assert_int_equal(count(some, "request"), slow);
	assert_int_equal(inside(some, "request", "FUSE request"), slow);
	cell_found_clear(&found);
	json_decref(some);
	json_decref(all);
}

static void missing_data_is_reported(void **state)
{
	static const struct {
		int cell;
		const char *file_system, *says;
		bool requests, messages, disks;
	} cases[] = {
		{CELL_CONTROL, NULL, "", true, false, true},
		{CELL_CONTROL, "none", "describes no messages", false, true, true},
		{CELL_CUT, NULL, "cut short", true, false, true},
		{CELL_EVENTS, NULL, "no positions", false, true, true},
		{CELL_SUMS, NULL, "counters and marks only", false, false, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct cell_found found;
		json_t *spans = spans_of(cases[i].cell,
			&(struct cell_options){.file_system = cases[i].file_system}, &found);

		if (!strstr(found.missing, cases[i].says) || (*found.missing && !*cases[i].says))
			fail_msg("case %zu: '%s'", i, found.missing);
		assert_int_equal(count(spans, "request") > 0, cases[i].requests);
		assert_int_equal(count(spans, "message") > 0, cases[i].messages);
		assert_int_equal(count(spans, "disk call") > 0, cases[i].disks);
		cell_found_clear(&found);
		json_decref(spans);
	}
}

static void a_missing_sampler_log_is_reported(void **state)
{
	auto_free char *path = alloc_format("%s/run/cells/%04d.1/s2.fs.samples", dir, CELL_CUT);
	struct cell_found found;
	json_t *spans;

	(void)state;
	assert_int_equal(unlink(path), 0);
	spans = spans_of(CELL_CUT, &(struct cell_options){0}, &found);
	assert_non_null(strstr(found.missing, "s1.fs.trace' is cut short"));
	assert_non_null(strstr(found.missing, "s2.fs.samples"));
	assert_true(count(spans, "request") > 0);
	cell_found_clear(&found);
	json_decref(spans);
}

static void a_cell_is_chosen(void **state)
{
	json_t *row;
	struct err e;

	(void)state;
	must(cell_choose(store, 0, 0, &row, &e), &e);
	assert_int_equal(jget_int(row, "cell"), CELL_FAULT);
	json_decref(row);
	must(cell_choose(store, CELL_CUT, 0, &row, &e), &e);
	assert_int_equal(jget_int(row, "cell"), CELL_CUT);
	json_decref(row);
	assert_int_equal(cell_choose(store, 99, 0, &row, &e), -ENOENT);
	assert_non_null(strstr(e.text, "no confirmed cell 99"));
}

static bool is_doubtful(const json_t *span)
{
	json_t *a;
	size_t i;

	json_array_foreach(jget(span, "attributes"), i, a)
		if (!strcmp(jget_text(a, "key"), "culprit.clock"))
			return true;
	return false;
}

/* The last server's clock is set 3 s forward: events before and after are placed correctly, and
 * events in between are doubtful. */
static void a_clock_that_is_set(void **state)
{
	struct cluster_spec spec = made;
	auto_free char *run = alloc_format("%s/set", dir);
	struct store *other = store;
	struct cell_found found;
	json_t *spans, *span;
	size_t i, good = 0, doubtful = 0, all = 0, after = 0;

	(void)state;
	spec.ops = 800;
	spec.step_s = 3;
	spec.step_at_s = 2.6;
	making = &spec;
	store = make_run(run, 1, NULL);
	making = &made;
	spans = spans_of(CELL_CONTROL, &(struct cell_options){0}, &found);
	json_array_foreach(spans, i, span) {
		const json_t *p = strcmp(category(span), "request at the server")
			? NULL
			: parent(spans, span);
		bool in;

		if (!p)
			continue;
		in = at(span, "startTimeUnixNano") > at(p, "startTimeUnixNano") - MS &&
			at(span, "endTimeUnixNano") < at(p, "endTimeUnixNano") + MS;
		all++;
		good += in;
		after += in && at(span, "startTimeUnixNano") > cluster_epoch + 2700ll * MS;
		doubtful += !in && (is_doubtful(span) || is_doubtful(p));
		if (!in && !is_doubtful(span) && !is_doubtful(p))
			print_message("%s\n", json_dumps(span, JSON_COMPACT));
	}
	assert_true(all > 1000);
	assert_int_equal(good + doubtful, all);
	assert_true(doubtful * 2 < all);
	assert_true(after > 100);
	cell_found_clear(&found);
	json_decref(spans);
	store_close(store);
	store = other;
}

static int make(void **state)
{
	auto_free char *run = NULL;

	if (make_dir(state))
		return -1;
	run = alloc_format("%s/run", dir);
	store = make_run(run, CELLS, &truth);
	return 0;
}

static int clear(void **state)
{
	store_close(store);
	cluster_clear(&truth);
	return remove_dir(state);
}

/* ---- for run.t ---- */

static void say_done(const char *run, int cells)
{
	auto_free char *path = alloc_format("%s/status.json", run);
	auto_free char *text = alloc_format("{\"done\": %d}", cells);
	struct err e;

	must(file_write_atomic(path, 0644, text, strlen(text), &e), &e);
}

static int hold(const char *run)
{
	struct store *s = make_run(run, 1, NULL);
	int lock, cells = 1;
	struct cluster c;
	char line[16];
	struct err e;

	must(run_lock(run, &lock, &e), &e);
	say_done(run, cells);
	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		make_cell(run, s, ++cells, &c);
		cluster_clear(&c);
		say_done(run, cells);
		puts("done");
		fflush(stdout);
	}
	store_close(s);
	return 0;
}

/* Further arguments of a slice are left out, and what is not known is none. */
static void further_arguments_of_a_slice_are_dropped(void **state)
{
	struct cell_slice s = {.track = 0};

	(void)state;
	cell_number(&s, 1, -1);
	cell_span(&s, 1, -1);
	cell_text(NULL, &s, 1, NULL);
	cell_text(NULL, &s, 1, "");
	assert_int_equal(s.n_args, 0);
	cell_number(&s, 1, 0);
	cell_span(&s, 2, -5);
	assert_int_equal(s.n_args, 2);
	assert_int_equal(s.args[0].key, 1);
	assert_int_equal(s.args[0].value, 0);
	assert_int_equal(s.args[1].value, -5);
	for (uint32_t i = 0; i < TIMELINE_ARGS_MAX - 2; i++)
		cell_number(&s, i, i);
	assert_int_equal(s.n_args, TIMELINE_ARGS_MAX);
	cell_number(&s, 1, 1);
	assert_int_equal(s.n_args, TIMELINE_ARGS_MAX);
	cell_span(&s, 1, 1);
	assert_int_equal(s.n_args, TIMELINE_ARGS_MAX);
	cell_text(NULL, &s, 1, "text");
	assert_int_equal(s.n_args, TIMELINE_ARGS_MAX);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(further_arguments_of_a_slice_are_dropped),
		cmocka_unit_test(requests_have_the_right_times),
		cmocka_unit_test(a_window_and_slow_ones),
		cmocka_unit_test(missing_data_is_reported),
		cmocka_unit_test(a_missing_sampler_log_is_reported),
		cmocka_unit_test(a_cell_is_chosen),
		cmocka_unit_test(a_clock_that_is_set),
	};
	struct utsname u;

	if (argc == 3 && !strcmp(argv[1], "make")) {
		store_close(make_run(argv[2], CELLS, NULL));
		return 0;
	}
	if (argc == 3 && !strcmp(argv[1], "hold"))
		return hold(argv[2]);
	cmocka_set_message_output(CM_OUTPUT_TAP);
	if (uname(&u) || strcmp(u.machine, "x86_64") != 0) {
		puts("1..0 # SKIP the made-up cluster has call numbers of x86_64");
		return 0;
	}
	return cmocka_run_group_tests(tests, make, clear);
}
