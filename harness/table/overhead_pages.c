/* Renders the tables of tracing overhead. */
#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <string.h>

#include "harness/table/overhead_impl.h"
#include "harness/table/table_impl.h"

enum { LABEL = 18, COLUMN = 11 };

/* Returns the next cell of a tracer and workload that has a pair, in the order of tracers; false
 * after the last. 'place' starts at 0 and is then one past the cell. */
static bool next_cell(const struct overhead *o, size_t *place, struct overhead_cell *c)
{
	while (*place < o->tracers.n * o->workloads.n) {
		size_t i = (*place)++;

		*c = overhead_measure(o, i % o->workloads.n, i / o->workloads.n);
		if (c->pairs && !overhead_is_untraced(o, i / o->workloads.n))
			return true;
	}
	return false;
}

/* The figures in a table of tracers and workloads. */
enum figure { RUN_TIME, CPU_TIME, CALL_TIME };

static struct overhead_ratio figure_of(const struct overhead_cell *c, enum figure f)
{
	return f == RUN_TIME ? c->wall_pct : f == CPU_TIME ? c->cpu_pct : c->call_us;
}

static unsigned pairs_of(const struct overhead_cell *c, enum figure f)
{
	return f == RUN_TIME ? c->pairs : isnan(figure_of(c, f).value) ? 0 : c->cpu_pairs;
}

/* "+0.3", or "-" if not measured. Microseconds have one more decimal place. */
static const char *show_value(double value, enum figure f, char buf[32])
{
	const double least = f == CALL_TIME ? 0.005 : 0.05;

	if (isnan(value))
		return "-";
	snprintf(buf, 32, "%+.*f",
		fabs(value) >= 99.95     ? 0
			: f == CALL_TIME ? 2
					 : 1,
		fabs(value) < least ? 0.0 : value);
	return buf;
}

static const char *show_interval(struct overhead_ratio r, enum figure f, char buf[64])
{
	if (isnan(r.low))
		return "n<3";
	for (int places = f == CALL_TIME ? 2 : 1; places >= 0; places--)
		if (snprintf(buf, 64, "[%.*f,%.*f]", places, r.low, places, r.high) <= COLUMN)
			break;
	return buf;
}

/* NAN if not published. */
static double published(const struct overhead *o, size_t workload, size_t instrument)
{
	for (size_t i = 0; i < o->n_published; i++)
		if (o->published[i].workload == workload && o->published[i].tracer == instrument)
			return o->published[i].pct;
	return NAN;
}

/* One column per workload; headings in text are names without parameters. */
static void workload_columns(const struct overhead *o, struct grid *g, bool headed)
{
	char head[COLUMN + 1] = "";

	for (size_t w = 0; w < o->workloads.n; w++) {
		const char *name = o->workloads.list[w];

		if (headed)
			snprintf(head, sizeof(head), "%.*s", (int)strcspn(name, "("), name);
		GRID_COLUMN(g, .head = head, .title = name, .gap = 1, .width = COLUMN);
	}
}

static void columns(const struct overhead *o, struct grid *g, bool headed)
{
	GRID_COLUMN(g, .title = "tracer", .flags = GRID_LABEL | GRID_CUT, .width = LABEL);
	workload_columns(o, g, headed);
}

/* A tracer's row: increase and interval; in text the interval has a separate row. */
static void put_measured(const struct overhead *o, struct grid *g, size_t tracer, enum figure f)
{
	enum { INCREASE, INTERVAL, BOTH };
	char value[32], interval[64];

	for (int row = INCREASE; row <= BOTH; row++) {
		g->only = row == BOTH ? GRID_MARKDOWN : GRID_TEXT;
		grid_words(g, "%s", row == INTERVAL ? "" : o->tracers.list[tracer]);
		for (size_t w = 0; w < o->workloads.n; w++) {
			struct overhead_cell c = overhead_measure(o, w, tracer);
			struct overhead_ratio r = figure_of(&c, f);
			unsigned pairs = pairs_of(&c, f);

			if (row == INTERVAL && !pairs)
				grid_none(g, 1);
			else if (row == INTERVAL)
				grid_words(g, "%s", show_interval(r, f, interval));
			else if (row == INCREASE || !pairs)
				grid_words(g, "%s", show_value(r.value, f, value));
			else
				grid_words(g, "%s %s n=%u", show_value(r.value, f, value),
					show_interval(r, f, interval), pairs);
		}
	}
	g->only = 0;
}

