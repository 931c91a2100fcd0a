#include "ci/bench/fleet_trial.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ci/bench/fleet_rivals.h"
#include "diag/fleet/fleet.h"
#include "diag/judge/ranking.h"
#include "harness/base/alloc.h"

static unsigned left_out; /* of the detector "fleet" */

static double cpu_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

unsigned trial_whole(void)
{
	unsigned n = 1;

	for (const struct rival *r = rivals; r->name; r++)
		n++;
	return n;
}

const char *const *trial_detectors(void)
{
	static const char *names[TRIAL_DETECTORS_MAX + 1] = {"fleet"};
	static char without[FLEET_PARTS][32];
	unsigned n = 1;

	for (const struct rival *r = rivals; r->name; r++)
		names[n++] = r->name;
	for (unsigned i = 0; i < FLEET_PARTS; i++) {
		snprintf(without[i], sizeof(without[i]), "without %s", fleet_part_names[i]);
		names[n++] = without[i];
	}
	return names;
}

void trial_leave_out(unsigned parts)
{
	left_out = parts;
}

/* Peers of each member: its narrowest group, or a wider one if that has fewer than three. Returns
 * how many groups there are. */
static unsigned peer_groups(const struct maker *m, unsigned *group)
{
	unsigned *count, n = m->n_groups * 2;

	for (unsigned i = 0; i < m->n_members; i++)
		group[i] = m->members[i].group * 2 +
			(m->family->model_known ? m->members[i].second_model : 0);
	count = alloc_zero(n, sizeof(*count));
	for (unsigned i = 0; i < m->n_members; i++)
		count[group[i]]++;
	for (unsigned i = 0; i < m->n_members; i++)
		if (count[group[i]] < 3)
			group[i] = n + m->members[i].second_model;
	free(count);
	return n + 2;
}

/* The whole fleet in memory, as rivals take it. */
struct world {
	struct maker *m;
	float *values[MAKER_METRICS_MAX];
	struct rival_table table;
	double medians_s; /* processor time of rival_medians */
	struct ranked *ranked;
	const struct fleet_member **judged; /* of each member, what the fleet detector says */
};

/* An ill member of which no sample was recorded while it was ill is neither ill nor healthy. */
static enum truth truth_of(const struct maker *m, unsigned member, const float *v, uint8_t *ill)
{
	if (!m->members[member].ill)
		return TRUTH_HEALTHY;
	maker_ill_steps(m, member, ill);
	for (unsigned i = 0; i < m->n_steps; i++)
		if (ill[i] && !isnan(v[i]))
			return TRUTH_ILL;
	return TRUTH_UNKNOWN;
}

static void world_make(struct world *w, const struct maker_spec *spec)
{
	unsigned *group;
	uint8_t *ill;
	size_t cells;

	*w = (struct world){.m = maker_new(spec)};
	cells = (size_t)w->m->n_members * w->m->n_steps;
	for (unsigned k = 0; k < w->m->n_metrics; k++)
		w->values[k] = alloc_zero(cells, sizeof(float));
	w->ranked = alloc_zero(w->m->n_members, sizeof(*w->ranked));
	w->judged = alloc_zero(w->m->n_members, sizeof(*w->judged));
	ill = alloc_zero(w->m->n_steps, 1);
	for (unsigned i = 0; i < w->m->n_members; i++) {
		float *row[MAKER_METRICS_MAX] = {0};

		for (unsigned k = 0; k < w->m->n_metrics; k++)
			row[k] = w->values[k] + (size_t)i * w->m->n_steps;
		maker_series(w->m, i, row);
		w->ranked[i].path = w->m->members[i].name;
		w->ranked[i].truth = truth_of(w->m, i, row[0], ill);
	}
	free(ill);
	group = alloc_zero(w->m->n_members, sizeof(*group));
	w->table = (struct rival_table){.n_members = w->m->n_members,
		.n_steps = w->m->n_steps,
		.n_groups = peer_groups(w->m, group),
		.group = group,
		.level = w->values[0],
		.throughput = w->values[1],
		.step_s = spec->step_s};
}

/* Rivals are told that less is worse, and that a zero says nothing. */
static void world_turn(struct world *w)
{
	for (size_t i = 0; i < (size_t)w->m->n_members * w->m->n_steps; i++)
		if (w->m->family->less)
			w->values[0][i] = 1 / w->values[0][i];
		else if (w->m->family->zeros > 0 && w->values[0][i] <= 0)
			w->values[0][i] = NAN;
	w->medians_s = -cpu_s();
	rival_medians(&w->table);
	w->medians_s += cpu_s();
}

static void world_clear(struct world *w)
{
	for (unsigned k = 0; k < MAKER_METRICS_MAX; k++)
		free(w->values[k]);
	free((void *)w->table.group);
	free(w->table.median);
	free(w->ranked);
	free(w->judged);
	maker_free(w->m);
}

