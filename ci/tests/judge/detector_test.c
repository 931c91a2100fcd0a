/* Tests the detector runtime: sandbox, form, limits, parameters. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants those four first */
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "ci/tests/judge/detector_series.h"
#include "diag/judge/vec.h"
#include "harness/base/file.h"
#include "harness/base/home.h"
#include "harness/lua/luax.h"

static char folder[] = "/tmp/detector_test.XXXXXX", path[64];

static int set_up(void **state)
{
	(void)state;
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/mine.lua", folder);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(folder);
}

/* Writes a detector, loads it and runs its diagnose; returns the error's code. */
static int attempt(const char *text, struct err *e)
{
	struct series *s = series_new(4, 1);
	struct detector *d = NULL;
	json_t *model = NULL, *v = NULL;
	int rc = file_write_atomic(path, 0600, text, strlen(text), e);

	assert_int_equal(rc, 0);
	fill(s, METRIC_DREAD, -1, 1);
	rc = detector_load(path, NULL, &d, e);
	if (!rc)
		rc = detector_train(d, &s->run, 1, &model, e);
	if (!rc)
		rc = detector_diagnose(d, model, &s->run, &v, e);
	json_decref(model);
	json_decref(v);
	detector_free(d);
	series_free(s);
	return rc;
}

/* A detector whose diagnose is 'body', on line 3 of the file. */
static int attempt_body(const char *body, struct err *e)
{
	char text[2048];

	snprintf(text, sizeof(text),
		"return { name = 'mine', summary = 'x', diagnose = function(run, model, params)\n"
		"\n%s\nend }\n",
		body);
	return attempt(text, e);
}

static void the_sandbox_has_no_way_out(void **state)
{
	static const char *const ways[] = {
		"io.open('/etc/passwd')",
		"os.execute('true')",
		"require('os')",
		"dofile('/etc/passwd')",
		"loadfile('/etc/passwd')",
		"load('return 1')()",
		"debug.getregistry()",
		"package.loadlib('x', 'y')",
		"setmetatable({}, { __gc = print })",
		"getmetatable('').__index.x = 1",
		"collectgarbage('stop')",
		"coroutine.create(print)",
		"math.random()",
		"print('hello')",
		"rawset(_G, 'x', 1)",
	};
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		char where[96];

		snprintf(where, sizeof(where), "%s:3:", path);
		if (attempt_body(ways[i], &e) != -EINVAL)
			fail_msg("%s works", ways[i]);
		if (strncmp(e.text, where, strlen(where)))
			fail_msg("%s: '%s' has no line", ways[i], e.text);
	}
	assert_int_equal(attempt_body("do return {} end", &e), 0);
}

static void limits_hold(void **state)
{
	static const struct {
		const char *body;
		int code;
		const char *says;
	} hogs[] = {
		{"while true do end", -ETIMEDOUT,
			":3: the call used up its 0.5 s of processor time"},
		{"while true do pcall(function() while true do end end) end", -ETIMEDOUT,
			":3: the call used up"},
		{"return pcall(function() while true do end end)", -ETIMEDOUT,
			":3: the call used up"},
		{"local t = {} for i = 1, 1e12 do t[i] = i end", -E2BIG,
			":3: the call used up its 512 MiB of memory"},
		{"local s = 'x' while true do s = s .. s end", -E2BIG,
			":3: the call used up its 512 MiB"},
		{"local s = ('x'):rep(1 << 30)", -E2BIG, ":3: the call used up its 512 MiB"},
		{"local s = ('x'):rep(1e10)", -EINVAL, ":3: resulting string too large"},
		{"local t = {} while true do t[#t + 1] = vec.new(1000000) end", -E2BIG,
			":3: the call used up"},
		{"local t = {} while true do pcall(function() t[#t + 1] = vec.new(10000000) end) "
		 "end",
			-ETIMEDOUT, ":3: the call used up"},
		/* Inside C functions. */
		{"local n = (('a'):rep(50)):find(('a*'):rep(40) .. 'b')", -ETIMEDOUT,
			":3: 'find' does not return"},
		{"local v = vec.new(1000000, 1):rolling_sum(1000000, 1)", -ETIMEDOUT,
			":3: 'rolling_sum' does not return"},
	};
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof(hogs) / sizeof(*hogs); i++) {
		int rc;

		/* One limit at a time: filling 512 MiB may take half a second of processor time.
		 * Processor time does not depend on other load. */
		setenv("CULPRIT_LUA_SECONDS", hogs[i].code == -ETIMEDOUT ? "0.5" : "60", 1);
		rc = attempt_body(hogs[i].body, &e);
		if (rc != hogs[i].code || !strstr(e.text, path) || !strstr(e.text, hogs[i].says))
			fail_msg("%s: %d '%s'", hogs[i].body, rc, e.text);
	}
	setenv("CULPRIT_LUA_SECONDS", "0.5", 1);
	assert_int_equal(attempt("while true do end", &e), -ETIMEDOUT); /* during loading */
	unsetenv("CULPRIT_LUA_SECONDS");
	/* Garbage does not count: 800 MB in total, 80 MB at a time. */
	if (attempt_body("local v for i = 1, 10 do v = vec.new(10000000) end do return {} end", &e))
		fail_msg("%s", e.text);
}

