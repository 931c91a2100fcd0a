/* Tests application traces: a written trace is read back; damage, other versions and cycles are
 * refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
/* cmocka wants those first */
#include <cmocka.h>
#include <errno.h>

#include "ci/tests/app/drawn.h"
#include "ci/tests/scratch.h"
#include "diag/app/layout.h"
#include "diag/app/reader_impl.h"

static char path[128];

static void a_written_trace_is_read_back(void **state)
{
	struct app_trace *t;
	struct err e = {.text = ""};
	uint64_t n = 0;

	(void)state;
	assert_int_equal(drawn_trace(path, 5, 3, 4000, 7), 0);
	if (app_open(path, &t, &e))
		fail_msg("%s", e.text);
	assert_int_equal(app_n_ranks(t), 5);
	assert_int_equal(app_n_threads(t), 15);
	assert_int_equal(app_n_ops(t), 15 * 4000);
	assert_true(app_n_edges(t) > 1000);
	assert_string_equal(app_about(t)->comment, "mpirun \xc3\xa4\n");
	assert_string_equal(app_rank(t, 4)->name, "rank4");
	assert_string_equal(app_file(t, 0)->path, "");
	assert_string_equal(app_file(t, 1)->path, "d/file1");
	assert_int_equal(app_file(t, 1)->before, -1);
	assert_true(app_handle(t, 2)->before);
	for (uint32_t i = 0; i < app_n_threads(t); i++) {
		struct drawn d;
		struct app_op op;
		struct app_cursor *c;

		assert_int_equal(app_cursor_new(t, i, &c), 0);
		drawn_begin(&d, i, 15, 7);
		while (app_next(c, &op, &e) == 1) {
			const struct app_op *want = drawn_next(&d);

			assert_int_equal(op.n_edges, want->n_edges);
			for (uint32_t k = 0; k < op.n_edges; k++) {
				assert_int_equal(op.edges[k].thread, want->edges[k].thread);
				assert_int_equal(op.edges[k].ops, want->edges[k].ops);
			}
			op.edges = want->edges;
			assert_memory_equal(&op, want, sizeof(op));
			n++;
		}
		app_cursor_free(c);
	}
	assert_int_equal(n, app_n_ops(t));
	app_free(t);
}

static void refused(const char *file, int code, const char *why)
{
	struct app_trace *t;
	struct err e = {.text = ""};
	int rc = app_open(file, &t, &e);

	if (rc != code || !strstr(e.text, why))
		fail_msg("%d, not %d: %s", rc, code, e.text);
	assert_int_equal(err_exit_code(&e), 2);
}

static void damage_is_refused(void **state)
{
	char other[144], *bytes;
	size_t size, step;

	(void)state;
	snprintf(other, sizeof(other), "%s.damaged", path);
	assert_int_equal(drawn_trace(path, 3, 1, 50, 1), 0);
	assert_int_equal(file_read(path, &bytes, &size, NULL), 0);
	for (size_t n = 0; n < size; n += 13) {
		assert_int_equal(file_write_atomic(other, 0600, bytes, n, NULL), 0);
		refused(other, -EBADMSG, n < APP_HEAD ? "is not a trace" : "is damaged at byte");
	}
	step = size / 200 + 1;
	for (size_t at = APP_HEAD; at < size; at += step) {
		bytes[at] ^= 0x10;
		assert_int_equal(file_write_atomic(other, 0600, bytes, size, NULL), 0);
		refused(other, -EBADMSG, "is damaged at byte");
		bytes[at] ^= 0x10;
	}
	bytes[8] = 9;
	assert_int_equal(file_write_atomic(other, 0600, bytes, size, NULL), 0);
	refused(other, -EPROTONOSUPPORT, "is of version 9; this culprit reads version 1");
	free(bytes);
}

/* Three ranks with three ops each; op 2 of each rank waits for op 'ops' of the next. */
static void ring(uint64_t ops)
{
	struct app_about about = {.method = 1, .comment = "", .root = "", .kernel = ""};
	struct app_writer *w;
	struct app_edge edge;
	struct app_op op = {.call = APP_FSYNC,
		.file = APP_NO_FILE,
		.file2 = APP_NO_FILE,
		.offset = -1,
		.start_ns = -1,
		.took_ns = -1};

	assert_int_equal(app_create(path, &w, NULL), 0);
	for (uint32_t r = 0; r < 3; r++) {
		assert_int_equal(app_add_rank(w, r, "x", "n"), r);
		assert_int_equal(app_add_thread(w, r, r), r);
	}
	for (uint32_t r = 0; r < 3; r++)
		for (int i = 1; i <= 3; i++) {
			edge = (struct app_edge){(r + 1) % 3, ops};
			op.n_edges = i == 2;
			op.edges = &edge;
			assert_int_equal(app_put(w, r, &op, NULL), 0);
		}
	assert_int_equal(app_finish(w, &about, NULL), 0);
}

static void cycles_are_named(void **state)
{
	struct app_trace *t;

	(void)state;
	ring(1);
	assert_int_equal(app_open(path, &t, NULL), 0);
	assert_int_equal(app_n_edges(t), 3);
	app_free(t);
	ring(2);
	refused(path, -ELOOP,
		"has a cycle: operation 2 of rank 0 (thread 0) waits for operation 2 of rank 1 "
		"(thread 0), operation 2 of rank 1 (thread 0) waits for operation 2 of rank 2");
	ring(4);
	refused(path, -EBADMSG, "is invalid");
}

