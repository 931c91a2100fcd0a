/* What a detector is told of the metrics of a run: which there are, which are service times, and
 * their units. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants those four first */
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "diag/judge/detector.h"
#include "harness/base/file.h"

static char dir[64], spy_path[96], program_path[96];

/* Says all that it is told, in its own order. */
static const char spy[] =
	"local function list(t) return table.concat(t, ' ') end\n"
	"return { name = 'spy', summary = 's',\n"
	"  diagnose = function(run)\n"
	"    local units, series = {}, {}\n"
	"    for k, v in pairs(run.units) do units[#units + 1] = k .. '=' .. v end\n"
	"    for k in pairs(run.series) do series[#series + 1] = k end\n"
	"    table.sort(units); table.sort(series)\n"
	"    return { { metric = 'any', evidence = { metrics = list(run.metrics), service_times "
	"= list(run.service_times),\n"
	"      units = list(units), series = list(series) } } }\n"
	"  end }\n";

/* The same, as a program: the lists as they come in the question. */
static const char program[] =
	"#!/usr/bin/perl\n"
	"use strict; use JSON::PP;\n"
	"my $run; while (<STDIN>) { $run = decode_json($_)->{run} }\n"
	"my $units = join ' ', map { \"$_=$run->{units}{$_}\" } sort keys %{$run->{units}};\n"
	"print encode_json({ metric => 'any', indicted => [], evidence => { metrics => join(' "
	"', @{$run->{metrics}}),\n"
	"  service_times => join(' ', @{$run->{service_times}}), units => $units, series => "
	"join(' ', sort keys %{$run->{series}}) } });\n";

static json_t *ask(const char *path, const struct detector_run *run)
{
	json_t *verdicts = NULL, *model = NULL, *evidence;
	struct detector *d;
	struct err e;

	if (detector_load(path, NULL, &d, &e) || detector_train(d, NULL, 0, &model, &e) ||
		detector_diagnose(d, model, run, &verdicts, &e))
		fail_msg("%s", e.text);
	evidence = json_incref(json_object_get(json_array_get(verdicts, 0), "evidence"));
	assert_non_null(evidence);
	json_decref(verdicts);
	json_decref(model);
	detector_free(d);
	return evidence;
}

static void expect(const struct detector_run *run, const char *metrics, const char *service_times,
	const char *units)
{
	json_t *told = ask(spy_path, run), *program_told;
	const char *series = json_string_value(json_object_get(told, "series")), *metric;
	char text[512];

	assert_string_equal(json_string_value(json_object_get(told, "metrics")), metrics);
	assert_string_equal(
		json_string_value(json_object_get(told, "service_times")), service_times);
	assert_string_equal(json_string_value(json_object_get(told, "units")), units);
	/* There is a series of each that is listed, and no other. */
	snprintf(text, sizeof(text), "%s", metrics);
	assert_int_equal(strlen(series), strlen(metrics));
	for (metric = strtok(text, " "); metric; metric = strtok(NULL, " "))
		assert_non_null(strstr(series, metric));
	program_told = ask(program_path, run);
	assert_true(json_equal(told, program_told));
	json_decref(program_told);
	json_decref(told);
}

static const char *const servers[] = {"A", "B"};
static const char *const times[] = {"dread", "dwrite", "nsread", "ncread"};
static const char all_times[] = "dread dwrite nsread ncread";

static void a_run_without_readings_is_told_as_it_always_was(void **state)
{
	struct sample s[] = {{METRIC_NSREAD, 1, 3, 2, 0.5, 0.25, 9}};
	struct detector_run run = {.id = "x",
		.seconds = 5,
		.servers = servers,
		.n_servers = 2,
		.samples = s,
		.n_samples = 1};

	(void)state;
	expect(&run, all_times, all_times, "dread=s dwrite=s ncread=s nsread=s");
}

static void what_was_read_is_listed_with_its_unit(void **state)
{
	struct sample s[] = {
		{METRIC_DREAD, 0, 0, 1, 1, 1, 1},
		{METRIC_DISK_QUEUE, 1, 3, 1, 4, 4, 0},
		{METRIC_CLIENT_TCP_RETRANSMITTED, 0, 1, 3, 0, 0, 0},
		{METRIC_TCP_DELIVERY_RATE, 0, 1, 3, 9, 5, 0},
		{METRIC_CPU_IDLE, 0, 1, 0, 0, 0, 0},
		{METRIC_CPU_BUSY, 0, 99, 1, 0, 0, 0},
	};
	struct detector_run run = {.id = "x",
		.seconds = 5,
		.servers = servers,
		.n_servers = 2,
		.samples = s,
		.n_samples = 6};

	(void)state;
	/* No count is no sample, and what lies outside of the run was not in it. */
	expect(&run,
		"dread dwrite nsread ncread disk_queue_s tcp_delivery_rate "
		"client_tcp_retransmitted_segments",
		all_times,
		"client_tcp_retransmitted_segments=segments disk_queue_s=s dread=s dwrite=s "
		"ncread=s nsread=s tcp_delivery_rate=bytes/s");
}

