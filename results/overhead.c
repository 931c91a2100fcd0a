#include "results/overhead.h"

#include <errno.h>
#include <gsl/gsl_cdf.h>
#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"
#include "results/paper.h"
#include "results/table_impl.h"

enum { LABEL = 18, COLUMN = 11 };

struct name_list {
	char **list;
	size_t n;
};

struct timed_run {
	size_t workload, tracer;
	long block;
	double seconds;
	int64_t records, lost;
};

struct published_overhead {
	size_t workload, tracer; /* tracer: among 'instruments' */
	double pct;
};

struct overhead {
	struct name_list workloads, tracers, instruments;
	struct timed_run *runs;
	size_t n_runs;
	char *source; /* of the published figures */
	struct published_overhead *published;
	size_t n_published;
};

struct overhead *overhead_new(void)
{
	return alloc_zero(1, sizeof(struct overhead));
}

static void names_clear(struct name_list *s)
{
	for (size_t i = 0; i < s->n; i++)
		free(s->list[i]);
	free(s->list);
}

void overhead_free(struct overhead *o)
{
	if (!o)
		return;
	names_clear(&o->workloads);
	names_clear(&o->tracers);
	names_clear(&o->instruments);
	free(o->source);
	free(o->published);
	free(o->runs);
	free(o);
}

static size_t find(const struct name_list *s, const char *name)
{
	size_t i;

	for (i = 0; i < s->n && strcmp(s->list[i], name); i++)
		;
	return i;
}

/* Index of 'name', which is added if it is new. */
static size_t intern(struct name_list *s, const char *name)
{
	size_t i = find(s, name);

	if (i == s->n) {
		s->list = alloc_resize(s->list, ++s->n, sizeof(*s->list));
		s->list[i] = alloc_copy(name);
	}
	return i;
}

void overhead_declare(struct overhead *o, const char *workload, const char *tracer)
{
	if (workload)
		intern(&o->workloads, workload);
	if (tracer)
		intern(&o->tracers, tracer);
}

/* Index of the first workload that is 'name', or 'name' with parameters in brackets. */
static size_t find_workload(const struct overhead *o, const char *name)
{
	size_t i, len = strlen(name);

	for (i = 0; i < o->workloads.n; i++)
		if (!strncmp(o->workloads.list[i], name, len) &&
			(!o->workloads.list[i][len] || o->workloads.list[i][len] == '('))
			break;
	return i;
}

int overhead_add(struct overhead *o, const char *workload, const char *tracer, long block,
	double seconds, int64_t records, int64_t lost, struct err *e)
{
	if (!(seconds > 0 && isfinite(seconds)))
		return err_set(e, -EINVAL, "%s under %s: a run of %g s", workload, tracer, seconds);
	o->runs = alloc_resize(o->runs, o->n_runs + 1, sizeof(*o->runs));
	o->runs[o->n_runs++] = (struct timed_run){intern(&o->workloads, workload),
		intern(&o->tracers, tracer), block, seconds, records, lost};
	return 0;
}

void overhead_publish(struct overhead *o, const char *source, const char *workload,
	const char *tracer, double pct)
{
	size_t w = find_workload(o, workload);

	if (w == o->workloads.n)
		return;
	if (!o->source)
		o->source = alloc_copy(source);
	o->published = alloc_resize(o->published, o->n_published + 1, sizeof(*o->published));
	o->published[o->n_published++] = (struct published_overhead){
		w, intern(&o->instruments, tracer), pct};
}

int overhead_read_published(struct overhead *o, const char *name, struct err *e)
{
	static const char head[] = "\ninstrumentation,workload,overhead_pct\n";
	char *text = NULL, *save = NULL, tracer[64], workload[64];
	const char *source = name;
	double pct;
	int rc = paper_text(name, &text, e);

	if (rc || !strstr(text, head))
		rc = err_set(e, -EINVAL,
			"'%s' holds no run times, which this run measures; hotdep09-table2 does",
			name);
	for (char *line = rc ? NULL : strtok_r(text, "\n", &save); line;
		line = strtok_r(NULL, "\n", &save)) {
		if (*line == '#' && source == name)
			source = line + 1 + strspn(line + 1, " ");
		else if (sscanf(line, "%63[^,#],%63[^,],%lf", tracer, workload, &pct) == 3)
			overhead_publish(o, source, workload, tracer, pct);
	}
	free(text);
	return rc;
}

static bool is_untraced(const struct overhead *o, size_t tracer)
{
	return !strcmp(o->tracers.list[tracer], "none");
}