/* A failure in one run does not affect other runs. */
static void a_crash_and_an_endless_loop_affect_one_run(void **state)
{
	static const char text[] =
		"return { name = 'm', summary = 's', diagnose = function(run)\n"
		"if run.id == 'loops' then while true do end end\n"
		"if run.id == 'hangs' then return (('a'):rep(50)):find(('a*'):rep(40) .. 'b') end\n"
		"if run.id == 'fails' then error('mine') end\n"
		"return { { metric = 'any', indicted = { run.servers[1] } } } end }";
	static const char *const ids[] = {
		"good", "loops", "good", "hangs", "good", "fails", "good"};
	static const int codes[] = {0, -ETIMEDOUT, 0, -ETIMEDOUT, 0, -EINVAL, 0};
	enum { N = sizeof(ids) / sizeof(*ids) };
	static const char *const servers[] = {"A", "B"};
	const struct detector_run *list[N];
	struct detector_answer answers[N];
	struct detector_run runs[N];
	json_t *model = json_object();
	struct detector *d;
	struct err e;

	(void)state;
	setenv("CULPRIT_LUA_SECONDS", "0.3", 1);
	assert_int_equal(file_write_atomic(path, 0600, text, strlen(text), &e), 0);
	d = load(path, NULL);
	for (size_t i = 0; i < N; i++) {
		runs[i] = (struct detector_run){
			.id = ids[i], .seconds = 10, .servers = servers, .n_servers = 2};
		list[i] = &runs[i];
	}
	assert_int_equal(detector_diagnose_all(d, model, list, answers, N, &e), 0);
	for (size_t i = 0; i < N; i++) {
		assert_int_equal(answers[i].rc, codes[i]);
		if (!codes[i])
			assert_string_equal(verdict(answers[i].verdicts, "any"), "A");
		json_decref(answers[i].verdicts);
	}
	/* A detector that never ends does not hold up a run overnight. */
	for (size_t i = 0; i < N; i++)
		runs[i].id = "hangs";
	assert_int_equal(detector_diagnose_all(d, model, list, answers, N, &e), 0);
	for (size_t i = 0; i < N; i++)
		assert_int_equal(answers[i].rc, -ETIMEDOUT);
	json_decref(model);
	detector_free(d);
	unsetenv("CULPRIT_LUA_SECONDS");
}

/* The limit on processor time grows with the size of the run. */
static void large_runs_may_take_longer(void **state)
{
	static const char text[] =
		"return { name = 'm', summary = 's', diagnose = function() for _ = 1, 150000000 "
		"do end return {} end }";
	const char *many[300];
	struct detector_run run = {.id = "r", .seconds = 10, .servers = many, .n_servers = 300};
	struct detector *d;
	json_t *model = json_object(), *v = NULL;
	char own[300][8];
	struct err e;

	(void)state;
	setenv("CULPRIT_LUA_SECONDS", "0.1", 1);
	for (size_t i = 0; i < 300; i++) {
		snprintf(own[i], sizeof(own[i]), "s%zu", i);
		many[i] = own[i];
	}
	assert_int_equal(file_write_atomic(path, 0600, text, strlen(text), &e), 0);
	d = load(path, NULL);
	assert_int_equal(detector_diagnose(d, model, &run, &v, &e), -ETIMEDOUT);
	run.seconds = 10000;
	assert_int_equal(detector_diagnose(d, model, &run, &v, &e), 0);
	json_decref(v);
	json_decref(model);
	detector_free(d);
	unsetenv("CULPRIT_LUA_SECONDS");
}

