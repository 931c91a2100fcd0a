/* Runs side by side: each detector's scores in every run, and whether they differ by more than
 * chance. The table's workloads are the runs. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diag/judge/baseline.h"
#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/table/table_impl.h"

enum { NAME_WIDTH = 32, RATE_WIDTH = 14, LEVEL_PCT = 5, ALL = -1 };

/* A detector in a run, on a fault or on ALL: right or wrong servers, or false alarms. */
struct change {
	size_t detector, run;
	int fault;
	bool control, wrong;
	struct score before, now;
	double p;
	bool differs;
};

struct changes {
	struct change *list;
	size_t n;
};

static struct score sum_of(
	const struct tables *v, size_t detector, size_t run, int fault, bool control)
{
	struct score sum = {.control = control};

	for (size_t f = 0; f < v->n[SCORE_FAULT]; f++) {
		const struct score *s = score_at(v->t, detector, f, run, v->any);

		if (s && s->control == control && (fault == ALL || (size_t)fault == f))
			score_join(&sum, s);
	}
	return sum;
}

static unsigned hits_of(const struct score *s, bool wrong)
{
	return wrong ? s->alarms : s->hits;
}

static void table_runs_add(struct tables *v, struct changes *c, struct change new)
{
	unsigned a, b;

	new.before = sum_of(v, new.detector, 0, new.fault, new.control);
	new.now = sum_of(v, new.detector, new.run, new.fault, new.control);
	if (!new.before.n || !new.now.n) {
		free(new.before.delays_s);
		free(new.now.delays_s);
		return;
	}
	a = hits_of(&new.before, new.wrong);
	b = hits_of(&new.now, new.wrong);
	new.p = fmin(1,
		2 *
			fmin(fisher_p(a, new.before.n, b, new.now.n, false),
				fisher_p(a, new.before.n, b, new.now.n, true)));
	c->list = alloc_room(c->list, c->n, sizeof(*c->list));
	c->list[c->n++] = new;
}

static int by_p(const void *a, const void *b)
{
	const struct change *x = *(struct change *const *)a, *y = *(struct change *const *)b;

	return (x->p > y->p) - (x->p < y->p);
}

/* As for detectors: the tests together have an error rate of 5 % (Holm). */
static void decide(struct changes *c)
{
	auto_free struct change **order = alloc_zero(c->n, sizeof(struct change *));

	for (size_t i = 0; i < c->n; i++)
		order[i] = &c->list[i];
	qsort(order, c->n, sizeof(*order), by_p);
	for (size_t i = 0; i < c->n && order[i]->p <= LEVEL_PCT / 100.0 / (double)(c->n - i); i++)
		order[i]->differs = true;
}

/* Compares every run with the first. */
static struct changes changes_of(struct tables *v)
{
	struct changes c = {0};

	for (size_t d = 0; d < v->n[SCORE_DETECTOR]; d++)
		for (size_t r = 1; r < v->n[SCORE_WORKLOAD] && !tables_is_null(v, d); r++)
			for (int f = ALL; f < (int)v->n[SCORE_FAULT]; f++) {
				table_runs_add(v, &c, (struct change){d, r, f});
				table_runs_add(v, &c, (struct change){d, r, f, .wrong = true});
				if (f == ALL)
					table_runs_add(v, &c,
						(struct change){
							d, r, f, .control = true, .wrong = true});
			}
	decide(&c);
	return c;
}

static void changes_clear(struct changes *c)
{
	for (size_t i = 0; i < c->n; i++) {
		free(c->list[i].before.delays_s);
		free(c->list[i].now.delays_s);
	}
	free(c->list);
}

static const char *what(const struct change *c)
{
	return c->control ? "false alarm" : c->wrong ? "wrong server" : "right server";
}

static const char *fault_of(const struct tables *v, const struct change *c)
{
	return c->fault == ALL ? c->control ? "controls" : "all faults"
			       : v->names[SCORE_FAULT][c->fault];
}

static void print_changes(struct tables *v, const struct changes *c)
{
	for (const struct change *i = c->list; i < c->list + c->n; i++)
		if (i->differs || (i->fault == ALL && !i->wrong))
			sheet_words(&v->out,
				"%s, %s, %s: %u of %u in %s, %u of %u in %s: %s (p = %.2g)",
				v->names[SCORE_DETECTOR][i->detector], fault_of(v, i), what(i),
				hits_of(&i->before, i->wrong), i->before.n,
				v->names[SCORE_WORKLOAD][0], hits_of(&i->now, i->wrong), i->now.n,
				v->names[SCORE_WORKLOAD][i->run],
				i->differs ? "they differ" : "not distinguishable", i->p);
	if (c->n)
		sheet_words(&v->out,
			"the runs' cells differ: Fisher's exact tests, two-sided, %d %% for "
			"all %zu together (Holm); faults that do not differ are not listed",
			LEVEL_PCT, c->n);
}

