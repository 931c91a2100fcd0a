/* From surveys of metrics to one verdict a member. */
#include <errno.h>
#include <gsl/gsl_statistics_double.h>
#include <gsl/gsl_statistics_float.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "diag/fleet/judge_impl.h"
#include "harness/base/units.h"
#include "harness/base/alloc.h"
#include "harness/base/stat.h"

const struct fleet_options fleet_defaults = {
	.alarms = 1e-4, .least = 1.15, .shortest = 0.005, .memory_bytes = (size_t)320 << 20};

const char *const fleet_part_names[FLEET_PARTS] = {
	"groups", "others", "rounds", "side", "tails", "scales", "short", "own", "load", "class"};

const char *const finding_kind_names[FINDING_KINDS] = {"shift", "bursts", "group", "class"};

static void judge_note(struct fleet_result *r, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static void judge_note(struct fleet_result *r, const char *fmt, ...)
{
	va_list ap;
	char *text = NULL;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		alloc_end();
	va_end(ap);
	r->notes = alloc_room(r->notes, r->n_notes, sizeof(*r->notes));
	r->notes[r->n_notes++] = text;
}

static struct fleet_finding *add_finding(struct fleet_result *r, struct fleet_finding finding)
{
	r->findings = alloc_room(r->findings, r->n_findings, sizeof(*r->findings));
	r->findings[r->n_findings] = finding;
	return &r->findings[r->n_findings++];
}

struct survey survey_begin(const struct verdicts *v, const struct metric *m, const struct panel *p)
{
	struct survey s = {.fleet = v->f,
		.panel = p,
		.rare = m->rare && m->model.zero == ZERO_VALUE,
		.sign = m->model.worse == WORSE_LESS ? -1 : 1,
		.n_rows = p->n_rows,
		.alarms = v->f->options.alarms * v->weeks / v->n_judged};
	size_t n = p->n_rows;

	s.from = level_cell(v->f, m, v->r->from_s);
	/* The cell that begins at the end of a window is the next one's. */
	s.to = level_cell(v->f, m, v->whole ? v->r->to_s : nextafter(v->r->to_s, -HUGE_VAL)) + 1;
	/* Huge times leave few digits: a window may end in a cell before the one it begins in. */
	if (s.to < s.from)
		s.to = s.from;
	panel_range(p, s.from, s.to, &s.first, &s.end);
	s.set_of = alloc_zero(n, sizeof(*s.set_of));
	s.suspect = alloc_zero(n, 1);
	s.seen = alloc_zero(n, sizeof(*s.seen));
	s.severity = alloc_zero(n, sizeof(*s.severity));
	s.worst = alloc_zero(n, 1);
	for (size_t i = 0; i < n; i++)
		s.severity[i] = NAN;
	return s;
}

/* Whether many members, in most of the groups, are lastingly off by the same ratio: another model
 * rather than an illness. Then one finding is made for all of them. */
enum { CLASS_ROWS = 30, CLASS_SETS = 5 };
#define CLASS_SHARE 0.08
#define CLASS_SPREAD 3.0 /* of the healthy rows' dispersion, to either side */

static bool in_class(const struct survey *s, size_t row, double level, double spread)
{
	return s->excess[row * s->n_stats] >= 1 &&
		fabs((double)s->values[row * s->n_stats] - level) <= spread;
}

static bool is_class(const struct survey *s, double *level, double *spread)
{
	double *y = alloc_zero(s->n_rows, sizeof(*y));
	size_t n = 0, judged = 0, sets = 0, alike = 0;
	uint8_t *hit = alloc_zero(s->n_sets, 1);

	for (size_t i = 0; i < s->n_rows; i++) {
		judged += !isnan(s->severity[i]);
		if (s->excess[i * s->n_stats] >= 1)
			y[n++] = (double)s->values[i * s->n_stats];
	}
	*level = n ? stat_median(y, n) : 0;
	*spread = CLASS_SPREAD * fmax(s->dispersion, log(1.03));
	for (size_t i = 0; i < s->n_rows; i++)
		/* Those a little below the limit belong to it as well. */
		if (s->set_of[i] != NOBODY &&
			fabs((double)s->values[i * s->n_stats] - *level) <= *spread) {
			alike++;
			hit[s->set_of[i]] = 1;
		}
	for (size_t i = 0; i < s->n_sets; i++)
		sets += hit[i];
	free(y);
	free(hit);
	return judged >= CLASS_ROWS && *level > 2 * *spread && s->n_sets >= CLASS_SETS &&
		2 * sets >= s->n_sets && 2 * alike >= n &&
		(double)alike >= CLASS_SHARE * (double)judged;
}

/* Of work and waiting, work. */
static bool counts_more(
	const struct fleet *f, const struct fleet_finding *a, const struct fleet_finding *b)
{
	bool waits = metric_waits(f->metrics[a->metric].model.name);
	bool waited = metric_waits(f->metrics[b->metric].model.name);

	return waits == waited ? a->severity > b->severity : waited;
}

/* Keeps the worst metric of a member. */
static void add_member(
	struct verdicts *v, struct survey *s, uint32_t row, uint32_t metric, int32_t shared)
{
	struct metric *m = &v->f->metrics[metric];
	struct fleet_member *member = &v->f->members[m->member_of_row[row]];
	struct fleet_finding finding = {
		.member = m->member_of_row[row], .metric = metric, .severity = s->severity[row]};
	bool worse = !member->judged || finding.severity > member->severity;
	double level = (double)s->values[(size_t)row * s->n_stats + s->worst[row]];
	int32_t before = member->finding;

	member->judged = true;
	if (worse) {
		member->severity = finding.severity;
		member->metric = metric;
		member->effect = exp(s->sign * level);
	}
	if (finding.severity < 1)
		return;
	if (shared >= 0) {
		member->finding = before >= 0 ? before : shared;
		return;
	}
	if (before < 0 || v->r->findings[before].kind == FINDING_CLASS) {
		shape_find(s, row, m, &finding);
		member->finding = (int32_t)v->r->n_findings;
		add_finding(v->r, finding);
	} else {
		struct fleet_finding *had = &v->r->findings[before];

		finding.others = had->others + 1;
		had->others++;
		if (counts_more(v->f, &finding, had)) {
			shape_find(s, row, m, &finding);
			*had = finding;
		}
	}
	if (worse && v->r->findings[member->finding].metric == metric)
		member->effect = v->r->findings[member->finding].effect;
}

static void add_members(struct verdicts *v, struct survey *s, uint32_t metric)
{
	double level = 0, spread = 0;
	bool class = survey_with(s, FLEET_CLASS) && is_class(s, &level, &spread);
	int32_t shared = -1;

	for (uint32_t row = 0; row < s->n_rows; row++) {
		bool alike = class && in_class(s, row, level, spread);

		if (isnan(s->severity[row]))
			continue;
		if (alike && shared < 0) {
			struct fleet_finding *f;

			shared = (int32_t)v->r->n_findings;
			f = add_finding(v->r,
				(struct fleet_finding){
					.member = v->f->metrics[metric].member_of_row[row],
					.metric = metric,
					.severity = s->severity[row]});
			shape_find(s, row, &v->f->metrics[metric], f);
			f->kind = FINDING_CLASS;
			f->effect = exp(s->sign * level);
		}
		if (alike)
			v->r->findings[shared].count++;
		add_member(v, s, row, metric, alike ? shared : -1);
	}
}

void layer_begin(
	struct verdicts *v, const struct metric *m, const struct survey *below, struct layer *l)
{
	uint32_t *parents = alloc_zero(below->n_sets, sizeof(*parents));

	*l = (struct layer){.own = alloc_zero(below->n_sets, sizeof(*l->own))};
	panel_init(&l->panel, v->f->pool, m->panel.step_s);
	l->panel.shift = m->panel.shift;
	for (size_t i = 0; i < below->n_sets; i++) {
		const struct set *set = &below->sets[i];
		uint32_t row;

		if (!set->group)
			continue;
		row = panel_add_row(&l->panel);
		l->own[row] = set->group;
		parents[row] = v->f->groups[set->group].parent;
		for (size_t c = 0; c < (below->end - below->first) * PANEL_BLOCK; c++)
			if (set->location[c])
				panel_put(&l->panel, row,
					below->panel->when[below->first + c / PANEL_BLOCK] *
							PANEL_BLOCK +
						(int64_t)(c % PANEL_BLOCK),
					set->location[c]);
	}
	l->s = survey_begin(v, m, &l->panel);
	survey_sets(&l->s, parents);
	free(parents);
}

void layer_clear(struct layer *l)
{
	survey_clear(&l->s);
	panel_clear(&l->panel);
	free(l->own);
}

/* Judges the groups of one layer, then those around them. */
static void judge_groups(struct verdicts *v, const struct survey *below, uint32_t metric)
{
	const struct metric *m = &v->f->metrics[metric];
	struct layer l;

	layer_begin(v, m, below, &l);
	survey_run(&l.s, NULL);
	for (uint32_t row = 0; row < l.s.n_rows; row++)
		if (l.s.severity[row] >= 1) {
			struct fleet_finding finding = {.member = l.own[row],
				.metric = metric,
				.severity = l.s.severity[row]};

			shape_find(&l.s, row, m, &finding);
			finding.kind = FINDING_GROUP;
			add_finding(v->r, finding);
		}
	if (l.s.n_sets > 1)
		judge_groups(v, &l.s, metric);
	layer_clear(&l);
}

/* The metrics that the work of a metric's members is known by, with the same cells. */
static struct excuse loads_of(const struct fleet *f, const struct metric *m)
{
	struct excuse x = {0};

	for (const struct metric *l = f->metrics; l < f->metrics + f->n_metrics; l++)
		if (l->model.worse == WORSE_LOAD && l->panel.step_s == m->panel.step_s &&
			l->panel.n_rows && x.n_loads < LOADS_MAX)
			x.loads[x.n_loads++] = l;
	return x;
}

static double median_level(const struct survey *s)
{
	size_t n = 0, cells = (s->end - s->first) * PANEL_BLOCK;
	float *v = alloc_zero(s->n_sets * cells, sizeof(*v));
	double level;

	for (size_t i = 0; i < s->n_sets; i++)
		for (size_t c = 0; c < cells; c += 1 + cells / 1024)
			if (s->sets[i].location[c])
				v[n++] = s->sets[i].location[c];
	level = n ? panel_level((double)gsl_stats_float_select(v, 1, n, n / 2)) : NAN;
	free(v);
	return level;
}

/* Levels of several modes have tails for which no limit can be given that a lasting difference
 * could exceed. Changes of a member are found all the same. */
static void give_up(struct verdicts *v, struct fleet_metric *said)
{
	said->unlike = true;
	said->limit = NAN;
	judge_note(v->r,
		"%s: lasting differences cannot be judged, healthy members differ too much; if "
		"they are of several kinds, name these by --group",
		said->model->name);
}

static void judge_metric(struct verdicts *v, uint32_t metric)
{
	struct metric *m = &v->f->metrics[metric];
	struct fleet_metric *said = (struct fleet_metric *)&v->r->metrics[metric];
	struct survey s = survey_begin(v, m, &m->panel);
	uint32_t *groups = alloc_zero(s.n_rows, sizeof(*groups));
	struct excuse excuse = loads_of(v->f, m);
	size_t alone, left_out = 0;
	double twice;

	for (size_t i = 0; i < s.n_rows; i++) {
		const struct fleet_member *member = &v->f->members[m->member_of_row[i]];

		groups[i] = member->left_out            ? NOBODY
			: survey_with(&s, FLEET_GROUPS) ? member->group
							: 0;
		left_out += member->left_out;
	}
	s.members = m->member_of_row;
	alone = survey_sets(&s, groups) - left_out;
	if (alone)
		judge_note(v->r,
			"%s: %zu of %zu members have fewer than two peers and are not judged",
			m->model.name, alone, s.n_rows - left_out);
	survey_run(&s, excuse.n_loads && survey_with(&s, FLEET_LOAD) ? &excuse : NULL);
	for (size_t i = 0; i < s.n_rows; i++)
		said->judged = said->judged || !isnan(s.severity[i]);
	if (said->judged) {
		said->dispersion = exp(s.dispersion);
		said->limit = exp(s.limit);
		if (s.limit > DEVIATION_MOST)
			give_up(v, said);
		said->median = median_level(&s);
		add_members(v, &s, metric);
		judge_groups(v, &s, metric);
		twice = exp(excuse.usual[EXCUSE_POINTS / 2 + 4] - excuse.usual[EXCUSE_POINTS / 2]);
		if (excuse.load && twice > 1.05)
			judge_note(v->r, "%s: twice the usual %s excuses %.2f times the level",
				m->model.name, excuse.load->model.name, twice);
	}
	survey_clear(&s);
	free(groups);
}

static int by_severity(const void *a, const void *b, void *members)
{
	const struct fleet_member *v = members;
	double x = v[*(const uint32_t *)a].severity, y = v[*(const uint32_t *)b].severity;

	if (x != y)
		return x > y ? -1 : 1;
	return *(const uint32_t *)a < *(const uint32_t *)b ? -1 : 1;
}

static int worse_first(const void *a, const void *b)
{
	const struct fleet_finding *x = a, *y = b;
	bool gx = x->kind == FINDING_GROUP, gy = y->kind == FINDING_GROUP;

	if (gx != gy)
		return gx ? -1 : 1;
	if (x->waits != y->waits)
		return x->waits ? 1 : -1;
	return x->severity > y->severity ? -1 : x->severity < y->severity;
}

/* Where metrics of waiting stand next to metrics of work, those of work count first: who waits
 * longest is rarely who is slow. */
static void mark_waiting(struct verdicts *v)
{
	struct fleet_result *r = v->r;
	bool works = false;

	for (size_t i = 0; i < r->n_metrics; i++)
		works = works || (r->metrics[i].judged && !metric_waits(r->metrics[i].model->name));
	for (size_t m = 0; m < r->n_metrics && works; m++) {
		size_t found = 0;

		if (!metric_waits(r->metrics[m].model->name))
			continue;
		for (size_t i = 0; i < r->n_findings; i++)
			if (r->findings[i].metric == m) {
				r->findings[i].waits = true;
				found++;
			}
		if (found)
			judge_note(r,
				"%s measures waiting: who waits may be the victim of another "
				"member, so its findings come last",
				r->metrics[m].model->name);
	}
}

static void judge_finish(struct verdicts *v)
{
	struct fleet *f = v->f;
	struct fleet_result *r = v->r;

	r->ranking = alloc_zero(f->n_members, sizeof(*r->ranking));
	for (size_t i = 0; i < f->n_members; i++)
		r->ranking[i] = (uint32_t)i;
	if (f->n_members)
		qsort_r(r->ranking, f->n_members, sizeof(*r->ranking), by_severity, f->members);
	mark_waiting(v);
	if (r->n_findings)
		qsort(r->findings, r->n_findings, sizeof(*r->findings), worse_first);
	for (size_t i = 0; i < f->n_members; i++)
		if (f->members[i].finding >= 0)
			f->members[i].finding = -2;
	for (size_t i = 0; i < r->n_findings; i++)
		if (r->findings[i].kind == FINDING_SHIFT || r->findings[i].kind == FINDING_BURSTS)
			f->members[r->findings[i].member].finding = (int32_t)i;
	for (size_t i = 0; i < f->n_members; i++)
		if (f->members[i].finding == -2)
			f->members[i].finding = -1;
	r->members = f->members;
	r->n_members = f->n_members;
	r->groups = f->groups;
	r->n_groups = f->n_groups;
}

/* Work counts as a performance where the fleet has nothing else that could be judged. */
static void choose_metrics(struct verdicts *v)
{
	struct fleet *f = v->f;
	struct fleet_metric *said = alloc_zero(f->n_metrics, sizeof(*said));
	bool any = false;

	for (size_t i = 0; i < f->n_metrics; i++)
		any = any || f->metrics[i].model.worse == WORSE_MORE ||
			(f->metrics[i].model.worse == WORSE_LESS && !f->metrics[i].was_load);
	for (struct metric *m = f->metrics; m < f->metrics + f->n_metrics; m++) {
		bool work = m->model.worse == WORSE_LOAD || m->was_load;

		if (work && m->model.guessed && !any) {
			m->model.worse = WORSE_LESS;
			m->was_load = true;
		} else if (m->was_load) {
			m->model.worse = WORSE_LOAD;
		}
		v->n_judged += m->model.worse == WORSE_MORE || m->model.worse == WORSE_LESS;
	}
	for (size_t i = 0; i < f->n_metrics; i++)
		said[i] = (struct fleet_metric){.model = &f->metrics[i].model,
			.step_s = f->metrics[i].panel.step_s *
				(double)(1ull << f->metrics[i].panel.shift),
			.samples = f->metrics[i].samples};
	v->r->metrics = said;
	v->r->n_metrics = f->n_metrics;
}

static void note_samples(struct verdicts *v, const struct metric *m)
{
	if (m->model.guessed || m->model.kind_guessed) {
		char *text = metric_describe(&m->model);

		judge_note(v->r, "%s", text);
		free(text);
	}
	if (m->model.zero == ZERO_MISSING && m->zeros)
		judge_note(v->r, "%s: %llu values of 0 are taken as no value", m->model.name,
			(unsigned long long)m->zeros);
	if (m->negatives)
		judge_note(v->r,
			"%s: %llu negative values are left out: levels are compared as ratios",
			m->model.name, (unsigned long long)m->negatives);
	if (m->repeated)
		judge_note(v->r, "%s: %llu samples repeat a time of their series", m->model.name,
			(unsigned long long)m->repeated);
	if (m->late)
		judge_note(v->r, "%s: %llu samples are older than the one before", m->model.name,
			(unsigned long long)m->late);
	if (m->unmatched)
		judge_note(v->r, "%s: %llu values have no counterpart at their time (%s)%s",
			m->model.name, (unsigned long long)m->unmatched,
			m->model.per ? m->model.per : "another bucket",
			m->model.per ? "" : "; sort the input by time");
	if (m->panel.shift)
		judge_note(v->r, "%s: %llu samples share a cell (more memory would separate them)",
			m->model.name, 1ull << m->panel.shift);
}

int fleet_judge(
	struct fleet *f, double from_s, double to_s, struct fleet_result **result, struct err *e)
{
	struct verdicts v = {.f = f};
	char *said;

	if (!f->begun)
		return err_blame(
			e, ERR_SCENARIO, err_set(e, -EINVAL, "there is not one value in it"));
	if (!f->n_metrics)
		return err_blame(e, ERR_SCENARIO,
			err_set(e, -EINVAL, "every metric in it is declared worse=none"));
	level_finish(f);
	v.r = *result = alloc_zero(1, sizeof(**result));
	v.whole = from_s == 0 && to_s == 0;
	v.r->from_s = v.whole ? f->from_s : from_s;
	v.r->to_s = v.whole ? f->to_s : to_s;
	v.weeks = fmax(1, (v.r->to_s - v.r->from_s) / SECONDS_PER_WEEK);
	for (size_t i = 0; i < f->n_members; i++) {
		f->members[i].judged = false;
		f->members[i].severity = f->members[i].effect = 0;
		f->members[i].finding = -1;
	}
	choose_metrics(&v);
	said = layers_choose(f);
	if (said)
		judge_note(v.r, "%s", said);
	free(said);
	for (uint32_t i = 0; i < f->n_metrics; i++) {
		note_samples(&v, &f->metrics[i]);
		if (f->metrics[i].model.worse == WORSE_MORE ||
			f->metrics[i].model.worse == WORSE_LESS)
			judge_metric(&v, i);
	}
	judge_finish(&v);
	return 0;
}

void fleet_result_free(struct fleet_result *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->n_notes; i++)
		free(r->notes[i]);
	free(r->notes);
	free(r->findings);
	free((void *)r->metrics);
	free(r->ranking);
	free(r);
}
