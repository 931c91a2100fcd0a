#include "ci/bench/fleet_rivals.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_multifit.h>
#include <gsl/gsl_math.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The k-th smallest; changes the order (Hoare's selection). */
static float nth(float *v, long n, long k)
{
	long low = 0, high = n - 1;

	while (low < high) {
		float pivot = v[(low + high) / 2];
		long i = low, j = high;

		while (i <= j) {
			while (v[i] < pivot)
				i++;
			while (v[j] > pivot)
				j--;
			if (i <= j) {
				float swap = v[i];

				v[i++] = v[j];
				v[j--] = swap;
			}
		}
		if (k <= j)
			high = j;
		else if (k >= i)
			low = i;
		else
			break;
	}
	return v[k];
}

/* The upper one of two; NAN of none. Changes the order. */
static double median_of(float *v, unsigned n)
{
	return n ? (double)nth(v, n, n / 2) : NAN;
}

/* Of values that may be NAN; uses 'scratch' of n. */
static double median_seen(const float *v, unsigned n, size_t stride, float *scratch)
{
	unsigned seen = 0;

	for (unsigned i = 0; i < n; i++)
		if (!isnan(v[i * stride]))
			scratch[seen++] = v[i * stride];
	return median_of(scratch, seen);
}

void rival_medians(struct rival_table *t)
{
	float *scratch = alloc_zero(t->n_steps, sizeof(*scratch));

	t->median = alloc_zero(t->n_members, sizeof(*t->median));
	for (unsigned i = 0; i < t->n_members; i++)
		t->median[i] = median_seen(
			t->level + (size_t)i * t->n_steps, t->n_steps, 1, scratch);
	free(scratch);
}

/* For each group, the median of x over its members, into 'of_group'. */
static void group_medians(const struct rival_table *t, const double *x, double *of_group)
{
	float *scratch = alloc_zero(t->n_members, sizeof(*scratch));

	for (unsigned g = 0; g < t->n_groups; g++) {
		unsigned n = 0;

		for (unsigned i = 0; i < t->n_members; i++)
			if (t->group[i] == g && !isnan(x[i]))
				scratch[n++] = (float)x[i];
		of_group[g] = median_of(scratch, n);
	}
	free(scratch);
}

/* A member's median over the median of its group's. */
static void ratio(const struct rival_table *t, double *score)
{
	double *of_group = alloc_zero(t->n_groups, sizeof(*of_group));

	group_medians(t, t->median, of_group);
	for (unsigned i = 0; i < t->n_members; i++)
		score[i] = t->median[i] / of_group[t->group[i]];
	free(of_group);
}

/* Iglewicz and Hoaglin 1993: 0.6745 (x - median) / MAD, of the members' medians in their group. */
static void mad_z(const struct rival_table *t, double *score)
{
	double *centre = alloc_zero(t->n_groups, sizeof(*centre));
	double *spread = alloc_zero(t->n_groups, sizeof(*spread));

	group_medians(t, t->median, centre);
	for (unsigned i = 0; i < t->n_members; i++)
		score[i] = fabs(t->median[i] - centre[t->group[i]]);
	group_medians(t, score, spread);
	for (unsigned i = 0; i < t->n_members; i++) {
		double d = t->median[i] - centre[t->group[i]];

		score[i] = d == 0 ? 0 : 0.6745 * d / spread[t->group[i]];
	}
	free(centre);
	free(spread);
}

static void log_ratio(const struct rival_table *t, double *score)
{
	ratio(t, score);
	for (unsigned i = 0; i < t->n_members; i++)
		score[i] = log(score[i]);
}

/* Median and MAD / 0.6745 of x, without NAN and infinite ones; the number of them. */
static unsigned robust(const double *x, unsigned n, float *scratch, double *centre, double *spread)
{
	unsigned seen = 0;

	for (unsigned i = 0; i < n; i++)
		if (isfinite(x[i]))
			scratch[seen++] = (float)x[i];
	*centre = median_of(scratch, seen);
	for (unsigned i = 0; i < seen; i++)
		scratch[i] = fabsf(scratch[i] - (float)*centre);
	*spread = median_of(scratch, seen) / 0.6745;
	return seen;
}

/* The same z, of the log ratios to the group, with one scale for the whole fleet. */
static void fleet_z(const struct rival_table *t, double *score)
{
	float *scratch = alloc_zero(t->n_members, sizeof(*scratch));
	double centre, spread;

	log_ratio(t, score);
	robust(score, t->n_members, scratch, &centre, &spread);
	for (unsigned i = 0; i < t->n_members; i++)
		score[i] = (score[i] - centre) / spread;
	free(scratch);
}

