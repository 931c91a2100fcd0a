#include "results/overhead.h"

#include <errno.h>
#include <gsl/gsl_cdf.h>
#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "results/table_impl.h"

enum { LABEL = 19, COLUMN = 12 };

struct name_list {
	char **list;
	size_t n;
};

struct run {
	size_t workload, tracer;
	long block;
	double seconds;
	int64_t records, lost;
};

struct published {
	char *source;
	size_t workload, tracer; /* tracer: among 'instruments' */
	double pct;
};

struct overhead {
	struct name_list workloads, tracers, instruments;
	struct run *runs;
	size_t n_runs;
	struct published *published;
	size_t n_published;
};

struct overhead *overhead_new(void)
{
	return calloc(1, sizeof(struct overhead));
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
	for (size_t i = 0; i < o->n_published; i++)
		free(o->published[i].source);
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

/* Index of 'name', which is added if it is new; SIZE_MAX when out of memory. */
static size_t intern(struct name_list *s, const char *name)
{
	size_t i = find(s, name);
	char **list;

	if (i < s->n)
		return i;
	list = realloc(s->list, (s->n + 1) * sizeof(*list));
	if (!list)
		return SIZE_MAX;
	s->list = list;
	s->list[s->n] = strdup(name);
	return s->list[s->n] ? s->n++ : SIZE_MAX;
}

int overhead_declare(struct overhead *o, const char *workload, const char *tracer, struct err *e)
{
	if ((workload && intern(&o->workloads, workload) == SIZE_MAX) ||
		(tracer && intern(&o->tracers, tracer) == SIZE_MAX))
		return err_errno(e, -ENOMEM, "cannot make a table");
	return 0;
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
	struct run *runs;

	if (!(seconds > 0) || !isfinite(seconds))
		return err_set(e, -EINVAL, "%s under %s: a run of %g s", workload, tracer, seconds);
	runs = realloc(o->runs, (o->n_runs + 1) * sizeof(*runs));
	if (!runs)
		return err_errno(e, -ENOMEM, "cannot add a run");
	o->runs = runs;
	runs[o->n_runs] = (struct run){intern(&o->workloads, workload), intern(&o->tracers, tracer),
		block, seconds, records, lost};
	if (runs[o->n_runs].workload == SIZE_MAX || runs[o->n_runs].tracer == SIZE_MAX)
		return err_errno(e, -ENOMEM, "cannot add a run");
	o->n_runs++;
	return 0;
}

int overhead_publish(struct overhead *o, const char *source, const char *workload,
	const char *tracer, double pct, struct err *e)
{
	size_t w = find_workload(o, workload);
	struct published *more, *p;

	if (w == o->workloads.n)
		return 0;
	more = realloc(o->published, (o->n_published + 1) * sizeof(*more));
	if (!more)
		return err_errno(e, -ENOMEM, "cannot add a published figure");
	o->published = more;
	p = &more[o->n_published];
	*p = (struct published){strdup(source), w, intern(&o->instruments, tracer), pct};
	if (!p->source || p->tracer == SIZE_MAX) {
		free(p->source);
		return err_errno(e, -ENOMEM, "cannot add a published figure");
	}
	o->n_published++;
	return 0;
}

/* The untraced run of the same workload and block, or NULL. */
static const struct run *untraced(const struct overhead *o, const struct run *r)
{
	for (size_t i = 0; i < o->n_runs; i++)
		if (o->runs[i].workload == r->workload && o->runs[i].block == r->block &&
			!strcmp(o->tracers.list[o->runs[i].tracer], "none"))
			return &o->runs[i];
	return NULL;
}

static void measure(const struct overhead *o, size_t w, size_t k, struct overhead_cell *c)
{
	double sum = 0, base = 0, squares = 0, ratio, half;

	*c = (struct overhead_cell){
		.pct = NAN, .low_pct = NAN, .high_pct = NAN, .records = -1, .lost = -1};
	for (size_t i = 0; i < o->n_runs; i++) {
		const struct run *r = &o->runs[i], *u = untraced(o, r);

		if (r->workload != w || r->tracer != k)
			continue;
		if (r->records >= 0)
			c->records = (c->records < 0 ? 0 : c->records) + r->records;
		if (r->lost >= 0)
			c->lost = (c->lost < 0 ? 0 : c->lost) + r->lost;
		if (!u)
			continue;
		c->pairs++;
		sum += r->seconds;
		base += u->seconds;
	}
	if (!c->pairs)
		return;
	ratio = sum / base;
	c->mean_s = sum / c->pairs;
	c->untraced_mean_s = base / c->pairs;
	c->pct = 100 * (ratio - 1);
	if (c->pairs < 3)
		return;
	for (size_t i = 0; i < o->n_runs; i++) {
		const struct run *r = &o->runs[i], *u = untraced(o, r);

		if (r->workload == w && r->tracer == k && u)
			squares += pow(r->seconds - ratio * u->seconds, 2);
	}
	half = gsl_cdf_tdist_Pinv(0.975, c->pairs - 1) * sqrt(squares / (c->pairs - 1)) /
		(sqrt(c->pairs) * c->untraced_mean_s);
	c->low_pct = c->pct - 100 * half;
	c->high_pct = c->pct + 100 * half;
}

int overhead_cell(const struct overhead *o, const char *workload, const char *tracer,
	struct overhead_cell *out)
{
	size_t w = find(&o->workloads, workload), k = find(&o->tracers, tracer);
	struct overhead_cell c;

