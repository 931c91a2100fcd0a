/* The command 'list': faults, workloads, detectors, metrics and file systems. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diag/judge/detector.h"
#include "diag/derive/metrics.h"
#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/home.h"
#include "harness/base/jget.h"
#include "harness/cli/cmd.h"
#include "harness/cli/list.h"
#include "harness/judging/findings.h"
#include "harness/scenario/part.h"

struct listing {
	bool details;
	json_t *json; /* array, or NULL: text */
};

static int list_by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The parameters declared in the table on top of the stack, by name: Lua's order is random. */
static void list_params(lua_State *L)
{
	const char *names[64] = {NULL};
	size_t n = 0;
	char text[512];

	for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1))
		if (n < sizeof(names) / sizeof(names[0]))
			names[n++] = lua_tostring(L, -2);
	qsort(names, n, sizeof(names[0]), list_by_name);
	for (size_t i = 0; i < n; i++) {
		lua_getfield(L, -1, names[i]);
		lua_getfield(L, -1, "default");
		lua_getfield(L, -2, "help");
		bool choices = lua_getfield(L, -3, "choices") == LUA_TSTRING;

		snprintf(text, sizeof(text), "%s = %s: %s%s%s%s", names[i], lua_tostring(L, -3),
			lua_tostring(L, -2), choices ? " (" : "",
			choices ? lua_tostring(L, -1) : "", choices ? ")" : "");
		printf("      ");
		print_wrapped(stdout, 6, text);
		lua_pop(L, 4);
	}
}

/* Adds the entry (stolen) to the JSON, or prints its name, in 'width' columns, and the text. */
static void list_put(
	const struct listing *l, json_t *entry, int width, const char *name, const char *text)
{
	if (l->json) {
		json_array_append_new(l->json, entry);
		return;
	}
	printf("  %-*s ", width, name);
	print_wrapped(stdout, width + 3, text);
	json_decref(entry);
}

static int list_part(void *ctx, lua_State *L, const struct part *p)
{
	const struct listing *l = ctx;
	bool fault = p->kind == PART_FAULT;
	const char *kind = p->lookalike ? "none" : p->resource;
	char name[64], text[512];

	snprintf(name, sizeof(name), fault ? "%-18s %.*s" : "%s", p->name,
		fault ? (int)strcspn(kind, "/") : 0, kind);
	snprintf(text, sizeof(text), "%s%s%s", p->summary, p->needs ? "; needs " : "",
		p->needs ? p->needs : "");
	list_put(l,
		json_pack("{s:s, s:s, s:s?, s:s?, s:b, s:O}", "name", p->name, "summary",
			p->summary, "resource", p->resource, "needs", p->needs, "lookalike",
			p->lookalike, "params", p->params),
		fault ? 27 : 18, name, text);
	if (!l->json && l->details && lua_istable(L, -1))
		list_params(L);
	return 0;
}

static char *value_text(const json_t *v)
{
	return json_is_string(v) ? alloc_copy(json_string_value(v))
				 : json_dumps(v, JSON_ENCODE_ANY | JSON_REAL_PRECISION(9));
}

/* "window = 30: seconds that are averaged (10 to 60)" */
static void print_declared(const char *name, const json_t *p)
{
	const json_t *min = jget(p, "min"), *max = jget(p, "max");
	auto_free char *value = value_text(jget(p, "default")), *least = value_text(min),
		       *most = value_text(max), *line = NULL;

	line = alloc_format("%s = %s: %s%s%s%s%s", name, value, jget_text(p, "help"),
		!min && !max         ? ""
			: min && max ? " ("
			: min        ? " (at least "
				     : " (at most ",
		min ? least : "", min && max ? " to " : "", max ? most : "");
	if (min || max) {
		char *closed = alloc_format("%s)", line);

		free(line);
		line = closed;
	}
	printf("      ");
	print_wrapped(stdout, 6, line);
}

static void print_declared_all(const json_t *declared)
{
	size_t n = 0, size = json_object_size(declared);
	auto_free const char **names = alloc_zero(size, sizeof(*names));
	const char *name;
	json_t *p;

	json_object_foreach((json_t *)declared, name, p)
		names[n++] = name;
	qsort(names, n, sizeof(*names), list_by_name);
	for (size_t i = 0; i < n; i++)
		print_declared(names[i], jget(declared, names[i]));
}

static int list_detector(void *ctx, const struct detector *d)
{
	const struct listing *l = ctx;
	json_auto_t *declared = detector_declared(d);

	list_put(ctx,
		json_pack("{s:s, s:s, s:b, s:O, s:O}", "name", detector_name(d), "summary",
			detector_summary(d), "trains", detector_trains(d), "params",
			detector_params(d), "declared", declared),
		18, detector_name(d), detector_summary(d));
	if (!l->json && l->details)
		print_declared_all(declared);
	return 0;
}

/* It judges series rather than runs, and so stands in no scenario. */
static void list_fleet(json_t *all)
{
	struct listing l = {.json = all ? json_array() : NULL};
	static const char name[] = "fleet";
	static const char summary[] =
		"members of a fleet that differ from their peers, for seconds or for good, in "
		"series from elsewhere; needs no training. Not for scenarios: see 'culprit "
		"diagnose --csv' and 'culprit watch'";

	list_put(&l, json_pack("{s:s, s:s}", "name", name, "summary", summary), 18, name, summary);
	if (all)
		json_object_set_new(all, "series_detectors", l.json);
}

