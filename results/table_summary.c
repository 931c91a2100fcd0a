/*
 * The summary: every detector over all cells, and which detectors differ. Rates whose exact
 * intervals overlap are not ranked, and nothing is sorted by rate.
 */
#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"
#include "results/table_impl.h"

/* One detector's verdicts on 'any', over all faults and workloads. */
struct total {
	const char *name;
	bool null;
	struct score faulty, controls;
};

/* Null detectors last, else in their order; malloced, '*count' of them. */
static struct total *totals_of(struct tables *v, size_t *count)
{
	struct total *totals = alloc_zero(v->n[SCORE_DETECTOR], sizeof(*totals));
	size_t k = 0;

	for (int null = 0; null < 2; null++)
		for (size_t d = 0; d < v->n[SCORE_DETECTOR]; d++)
			if (tables_is_null(v, d) == null)
				totals[k++] = (struct total){v->names[SCORE_DETECTOR][d], null,
					score_sum(v->t, d, v->any, false),
					score_sum(v->t, d, v->any, true)};
	*count = k;
	return totals;
}

static void totals_free(struct total *totals, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(totals[i].faulty.delays_s);
		free(totals[i].controls.delays_s);
	}
	free(totals);
}

enum { NAME_WIDTH = 20, RATE_WIDTH = 14, RATES = GRID_TEXT | GRID_MARKDOWN | GRID_JSON };

static void fill_totals(struct tables *v, struct grid *g, const struct total *totals, size_t n)
{
	unsigned count = GRID_RIGHT | GRID_MARKDOWN,
		 cause = GRID_JSON | (score_causes(v->t) ? GRID_MARKDOWN : 0);
	const struct grid_column list[] = {
		{.head = "null detectors", .flags = GRID_TEXT | GRID_GROUP},
		{.head = "all cells", .flags = GRID_TEXT | GRID_LABEL, .width = NAME_WIDTH},
		{.title = "all cells", .flags = GRID_MARKDOWN},
		{"detector", .flags = GRID_JSON},
		{"null", .flags = GRID_JSON},
		{"faulty.n", "faulty n", .flags = count | GRID_JSON, .of = OF_N},
		{"faulty.detected", "detected", NULL, RATES, 1, RATE_WIDTH, .of = OF_DETECTED},
		{"faulty.right_server", "right server", NULL, RATES, 1, RATE_WIDTH, .of = OF_RIGHT},
		{"faulty.wrong_server", "wrong server", NULL, RATES, 1, RATE_WIDTH, .of = OF_WRONG},
		{"faulty.resource", "resource", .flags = GRID_MARKDOWN | GRID_JSON,
			.of = OF_RESOURCE},
		{"faulty.cause", "cause", .flags = cause, .of = OF_CAUSE},
		{"faulty.abstained", .flags = GRID_JSON, .of = OF_ABSTAINED},
		{"faulty.failed", .flags = GRID_JSON, .of = OF_FAILED},
		{"faulty.delay_s", "delay (s)", .flags = GRID_MARKDOWN | GRID_JSON, .of = OF_DELAY},
		{"controls.n", "controls n", .flags = count | GRID_JSON, .of = OF_N},
		{"controls.false_alarm", "false alarm", NULL, RATES, 1, RATE_WIDTH, .of = OF_WRONG},
		{"controls.abstained", .flags = GRID_JSON, .of = OF_ABSTAINED},
		{"controls.failed", .flags = GRID_JSON, .of = OF_FAILED},
		{.title = "abstained", .flags = count},
	};

	GRID_COLUMNS(g, list);
	g->only = GRID_TEXT;
	grid_none(g, 6);
	grid_words(g, "%u faulty", n ? totals->faulty.n : 0);
	grid_none(g, 8);
	grid_words(g, "%u controls", n ? totals->controls.n : 0);
	grid_none(g, 3);
	g->only = 0;
	for (const struct total *l = totals; l < totals + n; l++) {
		grid_words(g, "%s", l->null ? "null detectors" : "");
		grid_words(g, "%s%s", l->null ? "  " : "", l->name);
		grid_words(g, "%s%s", l->name, l->null ? " (null)" : "");
		grid_words(g, "%s", l->name);
		grid_flag(g, l->null);
		tables_score(g, &l->faulty, 9);
		tables_score(g, &l->controls, 4);
		grid_count(g, l->faulty.abstained + l->controls.abstained);
	}
}