static void names_and_resources_are_checked(void **state)
{
	static const char *const resources[] = {
		"disk\\nnot ok 1", "", "a/b/c", "/", "disk/", "\\27[31m"};
	char body[256];
	struct err e;

	(void)state;
	assert_int_equal(attempt("return { name = '../../etc', summary = 's',\n"
				 "diagnose = function() return {} end }",
				 &e),
		-EINVAL);
	assert_non_null(strstr(e.text, "mine.lua:1: detector name '../../etc'"));
	for (size_t i = 0; i < sizeof(resources) / sizeof(*resources); i++) {
		snprintf(body, sizeof(body),
			"do return { { metric = 'any', indicted = { 'A' },\nresource = '%s' } } "
			"end",
			resources[i]);
		if (attempt_body(body, &e) != -EINVAL ||
			!strstr(e.text, ":4: a verdict's 'resource'"))
			fail_msg("'%s': %s", resources[i], e.text);
	}
	assert_int_equal(attempt_body("do return { { metric = 'any', indicted = { 'A' }, "
				      "resource = 'network/hog' } } end",
				 &e),
		0);
}

/* Series look like tables of vecs, but vecs are made on access. */
static void series_are_made_on_access(void **state)
{
	struct err e;

	(void)state;
	if (attempt_body(
		    "local s, n = run.series.dread.A, 0\n"
		    "for name, v in pairs(s) do n = n + 1 assert(s[name] == v and #v == "
		    "run.seconds) end\n"
		    "assert(n == 5 and s.nothing == nil and tostring(s) == 'series' and "
		    "#run.metrics == 4)\n"
		    "local mean, count, sum, max = s.mean, s.count, s.sum, s.max\n"
		    "for t = 1, #mean do\n"
		    "  if count[t] == 0 then assert(mean[t] ~= mean[t] and sum[t] ~= sum[t] and "
		    "max[t] ~= max[t] and s.bytes[t] == 0)\n"
		    "  else assert(count[t] == 2 and s.bytes[t] == 100 and math.abs(mean[t] * 2 - "
		    "sum[t]) < 1e-12) end\n"
		    "end\n"
		    "assert(run.series.ncread.B.sum:count() == 0 and "
		    "run.series.ncread.B.count:max() == 0)\n"
		    "assert(not pcall(function() s.mean = 3 end))\n"
		    "do return {} end",
		    &e))
		fail_msg("%s", e.text);
}

static void malformed_detectors_are_refused_with_their_line(void **state)
{
	static const struct {
		const char *text, *says;
	} bad[] = {
		{"return { name = 'm', summary = 's',\n diagnoze = function() end }",
			":2: detector: unknown key 'diagnoze'; did "
			"you mean 'diagnose'?"},
		{"return { name = 'm', summary = 's' }", "'diagnose' is missing"},
		{"return { name = 'm', summary = 's', diagnose = 3 }",
			"'diagnose' must be a function"},
		{"return 3", "must return a table"},
		{"return {\n name = = }", ":2: unexpected symbol"},
		{"return { name = 'm', summary = 's', diagnose = function() end,\n params = { w = "
		 "{ default = 1 } } }",
			"parameter 'w': 'help' is missing"},
		{"return { name = 'm', summary = 's', diagnose = function() end }",
			"must return a table, not a nil"},
		{"return { name = 'm', summary = 's', diagnose = function() return { 3 } end }",
			"list of verdicts"},
		{"return { name = 'm', summary = 's', diagnose = function() return { { metric = "
		 "'dred' } } end }",
			"a verdict's metric must be"},
		{"return { name = 'm', summary = 's', diagnose = function()\n return { { metric = "
		 "'any',\n indited = {} } } end }",
			":3: verdict: unknown key 'indited'; did you mean 'indicted'?"},
		{"return { name = 'm', summary = 's', diagnose = function()\n return { { metric = "
		 "'any', indicted = { 'Z' } } } "
		 "end }",
			"'Z', which is not a server"},
		{"return { name = 'm', summary = 's', diagnose = function()\n return { { metric = "
		 "'any', indicted = { 'A' }, "
		 "abstain = true } } end }",
			"abstains and indicts"},
		{"return { name = 'm', summary = 's', diagnose = function()\n return { { metric = "
		 "'dread' }, { metric = 'dread' } } "
		 "end }",
			"two verdicts on 'dread'"},
		{"return { name = 'm', summary = 's', diagnose = function(run)\n return { { "
		 "metric = 'any', evidence = { x = 0/0 } } } "
		 "end }",
			"not finite"},
		{"return { name = 'm', summary = 's', diagnose = function(run)\n local x = "
		 "run.series.dread.A.mean + vec.new(3) "
		 "end }",
			":2: vecs of different lengths (60 and 3)"},
		{"return { name = 'm', summary = 's', diagnose = function(run)\n return "
		 "run.nothing.x end }",
			":2: attempt to index"},
		{"return { name = 'm', summary = 's', train = function() return { 1 } end, "
		 "diagnose = function() return {} end }",
			"named entries"},
	};
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		if (attempt(bad[i].text, &e) != -EINVAL)
			fail_msg("accepted: %s", bad[i].text);
		if (!strstr(e.text, bad[i].says) || !strstr(e.text, path))
			fail_msg("'%s' does not say '%s'", e.text, bad[i].says);
	}
}

