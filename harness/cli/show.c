/* Prints plans, tables and doses for several commands. */
#include "harness/cli/tables.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"
#include "harness/base/jget.h"
#include "harness/cli/cmd.h"
#include "harness/judging/application.h"
#include "harness/run/attempt.h"
#include "harness/table/dose.h"
#include "harness/table/overhead.h"
#include "harness/table/paper.h"

static json_t *victim_list(const struct scenario *s, const struct cell *c, char *const servers[])
{
	json_t *list = json_array();

	for (size_t i = 0; cell_is_faulty(s, c) && i < c->n_victims; i++)
		json_array_append_new(list, json_string(servers[c->victims[i]]));
	return list;
}

/* "s1+s2"; of a look-alike "(s1)", since nobody is a victim; "-": nobody. */
static char *show_victims(const struct scenario *s, const struct cell *c, char *const servers[],
	char *buf, size_t size)
{
	const bool faulty = cell_is_faulty(s, c);
	size_t n = 0;

	snprintf(buf, size, "-");
	for (size_t i = 0; i < c->n_victims && n < size; i++)
		n += (size_t)snprintf(buf + n, size - n, faulty ? "%s%s" : "%s(%s)", i ? "+" : "",
			servers[c->victims[i]]);
	return buf;
}

static void print_plan_json(const struct scenario *s, const struct plan *p, char *const servers[],
	const json_t *skipped, double seconds, struct sheet *out)
{
	json_t *cells = json_array();

	for (const struct cell *c = p->cells; c < p->cells + p->n; c++)
		json_array_append_new(cells,
			json_pack("{s:I, s:b, s:s, s:O, s:s, s:o, s:s, s:I, s:o}", "cell",
				(json_int_t)c->number, "training", c->training, "workload",
				s->workloads[c->workload].label, "workload_params",
				s->workloads[c->workload].params, "fault", cell_fault(s, c),
				"fault_params",
				c->fault == SIZE_MAX ? json_object()
						     : json_incref(s->faults[c->fault].params),
				"tracer", s->tracers[c->tracer].label, "repeat",
				(json_int_t)c->repeat, "victims", victim_list(s, c, servers)));
	sheet_json(out,
		json_pack("{s:s, s:I, s:f, s:o, s:O}", "scenario", s->name, "seed",
			(json_int_t)p->seed, "seconds", seconds, "cells", cells, "skipped",
			skipped));
}

int show_plan(const struct scenario *s, const struct plan *p, char *const servers[],
	const json_t *skipped, bool json, FILE *out)
{
	double all_s = (double)p->n * (attempt_phases_s(s) + 6);
	int seconds = (int)all_s, widths[2] = {8, 6};
	struct sheet sheet = {.f = out};
	json_t *row;
	size_t i;

	if (json) {
		print_plan_json(s, p, servers, skipped, all_s, &sheet);
		return CULPRIT_EXIT_OK;
	}
	for (const struct cell *c = p->cells; c < p->cells + p->n; c++) {
		int workload = (int)strlen(s->workloads[c->workload].label);
		int treatment = (int)strlen(cell_treatment(s, c));

		widths[0] = workload > widths[0] ? workload : widths[0];
		widths[1] = treatment > widths[1] ? treatment : widths[1];
	}
	sheet_line(&sheet, "scenario %s, seed %llu: %zu cells, about %d:%02d:%02d", s->name,
		(unsigned long long)p->seed, p->n, seconds / 3600, seconds / 60 % 60, seconds % 60);
	fprintf(out, "\n%5s  %-8s %-*s %-*s %s\n", "cell", "repeat", widths[0], "workload",
		widths[1], s->measure == MEASURE_RUNTIME ? "tracer" : "fault", "victim");
	for (const struct cell *c = p->cells; c < p->cells + p->n; c++) {
		char repeat[32], victims[256];

		snprintf(repeat, sizeof(repeat), "%s%ld", c->training ? "train " : "", c->repeat);
		sheet_line(&sheet, "%5zu  %-8s %-*s %-*s %s", c->number, repeat, widths[0],
			s->workloads[c->workload].label, widths[1], cell_treatment(s, c),
			show_victims(s, c, servers, victims, sizeof(victims)));
	}
	if (json_array_size(skipped))
		fputc('\n', out);
	json_array_foreach(skipped, i, row) {
		sheet_line(&sheet, "skipped: fault %s: %s", jget_text(row, "fault"),
			jget_text(row, "reason"));
	}
	return CULPRIT_EXIT_OK;
}

static int64_t count_or_unknown(const json_t *row, const char *key)
{
	return json_is_integer(jget(row, key)) ? jget_int(row, key) : -1;
}

/* Tracers and workloads in the scenario's order. */
static int declare_runtimes(struct store *s, struct overhead *o, struct err *e)
{
	json_t *axes = NULL, *name;
	size_t i;
	int rc = store_get_json(s, "axes", &axes, e);

	if (rc < 0)
		return rc;
	json_array_foreach(jget(axes, "workloads"), i, name)
		overhead_declare(o, json_string_value(name), NULL);
	json_array_foreach(jget(axes, "tracers"), i, name)
		overhead_declare(o, NULL, json_string_value(name));
	json_decref(axes);
	return 0;
}