/* Counts the verdicts in w->ranked. */
static void count(const struct world *w, struct tally *t)
{
	double weeks = fmax(1, w->m->spec.duration_s / (7 * 86400));
	struct ranking_score s = ranking_score(w->ranked, w->m->n_members, 0);

	t->ill += s.ill;
	t->tp += s.tp;
	t->ill_one += w->m->spec.who == WHO_ONE ? s.ill : 0;
	t->tp_one += w->m->spec.who == WHO_ONE ? s.tp : 0;
	t->fp += s.fp;
	t->alarmed += s.fp > 0;
	t->fp_squares += (double)s.fp * (double)s.fp;
	t->weeks += s.healthy * weeks;
	t->samples += (double)w->m->n_members * w->m->n_steps * w->m->n_metrics;
	if (s.ill && s.healthy) {
		t->curves++;
		t->auc += s.auc.value;
		t->ap += s.average_precision.value;
	}
	ranking_score_clear(&s);
}

static void run_rival(const struct rival *r, struct world *w, struct tally *t)
{
	double *score = alloc_zero(w->m->n_members, sizeof(*score)), start = cpu_s();

	r->score(&w->table, score);
	t->seconds += cpu_s() - start + (r->medians ? w->medians_s : 0);
	for (unsigned i = 0; i < w->m->n_members; i++) {
		double s = score[i];

		w->ranked[i].severity = isnan(s) ? 0 : fmax(-1e300, fmin(s, 1e300));
		w->ranked[i].indicted = s > r->limit;
	}
	count(w, t);
	free(score);
}

static void give(const struct world *w, const struct import_sink *sink)
{
	struct err e = {0};
	int rc = 0;

	for (unsigned k = 0; k < w->m->n_metrics && sink->metric; k++)
		rc |= sink->metric(sink->ctx, maker_declaration(w->m, k), &e);
	for (unsigned i = 0; i < w->m->n_members && !rc; i++)
		for (unsigned k = 0; k < w->m->n_metrics && !rc; k++) {
			struct series_key key = {
				.metric = maker_metric(w->m, k), .member = w->m->members[i].name};
			const float *v = w->values[k] + (size_t)i * w->m->n_steps;
			uint32_t id;

			key.n_groups = maker_groups(w->m, i, key.group);
			rc = sink->series(sink->ctx, &key, &id, &e);
			for (unsigned j = 0; j < w->m->n_steps && !rc; j++)
				if (!isnan(v[j]))
					rc = sink->sample(sink->ctx, id, maker_time(w->m, i, j),
						(double)v[j], &e);
		}
	if (rc) {
		fprintf(stderr, "fleet: %s\n", e.text);
		exit(3);
	}
}

/* Is the group of this path ("h003", "m1/h003") off? */
static bool is_off(const struct maker *m, const char *path)
{
	const char *host = strrchr(path, '/');
	unsigned g;

	return sscanf(host ? host + 1 : path, "h%u", &g) == 1 && g < m->n_groups &&
		m->groups[g].off != 1;
}

static void count_groups(const struct maker *m, const struct fleet_result *r, struct tally *t)
{
	for (unsigned g = 0; g < m->n_groups; g++)
		t->off += m->groups[g].off != 1;
	for (size_t i = 0; i < r->n_findings; i++) {
		if (r->findings[i].kind != FINDING_GROUP)
			continue;
		if (is_off(m, r->groups[r->findings[i].member].path))
			t->off_found++;
		else
			t->off_wrong++;
	}
}

/* Members of a class finding are above the limit, and are not accused. */
static void count_class(const struct world *w, struct tally *t)
{
	for (unsigned i = 0; i < w->m->n_members; i++) {
		if (w->ranked[i].severity < 1 || w->ranked[i].indicted)
			continue;
		t->class_ill += w->ranked[i].truth == TRUTH_ILL;
		t->class_healthy += w->ranked[i].truth == TRUTH_HEALTHY;
	}
}

/* Members are accused by findings on themselves, not by those on groups or classes. */
static void take_verdicts(struct world *w, const struct fleet_result *r)
{
	char path[128];

	for (unsigned i = 0; i < w->m->n_members; i++) {
		const char *group[MAKER_LEVELS_MAX];
		unsigned n = maker_groups(w->m, i, group);
		const struct fleet_member *x = i < r->n_members ? &r->members[i] : NULL;

		snprintf(path, sizeof(path), "%s%s%s/%s", group[0], n > 1 ? "/" : "",
			n > 1 ? group[1] : "", w->m->members[i].name);
		for (size_t k = 0; (!x || strcmp(x->path, path)) && k < r->n_members; k++)
			x = &r->members[k];
		w->judged[i] = x;
		w->ranked[i].severity = x && isfinite(x->severity) ? x->severity : 0;
		w->ranked[i].indicted = false;
		for (size_t k = 0; x && k < r->n_findings; k++)
			if (r->findings[k].kind <= FINDING_BURSTS &&
				&r->members[r->findings[k].member] == x)
				w->ranked[i].indicted = true;
	}
}