struct place {
	double x;
	unsigned member;
};

static int larger_first(const void *a, const void *b)
{
	return -ascending(&((const struct place *)a)->x, &((const struct place *)b)->x);
}

/* The largest deviation that Rosner's test allows where n are left, at level 0.05. */
static double esd_allowed(unsigned n)
{
	double t = gsl_cdf_tdist_Pinv(1 - 0.05 / (2.0 * n), n - 2.0);

	return (n - 1) * t / sqrt((n - 2 + t * t) * n);
}

/* Hybrid generalised ESD (Rosner 1983 with median and MAD, as in S-H-ESD, Hochenbaum et al. 2017)
 * over the members' log ratios; at most a third. The score is the deviation over what was allowed
 * at its turn; only the largest values, not the smallest, are outliers here. */
static void esd(const struct rival_table *t, double *score)
{
	struct place *order = alloc_zero(t->n_members, sizeof(*order));
	float *scratch = alloc_zero(t->n_members, sizeof(*scratch));
	double *x = alloc_zero(t->n_members, sizeof(*x)), centre = 0, spread = 1, least = 0;
	unsigned n = 0, most;

	log_ratio(t, score);
	for (unsigned i = 0; i < t->n_members; i++)
		if (isfinite(score[i]))
			order[n++] = (struct place){score[i], i};
	qsort(order, n, sizeof(*order), larger_first);
	for (unsigned i = 0; i < n; i++)
		x[i] = order[i].x;
	most = n / 3 < 100 ? n / 3 : 100;
	for (unsigned i = 0; i < n; i++) {
		if (i <= most && n - i > 2) /* the rest keeps the last scale */
			robust(x + i, n - i, scratch, &centre, &spread);
		score[order[i].member] = (x[i] - centre) / spread /
			esd_allowed(n - (i < most ? i : most));
	}
	/* All before the last significant one are outliers as well. */
	for (unsigned i = n; i-- > 0;) {
		double *s = &score[order[i].member];

		*s = i >= most && *s > 1 ? 1 : *s;
		*s = fmax(*s, least);
		least = *s;
	}
	free(order);
	free(scratch);
	free(x);
}

enum { WINDOW = 10 }; /* peer-threshold's, in samples */

/* Medians of the last WINDOW samples, where half of them are there. */
static void smooth(const float *v, unsigned n, float *out)
{
	for (unsigned i = 0; i < n; i++) {
		float sorted[WINDOW];
		unsigned seen = 0;

		for (unsigned k = i < WINDOW ? 0 : i - WINDOW + 1; k <= i; k++) {
			unsigned at = seen;

			if (isnan(v[k]))
				continue;
			for (; at && sorted[at - 1] > v[k]; at--)
				sorted[at] = sorted[at - 1];
			sorted[at] = v[k];
			seen++;
		}
		out[i] = seen < WINDOW / 2 ? NAN : (sorted[seen / 2] + sorted[(seen - 1) / 2]) / 2;
	}
}

/* One group: rows 'of' members. */
struct peers {
	const struct rival_table *t;
	unsigned *member, n;
	float *smooth;  /* n rows */
	float *typical; /* the representative */
	bool *saturated;
};

static void representative(struct peers *p, float *column)
{
	unsigned least = p->n / 2 + 1 > 3 ? p->n / 2 + 1 : 3;

	for (unsigned i = 0; i < p->t->n_steps; i++) {
		unsigned n = 0;

		for (unsigned k = 0; k < p->n; k++) {
			float v = p->smooth[(size_t)k * p->t->n_steps + i];

			if (!p->saturated[k] && !isnan(v))
				column[n++] = v;
		}
		p->typical[i] = n < least ? NAN : (float)median_of(column, n);
	}
}

/* The largest distance from the representative in [from, to). */
static float farthest(const struct peers *p, unsigned k, unsigned from, unsigned to)
{
	const float *v = p->smooth + (size_t)k * p->t->n_steps;
	float most = -INFINITY;

	for (unsigned i = from; i < to; i++)
		most = v[i] - p->typical[i] > most ? v[i] - p->typical[i] : most;
	return most;
}

