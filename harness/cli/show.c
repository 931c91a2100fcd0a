#include "harness/cli/show.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "harness/cli/cmd.h"
#include "harness/run/attempt.h"

int show_parse_whole(const char *command, const char *option, const char *text, long min, long max, long *value)
{
	char *end;
	long v;

	errno = 0;
	v = strtol(text, &end, 10);
	if (errno || end == text || *end || v < min || v > max) {
		cmd_fail(command, 0, "%s takes a whole number from %ld to %ld, not '%s'", option, min, max, text);
		return -EINVAL;
	}
	*value = v;
	return 0;
}

static json_t *victim_list(const struct cell *c, char *const servers[])
{
	json_t *list = json_array();

	for (size_t i = 0; i < c->n_victims; i++)
		json_array_append_new(list, json_string(servers[c->victims[i]]));
	return list;
}

static char *show_victims(const struct cell *c, char *const servers[], char *buf, size_t size)
{
	size_t n = 0;

	snprintf(buf, size, "-");
	for (size_t i = 0; i < c->n_victims && n < size; i++)
		n += (size_t)snprintf(buf + n, size - n, "%s%s", i ? "+" : "", servers[c->victims[i]]);
	return buf;
}

static int plan_json(const struct scenario *s, const struct plan *p, char *const servers[], FILE *out)
{
	json_t *cells = json_array(), *top;

	for (size_t i = 0; i < p->n; i++) {
		const struct cell *c = &p->cells[i];

		json_array_append_new(cells, json_pack("{s:I, s:b, s:s, s:O, s:s, s:o, s:I, s:o}", "cell",
						       (json_int_t)c->number, "training", c->training, "workload",
						       s->workloads[c->workload].label, "workload_params",
						       s->workloads[c->workload].params, "fault", cell_fault(s, c),
						       "fault_params",
						       c->training ? json_object()
								   : json_incref(s->faults[c->fault].params),
						       "repeat", (json_int_t)c->repeat, "victims",
						       victim_list(c, servers)));
	}
	top = json_pack("{s:s, s:I, s:f, s:o}", "scenario", s->name, "seed", (json_int_t)p->seed, "seconds",
			(double)p->n * (attempt_phases_s(s) + 6), "cells", cells);
	json_dumpf(top, out, JSON_INDENT(2));
	fputc('\n', out);
	json_decref(top);
	return CULPRIT_EXIT_OK;
}

int show_plan(const struct scenario *s, const struct plan *p, char *const servers[], bool json, FILE *out)
{
	int seconds = (int)((double)p->n * (attempt_phases_s(s) + 6));

	if (json)
		return plan_json(s, p, servers, out);
	fprintf(out, "scenario %s, seed %llu: %zu cells, about %d:%02d:%02d\n\n", s->name, (unsigned long long)p->seed,
		p->n, seconds / 3600, seconds / 60 % 60, seconds % 60);
	fprintf(out, "%5s  %-9s %-20s %-28s %s\n", "cell", "repeat", "workload", "fault", "victim");
	for (size_t i = 0; i < p->n; i++) {
		const struct cell *c = &p->cells[i];
		char repeat[32], victims[256];

		snprintf(repeat, sizeof(repeat), "%s%ld", c->training ? "train " : "", c->repeat);
		fprintf(out, "%5zu  %-9s %-20s %-28s %s\n", c->number, repeat, s->workloads[c->workload].label,
			cell_fault(s, c), show_victims(c, servers, victims, sizeof(victims)));
	}
	return CULPRIT_EXIT_OK;
}

/* Detectors in the scenario's order, the control first, then faults and workloads in the plan's order. */
static int declare_axes(struct store *s, struct score_table *t, const json_t *cells, const json_t *verdicts,
			struct err *e)
{
	char *text = store_get(s, "detectors");
	json_t *detectors = text ? json_loads(text, 0, NULL) : NULL, *row;
	size_t i, k;
	int rc = 0;

	json_array_foreach(detectors, i, row) {
		const char *name = json_string_value(json_object_get(row, "name"));

		for (k = 0; k < json_array_size(verdicts); k++)
			if (!strcmp(name, json_string_value(json_object_get(json_array_get(verdicts, k), "detector"))))
				break;
		if (!rc && k < json_array_size(verdicts))
			rc = score_declare(t, SCORE_DETECTOR, name, e);
	}
	json_array_foreach((json_t *)cells, i, row) {
		const char *fault = json_string_value(json_object_get(row, "fault"));

		if (!rc && !json_integer_value(json_object_get(row, "training")) && !strcmp(fault, "none"))
			rc = score_declare(t, SCORE_FAULT, "none", e);
	}
	json_array_foreach((json_t *)cells, i, row) {
		if (json_integer_value(json_object_get(row, "training")))
			continue;
		if (!rc)
			rc = score_declare(t, SCORE_FAULT, json_string_value(json_object_get(row, "fault")), e);
		if (!rc)
			rc = score_declare(t, SCORE_WORKLOAD, json_string_value(json_object_get(row, "workload")), e);
	}
	json_decref(detectors);
	free(text);
	return rc;
}

