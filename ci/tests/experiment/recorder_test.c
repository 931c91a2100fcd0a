/*
 * The flight recorder of a scenario in an attempt: when it is written, what is told of it, and that
 * nothing that befalls it is silent. The nodes, and the time, are made up.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <unistd.h>

#include "ci/tests/patience.h"
#include "harness/base/clock.h"

static double the_time_s;

static double made_up_mono(void)
{
	return the_time_s;
}

#define clock_mono_s made_up_mono
#define cluster_ask made_up_ask
#define cluster_look made_up_look
#define cluster_lost made_up_lost
#define cluster_member made_up_member
#define node_fetch_all made_up_fetch
#define progress_say made_up_say
#define progress_note made_up_note
#define store_folder made_up_folder
#define trial_job made_up_job
#define trial_stop_asked made_up_stop_asked
#include "harness/run/recorder.c"

enum { NODES = 2 };

static struct member members[NODES] = {{.name = "s1"}, {.name = "c1"}};
static struct cluster cluster = {.members = members, .n_members = NODES};
static struct scenario scenario;
static struct executor executor = {.scenario = &scenario, .cluster = &cluster};
static struct cell cell = {.number = 3};
static struct part fault;
static struct job jobs[NODES];
static struct trial trial;
static char folder[] = "/tmp/culprit-recorder-test-XXXXXX", trigger_path[80];
static char said[4096], noted[4096]; /* lines */
static unsigned writes;              /* that s1 was asked for */
static bool s1_fails, c1_fails, c1_lost_records, c1_has_no_log;
static double iowait_s;

static void add_line(char *to, const char *fmt, va_list ap)
{
	const size_t n = strlen(to);

	vsnprintf(to + n, 4096 - n, fmt, ap);
	strncat(to, "\n", 4095 - strlen(to));
}

void made_up_say(struct progress *p, const char *fmt, ...)
{
	va_list ap;

	(void)p;
	va_start(ap, fmt);
	add_line(said, fmt, ap);
	va_end(ap);
}

void made_up_note(struct progress *p, const char *fmt, ...)
{
	va_list ap;

	(void)p;
	va_start(ap, fmt);
	add_line(noted, fmt, ap);
	va_end(ap);
}

const char *made_up_folder(const struct store *s)
{
	(void)s;
	return folder;
}

bool made_up_stop_asked(const struct trial *t)
{
	(void)t;
	return false;
}

struct member *made_up_member(struct cluster *c, const char *name)
{
	for (size_t i = 0; i < NODES; i++)
		if (!strcmp(c->members[i].name, name))
			return &c->members[i];
	return NULL;
}

const struct job *made_up_job(const struct trial *t, enum job_kind_id kind, const struct member *m)
{
	(void)t;
	assert_int_equal(kind, JOB_RECORDER);
	return &jobs[m - members];
}

int made_up_ask(struct cluster *c, const char *op, cluster_args_fn args, void *ctx,
	double timeout_s, json_t **results, struct err *e)
{
	int rc = 0;

	(void)timeout_s;
	assert_string_equal(op, "trace.write");
	*results = json_object();
	for (size_t i = 0; i < NODES; i++) {
		const struct member *m = &c->members[i];
		json_t *given = NULL;

		if (args(ctx, m, &given, e))
			continue;
		assert_string_equal(jget_text(given, "handle"), i ? "t2" : "t1");
		json_decref(given);
		if (i ? c1_fails : s1_fails) {
			rc = err_set(e, -ETIMEDOUT, "%s: no answer", m->name);
			continue;
		}
		writes += !i;
		json_object_set_new(*results, m->name,
			json_pack("{s:o}", "log", json_sprintf("/n/recorder.trace.%u", writes)));
	}
	the_time_s += 0.5; /* it takes its time */
	return rc;
}

int made_up_look(struct cluster *c, double timeout_s, json_t **out, struct err *e)
{
	(void)c, (void)timeout_s, (void)e;
	*out = json_pack("{s:{s:s, s:{s:f, s:f}}}", "s1", "role", "server", "load", "seconds", 1.0,
		"iowait_s", iowait_s);
	return 0;
}

