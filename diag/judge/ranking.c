/* Scores a ranking by labels: ROC, precision and recall. */
#include "diag/judge/ranking.h"

#include <gsl/gsl_rng.h>
#include <math.h>
#include <stdlib.h>

#include "diag/judge/score.h"
#include "harness/base/alloc.h"
#include "harness/base/text.h"

/* The scored members, worst first, with their groups of equal severity. */
struct order {
	struct entry {
		double severity;
		bool ill;
	} * v;
	size_t n, ill;
};

static int worst_first(const void *a, const void *b)
{
	double x = ((const struct entry *)a)->severity, y = ((const struct entry *)b)->severity;

	return x < y ? 1 : x > y ? -1 : 0;
}

static struct order sorted(const struct ranked *members, size_t n)
{
	struct order o = {alloc_zero(n, sizeof(*o.v)), 0, 0};

	for (size_t i = 0; i < n; i++) {
		if (members[i].truth == TRUTH_UNKNOWN)
			continue;
		o.v[o.n].severity = members[i].severity;
		o.v[o.n++].ill = members[i].truth == TRUTH_ILL;
		o.ill += members[i].truth == TRUTH_ILL;
	}
	qsort(o.v, o.n, sizeof(*o.v), worst_first);
	return o;
}

/* The end of the members with the same severity as 'i'. */
static size_t step_end(const struct order *o, size_t i)
{
	size_t end = i + 1;

	while (end < o->n && o->v[end].severity == o->v[i].severity)
		end++;
	return end;
}

static struct ranking_point point_at(
	double severity, unsigned tp, unsigned fp, size_t ill, size_t n)
{
	return (struct ranking_point){severity, tp, fp,
		.recall = ill ? (double)tp / (double)ill : NAN,
		.false_alarms = n > ill ? (double)fp / (double)(n - ill) : NAN,
		.precision = tp + fp ? (double)tp / (tp + fp) : 1};
}

/* Are three points on one horizontal or vertical line? On a slope precision is not linear, so
 * points on slopes are kept. */
static bool on_one_line(
	const struct ranking_point *a, const struct ranking_point *b, const struct ranking_point *c)
{
	return (a->tp == b->tp && b->tp == c->tp) || (a->fp == b->fp && b->fp == c->fp);
}

static void add_point(struct ranking_score *s, struct ranking_point p)
{
	if (s->n_points >= 2 &&
		on_one_line(&s->points[s->n_points - 2], &s->points[s->n_points - 1], &p)) {
		s->points[s->n_points - 1] = p;
		return;
	}
	s->points = alloc_room(s->points, s->n_points, sizeof(p));
	s->points[s->n_points++] = p;
}

/* Makes the curve and the area below it: each step of ties adds a trapezium. */
static double curve(struct ranking_score *s, const struct order *o)
{
	unsigned tp = 0, fp = 0;
	double pairs = 0;

	add_point(s, point_at(INFINITY, 0, 0, o->ill, o->n));
	for (size_t i = 0, end; i < o->n; i = end) {
		unsigned ill = 0, healthy;

		end = step_end(o, i);
		for (size_t k = i; k < end; k++)
			ill += o->v[k].ill;
		healthy = (unsigned)(end - i) - ill;
		pairs += (tp + ill / 2.0) * healthy;
		tp += ill;
		fp += healthy;
		add_point(s, point_at(o->v[i].severity, tp, fp, o->ill, o->n));
	}
	return pairs / ((double)o->ill * (double)(o->n - o->ill));
}

/* The bound on one side ('bound' 0 or 1): the area whose own interval just reaches 'value'. */
static double auc_bound(double value, double bound, double ill, double healthy)
{
	const double z = 1.959963984540054, common = (ill + healthy) / 2 - 1;
	double inner = value, outer = bound;

	for (int i = 0; i < 60; i++) {
		double a = (inner + outer) / 2;
		double variance = a * (1 - a) / (ill * healthy) *
			(1 + common * (1 - a) / (2 - a) + common * a / (1 + a));

		if (fabs(value - a) <= z * sqrt(variance))
			inner = a;
		else
			outer = a;
	}
	return (inner + outer) / 2;
}