static json_t *changes_json(const struct tables *v, const struct changes *c)
{
	json_t *list = json_array();

	for (const struct change *i = c->list; i < c->list + c->n; i++)
		json_array_append_new(list,
			json_pack("{s:s, s:s?, s:s, s:s, s:s, s:i, s:i, s:i, s:i, s:f, s:b}",
				"detector", v->names[SCORE_DETECTOR][i->detector], "fault",
				i->fault == ALL ? NULL : v->names[SCORE_FAULT][i->fault], "what",
				what(i), "first", v->names[SCORE_WORKLOAD][0], "other",
				v->names[SCORE_WORKLOAD][i->run], "first_count",
				(int)hits_of(&i->before, i->wrong), "first_n", (int)i->before.n,
				"other_count", (int)hits_of(&i->now, i->wrong), "other_n",
				(int)i->now.n, "p", i->p, "differs", i->differs));
	return list;
}

/* Each detector's runs below one another. */
static void fill_totals(struct tables *v, struct grid *g)
{
	static const struct grid_column list[] = {
		{"detector", "detector", .flags = GRID_TEXT | GRID_GROUP},
		{"detector", .title = "detector", .flags = GRID_MARKDOWN | GRID_JSON},
		{"run", "all cells", "run",
			.flags = GRID_TEXT | GRID_MARKDOWN | GRID_JSON | GRID_LABEL,
			.width = NAME_WIDTH, .indent = 2},
		{"faulty.n", "faulty", .flags = 0xff | GRID_RIGHT, .gap = 1, .width = 6,
			.of = OF_N},
		{"faulty.right_server", "right server", .flags = 0xff | GRID_GOOD, .gap = 1,
			.width = RATE_WIDTH, .of = OF_RIGHT},
		{"faulty.wrong_server", "wrong server", .flags = 0xff | GRID_BAD, .gap = 1,
			.width = RATE_WIDTH, .of = OF_WRONG},
		{"controls.n", "controls", .flags = 0xff | GRID_RIGHT, .gap = 1, .width = 8,
			.of = OF_N},
		{"controls.false_alarm", "false alarm", .flags = 0xff | GRID_BAD, .gap = 1,
			.width = RATE_WIDTH, .of = OF_WRONG},
	};

	GRID_COLUMNS(g, list);
	for (size_t d = 0; d < v->n[SCORE_DETECTOR]; d++)
		for (size_t r = 0; r < v->n[SCORE_WORKLOAD]; r++) {
			struct score faulty = sum_of(v, d, r, ALL, false),
				     controls = sum_of(v, d, r, ALL, true);

			if (tables_is_null(v, d) && !v->notes->details)
				continue;
			grid_names(g, 1, &v->names[SCORE_DETECTOR][d]);
			grid_names(g, 1, &v->names[SCORE_DETECTOR][d]);
			grid_names(g, 1, &v->names[SCORE_WORKLOAD][r]);
			tables_score(g, &faulty, 3);
			tables_score(g, &controls, 2);
			free(faulty.delays_s);
			free(controls.delays_s);
		}
}

static void table_runs_print_page(struct tables *v, const struct table_notes *notes, size_t n)
{
	struct changes c = changes_of(v);
	struct grid g = {.out = &v->out, .groups_once = true};

	fill_totals(v, &g);
	grid_print(&g);
	sheet_blank(&v->out, GRID_MARKDOWN);
	print_changes(v, &c);
	changes_clear(&c);
	sheet_blank(&v->out, 0);
	for (size_t d = 0; d < v->n[SCORE_DETECTOR]; d++) {
		if (tables_is_null(v, d) && !v->notes->details)
			continue;
		sheet_heading(&v->out, v->names[SCORE_DETECTOR][d],
			tables_is_null(v, d) ? " (null)" : "");
		table_detector(v, d);
		sheet_blank(&v->out, 0);
	}
	for (size_t i = 0; i < n; i++) {
		v->notes = &notes[i];
		table_footer(v);
	}
}

int table_runs_render(const struct score_table *t, enum table_format format,
	const struct table_notes *notes, size_t n, FILE *f)
{
	struct tables v;
	struct changes c;
	struct grid totals = {.out = &v.out};
	json_t *runs = json_array();

	tables_init(&v, t, format, notes, f);
	if (format != TABLE_JSON) {
		json_decref(runs);
		table_runs_print_page(&v, notes, n);
		return sheet_end(&v.out);
	}
	c = changes_of(&v);
	fill_totals(&v, &totals);
	for (size_t i = 0; i < n; i++) {
		v.notes = &notes[i];
		json_array_append_new(runs, table_json_notes(&v));
	}
	sheet_json(&v.out,
		json_pack("{s:o, s:f, s:o, s:o}", "runs", runs, "confidence", 0.95, "detectors",
			grid_json(&totals), "comparisons", changes_json(&v, &c)));
	changes_clear(&c);
	return sheet_end(&v.out);
}
