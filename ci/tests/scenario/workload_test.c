/* What workloads read from the output of their programs, as recorded from the real ones
 * (ci/tests/output). */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>
#include <lauxlib.h>

#include "harness/base/file.h"
#include "harness/lua/luajson.h"
#include "harness/lua/luax.h"

/* What 'result' of the workload makes of the first 'size' bytes of a recording; NULL: it
 * complained. */
static json_t *result_of(const char *workload, const char *recording, size_t size)
{
	lua_State *L = luax_new();
	char path[256], *text;
	json_t *v = NULL;
	size_t whole;
	struct err e;

	snprintf(path, sizeof(path), "workloads/%s.lua", workload);
	assert_int_equal(luax_load_file(L, path, NULL, &e), 0);
	snprintf(path, sizeof(path), "ci/tests/output/%s.txt", recording);
	assert_int_equal(file_read(path, &text, &whole, &e), 0);
	lua_getfield(L, -1, "result");
	lua_pushlstring(L, text, size < whole ? size : whole);
	if (luax_call(L, 1, 2, &e))
		fail_msg("%s", e.text);
	if (lua_isnil(L, -2))
		assert_true(lua_isstring(L, -1));
	else if (luajson_get(L, -2, &v, &e))
		fail_msg("%s", e.text);
	free(text);
	lua_close(L);
	return v;
}

static double number(const json_t *v, const char *key)
{
	assert_true(json_is_number(json_object_get(v, key)));
	return json_number_value(json_object_get(v, key));
}

static void expect(const json_t *v, const char *key, double value)
{
	if (fabs(number(v, key) - value) > 1e-6 * value)
		fail_msg("%s is %g, not %g", key, number(v, key), value);
}

/* Whatever a cut leaves: no complaint of Lua's, and never more than the whole gave. */
static void any_cut_is_read(const char *workload, const char *recording, const char *key)
{
	json_t *whole = result_of(workload, recording, SIZE_MAX);
	double most = number(whole, key);

	for (size_t size = 0; size < 6000; size += 7) {
		json_t *v = result_of(workload, recording, size);

		if (v && number(v, key) > most)
			fail_msg("%s: %zu bytes give %g of %g", recording, size, number(v, key),
				most);
		json_decref(v);
	}
	json_decref(whole);
}

static void iozone_writes(void **unused)
{
	json_t *v = result_of("iozonew", "iozonew", SIZE_MAX);

	(void)unused;
	expect(v, "passes", 1); /* and one that was interrupted */
	expect(v, "bytes", 2 * 8192 * 1024);
	expect(v, "write_bytes_per_second", 1612617 * 1024.);
	expect(v, "rewrite_bytes_per_second", 4325349 * 1024.);
	expect(v, "seconds", 8192. / 1612617 + 8192. / 4325349);
	json_decref(v);
	any_cut_is_read("iozonew", "iozonew", "bytes");
}

static void iozone_reads(void **unused)
{
	json_t *v = result_of("iozoner", "iozoner", SIZE_MAX);

	(void)unused;
	expect(v, "passes", 2);
	expect(v, "bytes", 4 * 8192 * 1024);
	expect(v, "read_bytes_per_second", 2 * 8192 * 1024 / (8192. / 972707 + 8192. / 805020));
	expect(v, "reread_bytes_per_second", 2 * 8192 * 1024 / (8192. / 974749 + 8192. / 1002829));
	json_decref(v);
	any_cut_is_read("iozoner", "iozoner", "bytes");
}

static void postmark_reports(void **unused)
{
	json_t *v = result_of("postmark", "postmark", SIZE_MAX);

	(void)unused;
	expect(v, "passes", 2);
	expect(v, "seconds", 2);
	expect(v, "transactions_per_second", 110); /* 200 and 20, in a second each */
	expect(v, "read_files", 106 + 11);
	expect(v, "appended_files", 94 + 7);
	expect(v, "created_files", 149 + 18);
	expect(v, "read_bytes", (698.56 + 0.08) * 1024);
	expect(v, "bytes", (698.56 + 0.08 + 977.59 + 0.11) * 1024);
	expect(v, "errors", 0);
	json_decref(v);
	any_cut_is_read("postmark", "postmark", "bytes");
}

/* Ended in its first pass: that is no failure, but there are no figures. */
static void a_first_pass_that_was_cut_has_no_figures(void **unused)
{
	static const char *const names[][2] = {{"iozonew", "iozonew-cut"},
		{"iozoner", "iozoner-cut"}, {"postmark", "postmark-cut"}};

	(void)unused;
	for (size_t i = 0; i < 3; i++) {
		json_t *v = result_of(names[i][0], names[i][1], SIZE_MAX);

		expect(v, "passes", 0);
		assert_null(json_object_get(v, "write_bytes_per_second"));
		json_decref(v);
		assert_null(result_of(names[i][0], names[i][1], 0));
		/* Another program's output is no result. */
		assert_null(result_of(names[i][0], names[i == 2 ? 0 : 2][1], SIZE_MAX));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(iozone_writes),
		cmocka_unit_test(iozone_reads),
		cmocka_unit_test(postmark_reports),
		cmocka_unit_test(a_first_pass_that_was_cut_has_no_figures),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("workload", tests, NULL, NULL);
}
