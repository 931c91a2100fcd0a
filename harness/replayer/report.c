/* The replay's output: a line of JSON per pass. */
#include <jansson.h>
#include <string.h>

#include "harness/replayer/stage.h"

static void report_print(FILE *out, json_t *line)
{
	json_dumpf(line, out, JSON_COMPACT | JSON_REAL_PRECISION(9));
	fputc('\n', out);
	fflush(out);
	json_decref(line);
}

void report_begin(const struct stage *s, double round_trip_s)
{
	json_t *ranks = json_array();

	for (uint32_t r = 0; r < s->ranks; r++)
		if (replayer_node(r, s->ranks, s->nodes) == s->me)
			json_array_append_new(ranks, json_integer(r));
	report_print(s->o->out,
		json_pack("{s:s, s:i, s:i, s:o, s:s, s:f}", "replay", app_about(s->trace)->comment,
			"node", (int)s->me, "nodes", (int)s->nodes, "ranks", ranks, "mode",
			replay_mode_names[s->o->mode], "round_trip_us", round_trip_s * 1e6));
}

static json_t *errors(const struct totals *t)
{
	json_t *all = json_object();

	for (unsigned c = 1; c < APP_CALLS; c++) {
		for (int code = 1; code < ERROR_KINDS; code++) {
			const char *name = strerrorname_np(code);
			char key[64];

			if (!t->errors[c][code])
				continue;
			snprintf(key, sizeof(key), "%s %s", app_call_name(c), name ? name : "?");
			json_object_set_new(all, key, json_integer(t->errors[c][code]));
		}
	}
	return all;
}

static json_t *latencies(const struct totals *t)
{
	json_t *all = json_object();

	for (unsigned c = 1; c < APP_CALLS; c++) {
		json_t *list = json_array();

		for (int b = 0; b < LATENCY_BUCKETS; b++) {
			if (!t->latency[c][b])
				continue;
			json_array_append_new(list, json_integer(b));
			json_array_append_new(list, json_integer(t->latency[c][b]));
		}
		if (json_array_size(list))
			json_object_set(all, app_call_name(c), list);
		json_decref(list);
	}
	return all;
}

static double seconds(uint64_t ns)
{
	return (double)ns / 1e9;
}

void report_pass(const struct stage *s, unsigned long pass, bool whole)
{
	const struct totals *t = s->totals;
	int64_t took = s->end_ns > s->begin_ns ? s->end_ns - s->begin_ns : 0;
	int64_t first = s->first_ns == INT64_MAX ? took : s->first_ns - s->begin_ns;
	json_t *line;

	line = json_pack("{s:I, s:b, s:f, s:f, s:I, s:I, s:I, s:f, s:f, s:f, s:I, s:f, s:I, s:o, "
			 "s:o}",
		"pass", (json_int_t)pass, "whole", whole, "seconds", seconds((uint64_t)took),
		"first_s", seconds((uint64_t)first), "ops", (json_int_t)t->ops, "read_bytes",
		(json_int_t)t->read_bytes, "written_bytes", (json_int_t)t->written_bytes,
		"computed_s", seconds(t->computed_ns), "away_s", seconds(t->away_ns), "waited_s",
		seconds(t->waited_ns), "waits", (json_int_t)t->waits, "calls_s",
		seconds(t->calls_ns), "short", (json_int_t)t->shorts, "errors", errors(t),
		"latency", latencies(t));
	if (s->series)
		json_object_set_new(line, "series", series_json(s->series));
	report_print(s->o->out, line);
}
