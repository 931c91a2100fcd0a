/* A published table beside ours, for programs: every detector, fault and workload, by metric and at
 * last ("any"). */
#include <stdlib.h>
#include <string.h>

#include "results/paper_impl.h"

typedef void (*cell_fn)(const char *const at[SCORE_AXES], const struct published *theirs,
	bool in_paper, const struct score *s, void *ctx);

/* Cells that were measured, or are published. */
static void each_cell(const struct paper *p, const struct score_table *t, cell_fn fn, void *ctx)
{
	struct names n = table_names(t);
	size_t n_faults, n_workloads;
	const char **faults = paper_names(p, t, SCORE_FAULT, &n_faults),
		   **workloads = paper_names(p, t, SCORE_WORKLOAD, &n_workloads);

	for (size_t d = 0; d < n.n[SCORE_DETECTOR]; d++)
		for (size_t k = 0; faults && k < n_faults; k++)
			for (size_t w = 0; workloads && w < n_workloads; w++)
				for (size_t m = 0; m < n.n[SCORE_METRIC]; m++) {
					const char *const at[SCORE_AXES] = {n.of[SCORE_DETECTOR][d],
						faults[k], workloads[w], n.of[SCORE_METRIC][m]};
					const struct published *theirs = paper_at(
						p, faults[k], at[SCORE_METRIC], workloads[w]);
					struct score s = paper_gather(
						t, d, faults[k], workloads[w], at[SCORE_METRIC]);

					if (s.n || (theirs && paper_by_metric(p, t, d)))
						fn(at, theirs,
							!s.control &&
								paper_part(p, at[SCORE_METRIC],
									workloads[w]) < p->n_parts,
							&s, ctx);
					free(s.delays_s);
				}
	free(faults);
	free(workloads);
}

static void csv_rate(unsigned hits, unsigned n, bool applies, FILE *f)
{
	double low, high;

	if (!applies || !n) {
		fputs(",,,,", f);
		return;
	}
	score_interval(hits, n, 0.95, &low, &high);
	fprintf(f, ",%u,%.6f,%.6f,%.6f", hits, (double)hits / n, low, high);
}

static void csv_cell(const char *const at[SCORE_AXES], const struct published *theirs,
	bool in_paper, const struct score *s, void *ctx)
{
	FILE *f = ctx;

	for (int a = 0; a < SCORE_AXES; a++) {
		table_csv_text(at[a], f);
		fputc(',', f);
	}
	if (in_paper)
		fprintf(f, "%g,%g", theirs ? theirs->tp : 0, theirs ? theirs->fp : 0);
	else
		fputc(',', f);
	fprintf(f, ",%u,%u", s->n, s->abstained);
	csv_rate(s->hits, s->n, !s->control, f);
	csv_rate(s->alarms, s->n, true, f);
	csv_rate(s->classified, s->n, s->named, f);
	csv_rate(s->explained, s->n, s->named, f);
	if (s->n_delays)
		fprintf(f, ",%zu,%.3f\n", s->n_delays, score_median(s->delays_s, s->n_delays));
	else
		fputs(",0,\n", f);
}

void paper_csv(const struct paper *p, const struct score_table *t, FILE *f)
{
	fputs("detector,fault,workload,metric,published_tp,published_fp,n,abstained,tp_count,tp,tp_low,tp_high,fp_count,fp,fp_low,"
	      "fp_high,resource_count,resource,resource_low,resource_high,cause_count,cause,cause_low,cause_high,delay_n,"
	      "delay_median_s\n",
		f);
	each_cell(p, t, csv_cell, f);
}

static json_t *rate_or_null(unsigned hits, unsigned n, bool applies)
{
	return applies && n ? table_json_rate(hits, n) : json_null();
}

static void json_cell(const char *const at[SCORE_AXES], const struct published *theirs,
	bool in_paper, const struct score *s, void *ctx)
{
	static const char *const keys[SCORE_AXES] = {"detector", "fault", "workload", "metric"};
	json_t *row = json_object();

	for (int a = 0; a < SCORE_AXES; a++)
		json_object_set_new(row, keys[a], json_string(at[a]));
	json_object_set_new(row, "published",
		in_paper ? json_pack("{s:f, s:f, s:b}", "tp", theirs ? theirs->tp : 0.0, "fp",
				   theirs ? theirs->fp : 0.0, "shown", theirs != NULL)
			 : json_null());
	json_object_set_new(row, "control", json_boolean(s->control));
	json_object_set_new(row, "n", json_integer(s->n));
	json_object_set_new(row, "abstained", json_integer(s->abstained));
	json_object_set_new(row, "tp", rate_or_null(s->hits, s->n, !s->control));
	json_object_set_new(row, "fp", rate_or_null(s->alarms, s->n, true));
	json_object_set_new(row, "resource", rate_or_null(s->classified, s->n, s->named));
	json_object_set_new(row, "cause", rate_or_null(s->explained, s->n, s->named));
	json_object_set_new(row, "delay_s", table_json_delay(s));
	json_array_append_new(ctx, row);
}

void paper_json(const struct paper *p, const struct score_table *t, const struct table_notes *notes,
	FILE *f)
{
	struct names n = table_names(t);
	json_t *all = json_object(), *cells = json_array(), *environment = json_array();

	table_json_notes(all, notes);
	json_object_set_new(
		all, "published", json_pack("{s:s, s:s}", "table", p->name, "source", p->source));
	for (size_t i = 0; notes && i < notes->n_environment; i++)
		json_array_append_new(environment, json_string(notes->environment[i]));
	json_object_set_new(all, "environment", environment);
	json_object_set_new(all, "confidence", json_real(0.95));
	json_object_set_new(all, "summary", table_summary_json(t, &n, notes));
	each_cell(p, t, json_cell, cells);
	json_object_set_new(all, "scores", cells);
	json_dumpf(all, f, JSON_INDENT(2));
	fputc('\n', f);
	json_decref(all);
}