/* The untraced run of the same workload and block, or NULL. */
static const struct timed_run *untraced(const struct overhead *o, const struct timed_run *r)
{
	for (size_t i = 0; i < o->n_runs; i++)
		if (o->runs[i].workload == r->workload && o->runs[i].block == r->block &&
			is_untraced(o, o->runs[i].tracer))
			return &o->runs[i];
	return NULL;
}

/* Adds to a sum that is negative while nothing was counted. */
static void add_counted(int64_t *sum, int64_t n)
{
	if (n >= 0)
		*sum = (*sum < 0 ? 0 : *sum) + n;
}

static struct overhead_cell measure(const struct overhead *o, size_t w, size_t k)
{
	struct overhead_cell c = {
		.pct = NAN, .low_pct = NAN, .high_pct = NAN, .records = -1, .lost = -1};
	double sum = 0, base = 0, squares = 0, ratio, half;

	for (const struct timed_run *r = o->runs; r < o->runs + o->n_runs; r++) {
		const struct timed_run *u = untraced(o, r);

		if (r->workload != w || r->tracer != k)
			continue;
		add_counted(&c.records, r->records);
		add_counted(&c.lost, r->lost);
		if (!u)
			continue;
		c.pairs++;
		sum += r->seconds;
		base += u->seconds;
	}
	if (!c.pairs)
		return c;
	ratio = sum / base;
	c.mean_s = sum / c.pairs;
	c.untraced_mean_s = base / c.pairs;
	c.pct = 100 * (ratio - 1);
	if (c.pairs < 3)
		return c;
	for (const struct timed_run *r = o->runs; r < o->runs + o->n_runs; r++) {
		const struct timed_run *u = untraced(o, r);

		if (r->workload == w && r->tracer == k && u)
			squares += pow(r->seconds - ratio * u->seconds, 2);
	}
	half = gsl_cdf_tdist_Pinv(0.975, c.pairs - 1) * sqrt(squares / (c.pairs - 1)) /
		(sqrt(c.pairs) * c.untraced_mean_s);
	c.low_pct = c.pct - 100 * half;
	c.high_pct = c.pct + 100 * half;
	return c;
}

int overhead_cell(const struct overhead *o, const char *workload, const char *tracer,
	struct overhead_cell *out)
{
	struct overhead_cell c = measure(
		o, find(&o->workloads, workload), find(&o->tracers, tracer));

	if (!c.pairs)
		return -ENOENT;
	*out = c;
	return 0;
}

/* The next cell of a tracer and workload that has a pair, in the order of tracers; false after the
 * last. 'place' begins as 0, and is then one behind it. */
static bool next_cell(const struct overhead *o, size_t *place, struct overhead_cell *c)
{
	while (*place < o->tracers.n * o->workloads.n) {
		size_t i = (*place)++;

		*c = measure(o, i % o->workloads.n, i / o->workloads.n);
		if (c->pairs && !is_untraced(o, i / o->workloads.n))
			return true;
	}
	return false;
}

/* "+0.3", or "-" where nothing was measured. */
static const char *show_pct(double pct, char buf[32])
{
	if (isnan(pct))
		return "-";
	snprintf(buf, 32, fabs(pct) < 99.95 ? "%+.1f" : "%+.0f", fabs(pct) < 0.05 ? 0.0 : pct);
	return buf;
}

static const char *show_interval(const struct overhead_cell *c, char buf[64])
{
	if (isnan(c->low_pct))
		return "n<3";
	if (snprintf(buf, 64, "[%.1f,%.1f]", c->low_pct, c->high_pct) > COLUMN)
		snprintf(buf, 64, "[%.0f,%.0f]", c->low_pct, c->high_pct);
	return buf;
}

/* NAN if it was not published. */
static double published(const struct overhead *o, size_t workload, size_t instrument)
{
	for (size_t i = 0; i < o->n_published; i++)
		if (o->published[i].workload == workload && o->published[i].tracer == instrument)
			return o->published[i].pct;
	return NAN;
}

/* A label, and a column for each workload; headings in text are names without parameters. */
static void columns(const struct overhead *o, struct grid *g, bool headed)
{
	char head[COLUMN + 1] = "";

	GRID_COLUMN(g, .title = "tracer", .flags = GRID_LABEL | GRID_CUT, .width = LABEL);
	for (size_t w = 0; w < o->workloads.n; w++) {
		const char *name = o->workloads.list[w];

		if (headed)
			snprintf(head, sizeof(head), "%.*s", (int)strcspn(name, "("), name);
		GRID_COLUMN(g, .head = head, .title = name, .gap = 1, .width = COLUMN);
	}
}

