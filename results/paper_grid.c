/* A published table and ours in one look: of each fault and workload the share of faulty servers
 * that was found. */
#include <stdlib.h>
#include <string.h>

#include "results/paper_impl.h"

enum { LABEL = 18, SHARE = 4, GRID_DETECTORS = 2, GRID_WORKLOADS = 5 };

/* As a person reads a share in a narrow column: "0", ".05", "1". All and nothing are said of all
 * and nothing only. */
static const char *share_text(double share, char *out, size_t size)
{
	if (share <= 0 || share >= 1)
		snprintf(out, size, "%d", share >= 1);
	else
		snprintf(out, size, ".%02d",
			share < 0.015           ? 1
				: share > 0.985 ? 99
						: (int)(share * 100 + 0.5));
	return out;
}

/* The most that the paper found by any of its metrics; negative: it does not have the fault. */
static double published_best(const struct paper *p, const char *fault, const char *workload)
{
	double best = -1;

	for (size_t i = 0; i < p->n; i++) {
		if (strcmp(p->rows[i].fault, fault))
			continue;
		if (best < 0)
			best = 0;
		if (!strcmp(p->rows[i].workload, workload) && p->rows[i].tp > best)
			best = p->rows[i].tp;
	}
	return best;
}

struct grid {
	const struct paper *p;
	const struct score_table *t;
	const char **faults, **workloads;
	size_t n_faults, n_workloads;
	size_t detectors[64], n_detectors;
	unsigned least, most; /* cells that a share is of */
};

static void grid_cell(struct grid *g, const char *fault, const char *workload, size_t first,
	size_t last, char (*out)[8])
{
	double theirs = published_best(g->p, fault, workload);

	snprintf(out[0], sizeof(*out), "-");
	if (theirs >= 0)
		share_text(theirs, out[0], sizeof(*out));
	for (size_t d = first; d < last; d++) {
		struct score s = paper_gather(g->t, g->detectors[d], fault, workload, "any");
		char *text = out[1 + d - first];

		snprintf(text, sizeof(*out), "-");
		if (s.n)
			share_text(
				(double)(s.control ? s.alarms : s.hits) / s.n, text, sizeof(*out));
		free(s.delays_s);
	}
}

/* All cells of a fault and workload that some detector judged; nobody judges fewer than another but
 * for failures. */
static unsigned judged(const struct grid *g, const char *fault, const char *workload, bool *control)
{
	unsigned n = 0;

	for (size_t d = 0; d < g->n_detectors; d++) {
		struct score s = paper_gather(g->t, g->detectors[d], fault, workload, "any");

		if (s.n)
			*control = s.control;
		n = s.n > n ? s.n : n;
		free(s.delays_s);
	}
	return n;
}

static bool is_control(const struct grid *g, const char *fault)
{
	bool control = false;

	for (size_t w = 0; w < g->n_workloads; w++)
		judged(g, fault, g->workloads[w], &control);
	return control;
}

/* How many cells stand behind the shares of faulty servers. */
static void count_cells(struct grid *g)
{
	for (size_t k = 0; k < g->n_faults; k++)
		for (size_t w = 0; w < g->n_workloads; w++) {
			bool control = false;
			unsigned n = judged(g, g->faults[k], g->workloads[w], &control);

			if (!n || control)
				continue;
			g->least = !g->least || n < g->least ? n : g->least;
			g->most = n > g->most ? n : g->most;
		}
}

static void say_what(const struct grid *g, size_t first, size_t last, bool markdown, FILE *f)
{
	struct names n = table_names(g->t);
	char line[512], cells[48], names[256] = "";

	snprintf(cells, sizeof(cells), g->least == g->most ? "%u" : "%u to %u", g->least, g->most);
	for (size_t d = first; d < last; d++) {
		size_t len = strlen(names);

		snprintf(names + len, sizeof(names) - len, ", %.60s",
			n.of[SCORE_DETECTOR][g->detectors[d]]);
	}
	snprintf(line, sizeof(line),
		"share of faulty servers found: published (best metric)%s; of %s cell%s each",
		names, cells, g->most > 1 ? "s" : "");
	table_wrap(line, f);
	if (markdown)
		fputc('\n', f);
}

