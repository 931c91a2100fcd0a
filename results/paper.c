/* Published tables: reading them, and which cells of ours belong to which of theirs. */
#include "results/paper.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/file.h"
#include "harness/base/home.h"
#include "results/paper_impl.h"

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

bool paper_named(const char *label, const char *name)
{
	size_t len = strlen(name);

	return !strncmp(label, name, len) && (!label[len] || label[len] == '(');
}

const struct published *paper_at(
	const struct paper *p, const char *fault, const char *metric, const char *workload)
{
	for (size_t i = 0; i < p->n; i++)
		if (!strcmp(p->rows[i].fault, fault) && !strcmp(p->rows[i].metric, metric) &&
			!strcmp(p->rows[i].workload, workload))
			return &p->rows[i];
	return NULL;
}

static bool holds(const char *const *list, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(list[i], name))
			return true;
	return false;
}

size_t paper_part(const struct paper *p, const char *metric, const char *workload)
{
	for (size_t i = 0; i < p->n_parts; i++)
		if (holds(p->parts[i].metrics, p->parts[i].n_metrics, metric) &&
			holds(p->parts[i].workloads, p->parts[i].n_workloads, workload))
			return i;
	return p->n_parts;
}

static int complain(const char *name, size_t line, const char *what, struct err *e)
{
	return err_set(e, -EINVAL, "%s:%zu: %s", name, line, what);
}

static int read_row(struct paper *p, const char *line, size_t number, struct err *e)
{
	struct published *rows = realloc(p->rows, (p->n + 1) * sizeof(*rows)), *r;
	char rest;

	if (!rows)
		return err_errno(e, -ENOMEM, "cannot read '%s'", p->name);
	p->rows = rows;
	r = &rows[p->n];
	if (sscanf(line, "%47[^,],%47[^,],%47[^,],%lf,%lf %c", r->fault, r->metric, r->workload,
		    &r->tp, &r->fp, &rest) != 5)
		return complain(p->name, number, "a row is fault,metric,workload,tp,fp", e);
	if (!(r->tp >= 0 && r->tp <= 1) || !(r->fp >= 0 && r->fp <= 1))
		return complain(p->name, number, "TP and FP are from 0 to 1", e);
	if (paper_at(p, r->fault, r->metric, r->workload))
		return complain(p->name, number, "a cell that was there before", e);
	p->n++;
	return 0;
}

static int read_rows(struct paper *p, char *text, struct err *e)
{
	bool head = false;
	size_t number = 0;
	int rc = 0;

	for (char *line = text, *next; line && *line && !rc; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		number++;
		if (*line == '#' && !p->source)
			p->source = strdup(line + 1 + strspn(line + 1, " "));
		if (*line == '#' || !*line)
			continue;
		if (head)
			rc = read_row(p, line, number, e);
		else if (strcmp(line, "fault,metric,workload,tp,fp"))
			rc = complain(p->name, number,
				"this is no table of TP and FP (fault,metric,workload,tp,fp)", e);
		head = true;
	}
	if (!rc && !p->n)
		rc = complain(p->name, number, "there are no rows", e);
	if (!rc && !p->source)
		p->source = strdup(p->name);
	return rc;
}

/* The metric's workloads, in the order of its rows. */
static int part_of(const struct paper *p, const char *metric, struct part *out, struct err *e)
{
	*out = (struct part){.metrics = {metric}, .n_metrics = 1};
	for (size_t i = 0; i < p->n; i++) {
		if (strcmp(p->rows[i].metric, metric) ||
			holds(out->workloads, out->n_workloads, p->rows[i].workload))
			continue;
		if (out->n_workloads == PAPER_WORKLOADS)
			return err_set(e, -EINVAL, "%s: '%s' has more than %d workloads", p->name,
				metric, PAPER_WORKLOADS);
		out->workloads[out->n_workloads++] = p->rows[i].workload;
	}
	return 0;
}

static bool same_workloads(const struct part *a, const struct part *b)
{
	for (size_t i = 0; i < a->n_workloads; i++)
		if (!holds(b->workloads, b->n_workloads, a->workloads[i]))
			return false;
	return a->n_workloads == b->n_workloads;
}

