/* Arranges the findings of the detector 'fleet' for output. */
#include "harness/table/fleet.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"
#include "harness/base/units.h"

/* Sorts by descending severity. */
static int order(double a, double b)
{
	return (a < b) - (a > b);
}

static int fleet_view_number(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static void add_rows(struct fleet_view *v, const struct fleet_result *r, size_t window)
{
	v->rows = alloc_resize(v->rows, v->n_rows + r->n_findings + 1, sizeof(*v->rows));
	for (size_t i = 0; i < r->n_findings; i++)
		v->rows[v->n_rows++] = (struct fleet_entry){r->findings[i], window, window, 1};
}

/* Records the severity of each member in this result. */
static void add_worst(struct fleet_view *v, const struct fleet_result *r)
{
	size_t n = v->whole->n_members;

	if (!v->worst)
		v->worst = alloc_zero(n, sizeof(*v->worst));
	for (size_t i = 0; i < r->n_members && i < n; i++) {
		const struct fleet_member *m = &r->members[i];

		if (m->judged && m->severity >= v->worst[i].severity)
			v->worst[i] = (struct fleet_rank){
				(uint32_t)i, m->metric, m->severity, m->effect};
	}
}

void fleet_view_window(struct fleet_view *v, double from_s, double to_s,
	const struct fleet_result *r, const char *why_not)
{
	v->windows = alloc_room(v->windows, v->n_windows, sizeof(*v->windows));
	v->windows[v->n_windows++] = (struct fleet_window){
		from_s, to_s, r ? r->n_findings : 0, r ? NULL : alloc_copy(why_not)};
	if (!r)
		return;
	v->n_judged++;
	if (!v->paid_by)
		v->paid_by = fleet_windows_new(v->whole->n_members, v->whole->n_metrics);
	fleet_windows_add(v->paid_by, r);
	add_rows(v, r, v->n_windows - 1);
	add_worst(v, r);
}

/* Groups findings with the same subject: one member, one group, or one metric's class. */
static unsigned whom_kind(const struct fleet_finding *f)
{
	return f->kind == FINDING_GROUP ? 1 : f->kind == FINDING_CLASS ? 2 : 0;
}

static uint32_t whom(const struct fleet_finding *f)
{
	return f->kind == FINDING_CLASS ? f->metric : f->member;
}

static int fleet_view_same(const struct fleet_entry *a, const struct fleet_entry *b)
{
	return fleet_view_number(whom_kind(&a->f), whom_kind(&b->f))
		?: fleet_view_number(whom(&a->f), whom(&b->f));
}

static int by_whom(const void *a, const void *b)
{
	const struct fleet_entry *x = a, *y = b;

	return fleet_view_same(x, y) ?: fleet_view_number(x->first, y->first)
		?: order(x->f.severity, y->f.severity);
}

static int by_severity(const void *a, const void *b)
{
	const struct fleet_entry *x = a, *y = b;

	return fleet_view_number(x->f.waits, y->f.waits) ?: order(x->f.severity, y->f.severity)
			?: by_whom(a, b);
}

static int by_window(const void *a, const void *b)
{
	const struct fleet_entry *x = a, *y = b;

	return fleet_view_number(x->first, y->first) ?: by_severity(a, b);
}

/* Adds a row of the entry's last window, or of a later one. */
static void fleet_view_join(struct fleet_entry *into, const struct fleet_entry *row)
{
	struct fleet_finding f = row->f.severity > into->f.severity ? row->f : into->f;
	bool other = row->first != into->last;

	f.since_s = fmin(into->f.since_s, row->f.since_s);
	f.until_s = fmax(into->f.until_s, row->f.until_s);
	f.open = row->f.open || (!other && into->f.open);
	/* Adds up for now; a window counts once. */
	f.share = into->f.share + (other ? row->f.share : 0);
	f.share_of_all = into->f.share_of_all + (other ? row->f.share_of_all : 0);
	f.others = into->f.others > row->f.others ? into->f.others : row->f.others;
	into->f = f;
	into->last = row->first;
	into->windows += other;
}

/* Turns sums into means: members are sampled equally in all windows. */
static void end_entry(const struct fleet_view *v, size_t last_judged, struct fleet_entry *e)
{
	e->f.open &= e->last == last_judged;
	e->f.share /= e->windows;
	e->f.share_of_all /= (double)v->n_judged;
}

static void merge(struct fleet_view *v)
{
	struct fleet_entry *last = NULL;
	size_t last_judged = v->n_windows - 1;

	while (last_judged && v->windows[last_judged].why_not)
		last_judged--;
	if (v->n_rows)
		qsort(v->rows, v->n_rows, sizeof(*v->rows), by_whom);
	for (size_t i = 0; i < v->n_rows; i++) {
		if (last && !fleet_view_same(last, &v->rows[i])) {
			fleet_view_join(last, &v->rows[i]);
		} else {
			last = &v->entries[v->n_entries++];
			*last = v->rows[i];
		}
	}
	for (size_t i = 0; i < v->n_entries; i++)
		end_entry(v, last_judged, &v->entries[i]);
	qsort(v->entries, v->n_entries, sizeof(*v->entries), by_severity);
}

static int by_rank(const void *a, const void *b)
{
	const struct fleet_rank *x = a, *y = b;

	return order(x->severity, y->severity) ?: fleet_view_number(x->member, y->member);
}

static void rank_members(struct fleet_view *v)
{
	const struct fleet_result *r = v->whole;

	v->ranking = alloc_zero(r->n_members + 1, sizeof(*v->ranking));
	for (size_t i = 0; i < r->n_members; i++)
		if (r->members[i].judged || v->worst[i].severity > 0) {
			v->worst[i].member = (uint32_t)i;
			v->ranking[v->n_ranking++] = v->worst[i];
		}
	qsort(v->ranking, v->n_ranking, sizeof(*v->ranking), by_rank);
}

/* Divides severities in windows by the usual severity of the worst window, and drops findings
 * that are then below 1. Groups are excluded: they are few and have another distribution. */
static void pay(struct fleet_view *v)
{
	const struct fleet_result *r = v->whole;
	double weeks = fmax(1, (r->to_s - r->from_s) / SECONDS_PER_WEEK);
	double alarms;
	size_t kept = 0, judged = 0;

	for (size_t i = 0; i < r->n_metrics; i++)
		judged += r->metrics[i].judged;
	alarms = fmin(0.01, v->options->alarms * weeks / fmax(1, (double)judged));
	v->paid = alloc_zero(r->n_metrics + 1, sizeof(*v->paid));
	for (size_t i = 0; i < r->n_metrics; i++)
		v->paid[i] = fleet_windows_pay(v->paid_by, (uint32_t)i, alarms);
	for (size_t i = 0; i < r->n_members; i++)
		v->worst[i].severity /= v->paid[v->worst[i].metric];
	for (size_t i = 0; i < v->n_rows; i++) {
		struct fleet_entry *e = &v->rows[i];

		if (e->f.kind != FINDING_GROUP)
			e->f.severity /= v->paid[e->f.metric];
		if (e->f.severity >= 1)
			v->rows[kept++] = *e;
		else
			v->windows[e->first].findings--;
	}
	v->n_rows = kept;
}

void fleet_view_finish(struct fleet_view *v)
{
	v->unix_times = fleet_unix_times(v->whole->from_s);
	if (!v->n_windows) {
		add_rows(v, v->whole, 0);
		add_worst(v, v->whole);
	}
	if (v->paid_by)
		pay(v);
	v->entries = alloc_zero(v->n_rows + 1, sizeof(*v->entries));
	if (v->n_windows && !v->all_windows) {
		merge(v);
	} else {
		for (; v->n_entries < v->n_rows; v->n_entries++)
			v->entries[v->n_entries] = v->rows[v->n_entries];
		qsort(v->entries, v->n_entries, sizeof(*v->entries), by_window);
	}
	if (!v->worst)
		v->worst = alloc_zero(v->whole->n_members, sizeof(*v->worst));
	rank_members(v);
}

const char *fleet_partial(const struct fleet_view *v)
{
	return v->said ? v->said->partial : NULL;
}

void fleet_view_clear(struct fleet_view *v)
{
	for (size_t i = 0; i < v->n_windows; i++)
		free(v->windows[i].why_not);
	free(v->windows);
	free(v->rows);
	free(v->entries);
	free(v->worst);
	free(v->ranking);
	free(v->paid);
	fleet_windows_free(v->paid_by);
	v->windows = NULL;
	v->rows = v->entries = NULL;
	v->worst = v->ranking = NULL;
	v->paid = NULL;
	v->paid_by = NULL;
	v->n_windows = v->n_judged = v->n_rows = v->n_entries = v->n_ranking = 0;
}
