/* A published table and a run as CSV and JSON. */
#include <math.h>
#include <stdlib.h>

#include "harness/table/paper_impl.h"

/* A missing row in a part of the paper counts as published 0. */
static void put_published(
	struct grid *g, const struct paper_row *theirs, bool in_paper, unsigned cells)
{
	double tp = theirs ? theirs->tp : 0, fp = theirs ? theirs->fp : 0, low = NAN, high = NAN;

	if (in_paper && cells)
		score_interval((unsigned)lround(tp * cells), cells, 0.95, &low, &high);
	grid_number(g, in_paper ? tp : NAN);
	grid_number(g, low);
	grid_number(g, high);
	grid_number(g, in_paper ? fp : NAN);
	grid_cell(g,
		(struct grid_cell){GRID_VALUE,
			.value = in_paper ? json_pack("{s:f, s:f, s:b}", "tp", tp, "fp", fp,
						    "shown", theirs != NULL)
					  : json_null()});
}

/* Cells that were measured or published. */
void paper_fill(struct paper_view *b, struct grid *g)
{
	static const struct grid_column columns[] = {{"detector"}, {"fault"}, {"workload"},
		{"metric"}, {"published_tp", .flags = GRID_CSV},
		{"published_tp_low", .flags = GRID_CSV}, {"published_tp_high", .flags = GRID_CSV},
		{"published_fp", .flags = GRID_CSV}, {"published", .flags = GRID_JSON},
		{"control", .flags = GRID_JSON, .of = OF_CONTROL}, {"n", .of = OF_N},
		{"abstained", .of = OF_ABSTAINED}, {"tp", .flags = GRID_RATES, .of = OF_RIGHT},
		{"fp", .flags = GRID_RATES, .of = OF_WRONG},
		{"resource", .flags = GRID_RATES, .of = OF_RESOURCE},
		{"cause", .flags = GRID_RATES, .of = OF_EXPLAINED},
		{"delay_n", .flags = GRID_CSV, .of = OF_DELAYS},
		{"delay_median_s", .flags = GRID_CSV, .number = "%.3f", .of = OF_MEDIAN},
		{"delay_s", .flags = GRID_JSON, .of = OF_DELAY}};
	const struct tables *v = &b->v;
	size_t metrics = v->n[SCORE_METRIC], workloads = b->n_workloads * metrics,
	       faults = b->n_faults * workloads;

	GRID_COLUMNS(g, columns);
	for (size_t i = 0; i < v->n[SCORE_DETECTOR] * faults; i++) {
		size_t d = i / faults;
		const char *const at[SCORE_AXES] = {v->names[SCORE_DETECTOR][d],
			b->faults[i % faults / workloads], b->workloads[i % workloads / metrics],
			v->names[SCORE_METRIC][i % metrics]};
		const struct paper_row *theirs = paper_at(b->p, at[1], at[3], at[2]);
		struct score s = paper_gather(b, d, at[1], at[2], at[3]);

		if (s.n || (theirs && paper_by_metric(b, d))) {
			grid_names(g, SCORE_AXES, at);
			put_published(g, theirs, !s.control && paper_has(b->p, at[3], at[2]),
				b->p->cells);
			tables_score(g, s.n ? &s : NULL, 10);
		}
		free(s.delays_s);
	}
}
