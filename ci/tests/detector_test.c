/* Detectors: the sandbox, the form, and for each a twin: planted fault found, clean run silent. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants those four first */
#include <cmocka.h>
#include <errno.h>
#include <gsl/gsl_randist.h>
#include <gsl/gsl_rng.h>
#include <lauxlib.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "diag/detectors/detector.h"
#include "diag/detectors/vec.h"
#include "harness/base/file.h"
#include "harness/base/home.h"
#include "harness/base/lua/luax.h"

enum { SECONDS = 60, ONSET = 15, END = 45, SERVERS_MAX = 10 };

static const char *const names[SERVERS_MAX] = {"A", "B", "C", "D", "E", "F", "G", "H", "I", "J"};

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

/* Samples of one run under construction. */
struct series {
	gsl_rng *rng;
	size_t servers, n;
	struct sample samples[METRIC_SERVICE_TIMES * SERVERS_MAX * SECONDS];
	struct detector_run run;
};

static struct series *series_new(size_t servers, unsigned long seed)
{
	struct series *s = calloc(1, sizeof(*s));

	s->servers = servers;
	s->rng = gsl_rng_alloc(gsl_rng_mt19937);
	gsl_rng_set(s->rng, seed);
	return s;
}

static void series_free(struct series *s)
{
	gsl_rng_free(s->rng);
	free(s);
}

static void put(struct series *s, enum metric m, size_t server, int second, double value)
{
	s->samples[s->n++] = (struct sample){m, (uint32_t)server, second, 2, value * 2, value * 1.5, 100};
	s->run = (struct detector_run){"r", SECONDS, names, s->servers, s->samples, s->n};
}

/* Heavy-tailed: lognormal, and one second in twenty is up to ten times as long. */
static double noise(struct series *s)
{
	double x = exp(gsl_ran_gaussian(s->rng, 0.3));

	return gsl_rng_uniform(s->rng) < 0.05 ? x * (1 + 9 * gsl_rng_uniform(s->rng)) : x;
}

/* Every server around 10 ms in 'm', the victim (or -1) 'factor' times that while the fault lasts. */
static void fill(struct series *s, enum metric m, int victim, double factor)
{
	for (size_t server = 0; server < s->servers; server++)
		for (int t = 0; t < SECONDS; t++) {
			bool ill = (int)server == victim && t >= ONSET && t < END;

			if (gsl_rng_uniform(s->rng) < 0.1)
				continue;
			put(s, m, server, t, 0.01 * noise(s) * (ill ? factor : 1));
		}
}

static struct detector *load(const char *name, json_t *params)
{
	struct detector *d = NULL;
	struct err e;

	if (detector_load(name, params, &d, &e))
		fail_msg("%s", e.text);
	json_decref(params);
	return d;
}

static json_t *train(struct detector *d, const struct detector_run *runs, size_t n)
{
	json_t *model = NULL, *again;
	struct err e;
	char *text;

	if (detector_train(d, runs, n, &model, &e))
		fail_msg("%s", e.text);
	/* As the harness does: through a file. */
	text = json_dumps(model, JSON_COMPACT);
	again = json_loads(text, 0, NULL);
	free(text);
	json_decref(model);
	return again;
}

static json_t *diagnose(struct detector *d, const json_t *model, const struct detector_run *run)
{
	json_t *verdicts = NULL;
	struct err e;

	if (detector_diagnose(d, model, run, &verdicts, &e))
		fail_msg("%s", e.text);
	return verdicts;
}

/* The verdict on a metric as "A B", "" or "abstain"; static. */
static const char *verdict(const json_t *verdicts, const char *metric)
{
	static char text[64];
	json_t *v, *name;
	size_t i, k;

	strcpy(text, "missing");
	json_array_foreach((json_t *)verdicts, i, v) {
		if (strcmp(json_string_value(json_object_get(v, "metric")), metric))
			continue;
		strcpy(text, json_is_true(json_object_get(v, "abstain")) ? "abstain" : "");
		json_array_foreach(json_object_get(v, "indicted"), k, name) {
			if (k)
				strcat(text, " ");
			strcat(text, json_string_value(name));
		}
	}
	return text;
}

