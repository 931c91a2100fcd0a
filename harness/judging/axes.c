/* The order of a table's rows and columns: the scenario's order, which is independent of the
 * seed. */
#include "harness/judging/axes.h"

#include <stdlib.h>
#include <string.h>

#include "diag/derive/metrics.h"
#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/jget.h"

/* A label that the run does not list, and its position in the scenario. */
struct label {
	const char *text;
	size_t at;
};

static int by_place(const void *a, const void *b)
{
	const struct label *x = a, *y = b;

	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	return strverscmp(x->text, y->text);
}

/* Where the scenario first names the fault or workload of a label such as "ddw(records=16)" in
 * quotes, alone or at the end of a path; SIZE_MAX: nowhere. Comments are skipped. */
static size_t axes_place_of(const char *scenario, const char *label)
{
	size_t length = strcspn(label, "(");

	for (const char *p = scenario; p && *p; p++) {
		if (p[0] == '-' && p[1] == '-') {
			p += strcspn(p, "\n");
			if (!*p)
				break;
		} else if (p > scenario && strchr("\"'/", p[-1]) && !strncmp(p, label, length) &&
			(strchr("\"'", p[length]) || !strncmp(p + length, ".lua", 4))) {
			return (size_t)(p - scenario);
		}
	}
	return SIZE_MAX;
}

static bool lists(const json_t *list, const char *text)
{
	json_t *name;
	size_t i;

	json_array_foreach((json_t *)list, i, name) {
		if (!strcmp(json_string_value(name), text))
			return true;
	}
	return false;
}

/* First the labels that the run lists and that have cells; then the others by their position in
 * the scenario. */
static void judging_axes_declare(struct score_table *t, enum score_axis axis, const json_t *cells,
	const char *key, const json_t *listed, const char *scenario)
{
	auto_free struct label *others = alloc_zero(json_array_size(cells), sizeof(*others));
	json_t *row, *name;
	size_t n = 0, i;

	json_array_foreach((json_t *)listed, i, name) {
		bool there = false;
		size_t k;

		json_array_foreach((json_t *)cells, k, row) {
			there = there || !strcmp(jget_text(row, key), json_string_value(name));
		}
		if (there)
			score_declare(t, axis, json_string_value(name));
	}
	json_array_foreach((json_t *)cells, i, row) {
		const char *text = jget_text(row, key);

		if (!lists(listed, text))
			others[n++] = (struct label){text, axes_place_of(scenario, text)};
	}
	qsort(others, n, sizeof(*others), by_place);
	for (i = 0; i < n; i++)
		score_declare(t, axis, others[i].text);
}

int axes_declare(struct store *s, const char *column, struct score_table *t, struct err *e)
{
	json_auto_t *axes = NULL, *tally = NULL;
	auto_free char *scenario = NULL;
	json_t *cells;
	size_t i;
	int rc = store_tally(s, &tally, e);

	rc = rc ? rc : store_get_json(s, "axes", &axes, e);
	rc = rc < 0 ? rc : store_get(s, "scenario_text", &scenario, e);
	if (rc < 0)
		return rc;
	cells = jget(tally, "cells");
	for (i = json_array_size(cells); i-- > 0;)
		if (jget_int(json_array_get(cells, i), "training"))
			json_array_remove(cells, i);
	for (i = 0; i < json_array_size(cells); i++)
		if (!strcmp(jget_text(json_array_get(cells, i), "fault"), "none"))
			score_declare(t, SCORE_FAULT, "none");
	judging_axes_declare(t, SCORE_FAULT, cells, "fault", jget(axes, "faults"), scenario);
	if (column)
		score_declare(t, SCORE_WORKLOAD, column);
	else
		judging_axes_declare(
			t, SCORE_WORKLOAD, cells, "workload", jget(axes, "workloads"), scenario);
	for (int m = 0; m < METRIC_COUNT; m++)
		score_declare(t, SCORE_METRIC, metric_name((enum metric)m));
	return 0;
}
