/* A published table and a run as text and Markdown. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/table/paper_impl.h"

enum { LINE_LABEL = 20, FIGURE = 10, WORKLOADS_A_BLOCK = 3, LABEL = 17, RATE = 15 };

/* The lines of a figure in text: published, measured, its interval, and n below TP. */
enum { PUBLISHED, MEASURED, INTERVAL, N, LINES };

/* A fault, metric and workload. */
struct paper_cell {
	char tp[LINES][16], fp[LINES][16];
	const char *star; /* the detector abstained in some cells */
	unsigned n;
};

static void figure(const struct paper_row *theirs, double published, unsigned hits, unsigned n,
	char lines[LINES][16])
{
	char text[32];

	snprintf(lines[PUBLISHED], 16, theirs ? "%g" : "(0)", published);
	grid_rate_text(hits, n, text, sizeof(text));
	sscanf(text, "%15s %15s", lines[MEASURED], lines[INTERVAL]);
}

static struct paper_cell paper_pages_cell_of(const struct paper_view *b, size_t d,
	const char *fault, const char *metric, const char *workload)
{
	const struct paper_row *theirs = paper_at(b->p, fault, metric, workload);
	struct score s = paper_counts(b, d, fault, workload, metric);
	struct paper_cell c = {.n = s.n, .star = s.abstained ? "*" : ""};

	figure(theirs, theirs ? theirs->tp : 0, s.hits, s.n, c.tp);
	figure(theirs, theirs ? theirs->fp : 0, s.alarms, s.n, c.fp);
	snprintf(c.tp[N], sizeof(c.tp[N]), "%u", s.n);
	return c;
}

/* A row of a part is shown if it is published or if the measured value is not 0. */
static bool row_is_shown(const struct paper_view *b, size_t d, const struct paper_part *part,
	const char *fault, const char *metric)
{
	for (size_t w = 0; w < part->n_workloads; w++) {
		struct score s = paper_counts(b, d, fault, part->workloads[w], metric);

		if (s.hits || s.alarms || paper_at(b->p, fault, metric, part->workloads[w]))
			return true;
	}
	return false;
}

/* The k-th metric that a part shows of a fault, or NULL. */
static const char *shown_metric(const struct paper_view *b, size_t d, const struct paper_part *part,
	const char *fault, size_t k)
{
	for (size_t m = 0; m < part->n_metrics; m++)
		if (row_is_shown(b, d, part, fault, part->metrics[m]) && !k--)
			return part->metrics[m];
	return NULL;
}

/* The lines of a fault and metric; n has a separate line if the cells differ in n. */
static void put_lines(struct grid *g, const char *fault, const char *metric,
	const struct paper_cell *cells, size_t n)
{
	char labels[LINES][64] = {"", "          measured", "          95 %", "          n"};
	bool common = cells[0].n;

	for (size_t i = 1; i < n; i++)
		common = common && cells[i].n == cells[0].n;
	snprintf(labels[PUBLISHED], sizeof(*labels), "  %-7s published", metric);
	if (common)
		snprintf(labels[INTERVAL], sizeof(*labels), "          95 %%,n=%u", cells[0].n);
	for (int line = PUBLISHED; line <= (common ? INTERVAL : N); line++) {
		grid_words(g, "%s", fault);
		grid_words(g, "%s", labels[line]);
		for (const struct paper_cell *c = cells; c < cells + n; c++) {
			grid_words(g, "%s%s", c->tp[line], line == MEASURED ? c->star : "");
			grid_words(g, "%s%s", c->fp[line], line == MEASURED ? c->star : "");
		}
	}
}

/* A part of the paper in text: as many of its workloads as fit side by side. */
static void part_text(struct paper_view *b, size_t d, const struct paper_part *part, size_t first)
{
	static const struct grid_column lead[] = {{.flags = GRID_GROUP},
		{.flags = GRID_LABEL, .width = LINE_LABEL}},
					figures[] = {{.head = "TP", .width = FIGURE},
						{.head = "FP", .width = FIGURE}};
	struct grid g = {.out = &b->v.out, .blank = true};
	struct paper_cell cells[WORKLOADS_A_BLOCK];
	size_t last = first;

	GRID_COLUMNS(&g, lead);
	for (; last < part->n_workloads && last < first + WORKLOADS_A_BLOCK; last++) {
		grid_group(&g, part->workloads[last]);
		GRID_COLUMNS(&g, figures);
	}
	for (size_t k = 0; k < b->p->n_faults; k++)
		for (size_t m = 0; m < part->n_metrics; m++) {
			const char *fault = b->p->faults[k], *metric = part->metrics[m];

			if (!row_is_shown(b, d, part, fault, metric))
				continue;
			for (size_t w = first; w < last; w++)
				cells[w - first] = paper_pages_cell_of(
					b, d, fault, metric, part->workloads[w]);
			put_lines(&g, fault, metric, cells, last - first);
		}
	grid_print(&g);
}

