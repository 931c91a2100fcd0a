/* A published table beside ours, for people: text of at most 80 columns, and Markdown in the
 * paper's own layout. */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "results/paper_impl.h"

enum { ROW_LABEL = 20, FIGURE = 10, PARTS_WORKLOADS = 3, OWN_LABEL = 18 };

/* A line of text that grows column by column and is printed without blanks at its end. */
struct line {
	char text[256];
	size_t len;
};

static void put(struct line *l, int width, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static void put(struct line *l, int width, const char *fmt, ...)
{
	char text[160];
	va_list ap;
	int n;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	n = snprintf(l->text + l->len, sizeof(l->text) - l->len, "%-*s", width, text);
	l->len += (size_t)n < sizeof(l->text) - l->len ? (size_t)n : 0;
}

static void end(struct line *l, FILE *f)
{
	table_line(l->text, f);
	*l = (struct line){0};
}

/* One figure as a person reads it: published, measured, interval. */
struct figure {
	char published[16], measured[16], interval[16];
	const char *star; /* the detector abstained from some of it */
};

static void figure_of(const struct published *theirs, double published, unsigned hits,
	const struct score *s, struct figure *out)
{
	char text[32], *space;

	snprintf(out->published, sizeof(out->published), theirs ? "%g" : "(0)", published);
	table_rate_text(hits, s->n, text, sizeof(text));
	space = strchr(text, ' ');
	snprintf(out->interval, sizeof(out->interval), "%s", space ? space + 1 : "");
	snprintf(out->measured, sizeof(out->measured), "%.*s", (int)strcspn(text, " "), text);
	out->star = s->abstained ? "*" : "";
}

struct cell {
	struct figure tp, fp;
	unsigned n;
};

static struct cell cell_of(const struct paper *p, const struct score_table *t, size_t d,
	const char *fault, const char *metric, const char *workload)
{
	const struct published *theirs = paper_at(p, fault, metric, workload);
	struct score s = paper_gather(t, d, fault, workload, metric);
	struct cell c = {.n = s.n};

	figure_of(theirs, theirs ? theirs->tp : 0, s.hits, &s, &c.tp);
	figure_of(theirs, theirs ? theirs->fp : 0, s.alarms, &s, &c.fp);
	free(s.delays_s);
	return c;
}

/* The cells' common n, or 0. */
static unsigned common_n(const struct cell *cells, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (cells[i].n != cells[0].n)
			return 0;
	return n ? cells[0].n : 0;
}

/* The lines of one fault and metric: published, measured, intervals. */
static void text_row(const char *metric, const struct cell *cells, size_t n, FILE *f)
{
	unsigned common = common_n(cells, n);
	struct line l = {0};

	put(&l, ROW_LABEL, "  %-7s published", metric);
	for (size_t i = 0; i < n; i++) {
		put(&l, FIGURE, "%s", cells[i].tp.published);
		put(&l, FIGURE, "%s", cells[i].fp.published);
	}
	end(&l, f);
	put(&l, ROW_LABEL, "          measured");
	for (size_t i = 0; i < n; i++) {
		put(&l, FIGURE, "%s%s", cells[i].tp.measured, cells[i].tp.star);
		put(&l, FIGURE, "%s%s", cells[i].fp.measured, cells[i].fp.star);
	}
	end(&l, f);
	put(&l, ROW_LABEL, common ? "          95 %%,n=%u" : "          95 %%", common);
	for (size_t i = 0; i < n; i++) {
		put(&l, FIGURE, "%s", cells[i].tp.interval);
		put(&l, FIGURE, "%s", cells[i].fp.interval);
	}
	end(&l, f);
	if (common)
		return;
	put(&l, ROW_LABEL, "          n");
	for (size_t i = 0; i < n; i++)
		put(&l, 2 * FIGURE, "%u", cells[i].n);
	end(&l, f);
}

static void text_part(const struct paper *p, const struct score_table *t, size_t d,
	const struct part *part, size_t first, size_t last, FILE *f)
{
	struct line l = {0};

	put(&l, ROW_LABEL, "%s", "");
	for (size_t w = first; w < last; w++)
		put(&l, 2 * FIGURE, "%.18s", part->workloads[w]);
	end(&l, f);
	put(&l, ROW_LABEL, "%s", "");
	for (size_t w = first; w < last; w++) {
		put(&l, FIGURE, "TP");
		put(&l, FIGURE, "FP");
	}
	end(&l, f);
	for (size_t k = 0; k < p->n_faults; k++) {
		bool named = false;

		for (size_t m = 0; m < part->n_metrics; m++) {
			struct cell cells[PAPER_WORKLOADS];

			if (!paper_shown(p, t, d, part, p->faults[k], part->metrics[m]))
				continue;
			for (size_t w = first; w < last; w++)
				cells[w - first] = cell_of(p, t, d, p->faults[k], part->metrics[m],
					part->workloads[w]);
			if (!named)
				fprintf(f, "%s\n", p->faults[k]);
			named = true;
			text_row(part->metrics[m], cells, last - first, f);
		}
	}
	fputc('\n', f);
}

static void stray_text(
	const char *fault, const char *metric, const char *workload, const struct score *s, FILE *f)
{
	char tp[32], fp[32], line[256];

	table_rate_text(s->hits, s->n, tp, sizeof(tp));
	table_rate_text(s->alarms, s->n, fp, sizeof(fp));
	snprintf(line, sizeof(line),
		"no such row or column there: %s, %s, %.40s: TP %s, FP %s, n=%u", fault, metric,
		workload, tp, fp, s->n);
	table_wrap(line, f);
}

/* What a detector says at last of one fault and workload, as text. */
struct last {
	char tp[32], fp[32], cause[32], delay[64];
};

static struct last last_of(const struct score *s)
{
	struct last l = {"-", "-", "-", "-"};

	if (!s->control)
		table_rate_text(s->hits, s->n, l.tp, sizeof(l.tp));
	table_rate_text(s->alarms, s->n, l.fp, sizeof(l.fp));
	if (s->named)
		table_rate_text(s->explained, s->n, l.cause, sizeof(l.cause));
	if (s->n_delays)
		snprintf(l.delay, sizeof(l.delay), "%.1f", score_median(s->delays_s, s->n_delays));
	return l;
}

typedef void (*last_fn)(
	const char *fault, const char *workload, const struct score *s, bool first, FILE *f);

/* Every fault and workload of the run; 'first' of its fault. */
static void each_last(
	const struct paper *p, const struct score_table *t, size_t d, last_fn fn, FILE *f)
{
	size_t n_faults, n_workloads;
	const char **faults = paper_names(p, t, SCORE_FAULT, &n_faults),
		   **workloads = paper_names(p, t, SCORE_WORKLOAD, &n_workloads);

	for (size_t k = 0; faults && workloads && k < n_faults; k++) {
		bool first = true;

		for (size_t w = 0; w < n_workloads; w++) {
			struct score s = paper_gather(t, d, faults[k], workloads[w], "any");

			if (s.n)
				fn(faults[k], workloads[w], &s, first, f);
			first = first && !s.n;
			free(s.delays_s);
		}
	}
	free(faults);
	free(workloads);
}

static void last_text(
	const char *fault, const char *workload, const struct score *s, bool first, FILE *f)
{
	struct last v = last_of(s);
	struct line l = {0};

	if (first)
		fprintf(f, "%.60s%s\n", fault, s->control ? " (control)" : "");
	put(&l, OWN_LABEL, "  %-.15s", workload);
	put(&l, 0, "%4u%c", s->n, s->abstained ? '*' : ' ');
	put(&l, TABLE_RATE + 1, "%s", v.tp);
	put(&l, TABLE_RATE + 1, "%s", v.fp);
	put(&l, TABLE_RATE + 1, "%s", v.cause);
	put(&l, 0, "%s", v.delay);
	end(&l, f);
}

static void detector_text(
	const struct paper *p, const struct score_table *t, size_t d, const char *name, FILE *f)
{
	struct line l = {0};

	if (paper_by_metric(p, t, d)) {
		fprintf(f, "%.40s by metric, as published\n", name);
		for (size_t i = 0; i < p->n_parts; i++)
			for (size_t w = 0; w < p->parts[i].n_workloads; w += PARTS_WORKLOADS) {
				size_t last = w + PARTS_WORKLOADS;

				text_part(p, t, d, &p->parts[i], w,
					last < p->parts[i].n_workloads ? last
								       : p->parts[i].n_workloads,
					f);
			}
		if (paper_strays(p, t, d, stray_text, f))
			fputc('\n', f);
	}
	put(&l, OWN_LABEL, "%.17s", name);
	put(&l, 5, "   n");
	put(&l, TABLE_RATE + 1, "TP");
	put(&l, TABLE_RATE + 1, "FP");
	put(&l, TABLE_RATE + 1, score_causes(t) ? "cause" : "resource");
	put(&l, 0, "delay (s)");
	end(&l, f);
	each_last(p, t, d, last_text, f);
	fputc('\n', f);
}

static bool abstained(const struct score_table *t, const struct table_notes *notes)
{
	struct names n = table_names(t);

	for (size_t d = 0; d < n.n[SCORE_DETECTOR]; d++)
		for (size_t k = 0; k < n.n[SCORE_FAULT]; k++)
			for (size_t w = 0; w < n.n[SCORE_WORKLOAD]; w++)
				for (size_t m = 0; m < n.n[SCORE_METRIC]; m++) {
					const struct score *s = score_at(t, d, k, w, m);

					if (s && s->abstained &&
						!table_is_null(notes, n.of[SCORE_DETECTOR][d]))
						return true;
				}
	return false;
}

/* Lines that Markdown would run together stand there as a list. */
static void print_environment(const struct table_notes *notes, bool markdown, FILE *f)
{
	if (markdown && notes && notes->n_environment)
		fputc('\n', f);
	for (size_t i = 0; notes && i < notes->n_environment; i++) {
		if (markdown)
			fprintf(f, "- %s\n", notes->environment[i]);
		else
			table_wrap(notes->environment[i], f);
	}
	if (markdown)
		fputc('\n', f);
}

static void print_notes(const struct paper *p, const struct score_table *t,
	const struct table_notes *notes, bool markdown, FILE *f)
{
	table_wrap(p->source, f);
	table_wrap(
		"TP: share of cells in which every faulty server was indicted. FP: share of cells in which some healthy server "
		"was. In brackets: exact 95 % intervals. (0): the published table leaves the row out, for it shows only what "
		"is not 0. resource, cause: the right server, and what is wrong with it. delay: median seconds from verified "
		"onset to the right server's indictment.",
		f);
	if (abstained(t, notes))
		table_wrap(markdown
				? "\\* the detector abstained in some of these cells; they count as nobody indicted"
				: "* the detector abstained in some of these cells; they count as nobody indicted",
			f);
	print_environment(notes, markdown, f);
	table_footer(notes, f);
}

static void stray_markdown(
	const char *fault, const char *metric, const char *workload, const struct score *s, FILE *f)
{
	char tp[32], fp[32];

	table_rate_text(s->hits, s->n, tp, sizeof(tp));
	table_rate_text(s->alarms, s->n, fp, sizeof(fp));
	fprintf(f, "- no such row or column there: %s, %s, %s: TP %s, FP %s, n=%u\n", fault, metric,
		workload, tp, fp, s->n);
}

static void cell_markdown(const struct cell *c, FILE *f)
{
	if (c->n)
		fprintf(f, " *%s*<br>**%s**%s%s<br>%s<br>n=%u | *%s*<br>**%s**<br>%s |",
			c->tp.published, c->tp.measured, *c->tp.star ? "\\" : "", c->tp.star,
			c->tp.interval, c->n, c->fp.published, c->fp.measured, c->fp.interval);
	else
		fprintf(f, " *%s*<br>- | *%s*<br>- |", c->tp.published, c->fp.published);
}

/* The k-th metric that a part shows of a fault, or NULL. */
static const char *shown_metric(const struct paper *p, const struct score_table *t, size_t d,
	const struct part *part, const char *fault, size_t k)
{
	for (size_t m = 0; m < part->n_metrics; m++)
		if (paper_shown(p, t, d, part, fault, part->metrics[m]) && !k--)
			return part->metrics[m];
	return NULL;
}

static void row_markdown(const struct paper *p, const struct score_table *t, size_t d,
	const char *fault, size_t row, FILE *f)
{
	fprintf(f, "| %s |", row ? "" : fault);
	for (size_t i = 0; i < p->n_parts; i++) {
		const struct part *part = &p->parts[i];
		const char *metric = shown_metric(p, t, d, part, fault, row);

		fprintf(f, " %s |", metric ? metric : "");
		for (size_t w = 0; w < part->n_workloads; w++) {
			struct cell c;

			if (!metric) {
				fputs(" | |", f);
				continue;
			}
			c = cell_of(p, t, d, fault, metric, part->workloads[w]);
			cell_markdown(&c, f);
		}
	}
	fputc('\n', f);
}

static void paper_markdown(const struct paper *p, const struct score_table *t, size_t d, FILE *f)
{
	fputs("| fault |", f);
	for (size_t i = 0; i < p->n_parts; i++) {
		fputs(" metric |", f);
		for (size_t w = 0; w < p->parts[i].n_workloads; w++)
			fprintf(f, " %s TP | %s FP |", p->parts[i].workloads[w],
				p->parts[i].workloads[w]);
	}
	fputs("\n|---|", f);
	for (size_t i = 0; i < p->n_parts; i++) {
		fputs("---|", f);
		for (size_t w = 0; w < p->parts[i].n_workloads; w++)
			fputs("---|---|", f);
	}
	fputc('\n', f);
	for (size_t k = 0; k < p->n_faults; k++) {
		bool more = true;

		for (size_t row = 0; more; row++) {
			more = false;
			for (size_t i = 0; i < p->n_parts; i++)
				more = more ||
					shown_metric(p, t, d, &p->parts[i], p->faults[k], row);
			if (more)
				row_markdown(p, t, d, p->faults[k], row, f);
		}
	}
	fputc('\n', f);
	if (paper_strays(p, t, d, stray_markdown, f))
		fputc('\n', f);
}

static void last_markdown(
	const char *fault, const char *workload, const struct score *s, bool first, FILE *f)
{
	struct last v = last_of(s);

	fprintf(f, "| %s%s | %s | %u%s | %s | %s | %s | %s |\n", first ? fault : "",
		first && s->control ? " (control)" : "", workload, s->n, s->abstained ? "\\*" : "",
		v.tp, v.fp, v.cause, v.delay);
}

static void detector_markdown(
	const struct paper *p, const struct score_table *t, size_t d, const char *name, FILE *f)
{
	if (paper_by_metric(p, t, d)) {
		fprintf(f, "**%s** by metric: *published*, **measured**, interval\n\n", name);
		paper_markdown(p, t, d, f);
	}
	fprintf(f,
		"**%s**\n\n| fault | workload | n | TP | FP | %s | delay (s) |\n|---|---|--:|---|---|---|--:|\n",
		name, score_causes(t) ? "cause" : "resource");
	each_last(p, t, d, last_markdown, f);
	fputc('\n', f);
}

int paper_render(const struct paper *p, const struct score_table *t, enum table_format format,
	const struct table_notes *notes, FILE *f)
{
	struct names n = table_names(t);

	if (format == TABLE_CSV) {
		paper_csv(p, t, f);
	} else if (format == TABLE_JSON) {
		paper_json(p, t, notes, f);
	} else {
		paper_grid(p, t, notes, format == TABLE_MARKDOWN, f);
		if (format == TABLE_TEXT)
			table_summary_text(t, &n, notes, f);
		else
			table_summary_markdown(t, &n, notes, f);
		for (size_t d = 0; d < n.n[SCORE_DETECTOR]; d++) {
			const char *name = n.of[SCORE_DETECTOR][d];

			if (table_is_null(notes, name))
				continue;
			if (format == TABLE_TEXT)
				detector_text(p, t, d, name, f);
			else
				detector_markdown(p, t, d, name, f);
		}
		print_notes(p, t, notes, format == TABLE_MARKDOWN, f);
	}
	return fflush(f) || ferror(f) ? -EIO : 0;
}
