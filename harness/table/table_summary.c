/*
 * The summary: every detector over all cells, and which detectors differ. Detectors that judged
 * the same cells are compared cell by cell, others by whether their exact intervals overlap.
 * Detectors are never sorted by rate.
 */
#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"
#include "harness/table/table_impl.h"

/* One detector's verdicts on 'any', over all faults and workloads. */
struct total {
	size_t detector;
	const char *name;
	bool null;
	struct score faulty, controls;
};

/* In their order, null detectors last; malloced, '*count' of them. */
static struct total *totals_of(struct tables *v, size_t *count)
{
	struct total *totals = alloc_zero(v->n[SCORE_DETECTOR], sizeof(*totals));
	size_t k = 0;

	for (int null = 0; null < 2; null++)
		for (size_t d = 0; d < v->n[SCORE_DETECTOR]; d++)
			if (tables_is_null(v, d) == null)
				totals[k++] = (struct total){d, v->names[SCORE_DETECTOR][d], null,
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
		{"faulty.detected", "detected", NULL, RATES | GRID_GOOD, 1, RATE_WIDTH,
			.of = OF_DETECTED},
		{"faulty.right_server", "right server", NULL, RATES | GRID_GOOD, 1, RATE_WIDTH,
			.of = OF_RIGHT},
		{"faulty.wrong_server", "wrong server", NULL, RATES | GRID_BAD, 1, RATE_WIDTH,
			.of = OF_WRONG},
		{"faulty.resource", "resource", .flags = GRID_MARKDOWN | GRID_JSON,
			.of = OF_RESOURCE},
		{"faulty.cause", "cause", .flags = cause, .of = OF_CAUSE},
		{"faulty.abstained", .flags = GRID_JSON, .of = OF_ABSTAINED},
		{"faulty.failed", .flags = GRID_JSON, .of = OF_FAILED},
		{"faulty.delay_s", "delay (s)", .flags = GRID_MARKDOWN | GRID_JSON, .of = OF_DELAY},
		{"controls.n", "controls n", .flags = count | GRID_JSON, .of = OF_N},
		{"controls.false_alarm", "false alarm", NULL, RATES | GRID_BAD, 1, RATE_WIDTH,
			.of = OF_WRONG},
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

/* Compares a pair of detectors: which is right more often in the cells that both judged or, if
 * their cells differ, whether the intervals of their rates are disjoint. */
struct pair {
	size_t first, second; /* indices of the totals */
	bool paired;
	struct paired cells;
	int order; /* 1: the first is better */
};

enum { LEVEL_PCT = 5 };

static int by_p(const void *a, const void *b)
{
	const struct pair *x = *(struct pair *const *)a, *y = *(struct pair *const *)b;

	return (x->cells.p > y->cells.p) - (x->cells.p < y->cells.p);
}

/* The tests together have an error rate of 5 % (Holm): the smallest p is compared with 5 %
 * divided by the number of tests, the next with 5 % divided by one less, until one is too large. */
static void decide(struct pair *pairs, size_t n)
{
	struct pair **list = alloc_zero(n, sizeof(struct pair *));
	size_t tests = 0;

	for (size_t i = 0; i < n; i++)
		if (pairs[i].paired)
			list[tests++] = &pairs[i];
	qsort(list, tests, sizeof(*list), by_p);
	for (size_t i = 0; i < tests && list[i]->cells.p <= LEVEL_PCT / 100.0 / (double)(tests - i);
		i++)
		list[i]->order = list[i]->cells.only_first > list[i]->cells.only_second ? 1 : -1;
	free(list);
}

/* Every pair once; malloced. */
static struct pair *pairs_of(struct tables *v, const struct total *totals, size_t count, size_t *n)
{
	struct pair *pairs = alloc_zero(count * count, sizeof(*pairs));

	*n = 0;
	for (size_t i = 0; i < count; i++)
		for (size_t k = i + 1; k < count; k++) {
			struct pair *p = &pairs[(*n)++];

			*p = (struct pair){.first = i, .second = k};
			p->paired = score_paired(
				v->t, totals[i].detector, totals[k].detector, &p->cells);
			if (!p->paired)
				p->order = score_order(totals[i].faulty.hits, totals[i].faulty.n,
					totals[k].faulty.hits, totals[k].faulty.n);
		}
	decide(pairs, *n);
	return pairs;
}

/* Compares totals i and k: 1, -1 or 0, as for the first of a pair. */
static int order(const struct pair *pairs, size_t n, size_t i, size_t k)
{
	for (const struct pair *p = pairs; p < pairs + n; p++)
		if ((p->first == i && p->second == k) || (p->first == k && p->second == i))
			return p->first == i ? p->order : -p->order;
	return 0;
}

/* The conclusions that so few cells allow. */
struct power {
	const struct total *of; /* a detector not distinguishable from any null detector, or NULL */
	double rate;            /* rate of right servers: 0.5 if it named none */
	unsigned needed, controls_needed;
	double alarms; /* upper bound on the rate of false alarms, from the controls */
};

enum { POWER_PCT = 80, ALARMS_PCT = 5 };

static struct power power_of(
	const struct total *totals, size_t count, const struct pair *pairs, size_t n)
{
	struct power p = {.of = NULL};
	double low;

	for (size_t i = 0; i < count && !totals[i].null && !p.of; i++)
		for (size_t k = 0; k < count; k++)
			if (totals[k].null && !totals[k].faulty.hits && !order(pairs, n, i, k)) {
				p.of = &totals[i];
				break;
			}
	if (!p.of || !p.of->faulty.n || !n)
		return (struct power){.of = NULL};
	p.rate = p.of->faulty.hits ? (double)p.of->faulty.hits / p.of->faulty.n : 0.5;
	p.needed = score_cells_needed(p.rate, LEVEL_PCT / 100.0 / (double)n, POWER_PCT / 100.0);
	p.controls_needed = score_controls_needed(ALARMS_PCT / 100.0);
	if (p.of->controls.n)
		score_interval(p.of->controls.alarms, p.of->controls.n, 0.95, &low, &p.alarms);
	return p;
}

static json_t *power_json(const struct power *p)
{
	if (!p->of)
		return json_null();
	return json_pack("{s:s, s:i, s:f, s:i, s:i, s:o, s:i}", "detector", p->of->name, "faulty",
		(int)p->of->faulty.n, "rate", p->rate, "faulty_needed", (int)p->needed, "controls",
		(int)p->of->controls.n, "false_alarm_up_to",
		p->of->controls.n ? json_real(p->alarms) : json_null(), "controls_needed",
		(int)p->controls_needed);
}

json_t *table_summary_json(struct tables *v)
{
	static const char *const words[] = {"below", "not distinguishable", "above"};
	struct grid g = {.out = &v->out};
	json_t *list = json_array();
	size_t count, n;
	struct total *totals = totals_of(v, &count);
	struct pair *pairs = pairs_of(v, totals, count, &n);
	struct power power = power_of(totals, count, pairs, n);
	json_t *told = power_json(&power);

	fill_totals(v, &g, totals, count);
	for (const struct pair *p = pairs; p < pairs + n; p++) {
		json_t *o = json_pack("{s:s, s:s, s:s}", "detector", totals[p->first].name, "other",
			totals[p->second].name, "right_server", words[1 + p->order]);

		if (p->paired)
			json_object_update_new(o,
				json_pack("{s:i, s:i, s:i, s:f}", "cells", (int)p->cells.cells,
					"only_detector", (int)p->cells.only_first, "only_other",
					(int)p->cells.only_second, "p", p->cells.p));
		json_array_append_new(list, o);
	}
	free(pairs);
	totals_free(totals, count);
	return json_pack(
		"{s:o, s:o, s:o}", "detectors", grid_json(&g), "comparisons", list, "power", told);
}

/* "right server: X is above A, B; not distinguishable from C" */
static void table_summary_compare(struct tables *v, const struct total *totals, size_t count,
	const struct pair *pairs, size_t n, size_t i)
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
			if (k == i || order(pairs, n, i, k) != wanted[w])
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

/* The cells that decide between two detectors, excluding null detectors. */
static void print_pairs(
	struct tables *v, const struct total *totals, const struct pair *pairs, size_t n)
{
	bool paired = false;

	for (const struct pair *p = pairs; p < pairs + n; p++) {
		paired = paired || p->paired;
		if (!p->paired || totals[p->second].null)
			continue;
		sheet_words(&v->out,
			"of %u faulty cells that both judged, %s alone is right in %u, %s alone in "
			"%u (p = %.2g)",
			p->cells.cells, totals[p->first].name, p->cells.only_first,
			totals[p->second].name, p->cells.only_second, p->cells.p);
	}
	if (paired)
		sheet_words(&v->out,
			"compared cell by cell: exact McNemar tests, %d %% for all of them "
			"together (Holm)",
			LEVEL_PCT);
}

static void print_power(struct tables *v, const struct power *p)
{
	const struct score *faulty = p->of ? &p->of->faulty : NULL;
	char share[32];

	if (!p->of)
		return;
	if (faulty->hits == faulty->n)
		snprintf(share, sizeof(share), "all");
	else
		snprintf(share, sizeof(share), "%.2f", p->rate);
	sheet_words(&v->out,
		"%u faulty cells are few: a detector that is right in %s of them%s%s%s needs %u to "
		"be distinguished from one that never is (with a probability of %d %%); --repeats "
		"makes more",
		faulty->n, share, faulty->hits ? ", as " : "", faulty->hits ? p->of->name : "",
		faulty->hits ? " is here," : "", p->needed, POWER_PCT);
	if (p->of->controls.n)
		sheet_words(&v->out,
			"%u controls, with a false alarm in %u of them, leave a rate of up to %.2f "
			"possible (95 %%); %u with none would leave no more than %.2f",
			p->of->controls.n, p->of->controls.alarms, p->alarms, p->controls_needed,
			ALARMS_PCT / 100.0);
}

/* Among cells whose victim was named: how often were resource and cause right? */
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
	size_t count, n;
	struct total *totals = totals_of(v, &count);
	struct pair *pairs = pairs_of(v, totals, count, &n);
	struct power power;

	fill_totals(v, &g, totals, count);
	grid_print(&g);
	sheet_blank(&v->out, GRID_MARKDOWN);
	for (size_t i = 0; i < count; i++) {
		if (totals[i].null)
			continue;
		table_summary_compare(v, totals, count, pairs, n, i);
		if (score_causes(v->t) && totals[i].faulty.named)
			print_causes(v, &totals[i]);
		print_abstentions(v, &totals[i]);
	}
	print_pairs(v, totals, pairs, n);
	power = power_of(totals, count, pairs, n);
	print_power(v, &power);
	free(pairs);
	totals_free(totals, count);
}