/* Trained on a write and a read run without fault. */
static json_t *usual_training(struct detector *d, size_t servers)
{
	struct series *w = series_new(servers, 1), *r = series_new(servers, 2);
	json_t *model;

	fill(w, METRIC_DWRITE, -1, 1);
	fill(w, METRIC_NSREAD, -1, 1);
	fill(r, METRIC_DREAD, -1, 1);
	fill(r, METRIC_NSREAD, -1, 1);
	model = train(d, (struct detector_run[]){w->run, r->run}, 2);
	series_free(w);
	series_free(r);
	return model;
}

static void peer_threshold_finds_the_planted_fault_and_is_silent_without(void **state)
{
	struct detector *d = load("peer-threshold", NULL);
	int found = 0, alarms = 0;

	(void)state;
	assert_true(detector_trains(d));
	for (size_t servers = 4; servers <= 10; servers += 6) {
		json_t *model = usual_training(d, servers);

		for (unsigned seed = 10; seed < 30; seed++) {
			struct series *ill = series_new(servers, seed), *well = series_new(servers, seed);
			int victim = (int)(seed % servers);
			json_t *v;

			fill(ill, METRIC_DWRITE, victim, 8);
			fill(ill, METRIC_NSREAD, -1, 1);
			v = diagnose(d, model, &ill->run);
			found += strchr(verdict(v, "dwrite"), *names[victim]) != NULL;
			alarms += strlen(verdict(v, "dwrite")) > 1;
			alarms += strcmp(verdict(v, "nsread"), "") != 0;
			assert_string_equal(verdict(v, "dread"), "abstain"); /* trained, but not in this run */
			assert_string_equal(verdict(v, "ncread"), "abstain"); /* never seen */
			json_decref(v);

			fill(well, METRIC_DWRITE, -1, 1);
			fill(well, METRIC_NSREAD, -1, 1);
			v = diagnose(d, model, &well->run);
			alarms += strcmp(verdict(v, "any"), "") != 0;
			json_decref(v);
			series_free(ill);
			series_free(well);
		}
		json_decref(model);
	}
	assert_int_equal(found, 40);
	assert_in_range(alarms, 0, 6); /* of 120: the noise is wild, and a threshold is no proof */
	detector_free(d);
}

static void peer_threshold_gives_its_evidence(void **state)
{
	struct detector *d = load("peer-threshold", NULL);
	json_t *model = usual_training(d, 4), *v, *evidence, *server;
	struct series *s = series_new(4, 3);
	long second;

	(void)state;
	fill(s, METRIC_DREAD, 2, 10);
	v = diagnose(d, model, &s->run);
	assert_string_equal(json_string_value(json_object_get(json_array_get(v, 0), "metric")), "dread");
	evidence = json_object_get(json_array_get(v, 0), "evidence");
	assert_int_equal(json_integer_value(json_object_get(evidence, "seconds")), SECONDS);
	server = json_object_get(json_object_get(evidence, "servers"), "C");
	assert_true(json_number_value(json_object_get(server, "deviation_s")) >
		    json_number_value(json_object_get(server, "threshold_s")));
	second = (long)json_integer_value(json_object_get(server, "worst_second"));
	assert_true(second >= ONSET && second < END + 10);
	json_decref(v);
	json_decref(model);
	series_free(s);
	detector_free(d);
}

/* Single seconds, however wild, are no fault: the statistic is a median over a window. */
static void peer_threshold_shrugs_off_lone_spikes(void **state)
{
	struct detector *d = load("peer-threshold", NULL);
	json_t *model = usual_training(d, 4), *v;
	struct series *s = series_new(4, 5);

	(void)state;
	for (size_t server = 0; server < 4; server++)
		for (int t = 0; t < SECONDS; t++)
			put(s, METRIC_DREAD, server, t, server == 1 && t % 4 == 0 ? 30 : 0.01);
	v = diagnose(d, model, &s->run);
	assert_string_equal(verdict(v, "dread"), "");
	json_decref(v);
	json_decref(model);
	series_free(s);
	detector_free(d);
}