	if (w == o->workloads.n || k == o->tracers.n)
		return -ENOENT;
	measure(o, w, k, &c);
	if (!c.pairs)
		return -ENOENT;
	*out = c;
	return 0;
}

/* "+0.3", or "-" where there is nothing. */
static const char *show_pct(double pct, char *buf)
{
	if (isnan(pct))
		return "-";
	snprintf(buf, 32, fabs(pct) < 99.95 ? "%+.1f" : "%+.0f", fabs(pct) < 0.05 ? 0.0 : pct);
	return buf;
}

static const char *show_interval(const struct overhead_cell *c, char buf[64])
{
	if (isnan(c->low_pct))
		return c->pairs ? "n<3" : "";
	if (snprintf(buf, 64, "[%.1f,%.1f]", c->low_pct, c->high_pct) >= COLUMN)
		snprintf(buf, 64, "[%.0f,%.0f]", c->low_pct, c->high_pct);
	return buf;
}

static const struct published *published(
	const struct overhead *o, size_t workload, size_t instrument)
{
	for (size_t i = 0; i < o->n_published; i++)
		if (o->published[i].workload == workload && o->published[i].tracer == instrument)
			return &o->published[i];
	return NULL;
}

/* One line of the text table: a label, then a column for each workload, as 'show' writes it. */
typedef const char *(*show_fn)(const struct overhead *o, size_t w, size_t row, char buf[64]);

static void render_line(
	const struct overhead *o, const char *label, show_fn show, size_t row, FILE *f)
{
	char line[512], buf[64];
	size_t n = (size_t)snprintf(line, sizeof(line), "%-*.*s ", LABEL - 1, LABEL - 1, label);

	for (size_t w = 0; w < o->workloads.n && n < sizeof(line) - COLUMN - 1; w++)
		n += (size_t)snprintf(line + n, sizeof(line) - n, "%-*.*s ", COLUMN - 1, COLUMN - 1,
			show(o, w, row, buf));
	while (n && line[n - 1] == ' ')
		line[--n] = '\0';
	fprintf(f, "%s\n", line);
}

static const char *workload_name(const struct overhead *o, size_t w, size_t row, char buf[64])
{
	(void)row;
	snprintf(buf, 64, "%.*s", (int)strcspn(o->workloads.list[w], "("), o->workloads.list[w]);
	return buf;
}

/* The columns' heads are names alone; here are those with parameters. */
static void render_parameters(const struct overhead *o, FILE *f)
{
	for (size_t w = 0; w < o->workloads.n; w++)
		if (strchr(o->workloads.list[w], '('))
			fprintf(f, "%s\n", o->workloads.list[w]);
}

static const char *measured(const struct overhead *o, size_t w, size_t row, char buf[64])
{
	struct overhead_cell c;

	measure(o, w, row, &c);
	return show_pct(c.pct, buf);
}

static const char *interval(const struct overhead *o, size_t w, size_t row, char buf[64])
{
	struct overhead_cell c;

	measure(o, w, row, &c);
	return show_interval(&c, buf);
}

static const char *published_pct(const struct overhead *o, size_t w, size_t row, char buf[64])
{
	const struct published *p = published(o, w, row);

	return p ? show_pct(p->pct, buf) : "-";
}

static const char *untraced_seconds(const struct overhead *o, size_t w, size_t row, char buf[64])
{
	struct overhead_cell c;

	measure(o, w, row, &c);
	if (!c.pairs)
		return "-";
	snprintf(buf, 64, "%.2f", c.mean_s);
	return buf;
}

static void render_text(const struct overhead *o, const struct table_notes *notes, FILE *f)
{
	size_t none = find(&o->tracers, "none");
	unsigned least = UINT_MAX, most = 0;

	fprintf(f,
		"increase of the mean run time over untraced runs in percent, 95 %% intervals\n\n");
	render_line(o, "", workload_name, 0, f);
	for (size_t k = 0; k < o->tracers.n; k++) {
		bool any = false;

		for (size_t w = 0; w < o->workloads.n && k != none; w++) {
			struct overhead_cell c;

			measure(o, w, k, &c);
			any = any || c.pairs;
			least = c.pairs && c.pairs < least ? c.pairs : least;
			most = c.pairs > most ? c.pairs : most;
		}
		if (k == none)
			continue;
		render_line(o, o->tracers.list[k], measured, k, f);
		if (any)
			render_line(o, "", interval, k, f);
	}
	for (size_t k = 0; k < o->instruments.n; k++) {
		if (!k)
			fprintf(f, "\npublished: %s\n", o->published[0].source);
		render_line(o, o->instruments.list[k], published_pct, k, f);
	}
	if (none < o->tracers.n) {
		fprintf(f, "\nuntraced: mean run time in seconds\n");
		render_line(o, "none", untraced_seconds, none, f);
	}
	render_parameters(o, f);
	if (most)
		fprintf(f,
			"\n%u%s%.0u pairs a cell, each of a traced and an untraced run of one block\n",
			least, least == most ? "" : " to ", least == most ? 0 : most);
	fputc('\n', f);
	table_footer(notes, f);
}

static void render_markdown(const struct overhead *o, const struct table_notes *notes, FILE *f)
{
	char text[64], pct[32];

	fputs("| tracer |", f);
	for (size_t w = 0; w < o->workloads.n; w++)
		fprintf(f, " %s |", o->workloads.list[w]);
	fputs("\n|---|", f);
	for (size_t w = 0; w < o->workloads.n; w++)
		fputs("---|", f);
	fputc('\n', f);
	for (size_t k = 0; k < o->tracers.n; k++) {
		if (!strcmp(o->tracers.list[k], "none"))
			continue;
		fprintf(f, "| %s |", o->tracers.list[k]);
		for (size_t w = 0; w < o->workloads.n; w++) {
			struct overhead_cell c;

			measure(o, w, k, &c);
			if (c.pairs)
				fprintf(f, " %s %s n=%u |", show_pct(c.pct, pct),
					show_interval(&c, text), c.pairs);
			else
				fputs(" - |", f);
		}
		fputc('\n', f);
	}
	for (size_t k = 0; k < o->instruments.n; k++) {
		fprintf(f, "| *%s, published* |", o->instruments.list[k]);
		for (size_t w = 0; w < o->workloads.n; w++) {
			const struct published *p = published(o, w, k);

			fprintf(f, " *%s* |", p ? show_pct(p->pct, pct) : "-");
		}
		fputc('\n', f);
	}
	if (o->n_published)
		fprintf(f, "\nPublished: %s.\n", o->published[0].source);
	fputc('\n', f);
	table_footer(notes, f);
}

static void render_csv(const struct overhead *o, FILE *f)
{
	fputs("tracer,workload,pairs,mean_s,untraced_mean_s,overhead_pct,low_pct,high_pct,records,lost\n",
		f);
	for (size_t k = 0; k < o->tracers.n; k++) {
		for (size_t w = 0; w < o->workloads.n; w++) {
			struct overhead_cell c;

			measure(o, w, k, &c);
			if (!c.pairs || !strcmp(o->tracers.list[k], "none"))
				continue;
			table_csv_text(o->tracers.list[k], f);
			fputc(',', f);
			table_csv_text(o->workloads.list[w], f);
			fprintf(f, ",%u,%.4f,%.4f,%.3f,", c.pairs, c.mean_s, c.untraced_mean_s,
				c.pct);
			if (isnan(c.low_pct))
				fputs(",,", f);
			else
				fprintf(f, "%.3f,%.3f,", c.low_pct, c.high_pct);
			if (c.records >= 0)
				fprintf(f, "%lld,%lld\n", (long long)c.records, (long long)c.lost);
			else
				fputs(",\n", f);
		}
	}
}

static json_t *real_or_null(double v)
{
	return isnan(v) ? json_null() : json_real(v);
}

static json_t *count_or_null(int64_t v)
{
	return v < 0 ? json_null() : json_integer((json_int_t)v);
}

static int render_json(const struct overhead *o, const struct table_notes *notes, FILE *f)
{
	json_t *cells = json_array(), *top;
	int rc;

	for (size_t k = 0; k < o->tracers.n; k++) {
		for (size_t w = 0; w < o->workloads.n; w++) {
			struct overhead_cell c;

			measure(o, w, k, &c);
			if (c.pairs && strcmp(o->tracers.list[k], "none"))
				json_array_append_new(cells,
					json_pack(
						"{s:s, s:s, s:i, s:f, s:f, s:f, s:o, s:o, s:o, s:o}",
						"tracer", o->tracers.list[k], "workload",
						o->workloads.list[w], "pairs", (int)c.pairs,
						"mean_s", c.mean_s, "untraced_mean_s",
						c.untraced_mean_s, "overhead_pct", c.pct, "low_pct",
						real_or_null(c.low_pct), "high_pct",
						real_or_null(c.high_pct), "records",
						count_or_null(c.records), "lost",
						count_or_null(c.lost)));
		}
	}
	top = json_pack("{s:s, s:o}", "measure", "runtime", "cells", cells);
	if (notes)
		json_object_update_new(top,
			json_pack("{s:s?, s:i, s:i, s:i, s:i}", "run", notes->run_id, "planned",
				(int)notes->planned, "confirmed", (int)notes->confirmed, "invalid",
				(int)notes->invalid, "error", (int)notes->error));
	rc = json_dumpf(top, f, JSON_INDENT(2));
	fputc('\n', f);
	json_decref(top);
	return rc;
}

int overhead_render(const struct overhead *o, enum table_format format,
	const struct table_notes *notes, FILE *f)
{
	int rc = 0;

	switch (format) {
	case TABLE_TEXT: render_text(o, notes, f); break;
	case TABLE_MARKDOWN: render_markdown(o, notes, f); break;
	case TABLE_CSV: render_csv(o, f); break;
	case TABLE_JSON: rc = render_json(o, notes, f); break;
	}
	return rc || ferror(f) ? -EIO : 0;
}