/* A tracer's row: increase and interval; in text the interval has a row of its own. */
static void put_measured(const struct overhead *o, struct grid *g, size_t tracer)
{
	enum { INCREASE, INTERVAL, BOTH };
	char pct[32], interval[64];

	for (int row = INCREASE; row <= BOTH; row++) {
		g->only = row == BOTH ? GRID_MARKDOWN : GRID_TEXT;
		grid_words(g, "%s", row == INTERVAL ? "" : o->tracers.list[tracer]);
		for (size_t w = 0; w < o->workloads.n; w++) {
			struct overhead_cell c = measure(o, w, tracer);

			if (row == INTERVAL && !c.pairs)
				grid_none(g, 1);
			else if (row == INTERVAL)
				grid_words(g, "%s", show_interval(&c, interval));
			else if (row == INCREASE || !c.pairs)
				grid_words(g, "%s", show_pct(c.pct, pct));
			else
				grid_words(g, "%s %s n=%u", show_pct(c.pct, pct),
					show_interval(&c, interval), c.pairs);
		}
	}
	g->only = 0;
}

static void put_published(const struct overhead *o, struct grid *g, bool markdown)
{
	char pct[32];

	for (size_t k = 0; k < o->instruments.n; k++) {
		grid_words(g, markdown ? "*%s, published*" : "%s", o->instruments.list[k]);
		for (size_t w = 0; w < o->workloads.n; w++)
			grid_words(g, markdown ? "*%s*" : "%s", show_pct(published(o, w, k), pct));
	}
}

static void print_untraced(const struct overhead *o, struct sheet *out, size_t none)
{
	struct grid g = {.out = out};

	sheet_blank(out, 0);
	sheet_line(out, "untraced: mean run time in seconds");
	columns(o, &g, false);
	grid_words(&g, "none");
	for (size_t w = 0; w < o->workloads.n; w++) {
		struct overhead_cell c = measure(o, w, none);

		grid_words(&g, c.pairs ? "%.2f" : "-", c.mean_s);
	}
	grid_print(&g);
}

/* How many pairs stand behind a cell. */
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

static void print_page(const struct overhead *o, struct tables *v)
{
	bool markdown = v->out.format == TABLE_MARKDOWN;
	struct grid g = {.out = &v->out};

	if (!markdown)
		fputs("increase of the mean run time over untraced runs in percent, 95 % "
		      "intervals\n\n",
			v->out.f);
	columns(o, &g, true);
	for (size_t k = 0; k < o->tracers.n; k++)
		if (!is_untraced(o, k))
			put_measured(o, &g, k);
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
	if (!markdown) {
		for (size_t k = 0; k < o->tracers.n; k++)
			if (is_untraced(o, k))
				print_untraced(o, &v->out, k);
		/* The columns' headings are names alone; here are those with parameters. */
		for (size_t w = 0; w < o->workloads.n; w++)
			if (strchr(o->workloads.list[w], '('))
				sheet_line(&v->out, "%s", o->workloads.list[w]);
		print_pairs(o, &v->out);
	}
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

static void fill(const struct overhead *o, struct grid *g)
{
	static const struct grid_column list[] = {{"tracer"}, {"workload"}, {"pairs"},
		{"mean_s", .number = "%.4f"}, {"untraced_mean_s", .number = "%.4f"},
		{"overhead_pct", .number = "%.3f"}, {"low_pct", .number = "%.3f"},
		{"high_pct", .number = "%.3f"}, {"records"}, {"lost"}};
	struct overhead_cell c;

	GRID_COLUMNS(g, list);
	for (size_t place = 0; next_cell(o, &place, &c);) {
		grid_words(g, "%s", o->tracers.list[(place - 1) / o->workloads.n]);
		grid_words(g, "%s", o->workloads.list[(place - 1) % o->workloads.n]);
		grid_count(g, c.pairs);
		grid_number(g, c.mean_s);
		grid_number(g, c.untraced_mean_s);
		grid_number(g, c.pct);
		grid_number(g, c.low_pct);
		grid_number(g, c.high_pct);
		put_counter(g, c.records);
		put_counter(g, c.records < 0 ? -1 : c.lost);
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
		print_page(o, &v);
		return sheet_end(&v.out);
	}
	fill(o, &g);
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