static struct fleet *new_fleet(unsigned without)
{
	struct fleet_options o = fleet_defaults;

	o.without = without;
	return fleet_new(&o);
}

static void run_fleet(struct world *w, unsigned without, struct tally *t)
{
	struct fleet *f = new_fleet(without);
	struct import_sink sink = fleet_sink(f);
	struct fleet_result *r = NULL;
	struct err e = {0};
	double start = cpu_s();

	give(w, &sink);
	if (fleet_judge(f, 0, 0, &r, &e)) {
		fprintf(stderr, "fleet: %s: %s\n", w->m->family->name, e.text);
		for (unsigned i = 0; i < w->m->n_members; i++)
			w->ranked[i].severity = 0, w->ranked[i].indicted = false;
	} else {
		take_verdicts(w, r);
		count_groups(w->m, r, t);
		count_class(w, t);
	}
	t->seconds += cpu_s() - start;
	count(w, t);
	fleet_result_free(r);
	fleet_free(f);
}

static void print_finding(
	FILE *f, const struct world *w, const struct fleet_result *r, const struct fleet_finding *x)
{
	bool group = x->kind == FINDING_GROUP;
	const char *path = group ? r->groups[x->member].path : r->members[x->member].path;
	const char *truth = group && is_off(w->m, path) ? "right" : "WRONG";

	for (unsigned i = 0; i < w->m->n_members && !group; i++)
		if (&r->members[x->member] == w->judged[i])
			truth = w->ranked[i].truth == TRUTH_HEALTHY ? "WRONG" : "right";
	fprintf(f, "  %s %s %s: severity %.2f, effect %.2f, share %.3f of all, %u members\n", truth,
		finding_kind_names[x->kind], path, x->severity, x->effect, x->share_of_all,
		x->kind == FINDING_CLASS ? x->count : 1);
}

static void print_missed(FILE *f, const struct world *w)
{
	for (unsigned i = 0; i < w->m->n_members; i++) {
		const struct maker_member *x = &w->m->members[i];
		unsigned ill = 0, n = w->m->groups[x->group].n;

		for (unsigned k = 0; k < n; k++)
			ill += w->m->members[w->m->groups[x->group].first + k].ill;
		if (w->ranked[i].truth == TRUTH_ILL && !w->ranked[i].indicted)
			fprintf(f, "  missed %s/%s: severity %.2f, %s, %u of %u ill, level %.3f\n",
				x->host, x->name, w->ranked[i].severity,
				w->judged[i] && w->judged[i]->judged ? "judged" : "not judged", ill,
				n, exp(x->level));
	}
}

void trial_look(FILE *f, const struct maker_spec *spec)
{
	struct fleet *fleet = new_fleet(left_out);
	struct import_sink sink = fleet_sink(fleet);
	struct fleet_result *r = NULL;
	struct err e = {0};
	struct world w;

	world_make(&w, spec);
	fprintf(f, "%s: %u members in %u groups, %u steps of %g s, dispersion %.3f, %s, %s\n",
		w.m->family->name, w.m->n_members, w.m->n_groups, w.m->n_steps, spec->step_s,
		w.m->dispersion, spec->who == WHO_ONE ? "one" : "a third",
		spec->when == WHEN_EPISODE ? "an episode" : "short ones");
	give(&w, &sink);
	if (fleet_judge(fleet, 0, 0, &r, &e)) {
		fprintf(f, "  %s\n", e.text);
	} else {
		take_verdicts(&w, r);
		for (size_t i = 0; i < r->n_findings; i++)
			print_finding(f, &w, r, &r->findings[i]);
		print_missed(f, &w);
	}
	fleet_result_free(r);
	fleet_free(fleet);
	world_clear(&w);
}

void trial_run(const struct maker_spec *spec, unsigned which, struct tally *tallies)
{
	unsigned whole = trial_whole();
	struct world w;

	world_make(&w, spec);
	if (which & 1)
		run_fleet(&w, left_out, &tallies[0]);
	for (unsigned i = 0; i < FLEET_PARTS; i++)
		if (which >> (whole + i) & 1)
			run_fleet(&w, 1u << i, &tallies[whole + i]);
	if (which & ((1u << whole) - 2)) {
		world_turn(&w);
		for (unsigned i = 0; rivals[i].name; i++)
			if (which >> (i + 1) & 1)
				run_rival(&rivals[i], &w, &tallies[i + 1]);
	}
	world_clear(&w);
}