/* Name of a row: of a control, what its shares are. */
static void row_name(const struct grid *g, const char *fault, char *out, size_t size)
{
	if (is_control(g, fault))
		snprintf(out, size, "false alarms");
	else
		snprintf(out, size, "%.60s", fault);
}

static void grid_text(struct grid *g, size_t d0, size_t d1, size_t w0, size_t w1, FILE *f)
{
	char text[160], shares[1 + GRID_DETECTORS][8], name[64];
	int len = snprintf(text, sizeof(text), "%-*s", LABEL, "");

	for (size_t w = w0; w < w1; w++)
		len += snprintf(text + len, sizeof(text) - (size_t)len, "%-*.11s%s",
			(1 + GRID_DETECTORS) * SHARE - 1, g->workloads[w], w + 1 < w1 ? "|" : "");
	table_line(text, f);
	for (size_t k = 0; k < g->n_faults; k++) {
		row_name(g, g->faults[k], name, sizeof(name));
		len = snprintf(text, sizeof(text), "%-*.*s", LABEL, LABEL - 1, name);
		for (size_t w = w0; w < w1; w++) {
			grid_cell(g, g->faults[k], g->workloads[w], d0, d1, shares);
			for (size_t i = 0; i < 1 + GRID_DETECTORS; i++)
				len += snprintf(text + len, sizeof(text) - (size_t)len, "%-*s%c",
					SHARE - 1, i <= d1 - d0 ? shares[i] : "",
					i == GRID_DETECTORS && w + 1 < w1 ? '|' : ' ');
		}
		table_line(text, f);
	}
	fputc('\n', f);
}

static void grid_markdown(struct grid *g, size_t d0, size_t d1, FILE *f)
{
	char shares[1 + GRID_DETECTORS][8], name[64];

	fputs("| fault |", f);
	for (size_t w = 0; w < g->n_workloads; w++)
		fprintf(f, " %s |", g->workloads[w]);
	fputs("\n|---|", f);
	for (size_t w = 0; w < g->n_workloads; w++)
		fputs("---|", f);
	fputc('\n', f);
	for (size_t k = 0; k < g->n_faults; k++) {
		row_name(g, g->faults[k], name, sizeof(name));
		fprintf(f, "| %s |", name);
		for (size_t w = 0; w < g->n_workloads; w++) {
			grid_cell(g, g->faults[k], g->workloads[w], d0, d1, shares);
			fprintf(f, " *%s*", shares[0]);
			for (size_t i = 1; i <= d1 - d0; i++)
				fprintf(f, " %s", shares[i]);
			fputs(" |", f);
		}
		fputc('\n', f);
	}
	fputc('\n', f);
}

void paper_grid(const struct paper *p, const struct score_table *t, const struct table_notes *notes,
	bool markdown, FILE *f)
{
	struct grid g = {.p = p, .t = t};
	struct names n = table_names(t);

	g.faults = paper_names(p, t, SCORE_FAULT, &g.n_faults);
	g.workloads = paper_names(p, t, SCORE_WORKLOAD, &g.n_workloads);
	for (size_t d = 0; d < n.n[SCORE_DETECTOR] &&
		g.n_detectors < sizeof(g.detectors) / sizeof(*g.detectors);
		d++)
		if (!table_is_null(notes, n.of[SCORE_DETECTOR][d]))
			g.detectors[g.n_detectors++] = d;
	if (g.faults && g.workloads && g.n_detectors)
		count_cells(&g);
	for (size_t d = 0; g.most && d < g.n_detectors; d += GRID_DETECTORS) {
		size_t end = d + GRID_DETECTORS < g.n_detectors ? d + GRID_DETECTORS
								: g.n_detectors;

		say_what(&g, d, end, markdown, f);
		if (markdown)
			grid_markdown(&g, d, end, f);
		for (size_t w = 0; !markdown && w < g.n_workloads; w += GRID_WORKLOADS)
			grid_text(&g, d, end, w,
				w + GRID_WORKLOADS < g.n_workloads ? w + GRID_WORKLOADS
								   : g.n_workloads,
				f);
	}
	free(g.faults);
	free(g.workloads);
}