/* Average precision if the 'i'th scored member counts weight[i] times. */
static double average_precision(const struct order *o, const unsigned *weight)
{
	double tp = 0, seen = 0, sum = 0;

	for (size_t i = 0, end; i < o->n; i = end) {
		double ill = 0;

		end = step_end(o, i);
		for (size_t k = i; k < end; k++) {
			double w = weight ? weight[k] : 1;

			seen += w;
			ill += o->v[k].ill ? w : 0;
		}
		tp += ill;
		sum += ill > 0 ? ill * tp / seen : 0;
	}
	return sum / tp;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void draw(const struct order *o, const size_t *ill, const size_t *healthy, gsl_rng *rng,
	unsigned *weight)
{
	size_t n_healthy = o->n - o->ill;

	for (size_t i = 0; i < o->n; i++)
		weight[i] = 0;
	for (size_t i = 0; i < o->ill; i++)
		weight[ill[gsl_rng_uniform_int(rng, o->ill)]]++;
	for (size_t i = 0; i < n_healthy; i++)
		weight[healthy[gsl_rng_uniform_int(rng, n_healthy)]]++;
}

/* 1,000 samples; fewer for very large fleets: at most 20 million draws, but at least 200
 * samples. */
static void bootstrap(const struct order *o, uint64_t seed, struct ranking_area *a)
{
	size_t n_samples = o->n * 1000 <= 20000000 ? 1000 : 20000000 / o->n, n_ill = 0,
	       n_healthy = 0;
	size_t *ill = alloc_zero(o->ill, sizeof(*ill));
	size_t *healthy = alloc_zero(o->n - o->ill, sizeof(*healthy));
	unsigned *weight = alloc_zero(o->n, sizeof(*weight));
	gsl_rng *rng = gsl_rng_alloc(gsl_rng_mt19937);
	double *samples;

	n_samples = n_samples < 200 ? 200 : n_samples;
	samples = alloc_zero(n_samples, sizeof(*samples));
	gsl_rng_set(rng, (unsigned long)seed);
	for (size_t i = 0; i < o->n; i++) {
		if (o->v[i].ill)
			ill[n_ill++] = i;
		else
			healthy[n_healthy++] = i;
	}
	for (size_t i = 0; i < n_samples; i++) {
		draw(o, ill, healthy, rng, weight);
		samples[i] = average_precision(o, weight);
	}
	qsort(samples, n_samples, sizeof(*samples), ascending);
	a->low = samples[(size_t)(0.025 * (double)(n_samples - 1))];
	a->high = samples[(size_t)ceil(0.975 * (double)(n_samples - 1))];
	gsl_rng_free(rng);
	free(ill);
	free(healthy);
	free(weight);
	free(samples);
}

static struct ranking_rate rate(unsigned hits, unsigned n)
{
	struct ranking_rate r = {hits, n, n ? (double)hits / n : NAN, 0, 1};

	score_interval(hits, n, 0.95, &r.low, &r.high);
	return r;
}

static void ranking_count(struct ranking_score *s, const struct ranked *members, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		bool ill = members[i].truth == TRUTH_ILL, accused = members[i].indicted;

		if (members[i].truth == TRUTH_UNKNOWN) {
			s->unknown++;
			continue;
		}
		s->ill += ill;
		s->healthy += !ill;
		s->tp += ill && accused;
		s->fn += ill && !accused;
		s->fp += !ill && accused;
		s->tn += !ill && !accused;
	}
	s->precision = rate(s->tp, s->tp + s->fp);
	s->recall = rate(s->tp, s->ill);
	s->false_alarms = rate(s->fp, s->healthy);
}

static void areas(struct ranking_score *s, const struct order *o, uint64_t seed)
{
	double area = curve(s, o), unused;

	s->auc = s->average_precision = (struct ranking_area){NAN, NAN, NAN};
	if (!s->ill || !s->healthy)
		return;
	s->auc = (struct ranking_area){area, auc_bound(area, 0, s->ill, s->healthy),
		auc_bound(area, 1, s->ill, s->healthy)};
	s->average_precision.value = average_precision(o, NULL);
	if (!seed)
		return;
	bootstrap(o, seed, &s->average_precision);
	if (area >= 1)
		score_interval(s->ill, s->ill, 0.95, &s->average_precision.low, &unused);
}

struct ranking_score ranking_score(const struct ranked *members, size_t n, uint64_t seed)
{
	struct ranking_score s = {0};
	struct order o = sorted(members, n);

	ranking_count(&s, members, n);
	areas(&s, &o, seed);
	free(o.v);
	return s;
}

void ranking_score_clear(struct ranking_score *s)
{
	free(s->points);
	*s = (struct ranking_score){0};
}

static json_t *ranking_number(double x)
{
	return isfinite(x) ? json_real(x) : json_null();
}

static json_t *interval(double value, double low, double high)
{
	return json_pack("{s:o, s:o, s:o}", "value", ranking_number(value), "low",
		ranking_number(low), "high", ranking_number(high));
}

