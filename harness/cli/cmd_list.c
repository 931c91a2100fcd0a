#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diag/judge/detector.h"
#include "diag/derive/metrics.h"
#include "harness/base/home.h"
#include "harness/cli/cmd.h"
#include "harness/scenario/part.h"

struct listing {
	bool details;
	json_t *json; /* array, or NULL: text */
};

static int by_name(const void *a, const void *b)
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
	qsort(names, n, sizeof(names[0]), by_name);
	for (size_t i = 0; i < n; i++) {
		lua_getfield(L, -1, names[i]);
		lua_getfield(L, -1, "default");
		lua_getfield(L, -2, "help");
		snprintf(text, sizeof(text), "%s = %s: %s", names[i], lua_tostring(L, -2),
			lua_tostring(L, -1));
		printf("      ");
		print_wrapped(stdout, 6, text);
		lua_pop(L, 3);
	}
}

/* Adds the entry (stolen) to the JSON, or prints its name, in 'width' columns, and the text. */
static void put(
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
	char name[64], text[512];

	snprintf(name, sizeof(name), fault ? "%-18s %.*s" : "%s", p->name,
		fault ? (int)strcspn(p->resource, "/") : 0, p->resource);
	snprintf(text, sizeof(text), "%s%s%s", p->summary, p->needs ? "; needs " : "",
		p->needs ? p->needs : "");
	put(l,
		json_pack("{s:s, s:s, s:s?, s:s?, s:O}", "name", p->name, "summary", p->summary,
			"resource", p->resource, "needs", p->needs, "params", p->params),
		fault ? 27 : 18, name, text);
	if (!l->json && l->details && lua_istable(L, -1))
		list_params(L);
	return 0;
}

static int list_detector(void *ctx, const struct detector *d)
{
	put(ctx,
		json_pack("{s:s, s:s, s:b, s:O}", "name", detector_name(d), "summary",
			detector_summary(d), "trains", detector_trains(d), "params",
			detector_params(d)),
		18, detector_name(d), detector_summary(d));
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

	put(&l, json_pack("{s:s, s:s}", "name", name, "summary", summary), 18, name, summary);
	if (all)
		json_object_set_new(all, "series_detectors", l.json);
}

static void list_metrics(const struct listing *l)
{
	char text[512];

	for (enum metric m = 0; m < METRIC_COUNT; m++) {
		snprintf(text, sizeof(text), "%s: %s", metric_unit(m), metric_definition(m));
		put(l,
			json_pack("{s:s, s:s, s:b, s:s}", "name", metric_name(m), "unit",
				metric_unit(m), "service_time", m < METRIC_SERVICE_TIMES,
				"definition", metric_definition(m)),
			33, metric_name(m), text);
	}
}

struct options {
	bool json;
};

static int run(const struct call *c)
{
	static const char *const kinds[] = {"faults", "workloads", "detectors", "metrics"};
	const struct options *o = c->options;
	const char *only = c->args[0];
	json_t *all = json_object();
	char *home = NULL;
	struct err e;
	/* A program without its files would list nothing. */
	int rc = home_path("", &home, &e);

	free(home);
	/* Metrics only when asked for. */
	for (size_t i = 0; i < (only ? 4 : 3) && !rc; i++) {
		struct listing l = {.details = only};

		if (only && strcmp(only, kinds[i]))
			continue;
		l.json = o->json ? json_array() : NULL;
		if (!o->json)
			printf("%s%s\n", !only && i ? "\n" : "", kinds[i]);
		if (i < 2)
			rc = part_each(i ? PART_WORKLOAD : PART_FAULT, list_part, &l, &e);
		else if (i == 2)
			rc = detector_each(list_detector, &l, &e);
		else
			list_metrics(&l);
		if (o->json)
			json_object_set_new(all, kinds[i], l.json);
		if (i == 2 && !rc)
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
	.summary = "list faults, workloads, detectors and metrics",
	.arguments = "[faults|workloads|detectors|metrics]",
	.about =
		"Lists what a scenario can name, one line each, and the detector 'fleet' of series "
		"from elsewhere. With a kind, also parameters with their defaults.\n\n"
		"Metrics are what a detector sees of every server and second; they are listed only "
		"when asked for.",
	.examples = "culprit list\nculprit list faults",
	.words = "faults|workloads|detectors|metrics",
	ARGUMENTS(0, 1),
	OPTIONS(rows, struct options),
	.run = run};
