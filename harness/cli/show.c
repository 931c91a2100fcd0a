#include "harness/cli/show.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/file.h"
#include "harness/base/home.h"
#include "harness/cli/cmd.h"
#include "harness/run/attempt.h"
#include "results/overhead.h"

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

		json_array_append_new(cells, json_pack("{s:I, s:b, s:s, s:O, s:s, s:o, s:s, s:I, s:o}", "cell",
						       (json_int_t)c->number, "training", c->training, "workload",
						       s->workloads[c->workload].label, "workload_params",
						       s->workloads[c->workload].params, "fault", cell_fault(s, c),
						       "fault_params",
						       c->fault == SIZE_MAX ? json_object()
									    : json_incref(s->faults[c->fault].params),
						       "tracer", s->tracers[c->tracer].label, "repeat", (json_int_t)c->repeat, "victims",
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
	fprintf(out, "%5s  %-9s %-20s %-28s %s\n", "cell", "repeat", "workload",
		s->measure == MEASURE_RUNTIME ? "tracer" : "fault", "victim");
	for (size_t i = 0; i < p->n; i++) {
		const struct cell *c = &p->cells[i];
		char repeat[32], victims[256];

		snprintf(repeat, sizeof(repeat), "%s%ld", c->training ? "train " : "", c->repeat);
		fprintf(out, "%5zu  %-9s %-20s %-28s %s\n", c->number, repeat, s->workloads[c->workload].label,
			cell_treatment(s, c), show_victims(c, servers, victims, sizeof(victims)));
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

struct footer {
	json_t *tally;
	char **missing, **remarks;
	struct table_notes notes;
};

static void footer_clear(struct footer *f)
{
	for (size_t i = 0; f->missing && i < f->notes.n_missing; i++)
		free(f->missing[i]);
	for (size_t i = 0; f->remarks && i < f->notes.n_remarks; i++)
		free(f->remarks[i]);
	free(f->missing);
	free(f->remarks);
	json_decref(f->tally);
}

/* What stands below every table; 'f' is zero. */
static int footer_read(struct store *s, struct footer *f, struct err *e)
{
	int rc = store_tally(s, &f->tally, e);
	json_t *missing, *attempts, *skipped;

	if (rc)
		return rc;
	missing = json_object_get(f->tally, "missing");
	attempts = json_object_get(f->tally, "attempts");
	skipped = json_object_get(f->tally, "skipped");
	f->missing = missing_lines(missing);
	f->remarks = skip_lines(skipped);
	f->notes = (struct table_notes){.run_id = store_run_id(s),
					.planned = count(f->tally, "planned"),
					.confirmed = count(f->tally, "confirmed"),
					.invalid = count(attempts, "invalid"),
					.error = count(attempts, "error"),
					.missing = (const char *const *)f->missing,
					.n_missing = f->missing ? json_array_size(missing) : 0,
					.remarks = (const char *const *)f->remarks,
					.n_remarks = f->remarks ? json_array_size(skipped) : 0};
	return 0;
}

static int64_t count_or_unknown(const json_t *row, const char *key)
{
	const json_t *v = json_object_get(row, key);

	return json_is_integer(v) ? json_integer_value(v) : -1;
}

/* 001's Table 2 beside ours: its workloads have the same names. */
static int publish(struct overhead *o, struct err *e)
{
	char *path = NULL, *text = NULL, *save = NULL;
	int rc = home_path("results/hotdep09-table2.csv", &path, e);

	if (!rc)
		rc = file_read(path, &text, NULL, e);
	for (char *line = rc ? NULL : strtok_r(text, "\n", &save); line && !rc; line = strtok_r(NULL, "\n", &save)) {
		char tracer[64], workload[64];
		double pct;

		if (*line != '#' && sscanf(line, "%63[^,],%63[^,],%lf", tracer, workload, &pct) == 3)
			rc = overhead_publish(o, "001, Table 2 (PVFS on ten servers; HotDep 2009)", workload, tracer, pct, e);
	}
	free(text);
	free(path);
	return rc;
}

/* Tracers and workloads in the scenario's order. */
static int declare_runtimes(struct store *s, struct overhead *o, struct err *e)
{
	char *text = store_get(s, "axes");
	json_t *axes = text ? json_loads(text, 0, NULL) : NULL, *name;
	size_t i;
	int rc = 0;

	json_array_foreach(json_object_get(axes, "workloads"), i, name)
		rc = rc ? rc : overhead_declare(o, json_string_value(name), NULL, e);
	json_array_foreach(json_object_get(axes, "tracers"), i, name)
		rc = rc ? rc : overhead_declare(o, NULL, json_string_value(name), e);
	json_decref(axes);
	free(text);
	return rc;
}

static int show_runtimes(struct store *s, enum table_format format, const struct table_notes *notes, FILE *out,
			 struct err *e)
{
	struct overhead *o = overhead_new();
	json_t *rows = NULL, *row;
	size_t i;
	int rc = o ? store_runtimes(s, &rows, e) : err_errno(e, -ENOMEM, "cannot make a table");

	if (!rc)
		rc = declare_runtimes(s, o, e);
	json_array_foreach(rows, i, row) {
		if (!rc)
			rc = overhead_add(o, json_string_value(json_object_get(row, "workload")),
					  json_string_value(json_object_get(row, "tracer")),
					  (long)json_integer_value(json_object_get(row, "repeat")),
					  json_number_value(json_object_get(row, "runtime_s")),
					  count_or_unknown(row, "records"), count_or_unknown(row, "lost"), e);
	}
	if (!rc)
		rc = publish(o, e);
	if (!rc && overhead_render(o, format, notes, out))
		rc = err_errno(e, -EIO, "cannot print the table");
	json_decref(rows);
	overhead_free(o);
	return rc;
}

static int show_scores(struct store *s, enum table_format format, const struct footer *f, FILE *out, struct err *e)
{
	struct score_table *t = score_table_new();
	json_t *verdicts = NULL;
	int rc = t ? store_verdicts(s, &verdicts, e) : err_errno(e, -ENOMEM, "cannot make a table");

	if (!rc)
		rc = declare_axes(s, t, json_object_get(f->tally, "cells"), verdicts, e);
	if (!rc)
		rc = score_all(s, t, verdicts, e);
	if (!rc && table_render(t, format, &f->notes, out))
		rc = err_errno(e, -EIO, "cannot print the table");
	json_decref(verdicts);
	score_table_free(t);
	return rc;
}

int show_table(struct store *s, enum table_format format, FILE *out, struct err *e)
{
	char *measure = store_get(s, "measure");
	struct footer f = {0};
	int rc = footer_read(s, &f, e);

	if (!rc && measure && !strcmp(measure, "runtime"))
		rc = show_runtimes(s, format, &f.notes, out, e);
	else if (!rc)
		rc = show_scores(s, format, &f, out, e);
	footer_clear(&f);
	free(measure);
	return rc;
}