/* A separate table for a figure of the processor time. */
static void print_cpu(const struct overhead *o, struct sheet *out, enum figure f)
{
	struct grid g = {.out = out};
	struct overhead_cell c;
	bool any = false;

	for (size_t place = 0; !any && next_cell(o, &place, &c);)
		any = pairs_of(&c, f) > 0;
	if (!any)
		return;
	sheet_blank(out, 0);
	sheet_words(out, "%s",
		f == CPU_TIME ? "increase of the processor time of the file system's, the "
				"applications' and the tracers' processes on all nodes in percent "
				"(kernel threads and interrupts are left out)"
			      : "the same in microseconds per system call of the traced processes");
	sheet_blank(out, 0);
	columns(o, &g, true);
	for (size_t k = 0; k < o->tracers.n; k++)
		if (!overhead_is_untraced(o, k))
			put_measured(o, &g, k, f);
	grid_print(&g);
}

/* The number of pairs to detect 1 %, per workload. */
static void print_power(const struct overhead *o, struct sheet *out)
{
	struct grid g = {.out = out};
	bool any = false;
	int rows = 1;

	for (size_t w = 0; w < o->workloads.n; w++) {
		any = any || !isnan(overhead_pairs_needed(o, w, false));
		rows += rows == 1 && !isnan(overhead_pairs_needed(o, w, true));
	}
	if (!any)
		return;
	sheet_blank(out, 0);
	sheet_words(out,
		"pairs that would show 1 %% (95 %% interval, 80 %% power), from how much "
		"untraced passes of successive blocks differ");
	sheet_blank(out, GRID_MARKDOWN);
	GRID_COLUMN(&g, .head = "", .title = "1 % of the", .flags = GRID_LABEL, .width = LABEL);
	workload_columns(o, &g, false);
	for (int cpu = 0; cpu < rows; cpu++) {
		grid_words(&g, cpu ? "processor time" : "run time");
		for (size_t w = 0; w < o->workloads.n; w++) {
			double pairs = overhead_pairs_needed(o, w, cpu);

			grid_words(&g, isnan(pairs) ? "-" : "%.0f", pairs);
		}
	}
	grid_print(&g);
}

static void put_published(const struct overhead *o, struct grid *g, bool markdown)
{
	char pct[32];

	for (size_t k = 0; k < o->instruments.n; k++) {
		grid_words(g, markdown ? "*%s, published*" : "%s", o->instruments.list[k]);
		for (size_t w = 0; w < o->workloads.n; w++)
			grid_words(g, markdown ? "*%s*" : "%s",
				show_value(published(o, w, k), RUN_TIME, pct));
	}
}

static void print_untraced(const struct overhead *o, struct sheet *out, size_t none)
{
	struct grid g = {.out = out};
	int rows = 1;

	sheet_blank(out, 0);
	sheet_line(out, "untraced: means in seconds");
	columns(o, &g, false);
	for (int cpu = 0; cpu < rows; cpu++) {
		grid_words(&g, cpu ? "processor time" : "run time");
		for (size_t w = 0; w < o->workloads.n; w++) {
			struct overhead_cell c = overhead_measure(o, w, none);
			double s = cpu ? c.cpu_mean_s : c.mean_s;

			rows = c.cpu_pairs ? 2 : rows;
			grid_words(&g, isnan(s) ? "-" : "%.2f", s);
		}
	}
	grid_print(&g);
}

/* The number of pairs behind a cell. */
static void print_pairs(const struct overhead *o, struct sheet *out)
{
	unsigned least = UINT_MAX, most = 0;
	struct overhead_cell c;

	for (size_t place = 0; next_cell(o, &place, &c);) {
		least = c.pairs < least ? c.pairs : least;
		most = c.pairs > most ? c.pairs : most;
	}
	if (most)
		fprintf(out->f,
			"\n%u%s%.0u pairs a cell, each of a traced and an untraced run of one "
			"block\n",
			least, least == most ? "" : " to ", least == most ? 0 : most);
}