static void parameters_are_checked(void **state)
{
	static const struct {
		const char *params, *says;
	} bad[] = {
		{"{\"windw\": 3}",
			"detector 'peer-threshold': unknown key 'windw'; did you mean 'window'?"},
		{"{\"window\": 0}", "between 1 and 600"},
		{"{\"window\": 2.5}", "whole number"},
		{"{\"window\": \"5\"}", "must be a number"},
		{"{\"margin\": true}", "must be a number"},
	};
	struct detector *d = NULL;
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		json_t *params = json_loads(bad[i].params, 0, NULL);

		assert_int_equal(detector_load("peer-threshold", params, &d, &e), -EINVAL);
		if (!strstr(e.text, bad[i].says))
			fail_msg("'%s' does not say '%s'", e.text, bad[i].says);
		json_decref(params);
	}
	d = load("seeded-random", json_pack("{s:s}", "indict", "25%"));
	assert_int_equal(json_integer_value(json_object_get(detector_params(d), "indict")), 25);
	assert_int_equal(json_integer_value(json_object_get(detector_params(d), "seed")), 1);
	detector_free(d);
	assert_int_equal(detector_load("peer-treshold", NULL, &d, &e), -ENOENT);
	assert_non_null(strstr(e.text, "did you mean 'peer-threshold'?"));
	assert_int_equal(detector_load("fleet", NULL, &d, &e), -ENOENT);
	assert_non_null(strstr(e.text, "judges series, not runs"));
	assert_int_equal(detector_load("detector.meta", NULL, &d, &e), -ENOENT);
	assert_int_equal(detector_load("/nonexistent.lua", NULL, &d, &e), -ENOENT);
}

static void the_union_is_formed_if_the_detector_gives_none(void **state)
{
	static const char text[] =
		"return { name = 'm', summary = 's', diagnose = function() return {\n"
		"{ metric = 'dread', indicted = { 'C', 'A', 'C' } }, { metric = 'dwrite', abstain "
		"= true },\n"
		"{ metric = 'nsread', indicted = { 'B' } } } end }";
	struct series *s = series_new(4, 1);
	struct detector *d;
	json_t *model = json_object(), *v;
	struct err e;

	(void)state;
	assert_int_equal(file_write_atomic(path, 0600, text, strlen(text), &e), 0);
	fill(s, METRIC_DREAD, -1, 1);
	d = load(path, NULL);
	v = diagnose(d, model, &s->run);
	assert_int_equal(json_array_size(v), 4);
	assert_string_equal(verdict(v, "dread"), "A C");
	assert_string_equal(verdict(v, "any"), "A B C");
	json_decref(v);
	json_decref(model);
	detector_free(d);
	series_free(s);
}

/* The first example that an author tries. */
static void the_example_in_the_readme_works(void **state)
{
	struct series *s = series_new(4, 4);
	char *file, *text, *from, *to;
	struct detector *d;
	json_t *model = json_object(), *v;
	struct err e;

	(void)state;
	assert_int_equal(home_path("diag/detectors/README.md", &file, &e), 0);
	assert_int_equal(file_read(file, &text, NULL, &e), 0);
	from = strstr(text, "```lua\n");
	assert_non_null(from);
	from += strlen("```lua\n");
	to = strstr(from, "```");
	assert_non_null(to);
	assert_int_equal(file_write_atomic(path, 0600, from, (size_t)(to - from), &e), 0);
	d = load(path, json_pack("{s:f}", "ratio", 2.5));
	fill(s, METRIC_DREAD, 1, 20);
	v = diagnose(d, model, &s->run);
	assert_string_equal(verdict(v, "any"), "B");
	json_decref(v);
	s->n = 0;
	fill(s, METRIC_DREAD, -1, 1);
	v = diagnose(d, model, &s->run);
	assert_string_equal(verdict(v, "any"), "");
	json_decref(v);
	json_decref(model);
	detector_free(d);
	free(file);
	free(text);
	series_free(s);
}

