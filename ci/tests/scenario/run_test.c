/*
 * Scenario, plan, store and judge, without a node: what a plan is made of, that an attempt is
 * written whole or not at all, and that a detector is shown nothing but measurements.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <lauxlib.h>

#include "ci/tests/scratch.h"
#include "harness/base/file.h"
#include "harness/base/home.h"
#include "harness/judging/judge.h"
#include "harness/scenario/plan.h"
#include "harness/store/store.h"

static char *write_file(const char *name, const char *text)
{
	static char path[128];
	struct err e;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	assert_int_equal(file_write_atomic(path, 0600, text, strlen(text), &e), 0);
	return path;
}

static struct scenario *load(const char *body)
{
	struct scenario *s = NULL;
	struct err e;

	if (scenario_load(write_file("scenario.lua", body), &s, &e))
		fail_msg("%s", e.text);
	return s;
}

static const char body[] =
	"return { name = 't', workloads = { 'ddw', 'ddr' }, repeats = 50, training = { "
	"workloads = { 'ddw', 'ddr' } },\n"
	"faults = { 'none', 'disk-hog', { 'receive-pktloss', loss = '1%' } }, detectors = { "
	"'always-healthy' } }\n";

static void a_plan_has_every_cell_once_a_block_and_spreads_its_victims(void **state)
{
	struct scenario *s = load(body);
	struct plan *p;
	struct err e;
	unsigned victims[4] = {0};

	(void)state;
	assert_int_equal(plan_new(s, 4, 42, NULL, &p, &e), 0);
	assert_int_equal(p->n, 2 + 50 * 6);
	assert_true(p->cells[0].training && p->cells[1].training);
	for (size_t block = 0; block < 50; block++) {
		unsigned seen = 0;

		for (size_t i = 0; i < 6; i++) {
			struct cell *c = &p->cells[2 + block * 6 + i];

			assert_int_equal(c->repeat, block + 1);
			seen |= 1u << (c->workload * 3 + c->fault);
			assert_int_equal(c->n_victims, c->fault != 0);
			if (c->n_victims)
				victims[c->victims[0]]++;
		}
		assert_int_equal(seen, 63);
	}
	/* 200 fair draws among four: each count is within 5 standard deviations (6.1) of 50. */
	for (int i = 0; i < 4; i++)
		assert_in_range(victims[i], 20, 80);
	assert_string_equal(s->faults[2].label, "receive-pktloss(loss=1%)");
	plan_free(p);
	scenario_free(s);
}

/* A workload may be there for training alone; one of the scenario's own is not loaded twice. */
static void training_may_have_workloads_of_its_own(void **state)
{
	static const char *const bodies[] = {
		"return { name = 't', workloads = { 'ddw' }, repeats = 1, training = { workloads = "
		"{ 'ddr', 'ddw', 'postmark' } }, faults = { 'none' }, detectors = { "
		"'always-healthy' } }\n",
		"return { name = 't', workloads = { 'ddw' }, repeats = 1, training = { workloads = "
		"{ 'ddr', 'ddx' } }, faults = { 'none' }, detectors = { 'always-healthy' } }\n",
	};
	struct scenario *s = load(bodies[0]);
	unsigned scored = 0, trained = 0;
	struct plan *p;
	struct err e;

	(void)state;
	assert_int_equal(s->n_workloads, 3);
	assert_string_equal(s->workloads[0].name, "ddw");
	assert_string_equal(s->workloads[1].name, "ddr");
	assert_string_equal(s->workloads[2].name, "postmark");
	assert_int_equal(s->n_training, 3);
	assert_int_equal(s->training[0], 1);
	assert_int_equal(s->training[1], 0);
	assert_int_equal(s->training[2], 2);
	assert_int_equal(plan_new(s, 4, 42, NULL, &p, &e), 0);
	for (size_t i = 0; i < p->n; i++)
		*(p->cells[i].training ? &trained : &scored) |= 1u << p->cells[i].workload;
	assert_int_equal(trained, 7);
	assert_int_equal(scored, 1);
	plan_free(p);
	scenario_free(s);
	s = NULL;
	assert_int_not_equal(scenario_load(write_file("scenario.lua", bodies[1]), &s, &e), 0);
	assert_null(s);
	assert_non_null(strstr(e.text, "ddx"));
}

static int expect_seven_reads(void *ctx, const char *metric, const char *server,
	const struct sample *samples, size_t n, struct err *e)
{
	(void)ctx;
	(void)e;
	assert_string_equal(metric, "dread");
	assert_string_equal(server, "s3");
	assert_int_equal(n, 1);
	assert_int_equal(samples->count, 7);
	assert_int_equal(samples->second, 5);
	return 0;
}