/* B is always slow: its own normal is no fault, more than that is; and it doesn't shift its peers' median. */
static void peer_threshold_allows_for_a_saturated_server(void **state)
{
	struct detector *d = load("peer-threshold", NULL);
	struct series *t = series_new(4, 6), *well = series_new(4, 7), *ill = series_new(4, 8);
	struct series *all[] = {t, well, ill};
	json_t *model, *v;

	(void)state;
	for (int i = 0; i < 3; i++)
		for (size_t server = 0; server < 4; server++)
			for (int k = 0; k < SECONDS; k++)
				put(all[i], METRIC_DWRITE, server, k,
				    (server == 1 ? 0.03 : 0.01) * (1 + 0.1 * gsl_rng_uniform(all[i]->rng)) *
					    (i == 2 && server == 1 && k > ONSET ? 5 : 1));
	model = train(d, &t->run, 1);
	v = json_object_get(json_object_get(json_object_get(model, "metrics"), "dwrite"), "saturated");
	assert_true(json_is_true(json_object_get(v, "B")));
	assert_int_equal(json_object_size(v), 1);
	v = diagnose(d, model, &well->run);
	assert_string_equal(verdict(v, "any"), "");
	json_decref(v);
	v = diagnose(d, model, &ill->run);
	assert_string_equal(verdict(v, "any"), "B");
	json_decref(v);
	json_decref(model);
	for (int i = 0; i < 3; i++)
		series_free(all[i]);
	detector_free(d);
}

static void peer_threshold_abstains_where_it_cannot_tell(void **state)
{
	struct detector *d = load("peer-threshold", NULL);
	struct series *two = series_new(2, 1), *gone = series_new(4, 2), *none = series_new(4, 3);
	json_t *model, *v;

	(void)state;
	/* Two servers: nobody can tell which of them is slow. */
	fill(two, METRIC_DREAD, 0, 10);
	model = train(d, &two->run, 1);
	v = diagnose(d, model, &two->run);
	assert_string_equal(verdict(v, "any"), "abstain");
	json_decref(v);
	json_decref(model);

	/* No training at all, and a run without any sample. */
	model = train(d, NULL, 0);
	fill(gone, METRIC_DREAD, 0, 10);
	v = diagnose(d, model, &gone->run);
	assert_string_equal(verdict(v, "any"), "abstain");
	json_decref(v);
	json_decref(model);
	model = usual_training(d, 4);
	none->run = (struct detector_run){"r", SECONDS, names, 4, none->samples, 0};
	v = diagnose(d, model, &none->run);
	assert_string_equal(verdict(v, "any"), "abstain");
	json_decref(v);

	/* One server stops having samples: it is not judged, the others are. */
	gone->n = 0;
	for (size_t server = 0; server < 4; server++)
		for (int t = 0; t < (server == 3 ? 2 : SECONDS); t++)
			put(gone, METRIC_DREAD, server, t, server == 0 && t > ONSET ? 0.5 : 0.01);
	v = diagnose(d, model, &gone->run);
	assert_string_equal(verdict(v, "dread"), "A");
	json_decref(v);
	json_decref(model);
	series_free(two);
	series_free(gone);
	series_free(none);
	detector_free(d);
}