static void overhead_pages_print_page(const struct overhead *o, struct tables *v)
{
	bool markdown = v->out.format == TABLE_MARKDOWN;
	struct grid g = {.out = &v->out};

	if (!markdown)
		fputs("increase of the mean run time over untraced runs in percent, 95 % "
		      "intervals\n\n",
			v->out.f);
	columns(o, &g, true);
	for (size_t k = 0; k < o->tracers.n; k++)
		if (!overhead_is_untraced(o, k))
			put_measured(o, &g, k, RUN_TIME);
	if (!markdown) {
		grid_print(&g);
		if (o->n_published)
			fprintf(v->out.f, "\npublished: %s\n", o->source);
		columns(o, &g, false);
	}
	put_published(o, &g, markdown);
	grid_print(&g);
	if (markdown && o->n_published)
		fprintf(v->out.f, "\nPublished: %s.\n", o->source);
	print_cpu(o, &v->out, CPU_TIME);
	print_cpu(o, &v->out, CALL_TIME);
	if (!markdown) {
		for (size_t k = 0; k < o->tracers.n; k++)
			if (overhead_is_untraced(o, k))
				print_untraced(o, &v->out, k);
		/* Prints the column labels with parameters, which the headings lack. */
		for (size_t w = 0; w < o->workloads.n; w++)
			if (strchr(o->workloads.list[w], '('))
				sheet_line(&v->out, "%s", o->workloads.list[w]);
		print_pairs(o, &v->out);
	}
	print_power(o, &v->out);
	sheet_blank(&v->out, 0);
	table_footer(v);
}

static void put_counter(struct grid *g, int64_t n)
{
	if (n < 0)
		grid_cell(g, (struct grid_cell){.kind = GRID_ABSENT});
	else
		grid_count(g, n);
}

static void put_ratio(struct grid *g, struct overhead_ratio r)
{
	grid_number(g, r.value);
	grid_number(g, r.low);
	grid_number(g, r.high);
}

static void overhead_pages_fill(const struct overhead *o, struct grid *g)
{
	static const struct grid_column list[] = {{"tracer"}, {"workload"}, {"pairs"},
		{"mean_s", .number = "%.4f"}, {"untraced_mean_s", .number = "%.4f"},
		{"overhead_pct", .number = "%.3f"}, {"low_pct", .number = "%.3f"},
		{"high_pct", .number = "%.3f"}, {"records"}, {"lost"}, {"cpu_pairs"},
		{"cpu_mean_s", .number = "%.4f"}, {"untraced_cpu_mean_s", .number = "%.4f"},
		{"tracers_mean_s", .number = "%.4f"}, {"cpu_pct", .number = "%.3f"},
		{"cpu_low_pct", .number = "%.3f"}, {"cpu_high_pct", .number = "%.3f"},
		{"calls", .number = "%.0f"}, {"call_us", .number = "%.4f"},
		{"call_low_us", .number = "%.4f"}, {"call_high_us", .number = "%.4f"},
		{"pairs_for_1_pct", .number = "%.0f"}, {"cpu_pairs_for_1_pct", .number = "%.0f"}};
	struct overhead_cell c;

	GRID_COLUMNS(g, list);
	for (size_t place = 0; next_cell(o, &place, &c);) {
		size_t w = (place - 1) % o->workloads.n;

		grid_words(g, "%s", o->tracers.list[(place - 1) / o->workloads.n]);
		grid_words(g, "%s", o->workloads.list[w]);
		grid_count(g, c.pairs);
		grid_number(g, c.mean_s);
		grid_number(g, c.untraced_mean_s);
		put_ratio(g, c.wall_pct);
		put_counter(g, c.records);
		put_counter(g, c.records < 0 ? -1 : c.lost);
		grid_count(g, c.cpu_pairs);
		grid_number(g, c.cpu_mean_s);
		grid_number(g, c.untraced_cpu_mean_s);
		grid_number(g, c.tracers_mean_s);
		put_ratio(g, c.cpu_pct);
		grid_number(g, c.calls);
		put_ratio(g, c.call_us);
		grid_number(g, overhead_pairs_needed(o, w, false));
		grid_number(g, overhead_pairs_needed(o, w, true));
	}
}

int overhead_render(const struct overhead *o, enum table_format format,
	const struct table_notes *notes, FILE *f)
{
	struct tables v = {
		.notes = notes ? notes : &(const struct table_notes){0}, .out = {f, format, 0}};
	struct grid g = {.out = &v.out};
	json_t *top;

	if (format == TABLE_SVG)
		return -EINVAL;
	if (tables_is_page(&v)) {
		overhead_pages_print_page(o, &v);
		return sheet_end(&v.out);
	}
	overhead_pages_fill(o, &g);
	if (format == TABLE_CSV) {
		grid_print(&g);
		return sheet_end(&v.out);
	}
	top = json_pack("{s:s, s:o}", "measure", "runtime", "cells", grid_json(&g));
	if (notes)
		json_object_update_new(top,
			json_pack("{s:s?, s:i, s:i, s:i, s:i}", "run", notes->run_id, "planned",
				(int)notes->planned, "confirmed", (int)notes->confirmed, "invalid",
				(int)notes->invalid, "error", (int)notes->error));
	sheet_json(&v.out, top);
	return sheet_end(&v.out);
}
