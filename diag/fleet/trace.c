/* Curves for plots: a row's ratio to its peers over time, judged as before. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diag/fleet/judge_impl.h"
#include "harness/base/alloc.h"

/* Means and peaks of a row's ratio to its peers, over 'n' equal parts of the time judged. */
static void trace_row(struct survey *s, uint32_t row, size_t n, float *ratio, float *peak)
{
	struct set *set = &s->sets[s->set_of[row]];
	uint32_t *count = alloc_zero(n, sizeof(*count));

	memset(ratio, 0, n * sizeof(*ratio));
	if (s->located != set)
		peers_locate(s, set);
	for (size_t place = s->first; place < s->end; place++) {
		float d[PANEL_BLOCK];

		peers_deviations(s, set, row, place, d);
		for (size_t c = 0; c < PANEL_BLOCK; c++) {
			int64_t cell = s->panel->when[place] * PANEL_BLOCK + (int64_t)c;
			size_t at;

			if (isnan(d[c])) /* also what is not judged */
				continue;
			at = (size_t)((double)(cell - s->from) * (double)n /
				(double)(s->to - s->from));
			peak[at] = count[at] ? fmaxf(peak[at], d[c]) : d[c];
			ratio[at] += d[c];
			count[at]++;
		}
	}
	for (size_t i = 0; i < n; i++) {
		ratio[i] = count[i] ? expf(ratio[i] / (float)count[i]) : NAN;
		peak[i] = count[i] ? expf(peak[i]) : NAN;
	}
	free(count);
}

/* The members of a metric as they were judged: without the accused ones as peers. */
static struct survey members_again(struct verdicts *v, const struct metric *m, uint32_t metric)
{
	struct survey s = survey_begin(v, m, &m->panel);
	uint32_t *groups = alloc_zero(s.n_rows, sizeof(*groups));

	for (size_t i = 0; i < s.n_rows; i++) {
		const struct fleet_member *member = &v->f->members[m->member_of_row[i]];

		groups[i] = member->left_out ? NOBODY : member->group;
		s.suspect[i] = member->finding >= 0 && member->metric == metric;
	}
	survey_sets(&s, groups);
	free(groups);
	return s;
}

void fleet_trace(struct fleet *f, const struct fleet_result *r, uint32_t member, uint32_t metric,
	size_t n, float *ratio, float *peak)
{
	struct verdicts v = {.f = f, .r = (struct fleet_result *)r, .weeks = 1, .n_judged = 1};
	struct metric *m = &f->metrics[metric];
	struct survey s = members_again(&v, m, metric);
	uint32_t row = member < m->members_room ? m->row_of[member] : NOBODY;

	for (size_t i = 0; i < n; i++)
		ratio[i] = peak[i] = NAN;
	if (row != NOBODY && s.set_of[row] != NOBODY)
		trace_row(&s, row, n, ratio, peak);
	survey_clear(&s);
}

static bool accused(const struct fleet_result *r, uint32_t group, uint32_t metric)
{
	for (size_t i = 0; i < r->n_findings; i++)
		if (r->findings[i].kind == FINDING_GROUP && r->findings[i].member == group &&
			r->findings[i].metric == metric)
			return true;
	return false;
}

static void trace_layer(struct verdicts *v, struct survey *below, uint32_t metric, uint32_t group,
	size_t n, float *ratio, float *peak)
{
	struct layer l;
	bool found = false;

	for (size_t i = 0; i < below->n_sets; i++)
		peers_locate(below, &below->sets[i]);
	layer_begin(v, &v->f->metrics[metric], below, &l);
	for (uint32_t row = 0; row < l.s.n_rows; row++)
		l.s.suspect[row] = accused(v->r, l.own[row], metric);
	for (uint32_t row = 0; row < l.s.n_rows && !found; row++) {
		found = l.own[row] == group;
		if (found && l.s.set_of[row] != NOBODY)
			trace_row(&l.s, row, n, ratio, peak);
	}
	if (!found && l.s.n_sets > 1)
		trace_layer(v, &l.s, metric, group, n, ratio, peak);
	layer_clear(&l);
}

void fleet_trace_group(struct fleet *f, const struct fleet_result *r, uint32_t group,
	uint32_t metric, size_t n, float *ratio, float *peak)
{
	struct verdicts v = {.f = f, .r = (struct fleet_result *)r, .weeks = 1, .n_judged = 1};
	struct survey s = members_again(&v, &f->metrics[metric], metric);

	for (size_t i = 0; i < n; i++)
		ratio[i] = peak[i] = NAN;
	trace_layer(&v, &s, metric, group, n, ratio, peak);
	survey_clear(&s);
}