static void put_cell_markdown(struct grid *g, const struct paper_cell *c)
{
	if (!c->n) {
		grid_words(g, "*%s*<br>-", c->tp[PUBLISHED]);
		grid_words(g, "*%s*<br>-", c->fp[PUBLISHED]);
		return;
	}
	grid_words(g, "*%s*<br>**%s**%s%s<br>%s<br>n=%u", c->tp[PUBLISHED], c->tp[MEASURED],
		*c->star ? "\\" : "", c->star, c->tp[INTERVAL], c->n);
	grid_words(g, "*%s*<br>**%s**<br>%s", c->fp[PUBLISHED], c->fp[MEASURED], c->fp[INTERVAL]);
}

/* A row of the paper's layout; false after the last of a fault. */
static bool put_row_markdown(
	struct paper_view *b, struct grid *g, size_t d, const char *fault, size_t row)
{
	const struct paper *p = b->p;
	const char *metrics[PAPER_PARTS];
	bool more = false;

	for (size_t i = 0; i < p->n_parts; i++) {
		metrics[i] = shown_metric(b, d, &p->parts[i], fault, row);
		more = more || metrics[i];
	}
	if (!more)
		return false;
	grid_words(g, "%s", fault);
	for (size_t i = 0; i < p->n_parts; i++) {
		grid_words(g, "%s", metrics[i] ? metrics[i] : "");
		if (!metrics[i])
			grid_none(g, 2 * p->parts[i].n_workloads);
		for (size_t w = 0; metrics[i] && w < p->parts[i].n_workloads; w++) {
			struct paper_cell c = paper_pages_cell_of(
				b, d, fault, metrics[i], p->parts[i].workloads[w]);

			put_cell_markdown(g, &c);
		}
	}
	return true;
}

/* The paper's layout, with its parts side by side. */
static void parts_markdown(struct paper_view *b, size_t d)
{
	static const char *const rates[] = {"TP", "FP"};
	struct grid g = {.out = &b->v.out, .groups_once = true};
	char title[PAPER_NAME + 4];

	GRID_COLUMN(&g, .title = "fault", .flags = GRID_GROUP);
	for (size_t i = 0; i < b->p->n_parts; i++) {
		GRID_COLUMN(&g, .title = "metric");
		for (size_t w = 0; w < 2 * b->p->parts[i].n_workloads; w++) {
			snprintf(title, sizeof(title), "%s %s", b->p->parts[i].workloads[w / 2],
				rates[w % 2]);
			GRID_COLUMN(&g, .title = title);
		}
	}
	for (size_t k = 0; k < b->p->n_faults; k++)
		for (size_t row = 0; put_row_markdown(b, &g, d, b->p->faults[k], row); row++)
			;
	grid_print(&g);
	sheet_blank(&b->v.out, 0);
}

/* Non-zero scores by metric without a row or column in the paper. */
static void print_strays(struct paper_view *b, size_t d)
{
	const struct paper *p = b->p;
	bool markdown = b->v.out.format == TABLE_MARKDOWN, told = false;

	for (size_t k = 0; k < p->n_faults; k++)
		for (size_t m = 0; m < p->n_parts * PAPER_METRICS; m++)
			for (size_t w = 0; w < b->n_workloads; w++) {
				const struct paper_part *part = &p->parts[m / PAPER_METRICS];
				const char *metric = part->metrics[m % PAPER_METRICS];
				struct score s = {0};
				char tp[32], fp[32];

				if (metric && !paper_has(p, metric, b->workloads[w]))
					s = paper_counts(
						b, d, p->faults[k], b->workloads[w], metric);
				if (!s.hits && !s.alarms)
					continue;
				grid_rate_text(s.hits, s.n, tp, sizeof(tp));
				grid_rate_text(s.alarms, s.n, fp, sizeof(fp));
				(markdown ? sheet_line : sheet_words)(&b->v.out,
					"%snot in the paper: %s, %s, %s: TP %s, FP "
					"%s, n=%u",
					markdown ? "- " : "", p->faults[k], metric, b->workloads[w],
					tp, fp, s.n);
				told = true;
			}
	if (told)
		sheet_blank(&b->v.out, 0);
}

