/* What workloads read from the output of their programs, as recorded from the real ones
 * (ci/tests/output). */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>
#include <lauxlib.h>

#include "harness/base/file.h"
#include "harness/base/proc.h"
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

/* Runs the workload's command on client c1, with these further fields of ctx (Lua); its exit code.
 * 'figures' may be NULL, or takes what its 'result' makes of the output. The caller frees both. */
static int run_once(const char *workload, const char *mount, const char *fields, char **output,
	json_t **figures)
{
	char chunk[600], path[100], *argv[16] = {NULL};
	lua_State *L = luax_new();
	json_t *command;
	struct err e;
	int code;

	snprintf(path, sizeof(path), "workloads/%s.lua", workload);
	assert_int_equal(luax_load_file(L, path, NULL, &e), 0);
	lua_getfield(L, -1, "command");
	snprintf(chunk, sizeof(chunk),
		"return { shared = {}, run = 'run', attempt = '1.1', once = true, servers = { 1 }, "
		"%s }, { name = 'c1', mount = '%s' }",
		fields, mount);
	assert_int_equal(luaL_dostring(L, chunk), LUA_OK);
	assert_int_equal(luax_call(L, 2, 1, &e), 0);
	assert_int_equal(luajson_get(L, -1, &command, &e), 0);
	assert_true(json_array_size(json_object_get(command, "argv")) < 16);
	for (size_t i = 0; i < json_array_size(json_object_get(command, "argv")); i++)
		argv[i] = (char *)json_string_value(
			json_array_get(json_object_get(command, "argv"), i));
	code = proc_run((const char *const *)argv, 30, output, &e);
	json_decref(command);
	if (figures) {
		lua_settop(L, 1);
		lua_getfield(L, 1, "result");
		lua_pushstring(L, *output);
		assert_int_equal(luax_call(L, 1, 1, &e), 0);
		assert_int_equal(luajson_get(L, -1, figures, &e), 0);
	}
	lua_close(L);
	return code;
}

static int session_on(const char *mount, const char *missing, char **output)
{
	char fields[300];

	snprintf(fields, sizeof(fields), "file_system = { missing = %s }", missing);
	return run_once("session", mount, fields, output, NULL);
}

/* Programs that fail stand for calls that the file system does not know. */
static void session_leaves_out_what_is_missing(void **unused)
{
	char folder[] = "/tmp/culprit-session-XXXXXX", path[200], *said, *was = getenv("PATH");

	(void)unused;
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/run", folder);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(session_on(folder, "{ 'direct I/O' }", &said), 0);
	assert_string_equal(said, "session\n");
	free(said);
	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, i ? "truncate" : "ln");
		assert_int_equal(symlink("/bin/false", path), 0);
	}
	assert_true(asprintf(&said, "%s:%s", folder, was) > 0);
	was = strdup(was);
	setenv("PATH", said, 1);
	free(said);
	assert_int_equal(session_on(folder, "{ 'direct I/O' }", &said), 1);
	assert_string_equal(said, "session: 'hard link' failed\n");
	free(said);
	snprintf(path, sizeof(path), "%s/run/session.c1.1", folder);
	assert_int_equal(file_remove_tree(path, NULL), 0);
	assert_int_equal(
		session_on(folder, "{ 'direct I/O', 'hard link', 'symbolic link', 'truncate' }",
			&said),
		0);
	assert_string_equal(said, "session\n");
	free(said);
	/* Nothing of it is left. */
	assert_int_equal(access(path, F_OK), -1);
	setenv("PATH", was, 1);
	free(was);
	file_remove_tree(folder, NULL);
}

#define DD_PARAMS                                                                                  \
	"file_system = { missing = {} }, params = { per_server = 65536, records = 2, fresh = %d, " \
	"direct = 0, jobs = %d }"

static off_t size_of(const char *folder, const char *name)
{
	struct stat its;
	char path[200];

	snprintf(path, sizeof(path), "%s/run/%s", folder, name);
	return stat(path, &its) < 0 ? -1 : its.st_size;
}

/* The real dd: several at a time write and read their own files, and all their bytes count, in
 * the time that passed. */
static void dd_runs_several_at_a_time(void **unused)
{
	char folder[] = "/tmp/culprit-dd-XXXXXX", fields[300], path[200], *said;
	json_t *v;

	(void)unused;
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/run", folder);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(fields, sizeof(fields), DD_PARAMS, 0, 1);
	assert_int_equal(run_once("ddw", folder, fields, &said, &v), 0);
	expect(v, "bytes", 2 * 65536);
	assert_int_equal(size_of(folder, "dd.c1"), 2 * 65536);
	free(said);
	json_decref(v);
	snprintf(fields, sizeof(fields), DD_PARAMS, 1, 3);
	assert_int_equal(run_once("ddw", folder, fields, &said, &v), 0);
	expect(v, "bytes", 3 * 2 * 65536);
	expect(v, "bytes_per_second", number(v, "bytes") / number(v, "seconds"));
	assert_int_equal(size_of(folder, "fresh.c1.1.1.1"), 2 * 65536);
	assert_int_equal(size_of(folder, "fresh.c1.1.1.3"), 2 * 65536);
	assert_int_equal(size_of(folder, "fresh.c1.1.1"), -1);
	free(said);
	json_decref(v);
	/* One of them fails: so does the command, and says why. */
	snprintf(fields, sizeof(fields), DD_PARAMS, 0, 2);
	snprintf(path, sizeof(path), "%s/run/dd.c1.2", folder);
	assert_int_equal(file_write_atomic(path, 0600, "abc", 3, NULL), 0);
	assert_int_not_equal(run_once("ddr", folder, fields, &said, &v), 0);
	assert_non_null(strstr(said, "dd.c1.1': No such file"));
	expect(v, "bytes", 3);
	free(said);
	json_decref(v);
	file_remove_tree(folder, NULL);
}

/* Words of three programs, as they end: 0.5 s each, at the same time. */
static void seconds_of_several_dds_pass_together(void **unused)
{
	json_t *v = result_of("ddr", "ddr-jobs", SIZE_MAX);

	(void)unused;
	expect(v, "bytes", 2 * 3 * 8388608.);
	expect(v, "seconds", 1.0);
	json_decref(v);
	any_cut_is_read("ddr", "ddr-jobs", "bytes");
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

static void processes_of_a_client_pass_together(void **unused)
{
	json_t *v = result_of("mpi-io", "mpi-io", SIZE_MAX);

	(void)unused;
	expect(v, "processes", 2);
	expect(v, "bytes", 2 * 4194304.);
	expect(v, "seconds", (0.204597 + 0.224485) / 2);
	json_decref(v);
	any_cut_is_read("mpi-io", "mpi-io", "bytes");
	assert_null(result_of("mpi-io", "postmark", SIZE_MAX));
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
		cmocka_unit_test(session_leaves_out_what_is_missing),
		cmocka_unit_test(dd_runs_several_at_a_time),
		cmocka_unit_test(seconds_of_several_dds_pass_together),
		cmocka_unit_test(iozone_writes),
		cmocka_unit_test(iozone_reads),
		cmocka_unit_test(postmark_reports),
		cmocka_unit_test(processes_of_a_client_pass_together),
		cmocka_unit_test(a_first_pass_that_was_cut_has_no_figures),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("workload", tests, NULL, NULL);
}