static void controls_come_as_often_as_asked_in_every_block(void **state)
{
	struct scenario *s = load(
		"return { name = 't', workloads = { 'ddw', 'ddr' }, repeats = 20, controls = 3,\n"
		"faults = { 'disk-hog', 'none' }, detectors = { 'always-healthy' } }\n");
	unsigned counts[20][2][2] = {0}, late = 0;
	struct plan *p;
	struct err e;

	(void)state;
	assert_int_equal(plan_new(s, 4, 42, NULL, &p, &e), 0);
	assert_int_equal(p->n, 20 * 2 * (1 + 3));
	for (size_t i = 0; i < p->n; i++) {
		assert_int_equal(p->cells[i].repeat, i / 8 + 1);
		assert_int_equal(p->cells[i].n_victims, p->cells[i].fault == 0);
		counts[i / 8][p->cells[i].workload][p->cells[i].fault]++;
		late += i % 8 == 7 && p->cells[i].fault == 1;
	}
	for (size_t i = 0; i < 40; i++) {
		assert_int_equal(counts[i / 2][i % 2][0], 1);
		assert_int_equal(counts[i / 2][i % 2][1], 3);
	}
	assert_in_range(
		late, 5, 19); /* shuffled: of 20 blocks, three quarters end with a control */
	plan_free(p);
	scenario_free(s);
}

static void a_store_keeps_an_attempt_whole_or_not_at_all(void **state)
{
	static char *servers[] = {"s1", "s2", "s3", "s4"};
	struct sample samples[] = {{METRIC_DREAD, 2, 5, 7, 0.25, 0.1, 4096}};
	struct attempt_row row = {
		.cell = 3, .number = 1, .outcome = OUTCOME_CONFIRMED, .seconds = 30, .start_ns = 5};
	struct scenario *s = load(body);
	struct store *st;
	struct plan *p;
	json_t *rows = NULL;
	char folder[96];
	struct err e;

	(void)state;
	snprintf(folder, sizeof(folder), "%s/run", dir);
	assert_int_equal(plan_new(s, 4, 1, "repeat=1", &p, &e), 0);
	assert_int_equal(store_create(folder, &st, &e), 0);
	assert_int_equal(store_put_plan(st, s, p, servers, &e), 0);

	assert_int_equal(store_begin(st, &e), 0);
	assert_int_equal(store_put_attempt(st, &row, &e), 0);
	store_close(st); /* as a crash would: no commit */
	assert_int_equal(store_open(folder, &st, &e), 0);
	assert_int_equal(store_rows(st, ROWS_CONFIRMED, 0, &rows, &e), 0);
	assert_int_equal(json_array_size(rows), 0);
	json_decref(rows);

	assert_int_equal(store_begin(st, &e), 0);
	assert_int_equal(store_put_attempt(st, &row, &e), 0);
	assert_int_equal(store_put_samples(st, row.id, servers, samples, 1, &e), 0);
	assert_int_equal(store_end(st, 0, &e), 0);
	assert_int_not_equal(store_put_attempt(st, &row, &e), 0); /* one attempt has one outcome */
	assert_int_equal(store_samples(st, row.id, expect_seven_reads, NULL, &e), 0);
	assert_int_equal(store_set(st, "store_version", "999", &e), 0);
	store_close(st);
	assert_int_equal(store_open(folder, &st, &e), -EINVAL);
	assert_non_null(strstr(e.text, "version 999"));
	assert_int_equal(store_create(folder, &st, &e), -EEXIST);
	plan_free(p);
	scenario_free(s);
}

/* One of every kind, with all that there is to say of it. */
static const struct event events[] = {
	{.kind = EVENT_LINK_QUIET,
		.server = 0,
		.client = 1,
		.first_s = 0.5,
		.last_s = 3,
		.count = 1,
		.call = "readv",
		.state = LINK_WAITING,
		.waiting = 3,
		.open = true},
	{.kind = EVENT_SERVER_ERROR,
		.server = 1,
		.client = -1,
		.first_s = 1,
		.last_s = 2,
		.count = 9,
		.redone = 2,
		.bytes = 4096,
		.call = "openat",
		.error = "EMFILE",
		.place = PLACE_PATH,
		.longest_s = 0.1},
	{.kind = EVENT_SERVER_SIGNAL,
		.server = 1,
		.client = -1,
		.first_s = 2,
		.last_s = 2,
		.count = 1,
		.signal = "XFSZ"},
	{.kind = EVENT_SERVER_END,
		.server = 1,
		.client = -1,
		.first_s = 2,
		.last_s = 2,
		.count = 1,
		.status = 3},
	{.kind = EVENT_LINK_END,
		.server = 1,
		.client = 0,
		.first_s = 2.1,
		.last_s = 2.1,
		.count = 1,
		.call = "readv",
		.error = "EOF"},
	{.kind = EVENT_APP_ERROR,
		.server = -1,
		.client = 0,
		.first_s = 2.2,
		.last_s = 2.2,
		.count = 1,
		.call = "write",
		.error = "ENOTCONN",
		.place = PLACE_MOUNT,
		.longest_s = 0.2},
	{.kind = EVENT_APP_SLOW,
		.server = -1,
		.client = 1,
		.first_s = 2.3,
		.last_s = 9,
		.count = 1,
		.call = "write",
		.place = PLACE_MOUNT,
		.longest_s = 6.7,
		.open = true},
};
enum { EVENTS = sizeof(events) / sizeof(events[0]) };
static char *clients[] = {"delta-client", "epsilon-client"};
static const char
	errors[] = "{\"lost_errnos\": [\"ENOTCONN\"], \"errno_map\": {\"ENOMEM\": [\"EIO\"]}}";