bool made_up_lost(struct cluster *c, struct err *why)
{
	(void)c, (void)why;
	return false;
}

int made_up_fetch(struct node_transfer *list, size_t n, double timeout_s, struct err *e)
{
	(void)timeout_s;
	for (size_t i = 0; i < n && c1_has_no_log; i++)
		if (strstr(list[i].local, "/c1."))
			return err_set(e, -ENOENT, "c1: no such file");
	for (size_t i = 0; i < n; i++) {
		struct record call = {.type = RECORD_CALL,
				      .call = {.start_ns = 1000, .service_ns = 7}},
			      lost = {.type = RECORD_LOST, .lost = {.start_ns = 1000, .count = 5}};
		const bool c1 = strstr(list[i].local, "/c1.") != NULL;
		struct log_writer *w;

		assert_int_equal(log_writer_new(list[i].local, "ebpf", &w, e), 0);
		assert_int_equal(log_write(w, &call, e), 0);
		if (c1 && c1_lost_records)
			assert_int_equal(log_write(w, &lost, e), 0);
		assert_int_equal(log_writer_end(w, 0, e), 0);
	}
	return 0;
}

static int setup(void **state)
{
	(void)state;
	if (!mkdtemp(folder))
		return -1;
	snprintf(trigger_path, sizeof(trigger_path), "%s/when.lua", folder);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	return file_remove_tree(folder, NULL);
}

static void begin(const char *trigger)
{
	static unsigned trials;
	struct err e;

	tracing_clear(&scenario.recorder.tracing);
	scenario.recorder = (struct recorder){
		.tracing = {.name = alloc_copy("ebpf"), .label = alloc_copy("ebpf(mode=flow)")},
		.ring_s = 30,
		.after_onset_s = -1,
		.trigger = trigger ? trigger_path : NULL};
	if (trigger)
		assert_int_equal(
			file_write_atomic(trigger_path, 0600, trigger, strlen(trigger), &e), 0);
	for (int i = 0; i < NODES; i++)
		jobs[i] = (struct job){JOB_RECORDER, &members[i], .running = true};
	for (int i = 0; i < NODES; i++)
		members[i].node = (struct node *)&members[i]; /* never looked into */
	strcpy(jobs[0].handle, "t1");
	strcpy(jobs[1].handle, "t2");
	trial = (struct trial){.x = &executor,
		.cell = &cell,
		.fault = &fault,
		.jobs = jobs,
		.n_jobs = NODES,
		.row = {.number = 1},
		.detail = json_object(),
		.folder = alloc_format("cells/%04u.1", ++trials)};
	*said = *noted = '\0';
	writes = 0;
	s1_fails = c1_fails = c1_lost_records = c1_has_no_log = false;
	iowait_s = 0;
	the_time_s = 1000;
	if (recorder_begin(&trial, &e))
		fail_msg("%s", e.text);
}

static const json_t *report(void)
{
	return jget(trial.detail, "recorder");
}

static const json_t *written(size_t i)
{
	return json_array_get(jget(report(), "written"), i);
}

static void end(void)
{
	recorder_end(&trial);
	json_decref(trial.detail);
	free(trial.folder);
	scenario.recorder.trigger = NULL;
}

/* As the attempt waits: a quarter of a second at a time. */
static void wait_until(double until_s)
{
	for (; the_time_s < until_s; the_time_s += 0.25)
		recorder_turn(&trial);
	recorder_turn(&trial);
}

static void at_its_moments(void **state)
{
	struct err e;

	(void)state;
	begin(NULL);
	scenario.recorder.after_onset_s = 5;
	scenario.recorder.at_offset = scenario.recorder.at_end = true;
	wait_until(1010);
	recorder_onset(&trial, the_time_s);
	wait_until(1014.5);
	assert_int_equal(writes, 0);
	wait_until(1035);
	assert_int_equal(writes, 1);
	recorder_offset(&trial, the_time_s);
	recorder_turn(&trial);
	assert_int_equal(writes, 2);
	wait_until(1050);
	recorder_last(&trial);
	assert_int_equal(writes, 3);
	wait_until(1060); /* it has ended */
	assert_int_equal(writes, 3);
	recorder_stopped(&trial, NULL);
	assert_string_equal(jget_text(written(0), "why"), "5 s after the onset");
	assert_string_equal(jget_text(written(1), "why"), "the end of the fault");
	assert_string_equal(jget_text(written(2), "why"), "the end of the cell");
	assert_true(jget_real(written(0), "took_s") > 0.4);
	assert_int_equal(recorder_folders(&trial), 3);
	assert_int_equal(recorder_fetch(&trial, &e), 0);
	assert_int_equal(jget_int(jget(jget(written(2), "logs"), "c1"), "calls"), 1);
	assert_int_equal(jget_int(jget(jget(written(0), "logs"), "s1"), "from_ns"), 1007);
	assert_string_equal(said, ""); /* there is nothing to tell */
	end();
}

