/* View files: errors are reported with their line; a user's view replaces culprit's; all of
 * culprit's own views are valid. Merging dots loses none. Cached answers. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
/* cmocka wants those first */
#include <cmocka.h>

#include <math.h>
#include <sys/stat.h>

#include "ci/tests/query/drawn.h"
#include "ci/tests/scratch.h"
#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/jget.h"
#include "harness/web/serve/answer.h"
#include "harness/web/serve/dots.h"
#include "harness/web/serve/answer_cache.h"
#include "harness/web/serve/views.h"

static char log_path[128], folder[128];
static struct query_log logged;

static void write_view(const char *name, const char *text, size_t size)
{
	auto_free char *path = alloc_format("%s/%s", folder, name);
	struct err e;

	assert_int_equal(file_write_atomic(path, 0644, text, size, &e), 0);
}

static struct query *new_query(void)
{
	const struct query_spec spec = {.logs = &logged, .n_logs = 1, .params = view_params};
	struct query *q;
	struct err e;

	assert_int_equal(query_new(&spec, &q, &e), 0);
	return q;
}

/* Reads and checks a view; returns the error after "PATH:". The caller clears. */
static const char *wrong_of(const char *text, size_t size, struct view *v)
{
	auto_free char *path = alloc_format("%s/x.view", folder);
	struct query *q = new_query();

	write_view("x.view", text, size);
	view_read(path, v);
	view_check(v, q);
	query_free(q);
	if (!v->wrong)
		return "";
	assert_int_equal(strncmp(v->wrong, path, strlen(path)), 0);
	return v->wrong + strlen(path);
}