static void paths_stay_below_the_root(void **state)
{
	static const char *const bad[] = {"..", "a/../b", "/etc", "a//b", "./a", "a/", "a/.."};
	struct app_writer *w;

	(void)state;
	assert_int_equal(app_create(path, &w, NULL), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(app_add_file(w, bad[i], 0, 0, false), -EINVAL);
	assert_int_equal(app_add_file(w, "..a/b..", 0, 0, false), 0);
	app_drop(w);
}

static void printed_text_is_stable(void **state)
{
	struct app_trace *t;
	char *text;
	size_t size;
	FILE *f;

	(void)state;
	ring(1);
	assert_int_equal(app_open(path, &t, NULL), 0);
	f = open_memstream(&text, &size);
	assert_int_equal(app_print(t, 1, f, NULL), 0);
	fclose(f);
	assert_string_equal(text,
		"rank 0 threads=1 pid=0 x\nrank 1 threads=1 pid=1 x\nrank 2 threads=1 pid=2 x\n"
		"1.0:1 fsync() = 0\n1.0:2 fsync() = 0 after=2.0:1\n1.0:3 fsync() = 0\n");
	free(text);
	app_free(t);
}

static void expect_copied(const struct app_trace *t, uint32_t thread, uint32_t copy, uint32_t n)
{
	const uint32_t threads = copy * n, files = copy * 2, handles = copy * 2;
	struct app_cursor *c;
	struct app_op op;
	struct drawn d;

	assert_int_equal(app_cursor_new(t, threads + thread, &c), 0);
	drawn_begin(&d, thread, n, 3);
	while (app_next(c, &op, NULL) == 1) {
		struct app_op want = *drawn_next(&d);

		assert_int_equal(op.n_edges, want.n_edges);
		for (uint32_t k = 0; k < op.n_edges; k++) {
			assert_int_equal(op.edges[k].thread, want.edges[k].thread + threads);
			assert_int_equal(op.edges[k].ops, want.edges[k].ops);
		}
		want.edges = op.edges;
		want.file += want.file == APP_NO_FILE ? 0 : files;
		want.file2 += want.file2 == APP_NO_FILE ? 0 : files;
		want.handle += want.handle ? handles : 0;
		assert_memory_equal(&op, &want, sizeof(op));
	}
	assert_int_equal(d.n, 300);
	app_cursor_free(c);
}

static void copies_use_their_own_files(void **state)
{
	struct app_trace *t, *three;
	struct err e = {.text = ""};
	char scaled[144];

	(void)state;
	snprintf(scaled, sizeof(scaled), "%s.scaled", path);
	assert_int_equal(drawn_trace(path, 3, 2, 300, 3), 0);
	assert_int_equal(app_open(path, &t, NULL), 0);
	if (app_scale(t, 3, scaled, &e) || app_open(scaled, &three, &e))
		fail_msg("%s", e.text);
	assert_int_equal(app_n_ranks(three), 9);
	assert_int_equal(app_n_ops(three), 3 * app_n_ops(t));
	assert_int_equal(app_n_edges(three), 3 * app_n_edges(t));
	assert_true(app_n_edges(t) > 50);
	assert_string_equal(app_file(three, 2)->path, "copy1");
	assert_string_equal(app_file(three, 5)->path, "copy2/d/file1");
	assert_int_equal(app_handle(three, 6)->file, 5);
	assert_true(app_handle(three, 6)->before);
	assert_string_not_equal(app_id(three), app_id(t));
	for (uint32_t copy = 0; copy < 3; copy++)
		for (uint32_t i = 0; i < 6; i++)
			expect_copied(three, i, copy, 6);
	app_free(three);
	assert_int_equal(app_scale(t, 60000, scaled, &e), -E2BIG);
	assert_non_null(strstr(e.text, "180000 processes"));
	app_free(t);
}

/* Numbers of the tables: refuses those that are too large or truncated, and leaves the output
 * alone. */
static void numbers_in_tables_have_limits(void **state)
{
	static const struct {
		uint8_t bytes[12];
		size_t n;
		bool ok;
		uint32_t value;
	} cases[] = {{{0}, 1, true, 0}, {{0x7f}, 1, true, 127}, {{0x80, 1}, 2, true, 128},
		{{0xff, 0xff, 0xff, 0xff, 0x0f}, 5, true, UINT32_MAX},
		{{0x80, 0x80, 0x80, 0x80, 0x10}, 5, false, 0}, {{0}, 0, false, 0},
		{{0x80}, 1, false, 0}, {{0xff, 0xff}, 2, false, 0}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct app_bytes b = {cases[i].bytes, cases[i].bytes + cases[i].n};
		uint32_t value = 77;

		assert_int_equal(app_get_u32(&b, &value), cases[i].ok);
		assert_int_equal(value, cases[i].ok ? cases[i].value : 77);
		if (cases[i].ok)
			assert_ptr_equal(b.pos, b.end);
	}
}

static int prepare(void **state)
{
	int rc = make_dir(state);

	snprintf(path, sizeof(path), "%s/trace", dir);
	return rc;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_written_trace_is_read_back),
		cmocka_unit_test(damage_is_refused),
		cmocka_unit_test(cycles_are_named),
		cmocka_unit_test(paths_stay_below_the_root),
		cmocka_unit_test(printed_text_is_stable),
		cmocka_unit_test(copies_use_their_own_files),
		cmocka_unit_test(numbers_in_tables_have_limits),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, prepare, remove_dir);
}