/* The result of a renderer, described. */
static int printed(int rc, struct err *e)
{
	if (rc == -EINVAL || rc == -ENOENT)
		return err_blame(e, ERR_USAGE,
			err_set(e, rc,
				"this table has no picture; --format svg draws scores --against "
				"hotdep09-table1"));
	return rc ? err_errno(e, rc, "cannot write to standard output") : 0;
}

static int show_runtimes(struct store *s, enum table_format format, const struct table_notes *notes,
	const char *against, FILE *out, struct err *e)
{
	struct overhead *o = overhead_new();
	json_t *rows = NULL, *row;
	size_t i;
	int rc = store_rows(s, ROWS_RUNTIMES, 0, &rows, e);

	if (!rc)
		rc = declare_runtimes(s, o, e);
	json_array_foreach(rows, i, row) {
		if (!rc)
			rc = overhead_add(o,
				&(struct overhead_run){.workload = jget_text(row, "workload"),
					.tracer = jget_text(row, "tracer"),
					.block = (long)jget_int(row, "repeat"),
					.seconds = jget_real(row, "runtime_s"),
					.cpu_s = jget_real(row, "cpu_s"),
					.tracers_s = jget_real(row, "tracers_s"),
					.records = count_or_unknown(row, "records"),
					.calls = count_or_unknown(row, "calls"),
					.lost = count_or_unknown(row, "lost")},
				e);
	}
	if (!rc)
		rc = overhead_read_published(o, against ? against : "hotdep09-table2", e);
	if (!rc)
		rc = printed(overhead_render(o, format, notes, out), e);
	json_decref(rows);
	overhead_free(o);
	return rc;
}

static int show_paper(struct store *s, const struct scoring *c, enum table_format format,
	struct table_notes *notes, const char *against, FILE *out, struct err *e)
{
	struct environment env = {0};
	struct paper *p = NULL;
	int rc = paper_read(against, &p, e);

	if (!rc)
		rc = environment_read(s, &env, e);
	if (!rc) {
		notes->environment = (const char *const *)env.lines;
		notes->n_environment = env.n;
		rc = printed(paper_render(p, scoring_table(c), format, notes, out), e);
		notes->environment = NULL;
		notes->n_environment = 0;
	}
	environment_clear(&env);
	paper_free(p);
	return rc;
}

int show_table(struct store *s, struct scoring *c, enum table_format format, bool details,
	const char *against, FILE *out, struct err *e)
{
	struct table_notes notes;
	int rc = table_notes_make(s, scoring_range(c), &notes, e);

	if (rc)
		return rc;
	notes.details = details;
	rc = store_has_runtimes(s, e);
	if (rc == 1)
		rc = show_runtimes(s, format, &notes, against, out, e);
	else if (!rc && against)
		rc = show_paper(s, c, format, &notes, against, out, e);
	else if (!rc)
		rc = printed(table_render(scoring_table(c), format, &notes, out), e);
	table_notes_clear(&notes);
	return rc;
}

int show_doses(struct store *s, struct scoring *c, enum table_format format, bool details,
	double level, FILE *out, struct err *e)
{
	struct impacts *impacts = NULL;
	struct table_notes notes;
	json_t *params = NULL;
	int rc = table_notes_make(s, scoring_range(c), &notes, e);

	if (rc)
		return rc;
	notes.details = details;
	rc = scoring_fault_params(s, &params, e)
		?: application_impacts(s, scoring_range(c), &impacts, e);
	if (!rc)
		rc = dose_render(scoring_table(c), impacts, params, level, format, &notes, out, e);
	impacts_free(impacts);
	json_decref(params);
	table_notes_clear(&notes);
	return rc;
}

/* true, false, a number, or text. */
static json_t *param_value(const char *text)
{
	char *end;
	double x = strtod(text, &end);

	if (!strcmp(text, "true") || !strcmp(text, "false"))
		return json_boolean(*text == 't');
	return *text && !*end ? json_real(x) : json_string(text);
}

int show_parse_detector(const char *command, const char *text, json_t *list)
{
	json_t *params = json_object();
	char *copy = alloc_copy(text), *save = NULL, *name = strtok_r(copy, ",", &save), *word;
	bool good = name;

	while (good && (word = strtok_r(NULL, ",", &save))) {
		char *value = strchr(word, '=');

		good = value && value != word;
		if (good) {
			*value++ = 0;
			json_object_set_new(params, word, param_value(value));
		}
	}
	if (good)
		json_array_append_new(
			list, json_pack("{s:s, s:O}", "name", name, "params", params));
	else
		cmd_fail(command, 0, "--detector takes NAME or NAME,KEY=VALUE,..., not '%s'", text);
	json_decref(params);
	free(copy);
	return good ? 0 : -EINVAL;
}

int show_judge(struct store *s, const json_t *detectors, struct judge **out, struct err *e)
{
	json_t *servers = NULL, *own = NULL;
	int rc = store_get_json(s, "servers", &servers, e);

	if (rc >= 0)
		rc = store_get_json(s, "detectors", &own, e);
	if (rc >= 0 && (!servers || !own))
		rc = err_set(e, -EINVAL, "'%s' was not written to the point where it can be judged",
			store_folder(s));
	else if (rc >= 0)
		rc = judge_new(json_array_size(detectors) ? detectors : own, servers, s, out, e);
	json_decref(servers);
	json_decref(own);
	return rc;
}