/* Writes down all that it is shown. */
static const char spy[] =
	"local function dump(v, depth)\n"
	"  if type(v) ~= 'table' then return tostring(v) end\n"
	"  if depth > 6 then return '...' end\n"
	"  local keys = {}\n"
	"  for k in pairs(v) do keys[#keys + 1] = tostring(k) end\n"
	"  table.sort(keys)\n"
	"  local out = {}\n"
	"  for _, k in ipairs(keys) do out[#out + 1] = k .. '=' .. dump(v[k] == nil and "
	"v[tonumber(k)] or v[k], depth + 1) end\n"
	"  return '{' .. table.concat(out, ' ') .. '}'\n"
	"end\n"
	"return { name = 'spy', summary = 'tells what it is shown',\n"
	"  diagnose = function(run, model, params)\n"
	"    return { { metric = 'any', indicted = { run.servers[1] }, evidence = { shown = "
	"dump(run, 0) .. dump(model, 0) .. dump(params, 0) } } }\n"
	"  end }\n";

static void a_detector_is_shown_no_name_fault_or_workload(void **state)
{
	static char *names[] = {"alpha-host", "beta-host", "gamma-host"};
	static const char *const secrets[] = {"delta", "epsilon", "alpha", "beta", "gamma",
		"disk-hog", "none", "ddw", "ddr", "victim", "onset", "424242", "cell", "attempt"};
	struct attempt_row row = {
		.cell = 1, .number = 1, .outcome = OUTCOME_CONFIRMED, .seconds = 10};
	struct sample samples[] = {
		{METRIC_DREAD, 0, 5, 7, 0.25, 0.1, 4096}, {METRIC_DREAD, 1, 5, 7, 0.25, 0.1, 4096}};
	struct scenario *s = load(
		"return { name = 't', workloads = { 'ddw' }, faults = { 'disk-hog' },"
		" detectors = { 'always-healthy' } }");
	char folder[96], *path = write_file("spy.lua", spy);
	json_t *detectors = json_pack("[{s:s, s:{}}]", "name", path, "params");
	json_t *servers = json_pack("[s, s, s]", names[0], names[1], names[2]), *rows = NULL,
	       *verdict;
	const char *shown, *indicted;
	struct judge *j;
	struct store *st;
	struct plan *p;
	struct err e;

	(void)state;
	snprintf(folder, sizeof(folder), "%s/spied", dir);
	assert_int_equal(plan_new(s, 3, 424242, NULL, &p, &e), 0);
	assert_int_equal(store_create(folder, &st, &e), 0);
	assert_int_equal(store_put_plan(st, s, p, names, &e), 0);
	assert_int_equal(store_put_attempt(st, &row, &e), 0);
	assert_int_equal(store_put_samples(st, row.id, names, samples, 2, &e), 0);
	assert_int_equal(store_put_events(st, row.id, names, clients, events, EVENTS, &e), 0);
	assert_int_equal(store_set(st, "file_system", errors, &e), 0);
	assert_int_equal(store_set(st, "judged_seconds", "10", &e), 0);
	if (judge_new(detectors, servers, st, &j, &e))
		fail_msg("%s", e.text);
	if (judge_all(j, 0, &rows, &e))
		fail_msg("%s", e.text);
	verdict = json_object_get(json_array_get(rows, 0), "verdict");
	shown = json_string_value(json_object_get(json_object_get(verdict, "evidence"), "shown"));
	assert_non_null(shown);
	assert_non_null(strstr(shown, "dread"));
	assert_non_null(strstr(shown, "EMFILE"));
	assert_non_null(strstr(shown, "errno_map={ENOMEM={1=EIO}}"));
	for (size_t i = 0; i < sizeof(secrets) / sizeof(secrets[0]); i++)
		if (strstr(shown, secrets[i]))
			fail_msg("the detector was shown '%s' in: %s", secrets[i], shown);
	/* What it says of an alias is written down of the server behind it. */
	indicted = json_string_value(json_array_get(json_object_get(verdict, "indicted"), 0));
	assert_non_null(strstr(indicted, "-host"));
	json_decref(rows);
	judge_free(j);
	json_decref(detectors);
	json_decref(servers);
	store_close(st);
	plan_free(p);
	scenario_free(s);
}