static int order(const struct total *a, const struct total *b)
{
	return score_order(a->faulty.hits, a->faulty.n, b->faulty.hits, b->faulty.n);
}

json_t *table_summary_json(struct tables *v)
{
	static const char *const words[] = {"below", "not distinguishable", "above"};
	struct grid g = {.out = &v->out};
	json_t *pairs = json_array();
	size_t count;
	struct total *totals = totals_of(v, &count);

	fill_totals(v, &g, totals, count);
	for (size_t i = 0; i < count; i++)
		for (size_t k = i + 1; k < count; k++)
			json_array_append_new(pairs,
				json_pack("{s:s, s:s, s:s}", "detector", totals[i].name, "other",
					totals[k].name, "right_server",
					words[1 + order(&totals[i], &totals[k])]));
	totals_free(totals, count);
	return json_pack("{s:o, s:o}", "detectors", grid_json(&g), "comparisons", pairs);
}

/* "right server: X is above A, B; not distinguishable from C" */
static void compare(struct tables *v, const struct total *totals, size_t count, size_t i)
{
	static const char *const words[] = {"above", "below", "not distinguishable from"};
	static const int wanted[] = {1, -1, 0};
	const char *sign = " ";
	char *text;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	for (int w = 0; w < 3; w++) {
		bool first = true;

		for (size_t k = 0; k < count; k++) {
			if (k == i || order(&totals[i], &totals[k]) != wanted[w])
				continue;
			fprintf(f, "%s%s%s%s", sign, first ? words[w] : "", first ? " " : "",
				totals[k].name);
			first = false;
			sign = ", ";
		}
		if (!first)
			sign = "; ";
	}
	fclose(f);
	if (*text && totals[i].faulty.n)
		sheet_words(&v->out, "right server: %s is%s", totals[i].name, text);
	free(text);
}

/* Among cells whose victim was named, in how many were resource and cause right? */
static void print_causes(struct tables *v, const struct total *l)
{
	char resource[32], cause[32];

	grid_rate_text(l->faulty.classified, l->faulty.hits, resource, sizeof(resource));
	grid_rate_text(l->faulty.explained, l->faulty.hits, cause, sizeof(cause));
	sheet_words(&v->out,
		"of the %u right servers of %s, the resource is right for %s, the cause for %s",
		l->faulty.hits, l->name, resource, cause);
}

static void print_abstentions(struct tables *v, const struct total *l)
{
	unsigned n = l->faulty.abstained + l->controls.abstained,
		 failed = l->faulty.failed + l->controls.failed;
	char why[64] = "";

	if (failed)
		snprintf(why, sizeof(why), "; in %u of them because it failed", failed);
	if (n)
		sheet_words(&v->out, "%s abstained in %u of %u cells%s", l->name, n,
			l->faulty.n + l->controls.n, why);
}

void table_summary(struct tables *v)
{
	struct grid g = {.out = &v->out};
	size_t count;
	struct total *totals = totals_of(v, &count);

	fill_totals(v, &g, totals, count);
	grid_print(&g);
	sheet_blank(&v->out, GRID_MARKDOWN);
	for (size_t i = 0; i < count; i++) {
		if (totals[i].null)
			continue;
		compare(v, totals, count, i);
		if (score_causes(v->t) && totals[i].faulty.named)
			print_causes(v, &totals[i]);
		print_abstentions(v, &totals[i]);
	}
	totals_free(totals, count);
}
