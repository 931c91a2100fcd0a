#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "diag/judge/detector.h"
#include "diag/derive/metrics.h"
#include "harness/cli/cmd.h"
#include "harness/scenario/part.h"

static void usage(FILE *f)
{
	fputs("usage: culprit list [faults|workloads|detectors|metrics] [--json]\n\n"
	      "What there is, a line each; with a kind, its parameters too. Metrics are what detectors\n"
	      "see of every server and second; they are listed when asked for.\n",
		f);
}

struct listing {
	bool details;
	json_t *json; /* array, or NULL: text */
};

/* Words from column 'indent' on, where the cursor is, to column 80; then a new line. */
static void print_wrapped(int indent, const char *text)
{
	int column = indent;

	while (*text) {
		int len = (int)strcspn(text, " ");

		if (column > indent && column + 1 + len > 80) {
			printf("\n%*s", indent, "");
			column = indent;
		} else if (column > indent) {
			putchar(' ');
			column++;
		}
		printf("%.*s", len, text);
		column += len;
		text += len;
		text += strspn(text, " ");
	}
	putchar('\n');
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
	print_wrapped(p->kind == PART_FAULT ? 30 : 21, text);
	if (!l->details || !lua_istable(L, -1))
		return 0;
	for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 3)) {
		lua_getfield(L, -1, "default");
		lua_getfield(L, -2, "help");
		snprintf(text, sizeof(text), "%s = %s: %s", lua_tostring(L, -4),
			lua_tostring(L, -2), lua_tostring(L, -1));
		printf("      ");
		print_wrapped(6, text);
	}
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
		print_wrapped(21, detector_summary(d));
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
		print_wrapped(36, text);
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

int cmd_list(int argc, char **argv)
{
	static const char *const kinds[] = {"faults", "workloads", "detectors", "metrics", NULL};
	static const struct option longs[] = {{"json", no_argument, NULL, 'j'},
		{"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};
	json_t *all = NULL;
	const char *only;
	bool found = false;
	struct err e;
	int opt, rc = 0, code = CULPRIT_EXIT_OK;

	while ((opt = getopt_long(argc, argv, "h", longs, NULL)) != -1) {
		if (opt == 'h') {
			usage(stdout);
			return CULPRIT_EXIT_OK;
		}
		if (opt != 'j') {
			usage(stderr);
			return CULPRIT_EXIT_USAGE;
		}
		if (!all)
			all = json_object();
	}
	only = argc > optind ? argv[optind] : NULL;
	for (int i = 0; kinds[i] && !rc; i++) {
		if (only ? strcmp(only, kinds[i]) != 0 : !kinds[i + 1])
			continue;
		found = true;
		rc = list_kind(kinds[i], only != NULL, all, &e);
		if (only)
			break;
		if (!all && kinds[i + 2])
			putchar('\n');
	}
	if (rc)
		code = cmd_fail("list", CULPRIT_EXIT_USAGE, "%s", e.text);
	else if (only && !found)
		code = cmd_fail("list", CULPRIT_EXIT_USAGE,
			"there is no kind '%s'; there are faults, workloads, detectors, metrics",
			only);
	else if (all) {
		json_dumpf(all, stdout, JSON_INDENT(2));
		putchar('\n');
	}
	json_decref(all);
	return code;
}