/* What it costs is the same with and without a fault. */
static void at_the_same_moments_without_a_fault(void **state)
{
	(void)state;
	begin(NULL);
	scenario.recorder.after_onset_s = 5;
	scenario.recorder.at_offset = true;
	trial.fault = NULL;
	recorder_onset(&trial, the_time_s + 10);
	recorder_offset(&trial, the_time_s + 35);
	wait_until(1050);
	assert_int_equal(writes, 2);
	assert_string_equal(jget_text(written(0), "why"), "as 5 s after the onset");
	assert_string_equal(jget_text(written(1), "why"), "as the end of the fault");
	end();
}

static void when_a_trigger_holds(void **state)
{
	(void)state;
	begin("return { pause = '1000s', when = function(now)\n"
	      "  if now.nodes.s1.load.iowait_s > 0.5 then return 's1 waits' end end }");
	wait_until(1010);
	assert_int_equal(writes, 0);
	iowait_s = 0.9;
	wait_until(1020);
	assert_int_equal(writes, 1); /* then its pause */
	recorder_last(&trial);
	recorder_stopped(&trial, NULL);
	assert_string_equal(jget_text(written(0), "why"), "s1 waits");
	assert_int_equal(jget_int(jget(report(), "trigger"), "held"), 1);
	assert_string_equal(said, "");
	end();
}

static void a_trigger_that_never_holds_is_told(void **state)
{
	static const char never[] = "return { when = function(now) end }";

	(void)state;
	begin(never);
	wait_until(1010);
	recorder_last(&trial);
	recorder_stopped(&trial, NULL);
	assert_non_null(strstr(said,
		"cell 3: flight recorder: it was never written; its trigger "
		"was asked 11 times and held 0 times"));
	assert_int_equal(json_array_size(jget(report(), "troubles")), 1);
	end();
	/* Without a fault that is as it should be: only the log has it. */
	begin(never);
	trial.fault = NULL;
	wait_until(1010);
	recorder_last(&trial);
	recorder_stopped(&trial, NULL);
	assert_string_equal(said, "");
	assert_non_null(strstr(noted, "cell 3: the flight recorder was never written"));
	end();
}

static void a_trigger_that_fails_is_told(void **state)
{
	(void)state;
	begin("return { when = function(now)\n  return now.nodes.s9.load\nend }");
	scenario.recorder.at_end = true;
	wait_until(1010);
	recorder_last(&trial);
	recorder_stopped(&trial, NULL);
	assert_non_null(strstr(said, "the trigger is not asked any more: "));
	assert_non_null(strstr(said, "when.lua:2:"));
	assert_int_equal(writes, 1); /* what else was asked for continues */
	end();
}

static void what_is_lost_is_told(void **state)
{
	json_t *stopped = json_pack("{s:{s:s}}", "s1", "note", "buffers were full");
	struct err e;

	(void)state;
	begin(NULL);
	scenario.recorder.after_onset_s = 0;
	scenario.recorder.at_end = true;
	c1_fails = c1_lost_records = true;
	recorder_onset(&trial, the_time_s);
	recorder_turn(&trial);
	assert_non_null(strstr(
		said, "recorder.1 (0 s after the onset) is not of all nodes: c1: no answer"));
	c1_fails = false;
	jobs[0].ended = true; /* its processes are gone: it wrote its log by itself */
	recorder_last(&trial);
	recorder_stopped(&trial, stopped);
	assert_non_null(strstr(said, "s1: all that it traced there ended before the cell did"));
	assert_non_null(strstr(said, "s1: buffers were full"));
	assert_int_equal(recorder_fetch(&trial, &e), 0);
	assert_non_null(strstr(said, "c1: 5 records lost in 'cells/"));
	assert_null(jget(jget(written(0), "logs"), "c1"));
	assert_non_null(jget(jget(written(1), "logs"), "s1"));
	json_decref(stopped);
	end();
}