static void test_wrong_views(void **state)
{
	static const struct {
		const char *text, *wrong;
	} cases[] = {
		{"title: a\nchart: line\nquery:\nselect 1, 2\n", ""},
		{"# c\n\n  title : b \r\nquery: select 1\n", ""},
		{"query:\nselect slot, :slot_s, :attempt, :cell, :from_s, :to_s from totals", ""},
		{"", ":1: there is no 'query:'"},
		{"title: a\n", ":2: there is no 'query:'"},
		{"title: a\nselect 1\n", ":2: a line must be 'key: value', not 'select 1'"},
		{"title: a\ntitel: b\nquery: select 1\n",
			":2: there is no 'titel' in a view; did you mean 'title'?"},
		{"zzzzzzzz: b\nquery: select 1\n", ":1: there is no 'zzzzzzzz' in a view: title,"},
		{"\nchart: cake\nquery: select 1\n", ":2: chart must be line, area,"},
		{"scale: linear\nquery: select 1\n", ":1: scale must be log or omitted"},
		{"needs: log\nquery: select 1\n", ":1: needs must be run or omitted"},
		{"order: first\nquery: select 1\n", ":1: order must be a whole number"},
		{"order: -1\nquery: select 1\n", ":1: order must be a whole number"},
		{"title: a\nquery:\n \n;", ":2: nothing follows 'query:'"},
		{"query:\nselect pid\nfrom events\nwhere nonsense = 1\n", ":4: wrong SQL"},
		{"title: a\nquery: select pid,, tid from events\n", ":2: wrong SQL"},
		{"query:\ndelete from events\n", ":"},
		{"query:\nselect 1; select 2\n", ":2: one statement at a time"},
		{"query:\nselect :nothing\n", ":2: nothing is known of the parameter ':nothing'"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct view v;
		const char *wrong = wrong_of(cases[i].text, strlen(cases[i].text), &v);

		if (strncmp(wrong, cases[i].wrong, strlen(cases[i].wrong)) != 0 ||
			(!*cases[i].wrong && *wrong))
			fail_msg("%s: '%s'", cases[i].text, wrong);
		assert_non_null(v.title);
		view_clear(&v);
	}
}

static void test_files_that_are_no_text(void **state)
{
	auto_free char *large = alloc_zero(100000, 1);
	auto_free char *none = alloc_format("%s/none.view", folder);
	struct view v;

	(void)state;
	assert_non_null(strstr(wrong_of("query:\0select 1", 15, &v), ":1: a view is text"));
	view_clear(&v);
	memset(large, '#', 100000);
	assert_non_null(strstr(wrong_of(large, 100000, &v), "at most 64 KiB"));
	view_clear(&v);
	view_read(none, &v);
	assert_non_null(v.wrong);
	view_clear(&v);
	view_read(folder, &v);
	assert_non_null(v.wrong);
	view_clear(&v);
}

static void test_every_key_is_read(void **state)
{
	static const char text[] = "# about it\ntitle: Mine: a title\nchart: heat\nunit: B/s\n"
				   "scale: log\nneeds: run\norder: 7\nabout: why\nquery: select 1\n"
				   "-- chart: line\n";
	struct view v;

	(void)state;
	assert_string_equal(wrong_of(text, strlen(text), &v), "");
	assert_string_equal(v.name, "x");
	assert_string_equal(v.title, "Mine: a title");
	assert_string_equal(v.unit, "B/s");
	assert_string_equal(v.about, "why");
	assert_int_equal(v.chart, VIEW_HEAT);
	assert_true(v.logarithmic && v.of_runs);
	assert_int_equal(v.order, 7);
	assert_string_equal(v.sql, " select 1\n-- chart: line\n");
	view_clear(&v);
}

static void test_own_views(void **state)
{
	auto_free char *unread = alloc_format("%s/none", folder);
	struct query *q = new_query();
	struct views views;
	struct err e;
	size_t n;

	(void)state;
	assert_int_equal(views_read(NULL, &views, &e), 0);
	n = views.n;
	assert_true(n >= 9);
	for (size_t i = 0; i < n; i++) {
		if (!views.v[i].of_runs)
			view_check(&views.v[i], q);
		if (views.v[i].wrong)
			fail_msg("%s", views.v[i].wrong);
		assert_true(!i || views.v[i - 1].order <= views.v[i].order);
	}
	views_clear(&views);
	query_free(q);
	write_view("calls.view", "title: mine\norder: 1\nquery: select 1\n", 37);
	write_view("more.view", "query: select 1\n", 16);
	write_view("no view", "x", 1);
	assert_int_equal(views_read(folder, &views, &e), 0);
	assert_int_equal(views.n, n + 2); /* more and x */
	assert_string_equal(views.v[0].title, "mine");
	assert_true(views.v[0].own);
	assert_non_null(views_find(&views, "more"));
	assert_null(views_find(&views, "no view"));
	assert_null(views_find(&views, NULL));
	views_clear(&views);
	assert_int_equal(views_read(unread, &views, &e), -ENOENT);
	assert_non_null(strstr(e.text, "cannot read the views in"));
}

static void test_dots(void **state)
{
	struct dots *d = dots_new(500, .01);
	double dx, dy, n = 0;
	json_t *rows;
	size_t i;
	json_t *row;

	(void)state;
	for (int k = 0; k < 20000; k++)
		dots_add(d, (double)draw(1000) / 10, (double)draw(1 << 30), draw(2) ? "a" : "b");
	dots_add(d, NAN, 1, "a");
	dots_add(d, 1, INFINITY, "a");
	dots_add(d, -5, -7, "below");
	rows = dots_rows(d, &dx, &dy);
	assert_in_range(json_array_size(rows), 50, 500);
	json_array_foreach(rows, i, row)
		n += json_number_value(json_array_get(row, 3));
	assert_true(n == 20001);
	assert_true(dy > 1 && dx >= .01);
	json_decref(rows);
	dots_free(d);
	d = dots_new(10, 1);
	for (int k = 0; k < 100; k++) {
		char name[16];

		snprintf(name, sizeof(name), "%d", k);
		dots_add(d, k % 3 - 1, k % 5 - 2, name);
		if (k == 8)
			dots_add(d, 1, 5, "0");
	}
	rows = dots_rows(d, &dx, &dy);
	assert_true(json_array_size(rows) <= 100); /* there is an end to it */
	json_decref(rows);
	dots_free(d);
}

static void put(struct answer_cache *k, const char *key, const char *text)
{
	answer_cache_put(k, key, text, strlen(text));
}

static bool has(struct answer_cache *k, const char *key, const char *text)
{
	size_t size = 0;
	auto_free char *got = answer_cache_get(k, key, &size);

	return got && size == strlen(text) && !strcmp(got, text);
}

static void test_kept(void **state)
{
	struct answer_cache *k = answer_cache_new(20000);
	auto_free char *large = alloc_format("%*s", 11000, "x");
	size_t size, left = 0;

	(void)state;
	assert_null(answer_cache_get(k, "a", &size));
	put(k, "a", "1");
	put(k, "b", "2");
	put(k, "a", "3");
	assert_true(has(k, "a", "3") && has(k, "b", "2"));
	put(k, "large", large); /* more than half of the room */
	assert_null(answer_cache_get(k, "large", &size));
	assert_true(has(k, "a", "3"));
	for (int i = 0; i < 100; i++) {
		auto_free char *key = alloc_format("%d", i);
		auto_free char *text = alloc_format("%*d", 1000, i);

		put(k, key, text);
		assert_true(has(k, key, text));
		assert_true(has(k, "a", "3")); /* what is asked for stays */
	}
	for (int i = 0; i < 100; i++) {
		auto_free char *key = alloc_format("%d", i);
		auto_free char *got = answer_cache_get(k, key, &size);

		left += got != NULL;
	}
	assert_in_range(left, 10, 19);
	assert_null(answer_cache_get(k, "b", &size));
	answer_cache_free(k);
}

static int setup(void **state)
{
	struct err e;

	if (make_dir(state))
		return -1;
	setenv("XDG_CACHE_HOME", dir, 1);
	setenv("XDG_CONFIG_HOME", dir, 1);
	snprintf(log_path, sizeof(log_path), "%s/log", dir);
	snprintf(folder, sizeof(folder), "%s/views", dir);
	logged = (struct query_log){.path = log_path, .name = log_path};
	return mkdir(folder, 0755) || drawn_log(log_path, 100, true, &e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_wrong_views),
		cmocka_unit_test(test_files_that_are_no_text),
		cmocka_unit_test(test_every_key_is_read),
		cmocka_unit_test(test_own_views),
		cmocka_unit_test(test_dots),
		cmocka_unit_test(test_kept),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, setup, remove_dir);
}
