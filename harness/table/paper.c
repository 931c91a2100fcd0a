/* Published tables: reads them, and matches a run's scores with their cells. */
#include "harness/table/paper.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"
#include "harness/base/file.h"
#include "harness/base/home.h"
#include "harness/table/paper_impl.h"

static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-";

void paper_free(struct paper *p)
{
	if (!p)
		return;
	free(p->name);
	free(p->source);
	free(p->rows);
	free(p->faults);
	free(p);
}

/* Is 'label' this name, with or without parameters? */
static bool is_named(const char *label, const char *name)
{
	size_t len = strlen(name);

	return !strncmp(label, name, len) && (!label[len] || label[len] == '(');
}

const struct paper_row *paper_at(
	const struct paper *p, const char *fault, const char *metric, const char *workload)
{
	for (size_t i = 0; i < p->n; i++)
		if (!strcmp(p->rows[i].fault, fault) && !strcmp(p->rows[i].metric, metric) &&
			!strcmp(p->rows[i].workload, workload))
			return &p->rows[i];
	return NULL;
}

static bool paper_holds(const char *const *list, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(list[i], name))
			return true;
	return false;
}

bool paper_has(const struct paper *p, const char *metric, const char *workload)
{
	for (size_t i = 0; i < p->n_parts; i++)
		if (paper_holds(p->parts[i].metrics, p->parts[i].n_metrics, metric) &&
			paper_holds(p->parts[i].workloads, p->parts[i].n_workloads, workload))
			return true;
	return false;
}

/* The error in the row, or NULL. */
static const char *read_row(struct paper *p, const char *line)
{
	struct paper_row *r;
	char rest;

	p->rows = alloc_room(p->rows, p->n, sizeof(*p->rows));
	r = &p->rows[p->n];
	if (sscanf(line, "%47[^,],%47[^,],%47[^,],%lf,%lf %c", r->fault, r->metric, r->workload,
		    &r->tp, &r->fp, &rest) != 5)
		return "a row must be fault,metric,workload,tp,fp";
	if (!(r->tp >= 0 && r->tp <= 1) || !(r->fp >= 0 && r->fp <= 1))
		return "TP and FP must be from 0 to 1";
	if (paper_at(p, r->fault, r->metric, r->workload))
		return "duplicate cell";
	p->n++;
	return NULL;
}

static int read_rows(struct paper *p, char *text, struct err *e)
{
	const char *wrong = NULL;
	bool head = false;
	size_t number = 0;

	for (char *line = text, *next; line && *line && !wrong; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		number++;
		if (*line == '#' && !p->source)
			p->source = alloc_copy(line + 1 + strspn(line + 1, " "));
		if (*line == '#' || !*line) {
			sscanf(line, "# cells: %u", &p->cells);
			continue;
		}
		if (head)
			wrong = read_row(p, line);
		else if (strcmp(line, "fault,metric,workload,tp,fp"))
			wrong = "not a table of TP and FP (fault,metric,workload,tp,fp)";
		head = true;
	}
	if (!wrong && !p->n)
		wrong = "the table has no rows";
	if (!p->source)
		p->source = alloc_copy(p->name);
	return wrong ? err_set(e, -EINVAL, "%s:%zu: %s", p->name, number, wrong) : 0;
}

/* The metric's workloads, in the order of its rows. */
static int part_of(const struct paper *p, const char *metric, struct paper_part *out, struct err *e)
{
	*out = (struct paper_part){.metrics = {metric}, .n_metrics = 1};
	for (size_t i = 0; i < p->n; i++) {
		if (strcmp(p->rows[i].metric, metric) ||
			paper_holds(out->workloads, out->n_workloads, p->rows[i].workload))
			continue;
		if (out->n_workloads == PAPER_WORKLOADS)
			return err_set(e, -EINVAL, "%s: '%s' has more than %d workloads", p->name,
				metric, PAPER_WORKLOADS);
		out->workloads[out->n_workloads++] = p->rows[i].workload;
	}
	return 0;
}

static bool same_workloads(const struct paper_part *a, const struct paper_part *b)
{
	for (size_t i = 0; i < a->n_workloads; i++)
		if (!paper_holds(b->workloads, b->n_workloads, a->workloads[i]))
			return false;
	return a->n_workloads == b->n_workloads;
}

static int add_metric(struct paper *p, const char *metric, struct err *e)
{
	struct paper_part part, *same = NULL;
	int rc = part_of(p, metric, &part, e);

	if (rc)
		return rc;
	for (size_t i = 0; i < p->n_parts; i++) {
		if (paper_holds(p->parts[i].metrics, p->parts[i].n_metrics, metric))
			return 0;
		if (same_workloads(&p->parts[i], &part))
			same = &p->parts[i];
	}
	if (same && same->n_metrics < PAPER_METRICS)
		same->metrics[same->n_metrics++] = metric;
	else if (!same && p->n_parts < PAPER_PARTS)
		p->parts[p->n_parts++] = part;
	else
		return err_set(e, -EINVAL, "%s: more metrics than a page has room for", p->name);
	return 0;
}