static int descriptors(void)
{
	int n = 0;

	for (int fd = 0; fd < 1000; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* Gives a detector of 'text' many runs, each of which opens descriptors. */
static void ask_often(const char *name, const char *text, mode_t mode)
{
	struct series *s = series_new(4, 1);
	json_t *model = json_object(), *v;
	struct detector *d;
	struct err e;
	char file[80];
	int before = descriptors();

	snprintf(file, sizeof(file), "%s/%s", folder, name);
	assert_int_equal(file_write_atomic(file, mode, text, strlen(text), &e), 0);
	fill(s, METRIC_DREAD, -1, 1);
	d = load(file, NULL);
	for (int i = 0; i < 5; i++) {
		if (detector_diagnose(d, model, &s->run, &v, &e))
			fail_msg("%s", e.text);
		json_decref(v);
	}
	json_decref(model);
	detector_free(d);
	series_free(s);
	unlink(file);
	assert_int_equal(descriptors(), before);
}

static void a_verdict_leaves_no_descriptor_open(void **state)
{
	(void)state;
	ask_often("some.lua",
		"return { name = 'm', summary = 's', diagnose = function() return { { metric = "
		"'any', indicted = {} } } end }",
		0600);
	detector_trust_programs(true);
	ask_often("program",
		"#!/bin/sh\ncat >/dev/null\necho '[{\"metric\":\"any\",\"indicted\":[]}]'\n", 0755);
	detector_trust_programs(false);
}

/* Is 'word' in the list? */
static bool listed(const char *word, size_t len, const char *const *list)
{
	for (; *list; list++)
		if (strlen(*list) == len && !strncmp(*list, word, len))
			return true;
	return false;
}

static void the_meta_file_names_every_function_and_no_other(void **state)
{
	static const struct {
		const char *prefix;
		bool of_methods;
	} parts[] = {{"function Vec:", true}, {"function vec.", false}};
	char *file, *text;
	struct err e;

	(void)state;
	assert_int_equal(home_path("diag/detectors/detector.meta.lua", &file, &e), 0);
	assert_int_equal(file_read(file, &text, NULL, &e), 0);
	for (int i = 0; i < 2; i++) {
		for (const char *const *name = vec_names(parts[i].of_methods); *name; name++) {
			char wanted[64];

			snprintf(wanted, sizeof(wanted), "%s%s(", parts[i].prefix, *name);
			if (!strstr(text, wanted))
				fail_msg("%s is registered, but not in the meta file", *name);
		}
		for (const char *p = text; (p = strstr(p, parts[i].prefix));) {
			p += strlen(parts[i].prefix);
			if (!listed(p, strcspn(p, "("), vec_names(parts[i].of_methods)))
				fail_msg("%.20s is in the meta file, but not registered", p);
		}
	}
	free(file);
	free(text);
}

static int count_built_in(void *ctx, const struct detector *d)
{
	++*(int *)ctx;
	assert_non_null(detector_summary(d));
	return 0;
}

static void built_in_detectors_load(void **state)
{
	int n = 0;
	struct err e;

	(void)state;
	assert_int_equal(detector_each(count_built_in, &n, &e), 0);
	assert_true(n >= 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_meta_file_names_every_function_and_no_other),
		cmocka_unit_test(built_in_detectors_load),
		cmocka_unit_test(the_sandbox_has_no_way_out),
		cmocka_unit_test(a_verdict_leaves_no_descriptor_open),
		cmocka_unit_test(limits_hold),
		cmocka_unit_test(a_crash_and_an_endless_loop_affect_one_run),
		cmocka_unit_test(large_runs_may_take_longer),
		cmocka_unit_test(names_and_resources_are_checked),
		cmocka_unit_test(series_are_made_on_access),
		cmocka_unit_test(malformed_detectors_are_refused_with_their_line),
		cmocka_unit_test(parameters_are_checked),
		cmocka_unit_test(the_example_in_the_readme_works),
		cmocka_unit_test(the_union_is_formed_if_the_detector_gives_none),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("detector", tests, set_up, tear_down);
}