static int count_file(
	void *ctx, const struct member *m, const char *remote, const char *below, struct err *e)
{
	(void)m, (void)remote, (void)below, (void)e;
	++*(int *)ctx;
	return 0;
}

/* What is judged is whole all the same. */
static void a_log_that_is_not_there_is_told(void **state)
{
	struct err e;
	int files = 0;

	(void)state;
	begin(NULL);
	scenario.recorder.after_onset_s = 0;
	scenario.recorder.at_end = true;
	recorder_onset(&trial, the_time_s);
	recorder_turn(&trial);
	recorder_last(&trial);
	recorder_stopped(&trial, NULL);
	c1_has_no_log = true;
	assert_int_equal(recorder_fetch(&trial, &e), 0);
	assert_non_null(strstr(said, "c1: no such file"));
	assert_int_equal(json_array_size(jget(report(), "troubles")), 2);
	/* Only what is there is listed in the store. */
	assert_int_equal(recorder_each_file(&trial, count_file, &files, &e), 0);
	assert_int_equal(files, 2);
	assert_non_null(jget(jget(written(1), "logs"), "s1"));
	assert_null(jget(jget(written(1), "logs"), "c1"));
	end();
}

static void no_node_has_it(void **state)
{
	struct err e;
	char path[160];

	(void)state;
	begin(NULL);
	scenario.recorder.at_end = true;
	s1_fails = c1_fails = true;
	recorder_last(&trial);
	recorder_stopped(&trial, NULL);
	assert_non_null(strstr(said, "recorder.1 (the end of the cell) is not of all nodes: "));
	assert_int_equal(recorder_fetch(&trial, &e), 0);
	/* The folder is there to be made durable. */
	snprintf(path, sizeof(path), "%s/%s/recorder.1", folder, trial.folder);
	assert_int_equal(access(path, F_OK), 0);
	end();
}

static void it_is_not_written_without_end(void **state)
{
	(void)state;
	begin(NULL);
	scenario.recorder.after_onset_s = 0;
	for (int i = 0; i < RECORDER_WRITES + 5; i++) {
		recorder_onset(&trial, the_time_s);
		recorder_turn(&trial);
	}
	assert_int_equal(writes, RECORDER_WRITES);
	assert_int_equal(json_array_size(jget(report(), "troubles")), 1);
	assert_non_null(strstr(said, "it has been written 16 times"));
	end();
}

static void a_scenario_without_one(void **state)
{
	struct err e;

	(void)state;
	begin(NULL);
	end();
	tracing_clear(&scenario.recorder.tracing);
	trial = (struct trial){.x = &executor, .cell = &cell, .detail = json_object()};
	assert_int_equal(recorder_begin(&trial, &e), 0);
	recorder_onset(&trial, the_time_s);
	recorder_turn(&trial);
	recorder_last(&trial);
	recorder_stopped(&trial, NULL);
	assert_int_equal(recorder_fetch(&trial, &e), 0);
	assert_null(jget(trial.detail, "recorder"));
	recorder_end(&trial);
	json_decref(trial.detail);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(at_its_moments),
		cmocka_unit_test(at_the_same_moments_without_a_fault),
		cmocka_unit_test(when_a_trigger_holds),
		cmocka_unit_test(a_trigger_that_never_holds_is_told),
		cmocka_unit_test(a_trigger_that_fails_is_told),
		cmocka_unit_test(what_is_lost_is_told),
		cmocka_unit_test(a_log_that_is_not_there_is_told),
		cmocka_unit_test(no_node_has_it),
		cmocka_unit_test(it_is_not_written_without_end),
		cmocka_unit_test(a_scenario_without_one),
	};

	patient_alarm(600);
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("recorder", tests, setup, teardown);
}
