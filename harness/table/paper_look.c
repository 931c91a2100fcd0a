/* A published table and a run in one small table: the share of faulty servers found, for each
 * fault and workload. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/table/paper_impl.h"

enum { LABEL = 17, SHARE = 3, DETECTORS = 2, WORKLOADS_A_BLOCK = 5 };

/* The highest share of the paper over its metrics; negative: the paper lacks the fault. */
static double published_best(const struct paper *p, const char *fault, const char *workload)
{
	double best = -1;

	for (size_t i = 0; i < p->n; i++) {
		double tp = strcmp(p->rows[i].workload, workload) ? 0 : p->rows[i].tp;

		if (!strcmp(p->rows[i].fault, fault) && tp > best)
			best = tp;
	}
	return best;
}

/* The detectors of one grid: n of them, by index. */
struct look {
	struct paper_view *b;
	size_t list[DETECTORS], n;
};

/* The share of faulty servers found; for controls the share of false alarms. */
static struct grid_cell share_of(const struct score *s)
{
	return (struct grid_cell){.kind = s->n ? GRID_SHARE : GRID_ABSENT,
		.wrong = s->control,
		.number = s->n ? (double)(s->control ? s->alarms : s->hits) / s->n : 0};
}

/* The cells of a fault and workload: published, and each detector's share. */
static void put_shares(
	const struct look *l, struct grid *g, const char *fault, const char *workload)
{
	const struct grid_column plain = {0};
	double best = published_best(l->b->p, fault, workload);
	struct grid_cell cells[1 + DETECTORS] = {
		{.kind = best < 0 ? GRID_ABSENT : GRID_SHARE, .number = best}};
	char text[1 + DETECTORS][16] = {"", "", ""};
	const char *words[1 + DETECTORS];

	for (size_t i = 0; i < l->n; i++) {
		struct score s = paper_counts(l->b, l->list[i], fault, workload, "any");

		cells[1 + i] = share_of(&s);
	}
	for (size_t i = 0; i < 1 + DETECTORS; i++) {
		words[i] = grid_cell_text(&plain, &cells[i], TABLE_TEXT, text[i], sizeof(text[i]));
		grid_cell(g, cells[i]);
	}
	grid_words(g, "*%s* %s%s%s", words[0], words[1], l->n > 1 ? " " : "", words[2]);
}

static void columns(const struct look *l, struct grid *g)
{
	const struct tables *v = &l->b->v;

	GRID_COLUMN(g, .title = "fault", .flags = GRID_LABEL | GRID_CUT, .width = LABEL);
	for (size_t w = 0; w < l->b->n_workloads; w++) {
		grid_group(g, l->b->workloads[w]);
		for (size_t i = 0; i < 1 + DETECTORS; i++)
			GRID_COLUMN(g,
				.key = !i           ? "published (best metric)"
					: i <= l->n ? v->names[SCORE_DETECTOR][l->list[i - 1]]
						    : NULL,
				.flags = GRID_TEXT | GRID_SVG, .gap = 1, .width = SHARE);
		GRID_COLUMN(g, .title = l->b->workloads[w], .flags = GRID_MARKDOWN);
	}
}

static bool is_control(const struct look *l, const char *fault)
{
	for (size_t i = 0; i < l->n; i++)
		for (size_t w = 0; w < l->b->n_workloads; w++)
			if (paper_counts(l->b, l->list[i], fault, l->b->workloads[w], "any")
					.control)
				return true;
	return false;
}

static void draw(const struct look *l, struct grid *g, const char *cells)
{
	const char *run = l->b->v.notes->run_id;
	char head[128], measured[256];
	const char *const foot[] = {measured, l->b->p->source};

	snprintf(head, sizeof(head), "Share of faulty servers found, of %s each", cells);
	snprintf(measured, sizeof(measured), "Measured: run %s. False alarms: share of controls.",
		run ? run : "without a name");
	grid_svg(g, head, foot);
}

/* In how many places a detector that judges the published metrics has the published share, within
 * the uncertainty of the number of published cells. */