static json_t *points_json(const struct ranking_score *s)
{
	json_t *list = json_array();

	for (size_t i = 0; i < s->n_points; i++) {
		const struct ranking_point *p = &s->points[i];

		json_array_append_new(list,
			json_pack("{s:o, s:i, s:i, s:o, s:o, s:o}", "severity",
				ranking_number(p->severity), "tp", (int)p->tp, "fp", (int)p->fp,
				"recall", ranking_number(p->recall), "false_alarms",
				ranking_number(p->false_alarms), "precision",
				ranking_number(p->precision)));
	}
	return list;
}

/* Is it a missed (ill and not indicted) or a falsely accused member? */
static bool ranking_wrong(const struct ranked *m, bool missed)
{
	return missed ? m->truth == TRUTH_ILL && !m->indicted
		      : m->truth == TRUTH_HEALTHY && m->indicted;
}

static json_t *names_json(const struct ranked *members, size_t n, bool missed)
{
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++)
		if (ranking_wrong(&members[i], missed))
			json_array_append_new(list, json_string(members[i].path));
	return list;
}

static void put_rate(json_t *to, const char *name, const struct ranking_rate *r)
{
	json_object_set_new(to, name, interval(r->value, r->low, r->high));
}

static void put_area(json_t *to, const char *name, const struct ranking_area *a)
{
	json_object_set_new(to, name, interval(a->value, a->low, a->high));
}

json_t *ranking_score_json(const struct ranking_score *s, const struct ranked *members, size_t n)
{
	json_t *v = json_pack("{s:i, s:i, s:i, s:i, s:i, s:i, s:i}", "ill", (int)s->ill, "healthy",
		(int)s->healthy, "unknown", (int)s->unknown, "tp", (int)s->tp, "fp", (int)s->fp,
		"fn", (int)s->fn, "tn", (int)s->tn);

	put_rate(v, "precision", &s->precision);
	put_rate(v, "recall", &s->recall);
	put_rate(v, "false_alarms", &s->false_alarms);
	put_area(v, "auc", &s->auc);
	put_area(v, "average_precision", &s->average_precision);
	json_object_set_new(v, "intervals",
		json_pack("{s:s, s:s, s:s}", "rates", "Clopper-Pearson", "auc",
			"Newcombe 2006, method 5", "average_precision", "stratified bootstrap"));
	json_object_set_new(v, "points", points_json(s));
	json_object_set_new(v, "missed", names_json(members, n, true));
	json_object_set_new(v, "accused", names_json(members, n, false));
	return v;
}

static void print_rate(FILE *f, const char *name, const struct ranking_rate *r)
{
	if (!r->n)
		fprintf(f, "%-18s      -\n", name);
	else
		fprintf(f, "%-18s  %5.1f %%  (%.1f to %.1f; %u of %u)\n", name, 100 * r->value,
			100 * r->low, 100 * r->high, r->hits, r->n);
}

static void print_area(FILE *f, const char *name, const struct ranking_area *a)
{
	if (isnan(a->value))
		fprintf(f, "%-18s      -\n", name);
	else
		fprintf(f, "%-18s  %7.4f  (%.4f to %.4f)\n", name, a->value, a->low, a->high);
}

static void print_names(FILE *f, const char *what, const struct ranked *members, size_t n,
	bool missed, size_t names)
{
	size_t found = 0;

	for (size_t i = 0; i < n; i++) {
		if (!ranking_wrong(&members[i], missed) || found++ >= names)
			continue;
		fprintf(f, "%s%s", found == 1 ? what : ", ", found == 1 ? ": " : "");
		text_print_clean(f, members[i].path);
	}
	if (found > names && names)
		fprintf(f, " and %zu more", found - names);
	if (found && names)
		fputc('\n', f);
}

void ranking_score_print(FILE *f, const struct ranking_score *s, const struct ranked *members,
	size_t n, size_t names)
{
	fprintf(f, "labels: %u ill, %u healthy", s->ill, s->healthy);
	if (s->unknown)
		fprintf(f, ", %u not labelled", s->unknown);
	fprintf(f, "\nverdicts: TP %u, FP %u, FN %u, TN %u\n", s->tp, s->fp, s->fn, s->tn);
	print_rate(f, "precision", &s->precision);
	print_rate(f, "recall", &s->recall);
	print_rate(f, "false alarms", &s->false_alarms);
	print_area(f, "area under ROC", &s->auc);
	print_area(f, "average precision", &s->average_precision);
	print_names(f, "missed", members, n, true, names);
	print_names(f, "accused", members, n, false, names);
}