/* A detector's verdicts over all metrics, for every fault and workload. */
static void print_any(struct paper_view *b, size_t d, const char *name)
{
	const struct grid_column columns[] = {{.title = "fault", .flags = GRID_GROUP},
		{.head = name,
			.title = "workload",
			GRID_LABEL | GRID_CUT,
			.width = LABEL,
			.indent = 2},
		{.head = "n ", .title = "n", GRID_RIGHT | GRID_STARS, 1, 5, .of = OF_N_STARRED},
		{.head = "TP", .width = RATE, .of = OF_RIGHT},
		{.head = "FP", .width = RATE, .of = OF_WRONG},
		{.head = score_causes(b->v.t) ? "cause" : "resource",
			.width = RATE,
			.of = OF_EXPLAINED},
		{.head = "delay (s)", .flags = GRID_RIGHT, .number = "%.1f", .of = OF_MEDIAN}};
	struct grid g = {.out = &b->v.out, .groups_once = true};

	GRID_COLUMNS(&g, columns);
	for (size_t k = 0; k < b->n_faults; k++)
		for (size_t w = 0; w < b->n_workloads; w++) {
			struct score s = paper_gather(b, d, b->faults[k], b->workloads[w], "any");

			if (s.n) {
				grid_words(&g, "%s%s", b->faults[k], s.control ? " (control)" : "");
				grid_names(&g, 1, &b->workloads[w]);
				tables_score(&g, &s, 5);
			}
			free(s.delays_s);
		}
	grid_print(&g);
	sheet_blank(&b->v.out, 0);
}

static void print_by_metric(struct paper_view *b, size_t d, const char *name)
{
	bool markdown = b->v.out.format == TABLE_MARKDOWN;

	sheet_heading(&b->v.out, name,
		markdown ? " by metric: *published*, **measured**, interval"
			 : " by metric, as published");
	if (markdown)
		parts_markdown(b, d);
	for (size_t i = 0; !markdown && i < b->p->n_parts; i++)
		for (size_t w = 0; w < b->p->parts[i].n_workloads; w += WORKLOADS_A_BLOCK)
			part_text(b, d, &b->p->parts[i], w);
	print_strays(b, d);
}

static bool somebody_abstained(const struct tables *v)
{
	const struct score *s;
	size_t place = 0;

	while ((s = tables_next(v, &place)))
		if (s->abstained && !tables_is_null(v, s->at[SCORE_DETECTOR]))
			return true;
	return false;
}

static void print_notes(struct paper_view *b)
{
	struct sheet *out = &b->v.out;
	const struct table_notes *notes = b->v.notes;
	bool markdown = out->format == TABLE_MARKDOWN;

	sheet_words(out, "%s", b->p->source);
	sheet_words(out,
		"TP: share of cells in which every faulty server was indicted. FP: share of "
		"cells in which some healthy server was. In brackets: exact 95 %% intervals. "
		"(0): the published table leaves the row out, for it shows only what is not 0. "
		"resource, cause: the right server, and what is wrong with it. delay: median "
		"seconds from verified onset to the right server's indictment.");
	if (somebody_abstained(&b->v))
		sheet_words(out,
			"%s* the detector abstained in some of these cells; they count as nobody "
			"indicted",
			markdown ? "\\" : "");
	if (markdown && notes->n_environment)
		fputc('\n', out->f);
	for (size_t i = 0; i < notes->n_environment; i++) {
		/* A list in Markdown, which would join the lines otherwise. */
		(markdown ? sheet_line : sheet_words)(
			out, "%s%s", markdown ? "- " : "", notes->environment[i]);
	}
	sheet_blank(out, GRID_MARKDOWN);
	table_footer(&b->v);
}

void paper_page(struct paper_view *b)
{
	struct tables *v = &b->v;

	paper_look(b);
	table_summary(v);
	fputc('\n', v->out.f);
	for (size_t d = 0; d < v->n[SCORE_DETECTOR]; d++) {
		const char *name = v->names[SCORE_DETECTOR][d];

		if (tables_is_null(v, d))
			continue;
		if (paper_by_metric(b, d))
			print_by_metric(b, d, name);
		if (v->out.format == TABLE_MARKDOWN)
			sheet_heading(&v->out, name, "");
		print_any(b, d, name);
	}
	print_notes(b);
}