static void mark_saturated(struct peers *p, unsigned trained, float *scratch)
{
	unsigned n = 0, most = p->n - (p->n / 2 + 1 > 3 ? p->n / 2 + 1 : 3);

	for (unsigned k = 0; k < p->n; k++) {
		const float *v = p->smooth + (size_t)k * p->t->n_steps;

		for (unsigned i = 0; i < trained; i++)
			scratch[i] = v[i] / p->typical[i];
		if (n < most && median_seen(scratch, trained, 1, scratch) > 1.5) {
			p->saturated[k] = true;
			n++;
		}
	}
}

static void judge_peers(struct peers *p, double *score)
{
	unsigned trained = p->t->n_steps / 4, longest = p->n > p->t->n_steps ? p->n : p->t->n_steps;
	float *scratch = alloc_zero(longest, sizeof(*scratch)), common = 0;

	for (unsigned k = 0; k < p->n; k++)
		smooth(p->t->level + (size_t)p->member[k] * p->t->n_steps, p->t->n_steps,
			p->smooth + (size_t)k * p->t->n_steps);
	representative(p, scratch);
	mark_saturated(p, trained, scratch);
	representative(p, scratch);
	for (unsigned k = 0; k < p->n; k++)
		if (!p->saturated[k])
			common = fmaxf(common, farthest(p, k, 0, trained));
	for (unsigned k = 0; k < p->n; k++) {
		float limit = 3 * fmaxf(common, farthest(p, k, 0, trained));

		score[p->member[k]] = limit > 0
			? (double)(farthest(p, k, trained, p->t->n_steps) / limit)
			: 0;
	}
	free(scratch);
}

/* The rule of diag/detectors/peer-threshold.lua (Kasick et al. 2009, section 6), restated for
 * series: it is trained on the first quarter of the recording, of which nobody knows whether it is
 * free of faults. Seconds are samples. */
static void peer_threshold(const struct rival_table *t, double *score)
{
	struct peers p = {.t = t,
		.member = alloc_zero(t->n_members, sizeof(unsigned)),
		.typical = alloc_zero(t->n_steps, sizeof(float))};

	for (unsigned g = 0; g < t->n_groups; g++) {
		p.n = 0;
		for (unsigned i = 0; i < t->n_members; i++)
			if (t->group[i] == g)
				p.member[p.n++] = i;
		if (p.n < 3)
			continue;
		p.smooth = alloc_zero((size_t)p.n * t->n_steps, sizeof(float));
		p.saturated = alloc_zero(p.n, sizeof(bool));
		judge_peers(&p, score);
		free(p.smooth);
		free(p.saturated);
	}
	free(p.member);
	free(p.typical);
}

enum { FIT = 400, TERMS = 3 };

struct fit {
	double c[TERMS], sigma;
	bool ok;
};

/* Least squares over the points that are not 'out'; too few of them leave 'f' as it is. */
static void solve(struct fit *f, const double *x, const double *y, const bool *out, unsigned n,
	unsigned terms)
{
	unsigned used = 0, row = 0;
	gsl_matrix *a, *covariance;
	gsl_vector *b, *c;
	gsl_multifit_linear_workspace *w;
	double squares;

	for (unsigned i = 0; i < n; i++)
		used += !out[i];
	if (used < terms + 3)
		return;
	covariance = gsl_matrix_alloc(terms, terms);
	c = gsl_vector_alloc(terms);
	a = gsl_matrix_alloc(used, terms);
	b = gsl_vector_alloc(used);
	w = gsl_multifit_linear_alloc(used, terms);
	for (unsigned i = 0; i < n; i++) {
		if (out[i])
			continue;
		for (unsigned k = 0; k < terms; k++)
			gsl_matrix_set(a, row, k, gsl_pow_int(x[i], (int)k));
		gsl_vector_set(b, row++, y[i]);
	}
	gsl_multifit_linear(a, b, c, covariance, &squares, w);
	for (unsigned k = 0; k < terms; k++)
		f->c[k] = gsl_vector_get(c, k);
	f->sigma = sqrt(squares / (used - terms));
	gsl_matrix_free(a);
	gsl_matrix_free(covariance);
	gsl_vector_free(b);
	gsl_vector_free(c);
	gsl_multifit_linear_free(w);
}

/* A fit without outliers: what is farther than three standard deviations from the first fit is left
 * out of the second; at first, what is ten scaled MADs from the median. */
static struct fit regress(const double *x, const double *y, unsigned n, unsigned terms)
{
	struct fit f = {.ok = n >= 4 * terms + 4};
	bool *out = alloc_zero(n, sizeof(bool));
	float *scratch = alloc_zero(n, sizeof(float));
	double middle, spread;