static void other_peoples_metrics_are_service_times_unless_they_have_our_name(void **state)
{
	static const char *const names[] = {
		"read_latency_ms", "tcp_rtt_s", "dwrite", "client_tcp_sent_bytes"};
	struct sample s[] = {{0, 0, 0, 1, 1, 1, 0}, {1, 0, 0, 1, 1, 1, 0}};
	struct detector_run run = {.id = "x",
		.seconds = 5,
		.servers = servers,
		.n_servers = 2,
		.samples = s,
		.n_samples = 2,
		.metrics = names,
		.n_metrics = 4};

	(void)state;
	expect(&run, "read_latency_ms tcp_rtt_s dwrite client_tcp_sent_bytes",
		"read_latency_ms dwrite", "client_tcp_sent_bytes=bytes dwrite=s tcp_rtt_s=s");
}

static void fill(struct sample *s, size_t *n, bool readings, unsigned seed)
{
	*n = 0;
	for (int m = 0; m < 4; m++)
		for (uint32_t server = 0; server < 4; server++)
			for (int32_t second = 0; second < 30; second++) {
				double v = 0.001 * (1 + (second * 7 + server * 3 + m + seed) % 5);

				s[(*n)++] = (struct sample){
					(enum metric)m, server, second, 4, 4 * v, v, 1};
				/* One server's readings are wild. */
				if (readings)
					s[(*n)++] = (struct sample){
						(enum metric)(METRIC_SERVICE_TIMES + 9 * m), server,
						second, 1, server == 2 ? 1e9 : 1, 1e9, 0};
			}
}

/* With readings and without, peer-threshold says the same. */
static void peer_threshold_looks_at_service_times_alone(void **state)
{
	static const char *const four[] = {"A", "B", "C", "D"};
	static struct sample trained[2000], judged[2000];
	json_t *said[2];
	struct err e;

	(void)state;
	for (int readings = 0; readings < 2; readings++) {
		struct detector_run a = {.id = "a",
			.seconds = 30,
			.servers = four,
			.n_servers = 4,
			.samples = trained};
		struct detector_run b = {.id = "b",
			.seconds = 30,
			.servers = four,
			.n_servers = 4,
			.samples = judged};
		struct detector *d;
		json_t *model;

		fill(trained, &a.n_samples, readings, 0);
		fill(judged, &b.n_samples, readings, 1);
		assert_int_equal(detector_load("peer-threshold", NULL, &d, &e), 0);
		if (detector_train(d, &a, 1, &model, &e) ||
			detector_diagnose(d, model, &b, &said[readings], &e))
			fail_msg("%s", e.text);
		assert_int_equal(json_object_size(json_object_get(model, "metrics")), 4);
		json_decref(model);
		detector_free(d);
	}
	assert_int_equal(json_array_size(said[0]), 5);
	for (size_t i = 0; i < 4; i++)
		assert_string_equal(
			json_string_value(json_object_get(json_array_get(said[0], i), "metric")),
			times[i]);
	assert_true(json_equal(said[0], said[1]));
	json_decref(said[0]);
	json_decref(said[1]);
}

static int make_dir(void **state)
{
	struct err e;

	(void)state;
	strcpy(dir, "/tmp/culprit-run-view.XXXXXX");
	if (!mkdtemp(dir) || chmod(dir, 0755))
		return -1;
	/* Where this test may not confine programs, they are still asked. */
	detector_trust_programs(true);
	snprintf(spy_path, sizeof(spy_path), "%s/spy.lua", dir);
	snprintf(program_path, sizeof(program_path), "%s/spy.pl", dir);
	return file_write_atomic(spy_path, 0644, spy, strlen(spy), &e) ||
		file_write_atomic(program_path, 0755, program, strlen(program), &e);
}

static int remove_dir(void **state)
{
	(void)state;
	return file_remove_tree(dir, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_run_without_readings_is_told_as_it_always_was),
		cmocka_unit_test(what_was_read_is_listed_with_its_unit),
		cmocka_unit_test(other_peoples_metrics_are_service_times_unless_they_have_our_name),
		cmocka_unit_test(peer_threshold_looks_at_service_times_alone),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
