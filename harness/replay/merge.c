/* Merges the nodes' output lines (harness/replayer/replayer.h) into one result. */
#include <errno.h>
#include <string.h>

#include "diag/app/series.h"
#include "harness/base/alloc.h"
#include "harness/base/jget.h"
#include "harness/replay/replay.h"
#include "harness/replayer/latency.h"

static const char *const sums[] = {"ops", "read_bytes", "written_bytes", "computed_s", "away_s",
	"waited_s", "waits", "calls_s", "short"};

static void add_errors(json_t *into, const json_t *errors)
{
	const char *name;
	json_t *n;

	json_object_foreach((json_t *)errors, name, n)
		json_object_set_new(
			into, name, json_integer(jget_int(into, name) + json_integer_value(n)));
}

/* 'calls' counts latencies by bucket and call until all lines are read. */
static void add_latencies(json_t *calls, const json_t *latency)
{
	const char *name;
	json_t *pairs;

	json_object_foreach((json_t *)latency, name, pairs) {
		json_t *counts = jget(calls, name);

		if (!counts) {
			counts = json_array();
			for (int b = 0; b < LATENCY_BUCKETS; b++)
				json_array_append_new(counts, json_integer(0));
			json_object_set_new(calls, name, counts);
		}
		for (size_t i = 0; i + 1 < json_array_size(pairs); i += 2) {
			size_t b = (size_t)json_integer_value(json_array_get(pairs, i));
			json_int_t more = json_integer_value(json_array_get(pairs, i + 1));

			if (b < LATENCY_BUCKETS)
				json_array_set_new(counts, b,
					json_integer(json_integer_value(json_array_get(counts, b)) +
						more));
		}
	}
}

/* Finds the bucket below whose end this share of all counts lies. */
static double percentile(const json_t *counts, double share, double all)
{
	double so_far = 0;
	unsigned last = 0;

	for (unsigned b = 0; b < LATENCY_BUCKETS; b++) {
		double n = (double)json_integer_value(json_array_get(counts, b));

		if (n > 0)
			last = b;
		so_far += n;
		if (n > 0 && so_far >= share * all)
			break;
	}
	return latency_ns(last) / 1e9;
}

json_t *replay_latencies(const json_t *counts)
{
	double all = 0;

	for (unsigned b = 0; b < LATENCY_BUCKETS; b++)
		all += (double)json_integer_value(json_array_get(counts, b));
	return json_pack("{s:I, s:f, s:f, s:f, s:f}", "n", (json_int_t)all, "p50_s",
		percentile(counts, 0.5, all), "p90_s", percentile(counts, 0.9, all), "p99_s",
		percentile(counts, 0.99, all), "max_s", percentile(counts, 1, all));
}

/* All nodes began at the same moment. */
static int add_series(json_t *pass, const json_t *series, struct err *e)
{
	struct app_series all, more;

	if (!series)
		return 0;
	if (!series_from_json(series, &more))
		return err_set(e, -EBADMSG, "a node's bytes over time are invalid");
	if (!jget(pass, "series"))
		series_begin(&all);
	else if (!series_from_json(jget(pass, "series"), &all))
		return err_set(e, -EBADMSG, "the nodes report too many bytes over time");
	series_merge(&all, &more);
	json_object_set_new(pass, "series", series_json(&all));
	return 0;
}

static int add_pass(
	json_t *passes, const json_t *line, json_t *errors, json_t *calls, struct err *e)
{
	size_t number = (size_t)jget_int(line, "pass");
	json_t *pass;

	while (json_array_size(passes) < number)
		json_array_append_new(passes,
			json_pack("{s:b, s:f, s:f, s:{}}", "whole", 1, "end_s", 0.0, "first_s",
				1e18, "errors"));
	pass = json_array_get(passes, number - 1);
	if (!jget_true(line, "whole"))
		json_object_set_new(pass, "whole", json_false());
	if (jget_real(line, "seconds") > jget_real(pass, "end_s"))
		json_object_set_new(pass, "end_s", json_real(jget_real(line, "seconds")));
	if (jget_int(line, "ops") && jget_real(line, "first_s") < jget_real(pass, "first_s"))
		json_object_set_new(pass, "first_s", json_real(jget_real(line, "first_s")));
	for (size_t i = 0; i < sizeof(sums) / sizeof(sums[0]); i++) {
		const json_t *v = jget(line, sums[i]);

		json_object_set_new(pass, sums[i],
			json_is_integer(v)
				? json_integer(jget_int(pass, sums[i]) + json_integer_value(v))
				: json_real(jget_real(pass, sums[i]) + json_real_value(v)));
	}
	add_errors(jget(pass, "errors"), jget(line, "errors"));
	add_errors(errors, jget(line, "errors"));
	add_latencies(calls, jget(line, "latency"));
	return add_series(pass, jget(line, "series"), e);
}

static int add_output(const char *output, json_t *result, struct err *e)
{
	char *copy = alloc_copy(output), *save = NULL;
	int rc = 0;

	for (char *text = strtok_r(copy, "\n", &save); text && !rc;
		text = strtok_r(NULL, "\n", &save)) {
		json_auto_t *line = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
		json_int_t pass = jget_int(line, "pass");

		if (jget_text(line, "replay")) {
			double trip_s = jget_real(line, "round_trip_us") / 1e6;

			if (trip_s > jget_real(result, "round_trip_s"))
				json_object_set_new(result, "round_trip_s", json_real(trip_s));
		} else if (pass >= 1 &&
			(size_t)pass <= json_array_size(jget(result, "passes")) + 1) {
			rc = add_pass(jget(result, "passes"), line, jget(result, "errors"),
				jget(result, "calls"), e);
		} else {
			rc = err_set(e, -EBADMSG, "a node's output is not a report: '%.60s'", text);
		}
	}
	free(copy);
	return rc;
}

int replay_merge(char *const *outputs, size_t n, json_t *result, struct err *e)
{
	json_t *calls = json_object(), *pass, *counts;
	double seconds = 0;
	const char *name;
	size_t whole = 0, i;
	int rc = 0;

	json_object_set_new(result, "passes", json_array());
	json_object_set_new(result, "errors", json_object());
	json_object_set_new(result, "calls", calls);
	json_object_set_new(result, "round_trip_s", json_real(0));
	for (i = 0; i < n && !rc; i++)
		rc = add_output(outputs[i], result, e);
	if (rc)
		return rc;
	json_array_foreach(jget(result, "passes"), i, pass) {
		double took = jget_real(pass, "end_s") - jget_real(pass, "first_s");

		json_object_set_new(pass, "seconds", json_real(took > 0 ? took : 0));
		/* A node without calls has the largest possible value. */
		if (jget(pass, "series"))
			json_object_set_new(jget(pass, "series"), "first_s",
				json_real(took > 0 ? jget_real(pass, "first_s") : 0));
		json_object_del(pass, "end_s");
		json_object_del(pass, "first_s");
		whole += jget_true(pass, "whole");
		seconds += jget_true(pass, "whole") ? jget_real(pass, "seconds") : 0;
	}
	json_object_set_new(
		result, "seconds", whole ? json_real(seconds / (double)whole) : json_null());
	void *next;

	json_object_foreach_safe(calls, next, name, counts)
		json_object_set_new(calls, name, replay_latencies(counts));
	return 0;
}