static void null_detectors_look_at_nothing(void **state)
{
	struct series *s = series_new(4, 9);
	int counts[5] = {0};
	struct detector *d;
	json_t *model, *v;
	char id[16];

	(void)state;
	fill(s, METRIC_DREAD, 2, 50);
	d = load("always-healthy", NULL);
	assert_false(detector_trains(d));
	model = train(d, NULL, 0);
	v = diagnose(d, model, &s->run);
	assert_int_equal(json_array_size(v), 1);
	assert_string_equal(verdict(v, "any"), "");
	json_decref(v);
	detector_free(d);

	d = load("always-same", json_pack("{s:i}", "server", 2));
	v = diagnose(d, model, &s->run);
	assert_string_equal(verdict(v, "any"), "B");
	json_decref(v);
	detector_free(d);

	d = load("seeded-random", json_pack("{s:i}", "seed", 7));
	for (int i = 0; i < 1000; i++) {
		const char *said;
		char first[8];

		snprintf(id, sizeof(id), "run-%d", i);
		s->run.id = id;
		v = diagnose(d, model, &s->run);
		said = verdict(v, "any");
		snprintf(first, sizeof(first), "%s", said);
		counts[*said ? *said - 'A' + 1 : 0]++;
		json_decref(v);
		if (i < 10) { /* the same run, the same verdict */
			v = diagnose(d, model, &s->run);
			assert_string_equal(verdict(v, "any"), first);
			json_decref(v);
		}
	}
	assert_in_range(counts[0], 440, 560);
	for (int i = 1; i < 5; i++)
		assert_in_range(counts[i], 85, 165);
	json_decref(model);
	detector_free(d);
	series_free(s);
}

/* Writes a detector and loads it; the error's code, or what its diagnose does. */
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

	snprintf(text, sizeof(text), "return { name = 'mine', summary = 'x', diagnose = function(run, model, params)\n\n%s\nend }\n",
		 body);
	return attempt(text, e);
}

static void the_sandbox_has_no_way_out(void **state)
{
	static const char *const ways[] = {
		"io.open('/etc/passwd')", "os.execute('true')", "require('os')", "dofile('/etc/passwd')",
		"loadfile('/etc/passwd')", "load('return 1')()", "debug.getregistry()", "package.loadlib('x', 'y')",
		"setmetatable({}, { __gc = print })", "getmetatable('').__index.x = 1", "collectgarbage('stop')",
		"coroutine.create(print)", "math.random()", "print('hello')", "rawset(_G, 'x', 1)",
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
	static const char *const hogs[] = {
		"while true do end",
		"while true do pcall(function() while true do end end) end",
		"local t = {} for i = 1, 1e12 do t[i] = i end",
		"local s = 'x' while true do s = s .. s end",
		"local t = {} while true do t[#t + 1] = vec.new(1000000) end",
		"local t = {} while true do pcall(function() t[#t + 1] = vec.new(10000000) end) end",
	};
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof(hogs) / sizeof(*hogs); i++) {
		int rc = attempt_body(hogs[i], &e);

		if (rc != -E2BIG || !strstr(e.text, "used up"))
			fail_msg("%s: %d '%s'", hogs[i], rc, e.text);
	}
	assert_int_equal(attempt("while true do end", &e), -E2BIG); /* while it loads */
	/* Garbage does not count: 800 MB in all, 80 MB at once. */
	if (attempt_body("local v for i = 1, 10 do v = vec.new(10000000) end do return {} end", &e))
		fail_msg("%s", e.text);
}

/* Instructions grow with what there is to look at: 150 million are too many for a small run, not for a large one. */
static void large_runs_may_take_longer(void **state)
{
	static const char text[] = "return { name = 'm', summary = 's', diagnose = function() for _ = 1, 150000000 do end return {} end }";
	const char *many[300];
	struct detector_run run = {.id = "r", .seconds = 1000, .servers = many, .n_servers = 1};
	struct detector *d;
	json_t *model = json_object(), *v = NULL;
	char own[300][8];
	struct err e;

	(void)state;
	for (size_t i = 0; i < 300; i++) {
		snprintf(own[i], sizeof(own[i]), "s%zu", i);
		many[i] = own[i];
	}
	assert_int_equal(file_write_atomic(path, 0600, text, strlen(text), &e), 0);
	d = load(path, NULL);
	assert_int_equal(detector_diagnose(d, model, &run, &v, &e), -E2BIG);
	assert_non_null(strstr(e.text, "101 million"));
	run.n_servers = 300;
	assert_int_equal(detector_diagnose(d, model, &run, &v, &e), 0);
	json_decref(v);
	json_decref(model);
	detector_free(d);
}