static int add_metric(struct paper *p, const char *metric, struct err *e)
{
	struct part part, *same = NULL;
	int rc = part_of(p, metric, &part, e);

	if (rc)
		return rc;
	for (size_t i = 0; i < p->n_parts; i++) {
		if (holds(p->parts[i].metrics, p->parts[i].n_metrics, metric))
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
	struct paper *p = calloc(1, sizeof(*p));
	char *copy = strdup(text);
	int rc = p && copy && (p->name = strdup(name))
		? 0
		: err_errno(e, -ENOMEM, "cannot read '%s'", name);

	if (!rc)
		rc = read_rows(p, copy, e);
	if (!rc && !(p->faults = calloc(p->n, sizeof(*p->faults))))
		rc = err_errno(e, -ENOMEM, "cannot read '%s'", name);
	for (size_t i = 0; i < (rc ? 0 : p->n); i++) {
		if (!holds(p->faults, p->n_faults, p->rows[i].fault))
			p->faults[p->n_faults++] = p->rows[i].fault;
		rc = rc ? rc : add_metric(p, p->rows[i].metric, e);
	}
	free(copy);
	if (rc)
		paper_free(p);
	else
		*out = p;
	return rc;
}

int paper_read(const char *name, struct paper **out, struct err *e)
{
	char sub[128], *path = NULL, *text = NULL;
	int rc = 0;

	for (const char *c = name; *c; c++)
		if (!isalnum((unsigned char)*c) && *c != '-')
			rc = err_set(e, -EINVAL,
				"'%s' is no published table; there is hotdep09-table1", name);
	snprintf(sub, sizeof(sub), "results/%.100s.csv", name);
	if (!rc)
		rc = home_path(sub, &path, e);
	if (!rc && file_read(path, &text, NULL, NULL))
		rc = err_set(
			e, -ENOENT, "'%s' is no published table; there is hotdep09-table1", name);
	if (!rc)
		rc = paper_parse(sub, text, out, e);
	free(text);
	free(path);
	return rc;
}

static size_t find(const struct score_table *t, enum score_axis axis, const char *name)
{
	const char *const *names;
	size_t n = score_names(t, axis, &names), i;

	for (i = 0; i < n && strcmp(names[i], name); i++)
		;
	return i;
}

struct score paper_gather(const struct score_table *t, size_t detector, const char *fault,
	const char *workload, const char *metric)
{
	const char *const *faults, *const *workloads;
	size_t n_faults = score_names(t, SCORE_FAULT, &faults),
	       n_workloads = score_names(t, SCORE_WORKLOAD, &workloads);
	size_t m = find(t, SCORE_METRIC, metric);
	struct score sum = {0};

	for (size_t f = 0; f < n_faults; f++)
		for (size_t w = 0; w < n_workloads; w++) {
			const struct score *s = paper_named(faults[f], fault) &&
					paper_named(workloads[w], workload)
				? score_at(t, detector, f, w, m)
				: NULL;

			if (s)
				score_join(&sum, s);
		}
	return sum;
}

bool paper_shown(const struct paper *p, const struct score_table *t, size_t detector,
	const struct part *part, const char *fault, const char *metric)
{
	bool shown = false;

	for (size_t w = 0; w < part->n_workloads && !shown; w++) {
		struct score s = paper_gather(t, detector, fault, part->workloads[w], metric);

		shown = paper_at(p, fault, metric, part->workloads[w]) || s.hits || s.alarms;
		free(s.delays_s);
	}
	return shown;
}

bool paper_by_metric(const struct paper *p, const struct score_table *t, size_t detector)
{
	const char *const *faults, *const *workloads;
	size_t n_faults = score_names(t, SCORE_FAULT, &faults),
	       n_workloads = score_names(t, SCORE_WORKLOAD, &workloads);

	for (size_t i = 0; i < p->n_parts; i++)
		for (size_t m = 0; m < p->parts[i].n_metrics; m++)
			for (size_t f = 0; f < n_faults; f++)
				for (size_t w = 0; w < n_workloads; w++)
					if (score_at(t, detector, f, w,
						    find(t, SCORE_METRIC, p->parts[i].metrics[m])))
						return true;
	return false;
}

size_t paper_strays(const struct paper *p, const struct score_table *t, size_t detector,
	paper_stray_fn fn, FILE *f)
{
	size_t n, n_metrics = 0, told = 0;
	const char **workloads = paper_names(p, t, SCORE_WORKLOAD, &n);
	const char *metrics[PAPER_PARTS * PAPER_METRICS];

	for (size_t i = 0; i < p->n_parts; i++)
		for (size_t m = 0; m < p->parts[i].n_metrics; m++)
			metrics[n_metrics++] = p->parts[i].metrics[m];
	for (size_t k = 0; k < p->n_faults; k++)
		for (size_t m = 0; m < n_metrics; m++)
			for (size_t w = 0; workloads && w < n; w++) {
				struct score s = paper_gather(
					t, detector, p->faults[k], workloads[w], metrics[m]);

				if ((s.hits || s.alarms) &&
					paper_part(p, metrics[m], workloads[w]) == p->n_parts) {
					fn(p->faults[k], metrics[m], workloads[w], &s, f);
					told++;
				}
				free(s.delays_s);
			}
	free(workloads);
	return told;
}

/* Is it in the run, with whatever parameters? */
static bool run_has(const char *const *labels, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (paper_named(labels[i], name))
			return true;
	return false;
}

const char **paper_names(
	const struct paper *p, const struct score_table *t, enum score_axis axis, size_t *n)
{
	const char *const *labels;
	size_t n_labels = score_names(t, axis, &labels), k = 0;
	const char **names = calloc(p->n + n_labels + 1, sizeof(*names));

	for (size_t i = 0; names && i < p->n; i++) {
		const char *name = axis == SCORE_FAULT ? p->rows[i].fault : p->rows[i].workload;

		if (!holds(names, k, name) && run_has(labels, n_labels, name))
			names[k++] = name;
	}
	for (size_t i = 0; names && i < n_labels; i++) {
		bool theirs = false;

		for (size_t j = 0; j < k; j++)
			theirs = theirs || paper_named(labels[i], names[j]);
		if (!theirs)
			names[k++] = labels[i];
	}
	*n = k;
	return names;
}