static void count_places(struct paper_view *b, size_t d)
{
	const struct paper *p = b->p;
	unsigned places = 0, within = 0;

	for (size_t k = 0; k < p->n_faults; k++)
		for (size_t w = 0; w < b->n_workloads; w++) {
			double best = published_best(p, p->faults[k], b->workloads[w]), low, high;
			struct score s = paper_counts(b, d, p->faults[k], b->workloads[w], "any");
			double share = s.n ? (double)s.hits / s.n : 0;

			if (best < 0 || !s.n || s.control)
				continue;
			score_interval(
				(unsigned)lround(best * p->cells), p->cells, 0.95, &low, &high);
			places++;
			within += share >= low && share <= high;
		}
	if (!places)
		return;
	sheet_words(&b->v.out,
		"%s: in %u of %u places within the published figure's 95 %% interval, of %u cells "
		"each",
		b->v.names[SCORE_DETECTOR][d], within, places, p->cells);
	sheet_blank(&b->v.out, 0);
}

static void paper_look_print(const struct look *l, struct grid *g, const char *cells)
{
	struct tables *v = &l->b->v;
	char names[256] = "";

	for (size_t i = 0; i < l->n; i++)
		snprintf(names + strlen(names), sizeof(names) - strlen(names), ", %.60s",
			v->names[SCORE_DETECTOR][l->list[i]]);
	sheet_words(&v->out, "share of faulty servers found: published (best metric)%s; of %s each",
		names, cells);
	sheet_blank(&v->out, GRID_MARKDOWN);
	grid_print(g);
	sheet_blank(&v->out, GRID_MARKDOWN);
	for (size_t i = 0; l->b->p->cells && i < l->n; i++)
		if (paper_by_metric(l->b, l->list[i]))
			count_places(l->b, l->list[i]);
}

/* The smallest and largest number of faulty cells behind a share. Detectors judge the same cells,
 * unless one fails. */
static void count_cells(const struct paper_view *b, unsigned *least, unsigned *most)
{
	for (size_t k = 0; k < b->n_faults; k++)
		for (size_t w = 0; w < b->n_workloads; w++) {
			bool control = false;
			unsigned n = 0;

			for (size_t d = 0; d < b->v.n[SCORE_DETECTOR]; d++) {
				struct score s = paper_counts(
					b, d, b->faults[k], b->workloads[w], "any");

				if (tables_is_null(&b->v, d))
					continue;
				control = s.n ? s.control : control;
				n = s.n > n ? s.n : n;
			}
			if (!n || control)
				continue;
			*least = !*least || n < *least ? n : *least;
			*most = n > *most ? n : *most;
		}
}

int paper_look(struct paper_view *b)
{
	struct tables *v = &b->v;
	unsigned least = 0, most = 0;
	char cells[48];
	size_t d = 0;

	count_cells(b, &least, &most);
	if (least == most)
		snprintf(cells, sizeof(cells), "%u cell%s", most, most > 1 ? "s" : "");
	else
		snprintf(cells, sizeof(cells), "%u to %u cells", least, most);
	while (most && d < v->n[SCORE_DETECTOR]) {
		struct look l = {.b = b};
		struct grid g = {
			.out = &v->out, .bar = "|", .a_block = WORKLOADS_A_BLOCK, .blank = true};

		for (; d < v->n[SCORE_DETECTOR] && l.n < DETECTORS; d++)
			if (!tables_is_null(v, d))
				l.list[l.n++] = d;
		if (!l.n)
			break;
		columns(&l, &g);
		for (size_t k = 0; k < b->n_faults; k++) {
			grid_words(&g, "%s",
				is_control(&l, b->faults[k]) ? "false alarms" : b->faults[k]);
			for (size_t w = 0; w < b->n_workloads; w++)
				put_shares(&l, &g, b->faults[k], b->workloads[w]);
		}
		if (v->out.format == TABLE_SVG) {
			draw(&l, &g, cells);
			return 0;
		}
		paper_look_print(&l, &g, cells);
	}
	return v->out.format == TABLE_SVG ? -ENOENT : 0;
}
