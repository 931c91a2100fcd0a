/* Lists the scenarios that culprit comes with. */
#include "harness/cli/list.h"

#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/cli/options.h"
#include "harness/run/attempt.h"
#include "harness/lua/library.h"
#include "harness/scenario/scenario.h"

static json_t *labels(const struct part *parts, size_t n)
{
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(list, json_string(parts[i].label));
	return list;
}

static json_t *list_scenarios_describe(const struct scenario *s, const char *name)
{
	json_t *detectors = json_array();

	for (size_t i = 0; i < s->n_detectors; i++)
		json_array_append_new(detectors, json_string(s->detectors[i].name));
	return json_pack("{s:s, s:s?, s:s, s:o, s:o, s:o, s:I, s:f}", "name", name, "summary",
		s->summary, "path", s->path, "workloads", labels(s->workloads, s->n_matrix),
		"faults", labels(s->faults, s->n_faults), "detectors", detectors, "repeats",
		(json_int_t)s->repeats, "seconds_a_cell", attempt_phases_s(s));
}

static void list_scenarios_print(const struct scenario *s, const char *name, bool details)
{
	auto_free char *size = NULL, *text = NULL;

	if (details && s->measure == MEASURE_VERDICTS)
		size = alloc_format("; %zu workload%s, %zu fault%s, %ld repeat%s, cells of %.0f s",
			s->n_matrix, s->n_matrix == 1 ? "" : "s", s->n_faults,
			s->n_faults == 1 ? "" : "s", s->repeats, s->repeats == 1 ? "" : "s",
			attempt_phases_s(s));
	text = alloc_format("%s%s", s->summary ? s->summary : "", size ? size : "");
	printf("  %-18s ", name);
	print_wrapped(stdout, 21, text);
}

int list_scenarios(bool details, json_t *json, struct err *e)
{
	char **names = library_names(LIBRARY_SCENARIO);
	int rc = 0;

	for (size_t i = 0; names[i] && !rc; i++) {
		auto_free char *path = NULL;
		struct scenario *s = NULL;

		rc = scenario_find(names[i], &path, e) ?: scenario_load(path, &s, e);
		if (!rc && json)
			json_array_append_new(json, list_scenarios_describe(s, names[i]));
		else if (!rc)
			list_scenarios_print(s, names[i], details);
		scenario_free(s);
	}
	alloc_free_list(names);
	return rc;
}

void list_scenario_names(FILE *f, const char *begun)
{
	char **names = library_names(LIBRARY_SCENARIO);

	for (size_t i = 0; names[i]; i++)
		if (!strncmp(names[i], begun, strlen(begun)))
			fprintf(f, "%s\n", names[i]);
	alloc_free_list(names);
}