/* Series look like tables of vecs, though they are made when they are asked for. */
static void series_are_made_when_asked_for(void **state)
{
	struct err e;

	(void)state;
	if (attempt_body("local s, n = run.series.dread.A, 0\n"
			 "for name, v in pairs(s) do n = n + 1 assert(s[name] == v and #v == run.seconds) end\n"
			 "assert(n == 5 and s.nothing == nil and tostring(s) == 'series' and #run.metrics == 4)\n"
			 "local mean, count, sum, max = s.mean, s.count, s.sum, s.max\n"
			 "for t = 1, #mean do\n"
			 "  if count[t] == 0 then assert(mean[t] ~= mean[t] and sum[t] ~= sum[t] and max[t] ~= max[t] and s.bytes[t] == 0)\n"
			 "  else assert(count[t] == 2 and s.bytes[t] == 100 and math.abs(mean[t] * 2 - sum[t]) < 1e-12) end\n"
			 "end\n"
			 "assert(run.series.ncread.B.sum:count() == 0 and run.series.ncread.B.count:max() == 0)\n"
			 "assert(not pcall(function() s.mean = 3 end))\n"
			 "do return {} end", &e))
		fail_msg("%s", e.text);
}

static void what_does_not_fit_is_refused_with_its_line(void **state)
{
	static const struct {
		const char *text, *says;
	} bad[] = {
		{"return { name = 'm', summary = 's',\n diagnoze = function() end }", ":2: detector: unknown key 'diagnoze'; did "
										     "you mean 'diagnose'?"},
		{"return { name = 'm', summary = 's' }", "'diagnose' is missing"},
		{"return { name = 'm', summary = 's', diagnose = 3 }", "'diagnose' must be a function"},
		{"return 3", "must return a table"},
		{"return {\n name = = }", ":2: unexpected symbol"},
		{"return { name = 'm', summary = 's', diagnose = function() end,\n params = { w = { default = 1 } } }",
		 "parameter 'w': 'help' is missing"},
		{"return { name = 'm', summary = 's', diagnose = function() end }", "must return a table, not a nil"},
		{"return { name = 'm', summary = 's', diagnose = function() return { 3 } end }", "list of verdicts"},
		{"return { name = 'm', summary = 's', diagnose = function() return { { metric = 'dred' } } end }",
		 "a verdict's metric is"},
		{"return { name = 'm', summary = 's', diagnose = function()\n return { { metric = 'any',\n indited = {} } } end }",
		 ":3: verdict: unknown key 'indited'; did you mean 'indicted'?"},
		{"return { name = 'm', summary = 's', diagnose = function()\n return { { metric = 'any', indicted = { 'Z' } } } "
		 "end }", "'Z', which is no server"},
		{"return { name = 'm', summary = 's', diagnose = function()\n return { { metric = 'any', indicted = { 'A' }, "
		 "abstain = true } } end }", "abstains and indicts"},
		{"return { name = 'm', summary = 's', diagnose = function()\n return { { metric = 'dread' }, { metric = 'dread' } } "
		 "end }", "two verdicts on 'dread'"},
		{"return { name = 'm', summary = 's', diagnose = function(run)\n return { { metric = 'any', evidence = { x = 0/0 } } } "
		 "end }", "not finite"},
		{"return { name = 'm', summary = 's', diagnose = function(run)\n local x = run.series.dread.A.mean + vec.new(3) "
		 "end }", ":2: vecs of different lengths (60 and 3)"},
		{"return { name = 'm', summary = 's', diagnose = function(run)\n return run.nothing.x end }", ":2: attempt to index"},
		{"return { name = 'm', summary = 's', train = function() return { 1 } end, diagnose = function() return {} end }",
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
		{"{\"windw\": 3}", "detector 'peer-threshold' has no parameter 'windw'; did you mean 'window'?"},
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
	assert_int_equal(detector_load("detector.meta", NULL, &d, &e), -ENOENT);
	assert_int_equal(detector_load("/nonexistent.lua", NULL, &d, &e), -ENOENT);
}

static void the_union_is_formed_where_the_detector_gives_none(void **state)
{
	static const char text[] = "return { name = 'm', summary = 's', diagnose = function() return {\n"
				   "{ metric = 'dread', indicted = { 'C', 'A', 'C' } }, { metric = 'dwrite', abstain = true },\n"
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

/* Samples of recorded run 'number' in ci/tests/data/lab-samples.csv. */
static void recorded(struct series *s, int number)
{
	char *file, *text, *save = NULL;
	struct err e;

	assert_int_equal(home_path("ci/tests/data/lab-samples.csv", &file, &e), 0);
	assert_int_equal(file_read(file, &text, NULL, &e), 0);
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		struct sample *x = &s->samples[s->n];
		unsigned long long count, bytes;
		char metric[16];
		int run;

		if (sscanf(line, "%d,%15[^,],%u,%d,%llu,%lf,%lf,%llu", &run, metric, &x->server, &x->second, &count,
			   &x->sum_s, &x->max_s, &bytes) != 8 || run != number)
			continue;
		assert_int_equal(metric_from_name(metric, &x->metric), 0);
		x->count = count;
		x->bytes = bytes;
		s->n++;
	}
	assert_true(s->n > 100);
	s->run = (struct detector_run){"r", 30, names, 4, s->samples, s->n};
	free(file);
	free(text);
}

/* Real GlusterFS servers, a real fault, real controls; see ci/tests/data/README.md. */
static void recorded_lab_runs_are_judged_right(void **state)
{
	struct detector *d = load("peer-threshold", NULL);
	struct series *s[5];
	json_t *model, *v;

	(void)state;
	for (int i = 0; i < 5; i++) {
		s[i] = series_new(4, 1);
		recorded(s[i], i + 1);
	}
	model = train(d, (struct detector_run[]){s[0]->run, s[1]->run}, 2);
	v = diagnose(d, model, &s[2]->run);
	assert_string_equal(verdict(v, "nsread"), "D");
	assert_string_equal(verdict(v, "dwrite"), "");
	assert_string_equal(verdict(v, "dread"), "abstain");
	assert_string_equal(verdict(v, "any"), "D");
	json_decref(v);
	for (int i = 3; i < 5; i++) {
		v = diagnose(d, model, &s[i]->run);
		assert_string_equal(verdict(v, "any"), "");
		json_decref(v);
	}
	json_decref(model);
	for (int i = 0; i < 5; i++)
		series_free(s[i]);
	detector_free(d);
}

/* The first thing that an author tries. */
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

static void run_chunk(const char *chunk)
{
	lua_State *L = luax_new();

	vec_open(L);
	if (luaL_dostring(L, chunk))
		fail_msg("%s", lua_tostring(L, -1));
	lua_close(L);
}

static void vec_computes(void **state)
{
	(void)state;
	run_chunk("local nan = 0/0\n"
		  "local v = vec.of { 3, nan, 1, 2 }\n"
		  "assert(#v == 4 and v[1] == 3 and v[2] ~= v[2])\n"
		  "assert(v:count() == 3 and v:sum() == 6 and v:mean() == 2 and v:median() == 2)\n"
		  "local m, i = v:max() assert(m == 3 and i == 1)\n"
		  "m, i = v:min() assert(m == 1 and i == 3)\n"
		  "m, i = vec.new(3):max() assert(m ~= m and i == nil)\n"
		  "assert(v:quantile(0) == 1 and v:quantile(1) == 3 and v:quantile(0.25) == 1.5)\n"
		  "assert(v:above(1) == 2 and (-v):abs()[3] == 1 and (2 * v - 1)[4] == 3 and (v / v)[1] == 1)\n"
		  "assert((v + v)[1] == 6 and (1 / v)[4] == 0.5 and (v + v)[2] ~= (v + v)[2])\n"
		  "assert(math.abs(vec.of { math.exp(2) }:log()[1] - 2) < 1e-12 and vec.of { 0 }:log():count() == 0)\n"
		  "local s = v:slice(3) assert(#s == 2 and s[1] == 1 and #v:slice(1, 0) == 0)\n"
		  "local r = vec.of { 1, 9, 2, nan, 4 }:rolling_median(3, 2)\n"
		  "assert(r[1] ~= r[1] and r[2] == 5 and r[3] == 2 and r[4] == 5.5 and r[5] == 3)\n"
		  "r = vec.of { 1, 2, 6 }:rolling_mean(2) assert(r:count() == 2 and r[2] == 1.5 and r[3] == 4)\n"
		  "local w = vec.median({ v, vec.of { 5, nan, 1, nan }, vec.new(4, 7) }, 2)\n"
		  "assert(w[1] == 5 and w[2] ~= w[2] and w[3] == 1 and w[4] == 4.5)\n"
		  "assert(vec.present { v, vec.new(4) }[1] == 1)\n"
		  "assert(v:fill(7)[2] == 7 and v:fill(7)[3] == 1 and v:clamp(2)[3] == 2 and v:clamp(0, 2)[1] == 2)\n"
		  "assert(v:clamp(2)[2] ~= v:clamp(2)[2])\n"
		  "r = vec.of { 1, nan, 3, 4 }:rolling_sum(2, 1) assert(r[1] == 1 and r[2] == 1 and r[3] == 3 and r[4] == 7)\n"
		  "r = vec.of { 1, nan, 3, 4 }:rolling_sum(2) assert(r:count() == 1 and r[4] == 7)\n"
		  "w = vec.least { v, vec.of { 5, 4, 0, nan } } assert(w[1] == 3 and w[2] == 4 and w[3] == 0 and w[4] == 2)\n"
		  "assert(vec.least { vec.new(2), vec.new(2) }:count() == 0)\n"
		  "v[2] = 8 assert(v:max() == 8)\n"
		  "assert(not pcall(function() return v[5] end) and not pcall(function() return v[0] end))\n"
		  "assert(not pcall(function() v[5] = 1 end) and not pcall(function() return v:nothing() end))\n"
		  "assert(not pcall(vec.new, -1) and not pcall(vec.new, 1 << 40) and not pcall(vec.median, {}))\n"
		  "assert(not pcall(v.rolling_mean, v, 0) and not pcall(v.slice, v, 0) and not pcall(v.quantile, v, 2))\n"
		  "assert(not pcall(v.mean, {}) and not pcall(vec.median, { v, 3 }))\n");
}

/* As if each were left out by hand, for many lists: odd and even, with gaps and equal values. */
static void vec_others_leaves_one_out(void **state)
{
	(void)state;
	run_chunk("local nan, state = 0/0, 1\n"
		  "local function draw(n) state = state * 6364136223846793005 + 1442695040888963407 return (state >> 33) % n end\n"
		  "for round = 1, 300 do\n"
		  "  local n, least, list = 1 + draw(9), 1 + draw(4), {}\n"
		  "  for i = 1, n do\n"
		  "    list[i] = vec.new(11)\n"
		  "    for t = 1, 11 do list[i][t] = draw(4) == 0 and nan or draw(6) end\n"
		  "  end\n"
		  "  local got = vec.others(list, least)\n"
		  "  assert(#got == n)\n"
		  "  for i = 1, n do for t = 1, 11 do\n"
		  "    local rest = {}\n"
		  "    for k = 1, n do local x = list[k][t] if k ~= i and x == x then rest[#rest + 1] = x end end\n"
		  "    local want = #rest >= least and vec.of(rest):median() or nan\n"
		  "    local x = got[i][t]\n"
		  "    assert(x == want or (x ~= x and want ~= want), ('%g, not %g'):format(x, want))\n"
		  "  end end\n"
		  "end\n"
		  "assert(not pcall(vec.others, { vec.new(2) }, 0) and not pcall(vec.others, {}))\n");
}

/* Sorted by hand. */
static void rolling_medians_and_quantiles_are_exact(void **state)
{
	(void)state;
	run_chunk("local nan, state = 0/0, 7\n"
		  "local function draw(n) state = state * 6364136223846793005 + 1442695040888963407 return (state >> 33) % n end\n"
		  "for round = 1, 200 do\n"
		  "  local n, width = 1 + draw(30), 1 + draw(9)\n"
		  "  local least, v = 1 + draw(width), vec.new(n)\n"
		  "  for t = 1, n do v[t] = draw(5) == 0 and nan or draw(8) end\n"
		  "  local r = v:rolling_median(width, least)\n"
		  "  for t = 1, n do\n"
		  "    local s = {}\n"
		  "    for k = math.max(1, t - width + 1), t do if v[k] == v[k] then s[#s + 1] = v[k] end end\n"
		  "    table.sort(s)\n"
		  "    local h = #s // 2\n"
		  "    local want = #s < least and nan or #s % 2 == 1 and s[h + 1] or (s[h] + s[h + 1]) / 2\n"
		  "    assert(r[t] == want or (r[t] ~= r[t] and want ~= want))\n"
		  "  end\n"
		  "end\n"
		  "assert(vec.of { 5, 1, 3, 2, 4 }:quantile(0.75) == 4 and vec.of { 1, 2 }:quantile(0.25) == 1.25)\n");
}

/* Is 'word' in the list? */
static bool listed(const char *word, size_t len, const char *const *list)
{
	for (; *list; list++)
		if (strlen(*list) == len && !strncmp(*list, word, len))
			return true;
	return false;
}

static void the_meta_file_tells_what_there_is_both_ways(void **state)
{
	static const struct {
		const char *prefix;
		const char *const *(*names)(void);
	} parts[] = {{"function Vec:", vec_methods}, {"function vec.", vec_functions}};
	char *file, *text;
	struct err e;

	(void)state;
	assert_int_equal(home_path("diag/detectors/detector.meta.lua", &file, &e), 0);
	assert_int_equal(file_read(file, &text, NULL, &e), 0);
	for (int i = 0; i < 2; i++) {
		for (const char *const *name = parts[i].names(); *name; name++) {
			char wanted[64];

			snprintf(wanted, sizeof(wanted), "%s%s(", parts[i].prefix, *name);
			if (!strstr(text, wanted))
				fail_msg("%s is registered, but not in the meta file", *name);
		}
		for (const char *p = text; (p = strstr(p, parts[i].prefix));) {
			p += strlen(parts[i].prefix);
			if (!listed(p, strcspn(p, "("), parts[i].names()))
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
		cmocka_unit_test(vec_computes),
		cmocka_unit_test(vec_others_leaves_one_out),
		cmocka_unit_test(rolling_medians_and_quantiles_are_exact),
		cmocka_unit_test(the_meta_file_tells_what_there_is_both_ways),
		cmocka_unit_test(built_in_detectors_load),
		cmocka_unit_test(peer_threshold_finds_the_planted_fault_and_is_silent_without),
		cmocka_unit_test(peer_threshold_gives_its_evidence),
		cmocka_unit_test(peer_threshold_shrugs_off_lone_spikes),
		cmocka_unit_test(peer_threshold_allows_for_a_saturated_server),
		cmocka_unit_test(peer_threshold_abstains_where_it_cannot_tell),
		cmocka_unit_test(null_detectors_look_at_nothing),
		cmocka_unit_test(the_sandbox_has_no_way_out),
		cmocka_unit_test(limits_hold),
		cmocka_unit_test(large_runs_may_take_longer),
		cmocka_unit_test(series_are_made_when_asked_for),
		cmocka_unit_test(what_does_not_fit_is_refused_with_its_line),
		cmocka_unit_test(parameters_are_checked),
		cmocka_unit_test(recorded_lab_runs_are_judged_right),
		cmocka_unit_test(the_example_in_the_readme_works),
		cmocka_unit_test(the_union_is_formed_where_the_detector_gives_none),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("detector", tests, set_up, tear_down);
}