/* Says whose each event is, and which fields there are. */
static const char clerk[] =
	"return { name = 'clerk', summary = 'lists fields',\n"
	"  diagnose = function(run)\n"
	"    local fields, order = {}, {}\n"
	"    for _, ev in ipairs(run.events) do\n"
	"      for key in pairs(ev) do fields[key] = true end\n"
	"      order[#order + 1] = ev.kind .. ' ' .. (ev.server or '-') .. ' ' .. (ev.client or "
	"'-')\n"
	"    end\n"
	"    return { { metric = 'any', evidence = { fields = fields, order = order } } }\n"
	"  end }\n";

/* The fields of 'class' in the manual are exactly the keys of 'fields'. */
static void compare_fields(const json_t *fields, const char *class, const char *manual)
{
	const char *p = strstr(manual, class), *key;
	size_t documented = 0;
	char wanted[96];
	json_t *v;

	assert_non_null(p);
	manual = p;
	json_object_foreach((json_t *)fields, key, v) {
		snprintf(wanted, sizeof(wanted), "---@field %s", key);
		p = strstr(manual, wanted);
		if (!p || (p[strlen(wanted)] != ' ' && p[strlen(wanted)] != '?'))
			fail_msg("the manual of %s lacks '%s'", class, key);
	}
	for (p = strstr(manual, "\n---@field "); p && p < strstr(manual, "\n\n");
		p = strstr(p + 1, "\n---@field "))
		documented++;
	assert_int_equal(documented, json_object_size(fields));
}

static void events_have_the_fields_that_the_manual_names(void **state)
{
	static char *names[] = {"s1", "s2"};
	struct attempt_row row = {
		.cell = 1, .number = 1, .outcome = OUTCOME_CONFIRMED, .seconds = 10};
	struct scenario *s = load(
		"return { name = 't', workloads = { 'ddw' }, faults = { 'disk-hog' },"
		" detectors = { 'always-healthy' } }");
	char folder[96], *path = write_file("clerk.lua", clerk), *file, *manual;
	json_t *detectors = json_pack("[{s:s, s:{}}]", "name", path, "params"),
	       *servers = json_pack("[s, s]", "s1", "s2");
	json_t *rows = NULL, *evidence;
	struct judge *j;
	struct store *st;
	struct plan *p;
	struct err e;

	(void)state;
	snprintf(folder, sizeof(folder), "%s/clerk", dir);
	assert_int_equal(plan_new(s, 2, 1, NULL, &p, &e), 0);
	assert_int_equal(store_create(folder, &st, &e), 0);
	assert_int_equal(store_put_plan(st, s, p, names, &e), 0);
	assert_int_equal(store_put_attempt(st, &row, &e), 0);
	assert_int_equal(store_put_events(st, row.id, names, clients, events, EVENTS, &e), 0);
	assert_int_equal(store_set(st, "judged_seconds", "10", &e), 0);
	assert_int_equal(judge_new(detectors, servers, st, &j, &e), 0);
	assert_int_equal(judge_all(j, 0, &rows, &e), 0);
	evidence = json_object_get(json_object_get(json_array_get(rows, 0), "verdict"), "evidence");
	assert_int_equal(home_path("diag/detectors/detector.meta.lua", &file, &e), 0);
	assert_int_equal(file_read(file, &manual, NULL, &e), 0);
	compare_fields(json_object_get(evidence, "fields"), "---@class culprit.Event\n", manual);
	/* Clients are numbered as they come. */
	assert_int_equal(json_array_size(json_object_get(evidence, "order")), EVENTS);
	assert_non_null(
		strstr(json_string_value(json_array_get(json_object_get(evidence, "order"), 5)),
			"app-error - client-0002"));
	free(manual);
	free(file);
	json_decref(rows);
	judge_free(j);
	json_decref(detectors);
	json_decref(servers);
	store_close(st);
	plan_free(p);
	scenario_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_plan_has_every_cell_once_a_block_and_spreads_its_victims),
		cmocka_unit_test(training_may_have_workloads_of_its_own),
		cmocka_unit_test(controls_come_as_often_as_asked_in_every_block),
		cmocka_unit_test(a_store_keeps_an_attempt_whole_or_not_at_all),
		cmocka_unit_test(a_detector_is_shown_no_name_fault_or_workload),
		cmocka_unit_test(events_have_the_fields_that_the_manual_names),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
