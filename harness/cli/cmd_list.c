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

static int list_part(void *ctx, lua_State *L, const struct part *p)
{
	struct listing *l = ctx;
	char text[512];

	if (l->json) {
		json_array_append_new(l->json,
			json_pack("{s:s, s:s, s:s?, s:s?, s:O}", "name", p->name, "summary",
				p->summary, "resource", p->resource, "needs", p->needs, "params",
				p->params));
		return 0;
	}
	if (p->kind == PART_FAULT)
		printf("  %-18s %-8.*s ", p->name, (int)strcspn(p->resource, "/"), p->resource);
	else
		printf("  %-18s ", p->name);
	snprintf(text, sizeof(text), "%s%s%s", p->summary, p->needs ? "; needs " : "",
		p->needs ? p->needs : "");
	print_wrapped(stdout, p->kind == PART_FAULT ? 30 : 21, text);
	if (l->details && lua_istable(L, -1))
		list_params(L);
	return 0;
}

static int list_detector(void *ctx, const struct detector *d)
{
	struct listing *l = ctx;

	if (l->json)
		json_array_append_new(l->json,
			json_pack("{s:s, s:s, s:b, s:O}", "name", detector_name(d), "summary",
				detector_summary(d), "trains", detector_trains(d), "params",
				detector_params(d)));
	else {
		printf("  %-18s ", detector_name(d));
		print_wrapped(stdout, 21, detector_summary(d));
	}
	return 0;
}

static void list_metrics(struct listing *l)
{
	char text[512];

	for (int i = 0; i < METRIC_COUNT; i++) {
		enum metric m = (enum metric)i;

		if (l->json) {
			json_array_append_new(l->json,
				json_pack("{s:s, s:s, s:b, s:s}", "name", metric_name(m), "unit",
					metric_unit(m), "service_time", m < METRIC_SERVICE_TIMES,
					"definition", metric_definition(m)));
			continue;
		}
		printf("  %-33s ", metric_name(m));
		snprintf(text, sizeof(text), "%s: %s", metric_unit(m), metric_definition(m));
		print_wrapped(stdout, 36, text);
	}
}

static int list_kind(const char *kind, bool details, json_t *all, struct err *e)
{
	struct listing l = {.details = details, .json = all ? json_array() : NULL};
	int rc = 0;

	if (!all)
		printf("%s\n", kind);
	if (!strcmp(kind, "faults"))
		rc = part_each(PART_FAULT, list_part, &l, e);
	else if (!strcmp(kind, "workloads"))
		rc = part_each(PART_WORKLOAD, list_part, &l, e);
	else if (!strcmp(kind, "detectors"))
		rc = detector_each(list_detector, &l, e);
	else
		list_metrics(&l);
	if (all)
		json_object_set_new(all, kind, l.json);
	return rc;
}

struct options {
	bool json;
};

static int run(const struct call *c)
{
	static const char *const kinds[] = {"faults", "workloads", "detectors", "metrics"};
	const struct options *o = c->options;
	json_t *all = o->json ? json_object() : NULL;
	const char *only = c->args[0];
	char *home = NULL;
	struct err e;
	/* A program without its files would list nothing. */
	int rc = home_path("", &home, &e);

	free(home);
	/* Metrics only when asked for. */
	for (size_t i = 0; i < (only ? 4 : 3) && !rc; i++) {
		if (only && strcmp(only, kinds[i]))
			continue;
		if (!all && !only && i)
			putchar('\n');
		rc = list_kind(kinds[i], only != NULL, all, &e);
	}
	if (!rc && all)
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
		"Lists what a scenario can name, one line each. With a kind, also its parameters "
		"with their defaults.\n\n"
		"Metrics are what a detector sees of every server and second; they are listed only "
		"when asked for.",
	.examples = "culprit list\nculprit list faults",
	.words = "faults|workloads|detectors|metrics",
	ARGUMENTS(0, 1),
	OPTIONS(rows, struct options),
	.run = run};
