/* A published table and a run, as data: CSV and JSON. */
#include <math.h>
#include <stdlib.h>

#include "results/paper_impl.h"

/* A cell of a part of the paper that has no row is published as 0. */
static json_t *published_json(const struct paper_row *theirs)
{
	return json_pack("{s:f, s:f, s:b}", "tp", theirs ? theirs->tp : 0.0, "fp",
		theirs ? theirs->fp : 0.0, "shown", theirs != NULL);
}

static void put_cell(struct grid *g, const char *const at[SCORE_AXES],
	const struct paper_row *theirs, bool in_paper, const struct score *s)
{
	bool any = s->n;

	for (int a = 0; a < SCORE_AXES; a++)
		grid_words(g, "%s", at[a]);
	grid_number(g, in_paper ? theirs ? theirs->tp : 0 : NAN);
	grid_number(g, in_paper ? theirs ? theirs->fp : 0 : NAN);
	grid_cell(g,
		(struct grid_cell){.kind = GRID_VALUE,
			.value = in_paper ? published_json(theirs) : json_null()});
	grid_flag(g, s->control);
	grid_count(g, s->n, false);
	grid_count(g, s->abstained, false);
	grid_rate(g, any && !s->control, s->hits, s->n);
	grid_rate(g, any, s->alarms, s->n);
	grid_rate(g, any && s->named, s->classified, s->n);
	grid_rate(g, any && s->named, s->explained, s->n);
	grid_count(g, (long long)s->n_delays, false);
	grid_number(g, s->n_delays ? score_median(s->delays_s, s->n_delays) : NAN);
	grid_delay(g, s->delays_s, s->n_delays, s->early);
}

/* Cells that were measured or are published. */
void paper_fill(struct paper_view *b, struct grid *g)
{
	static const struct grid_column columns[] = {{"detector"}, {"fault"}, {"workload"},
		{"metric"}, {"published_tp", .flags = GRID_CSV},
		{"published_fp", .flags = GRID_CSV}, {"published", .flags = GRID_JSON},
		{"control", .flags = GRID_JSON}, {"n"}, {"abstained"}, {"tp", .flags = GRID_RATES},
		{"fp", .flags = GRID_RATES}, {"resource", .flags = GRID_RATES},
		{"cause", .flags = GRID_RATES}, {"delay_n", .flags = GRID_CSV},
		{"delay_median_s", .flags = GRID_CSV, .number = "%.3f"},
		{"delay_s", .flags = GRID_JSON}};
	const struct tables *v = &b->v;

	grid_columns(g, columns, sizeof(columns) / sizeof(*columns));
	for (size_t d = 0; d < v->n[SCORE_DETECTOR]; d++)
		for (size_t k = 0; k < b->n_faults; k++)
			for (size_t w = 0; w < b->n_workloads; w++)
				for (size_t m = 0; m < v->n[SCORE_METRIC]; m++) {
					const char *metric = v->names[SCORE_METRIC][m];
					const char *const at[SCORE_AXES] = {
						v->names[SCORE_DETECTOR][d], b->faults[k],
						b->workloads[w], metric};
					const struct paper_row *theirs = paper_at(
						b->p, at[1], metric, at[2]);
					struct score s = paper_gather(b, d, at[1], at[2], metric);

					if (s.n || (theirs && paper_by_metric(b, d)))
						put_cell(g, at, theirs,
							!s.control &&
								paper_has(b->p, metric, at[2]),
							&s);
					free(s.delays_s);
				}
}