int paper_parse(const char *name, const char *text, struct paper **out, struct err *e)
{
	struct paper *p = alloc_zero(1, sizeof(*p));
	char *copy = alloc_copy(text);
	int rc;

	p->name = alloc_copy(name);
	rc = read_rows(p, copy, e);
	p->faults = alloc_zero(p->n, sizeof(*p->faults));
	for (size_t i = 0; i < p->n && !rc; i++) {
		if (!paper_holds(p->faults, p->n_faults, p->rows[i].fault))
			p->faults[p->n_faults++] = p->rows[i].fault;
		rc = add_metric(p, p->rows[i].metric, e);
	}
	free(copy);
	if (rc)
		paper_free(p);
	else
		*out = p;
	return rc;
}

int paper_text(const char *name, char **text, struct err *e)
{
	char *sub = alloc_format("results/%s.csv", name), *path = NULL;
	int rc = strspn(name, letters) == strlen(name) ? home_path(sub, &path, e) : -EINVAL;

	if (!rc && file_read(path, text, NULL, NULL))
		rc = -ENOENT;
	if (rc)
		err_set(e, rc, "'%s' is not a published table; use hotdep09-table1", name);
	free(path);
	free(sub);
	return rc;
}

int paper_read(const char *name, struct paper **out, struct err *e)
{
	char *text = NULL, *label = alloc_format("results/%s.csv", name);
	int rc = paper_text(name, &text, e);

	if (!rc)
		rc = paper_parse(label, text, out, e);
	free(label);
	free(text);
	return rc;
}

struct score paper_gather(const struct paper_view *b, size_t detector, const char *fault,
	const char *workload, const char *metric)
{
	const struct tables *v = &b->v;
	struct score sum = {0};
	size_t m = 0;

	while (m < v->n[SCORE_METRIC] && strcmp(v->names[SCORE_METRIC][m], metric))
		m++;
	for (size_t f = 0; f < v->n[SCORE_FAULT]; f++)
		for (size_t w = 0; w < v->n[SCORE_WORKLOAD]; w++) {
			const struct score *s = is_named(v->names[SCORE_FAULT][f], fault) &&
					is_named(v->names[SCORE_WORKLOAD][w], workload)
				? score_at(v->t, detector, f, w, m)
				: NULL;

			if (s)
				score_join(&sum, s);
		}
	return sum;
}

struct score paper_counts(const struct paper_view *b, size_t detector, const char *fault,
	const char *workload, const char *metric)
{
	struct score s = paper_gather(b, detector, fault, workload, metric);

	free(s.delays_s);
	s.delays_s = NULL;
	s.n_delays = 0;
	return s;
}

bool paper_by_metric(const struct paper_view *b, size_t detector)
{
	const struct score *s;
	size_t place = 0;

	while ((s = tables_next(&b->v, &place)))
		for (size_t i = 0; s->at[SCORE_DETECTOR] == detector && i < b->p->n_parts; i++)
			if (paper_holds(b->p->parts[i].metrics, b->p->parts[i].n_metrics,
				    b->v.names[SCORE_METRIC][s->at[SCORE_METRIC]]))
				return true;
	return false;
}

/* Names of an axis, in the form of struct paper_view. */
static const char **names_of(const struct paper_view *b, enum score_axis axis, size_t *n)
{
	const char *const *labels = b->v.names[axis];
	size_t n_labels = b->v.n[axis], k = 0, theirs, j;
	const char **names = alloc_zero(b->p->n + n_labels, sizeof(*names));

	for (const struct paper_row *r = b->p->rows; r < b->p->rows + b->p->n; r++) {
		const char *name = axis == SCORE_FAULT ? r->fault : r->workload;

		for (j = 0; j < n_labels && !is_named(labels[j], name);)
			j++;
		if (j < n_labels && !paper_holds(names, k, name))
			names[k++] = name;
	}
	theirs = k;
	for (size_t i = 0; i < n_labels; i++) {
		for (j = 0; j < theirs && !is_named(labels[i], names[j]);)
			j++;
		if (j == theirs)
			names[k++] = labels[i];
	}
	*n = k;
	return names;
}

int paper_render(const struct paper *p, const struct score_table *t, enum table_format format,
	const struct table_notes *notes, FILE *f)
{
	struct paper_view b = {.p = p};
	struct grid g = {.out = &b.v.out};
	json_t *all;
	int rc = 0;

	tables_init(&b.v, t, format, notes, f);
	b.faults = names_of(&b, SCORE_FAULT, &b.n_faults);
	b.workloads = names_of(&b, SCORE_WORKLOAD, &b.n_workloads);
	if (format == TABLE_SVG) {
		rc = paper_look(&b);
	} else if (tables_is_page(&b.v)) {
		paper_page(&b);
	} else {
		paper_fill(&b, &g);
		all = table_json_notes(&b.v);
		json_object_update_new(all,
			json_pack("{s:{s:s, s:s}, s:o}", "published", "table", p->name, "source",
				p->source, "environment",
				json_lines(b.v.notes->environment, b.v.notes->n_environment)));
		tables_data(&b.v, &g, all);
	}
	free(b.faults);
	free(b.workloads);
	return rc ? rc : sheet_end(&b.v.out);
}