static json_t *by_attempt(const json_t *rows)
{
	json_t *index = json_object(), *row;
	char key[32];
	size_t i;

	json_array_foreach(rows, i, row) {
		snprintf(key, sizeof(key), "%lld", (long long)json_integer_value(json_object_get(row, "attempt")));
		json_object_set(index, key, row);
	}
	return index;
}

static int score_all(struct store *s, struct score_table *t, const json_t *verdicts, struct err *e)
{
	json_t *confirmed = NULL, *index = NULL, *row;
	size_t i;
	int rc = store_confirmed(s, &confirmed, e);

	index = by_attempt(confirmed);
	json_array_foreach((json_t *)verdicts, i, row) {
		const json_t *cell, *victims;
		char key[32];

		snprintf(key, sizeof(key), "%lld", (long long)json_integer_value(json_object_get(row, "attempt")));
		cell = json_object_get(index, key);
		victims = json_object_get(cell, "victims");
		if (rc || !cell)
			continue;
		rc = score_add(t, json_string_value(json_object_get(row, "detector")),
			       json_string_value(json_object_get(cell, "fault")),
			       json_string_value(json_object_get(cell, "workload")), json_is_null(victims) ? NULL : victims,
			       json_object_get(row, "verdict"), e);
	}
	json_decref(index);
	json_decref(confirmed);
	return rc;
}

static unsigned count(const json_t *object, const char *key)
{
	return (unsigned)json_integer_value(json_object_get(object, key));
}

static char **missing_lines(const json_t *missing)
{
	char **lines = calloc(json_array_size(missing) + 1, sizeof(*lines));
	json_t *row;
	size_t i;

	json_array_foreach(missing, i, row) {
		if (lines && asprintf(&lines[i], "%lld %s %s", (long long)json_integer_value(json_object_get(row, "number")),
				      json_string_value(json_object_get(row, "fault")),
				      json_string_value(json_object_get(row, "workload"))) < 0)
			lines[i] = NULL;
	}
	return lines;
}

static char **skip_lines(const json_t *skipped)
{
	char **lines = calloc(json_array_size(skipped) + 1, sizeof(*lines));
	json_t *row;
	size_t i;

	json_array_foreach((json_t *)skipped, i, row) {
		if (lines && asprintf(&lines[i], "skipped: %s: %s", json_string_value(json_object_get(row, "fault")),
				      json_string_value(json_object_get(row, "reason"))) < 0)
			lines[i] = NULL;
	}
	return lines;
}

int show_table(struct store *s, enum table_format format, FILE *out, struct err *e)
{
	struct score_table *t = score_table_new();
	struct table_notes notes = {.run_id = store_run_id(s)};
	json_t *tally = NULL, *verdicts = NULL, *missing, *attempts;
	char **lines = NULL, **remarks = NULL;
	int rc = t ? store_tally(s, &tally, e) : err_errno(e, -ENOMEM, "cannot make a table");

	if (rc)
		goto out;
	missing = json_object_get(tally, "missing");
	attempts = json_object_get(tally, "attempts");
	notes.planned = count(tally, "planned");
	notes.confirmed = count(tally, "confirmed");
	notes.invalid = count(attempts, "invalid");
	notes.error = count(attempts, "error");
	lines = missing_lines(missing);
	notes.missing = (const char *const *)lines;
	notes.n_missing = lines ? json_array_size(missing) : 0;
	remarks = skip_lines(json_object_get(tally, "skipped"));
	notes.remarks = (const char *const *)remarks;
	notes.n_remarks = remarks ? json_array_size(json_object_get(tally, "skipped")) : 0;
	rc = store_verdicts(s, &verdicts, e);
	if (!rc)
		rc = declare_axes(s, t, json_object_get(tally, "cells"), verdicts, e);
	if (!rc)
		rc = score_all(s, t, verdicts, e);
	if (!rc && table_render(t, format, &notes, out))
		rc = err_errno(e, -EIO, "cannot print the table");
out:
	for (size_t i = 0; lines && i < notes.n_missing; i++)
		free(lines[i]);
	for (size_t i = 0; remarks && i < notes.n_remarks; i++)
		free(remarks[i]);
	free(lines);
	free(remarks);
	json_decref(verdicts);
	json_decref(tally);
	score_table_free(t);
	return rc;
}