	robust(y, n, scratch, &middle, &spread);
	for (unsigned i = 0; i < n; i++)
		out[i] = fabs(y[i] - middle) > 10 * spread;
	if (f.ok)
		solve(&f, x, y, out, n, terms);
	for (unsigned i = 0; i < n; i++)
		out[i] = fabs(y[i] - f.c[0] - f.c[1] * x[i] - f.c[2] * x[i] * x[i]) > 3 * f.sigma;
	if (f.ok && f.sigma > 0)
		solve(&f, x, y, out, n, terms);
	free(out);
	free(scratch);
	return f;
}

/* Over FIT points at most, evenly taken from the group's samples. */
static struct fit fit_group(const struct rival_table *t, unsigned group)
{
	double x[FIT] = {0}, y[FIT] = {0};
	unsigned members = 0, n = 0;
	uint64_t stride, at = 0;

	for (unsigned i = 0; i < t->n_members; i++)
		members += t->group[i] == group;
	stride = (uint64_t)members * t->n_steps / FIT + 1;
	for (unsigned i = 0; i < t->n_members; i++)
		for (unsigned k = 0; t->group[i] == group && k < t->n_steps && n < FIT; k++) {
			size_t place = (size_t)i * t->n_steps + k;

			if (at++ % stride || isnan(t->level[place]))
				continue;
			x[n] = t->throughput ? (double)t->throughput[place] : 0;
			y[n++] = (double)t->level[place];
		}
	return regress(x, y, n, t->throughput ? TERMS : 1);
}

/* Weight of a slow window by its slowdown ratio. */
static double risk(double slowdown)
{
	return slowdown < 1 ? 0 : slowdown < 2 ? 1 : slowdown < 5 ? 4 : 16;
}

/* After Lu et al. 2023: each host has one regression of latency on throughput, over all of its
 * disks without outliers; its 99.9 % upper prediction bound is what a healthy disk may have. A
 * disk's slowdown is latency over bound. Windows of 5 samples are slow if the median slowdown is
 * above 1; slow windows add to a risk score by how slow they are, per 100 windows here. The paper
 * removes outliers by DBSCAN after a principal component analysis, here residuals do. Weights and
 * limit are ours: 25 is reached by a disk that is slow for a quarter of the time. */
static void perseus(const struct rival_table *t, double *score)
{
	enum { SPAN = 5 };
	struct fit *fits = alloc_zero(t->n_groups, sizeof(*fits));

	for (unsigned g = 0; g < t->n_groups; g++)
		fits[g] = fit_group(t, g);
	for (unsigned i = 0; i < t->n_members; i++) {
		const struct fit *f = &fits[t->group[i]];
		size_t row = (size_t)i * t->n_steps;
		unsigned windows = 0;
		double sum = 0, middle = 0;

		for (unsigned k = 0; f->ok && k + SPAN <= t->n_steps; k += SPAN) {
			float slow[SPAN];
			unsigned seen = 0;

			for (unsigned j = k; j < k + SPAN; j++) {
				double x = t->throughput ? (double)t->throughput[row + j] : 0;
				double bound = f->c[0] + f->c[1] * x + f->c[2] * x * x +
					3.09 * f->sigma;

				if (!isnan(t->level[row + j]))
					slow[seen++] = t->level[row + j] /
						(float)fmax(bound, f->sigma);
			}
			if (seen < SPAN / 2 + 1)
				continue;
			middle = median_of(slow, seen);
			sum += risk(middle) + 1e-3 * middle; /* the second orders ties */
			windows++;
		}
		score[i] = windows ? 100 * sum / windows : 0;
	}
	free(fits);
}

const struct rival rivals[] = {
	{"ratio-1.5", "median over the group's median of medians above 1.5", 1.5, true, ratio},
	{"ratio-2", "the same above 2", 2, true, ratio},
	{"mad-z", "z of medians in the group, by MAD, above 3.5 (Iglewicz and Hoaglin 1993)", 3.5,
		true, mad_z},
	{"fleet-z", "z of log ratios to the group, MAD of the whole fleet, above 3.5", 3.5, true,
		fleet_z},
	{"h-esd",
		"hybrid generalised ESD of the same, at 5 % (Rosner 1983; Hochenbaum et al. 2017)",
		1, true, esd},
	{"peer-threshold", "3 times the largest deviation in training (Kasick et al. 2009)", 1,
		false, peer_threshold},
	{"perseus-like", "regression on throughput, 99.9 % bound, risk score (Lu et al. 2023)", 25,
		false, perseus},
	{NULL, NULL, 0, false, NULL},
};