static void list_metrics(const struct listing *l)
{
	char text[512];

	for (enum metric m = 0; m < METRIC_COUNT; m++) {
		snprintf(text, sizeof(text), "%s: %s", metric_unit(m), metric_definition(m));
		list_put(l,
			json_pack("{s:s, s:s, s:b, s:s}", "name", metric_name(m), "unit",
				metric_unit(m), "service_time", m < METRIC_SERVICE_TIMES,
				"definition", metric_definition(m)),
			33, metric_name(m), text);
	}
}

/* 'which': a name or path, or NULL for all. */
static int list_file_systems(const char *which, bool details, json_t *all, struct err *e)
{
	json_t *list;
	int rc = list_fs_read(which ? which : "", &list, e);

	if (rc)
		return rc;
	if (all) {
		json_object_set_new(all, "file-systems", list);
	} else {
		list_fs_print(list, details);
		json_decref(list);
	}
	return 0;
}

static int list_finding(void *ctx, const struct finding *f, struct err *e)
{
	char text[512];

	(void)e;
	snprintf(text, sizeof(text), "%s: %s", f->severity, f->about);
	list_put(ctx,
		json_pack("{s:s, s:s, s:s, s:s}", "name", f->name, "severity", f->severity, "about",
			f->about, "todo", f->todo),
		18, f->name, text);
	return 0;
}

struct options {
	bool json;
};

static int list_run(const struct call *c)
{
	static const char *const kinds[] = {"scenarios", "faults", "workloads", "detectors",
		"file-systems", "findings", "metrics"};
	enum { SCENARIOS, FAULTS, WORKLOADS, DETECTORS, FILE_SYSTEMS, FINDINGS, METRICS };
	const struct options *o = c->options;
	const char *only = c->args[0];
	json_t *all = json_object();
	char *home = NULL;
	struct err e;
	int rc;

	if (c->args[0] && c->args[1] && strcmp(only, "file-systems"))
		return cmd_fail("list", CULPRIT_EXIT_USAGE,
			"'%s': only file-systems can be listed by name", c->args[1]);
	/* A program without its files would list nothing. */
	rc = home_path("", &home, &e);
	free(home);
	/* Metrics only when asked for. */
	for (size_t i = 0; i < METRICS + (only != NULL) && !rc; i++) {
		struct listing l = {.details = only};

		if (only && strcmp(only, kinds[i]))
			continue;
		l.json = o->json ? json_array() : NULL;
		if (!o->json)
			printf("%s%s\n", !only && i ? "\n" : "", kinds[i]);
		if (i == SCENARIOS)
			rc = list_scenarios(l.details, l.json, &e);
		else if (i == FAULTS || i == WORKLOADS)
			rc = part_each(i == FAULTS ? PART_FAULT : PART_WORKLOAD, list_part, &l, &e);
		else if (i == DETECTORS)
			rc = detector_each(list_detector, &l, &e);
		else if (i == FILE_SYSTEMS)
			rc = list_file_systems(
				only ? c->args[1] : NULL, only, o->json ? all : NULL, &e);
		else if (i == FINDINGS)
			rc = findings_each(list_finding, &l, &e);
		else
			list_metrics(&l);
		if (l.json && i == FILE_SYSTEMS)
			json_decref(l.json);
		else if (o->json)
			json_object_set_new(all, kinds[i], l.json);
		if (i == DETECTORS && !rc)
			list_fleet(o->json ? all : NULL);
	}
	if (!rc && o->json)
		cmd_print_json(json_incref(all));
	json_decref(all);
	return rc ? cmd_error("list", &e, ERR_USAGE) : CULPRIT_EXIT_OK;
}

static const struct option_row rows[] = {
	{"json", 0, OPTION_FLAG, offsetof(struct options, json), NULL, "print as JSON"},
	{0},
};

const struct command list_command = {.name = "list",
	.summary = "list faults, detectors, ...",
	.arguments = "[KIND [NAME]]",
	.about = "Lists culprit's own scenarios, which 'culprit run' takes by name, and what a "
		 "scenario can name, one line each, and the detector 'fleet' of series "
		 "from elsewhere. With a kind (scenarios, faults, workloads, detectors, "
		 "file-systems, findings, metrics), also parameters with their defaults.\n\n"
		 "Findings are what 'culprit findings' looks for in logs and runs.\n\n"
		 "File systems: for each, or for that with this name or path, its layouts and "
		 "settings for 'culprit lab up --fs', and which of its programs are on this "
		 "machine.\n\n"
		 "Metrics are what a detector sees of every server and second; they are listed "
		 "only when asked for.",
	.examples = "culprit list\n"
		    "culprit list scenarios\n"
		    "culprit list faults\n"
		    "culprit list file-systems glusterfs",
	.words = "scenarios|faults|workloads|detectors|file-systems|findings|metrics",
	ARGUMENTS(0, 2),
	OPTIONS(rows, struct options),
	.run = list_run};
