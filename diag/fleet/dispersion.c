/*
 * How far healthy rows differ from one another, and so which differences are too large.
 *
 * For each statistic, rows are compared across the fleet, because a set of peers is too few for
 * a scale. Two things are learnt from the fleet: the typical scale of a set, and how much sets
 * differ in it. A Student t distribution with scale s0 and n degrees of freedom is just what
 * normal deviations have whose variance differs from set to set as n s0^2 / chi^2(n) (Smyth
 * 2004, there for genes); so one fit gives both, and a set's own scale is weighed against the
 * fleet's accordingly.
 *
 * The fit uses the rows on the harmless side of their peers: what is ill lies on the other side
 * and cannot make the scale larger. The other side is consulted only up to its lowest quarter.
 */
#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diag/fleet/judge_impl.h"
#include "harness/base/alloc.h"
#include "harness/base/stat.h"

/* What is assumed before any row was seen, worth PRIOR_ROWS rows: machines of one kind differ
 * lastingly by a tenth. It matters where there are few of them. */
enum { PRIOR_ROWS = 4, ROWS_FEW = 20, ROWS_MANY = 4096 };
#define TRIM 0.02
#define PRIOR_SCALE 0.0953 /* log(1.1) */
#define PRIOR_RARE 0.693   /* log(2): where most samples are 0, one event more or less */
#define EXCEEDING_ANY 8.0
#define FREEDOM_LEAST 4.0
#define PRIOR_FREEDOM 8.0     /* tails of what is measured are heavier than normal ... */
#define PRIOR_FREEDOM_LOG 0.7 /* ... by this standard deviation of log(freedom) */
#define EXCEEDING_FEW                                                                              \
	64.0              /* a quantile with fewer windows above it is distributed like a maximum */
#define NOISE_SCALE 0.25  /* of a noise level, relative, between machines of one kind */
#define SCALE_LEAST 0.005 /* finer differences are of no interest, and values have few digits */
#define NORMAL 1000.0
#define SUSPECT 0.7 /* excess from which on a row says nothing about healthy ones */

static const double freedoms[] = {2, 2.5, 3, 4, 5, 6, 8, 12, 20, 40};

struct fit {
	double scale, freedom;
};

/* Magnitudes for a fit: their squares, and how many have each. */
struct squares {
	double *v, *weight;
	size_t n;
	double all; /* the sum of the weights */
};

/* From sorted magnitudes, which are many in a large fleet: those that differ by a hundredth at
 * most are taken together, with the mean of their squares. */
static struct squares squares_of(const double *y, size_t n)
{
	struct squares q = {.v = alloc_zero(n, sizeof(double)),
		.weight = alloc_zero(n, sizeof(double)),
		.all = (double)n};

	for (size_t k = 0, first = 0; k < n; k++) {
		if (!k || n <= ROWS_MANY || y[k] > 1.01 * y[first]) {
			first = k;
			q.n++;
		}
		q.v[q.n - 1] += y[k] * y[k];
		q.weight[q.n - 1]++;
	}
	for (size_t k = 0; k < q.n; k++)
		q.v[k] /= q.weight[k];
	return q;
}

/* Maximum likelihood of a t distribution's scale, with prior rows; by expectation and
 * maximisation. Returns the log likelihood. */
static double fit_scale(const struct squares *q, double freedom, double prior, double *scale)
{
	double s2 = prior * prior, sum, like;

	for (int i = 0; i < 15; i++) {
		sum = PRIOR_ROWS * prior * prior;
		for (size_t k = 0; k < q->n; k++)
			sum += q->weight[k] * q->v[k] * (freedom + 1) / (freedom + q->v[k] / s2);
		s2 = fmax(sum / (PRIOR_ROWS + q->all), SCALE_LEAST * SCALE_LEAST);
	}
	*scale = sqrt(s2);
	like = q->all * (lgamma((freedom + 1) / 2) - lgamma(freedom / 2) - log(freedom * s2) / 2);
	for (size_t k = 0; k < q->n; k++)
		like -= q->weight[k] * (freedom + 1) / 2 * log1p(q->v[k] / (freedom * s2));
	return like;
}

/* Of sorted magnitudes. */
static struct fit fit_tails(const double *y, size_t n, double prior)
{
	struct fit best = {prior, PRIOR_FREEDOM};
	struct squares q = squares_of(y, n);
	double most = -INFINITY;

	for (size_t i = 0; i < sizeof(freedoms) / sizeof(*freedoms); i++) {
		double scale, off = log(freedoms[i] / PRIOR_FREEDOM) / PRIOR_FREEDOM_LOG;
		double like = fit_scale(&q, freedoms[i], prior, &scale) - off * off / 2;

		if (like > most) {
			most = like;
			best = (struct fit){scale, freedoms[i]};
		}
	}
	free(q.v);
	free(q.weight);
	return best;
}

/* What is known of one statistic. */
struct column {
	const struct survey *s;
	unsigned k;
	double *y;     /* by row: over its set's median; NAN */
	bool *healthy; /* by row */
	double *scale; /* by row */
	double *work;  /* room for all rows */
	struct fit fit;
};

/* The value of a row that is compared: of a shorter effect, how far it exceeds what the row
 * itself has otherwise, so that members need not be alike for a change to show. */
static double dispersion_value_of(const struct survey *s, size_t row, unsigned k)
{
	size_t at = row * s->n_stats + k;
	double own = k && survey_with(s, FLEET_OWN) ? (double)s->base[at] : 0;

	return (double)s->values[at] - own;
}

/* Of sorted values of a set: the second largest of those that are not the row's own. */
static double second_of(const double *sorted, size_t n, double own)
{
	return sorted[own >= sorted[n - 2] ? n - 3 : n - 2];
}

/* Subtracts the median of each set, of its rows that are no suspects. */
static void center(struct column *c)
{
	const struct survey *s = c->s;

	for (size_t i = 0; i < s->n_rows; i++) {
		c->y[i] = NAN;
		c->healthy[i] = !(s->excess[i * s->n_stats + c->k] >= SUSPECT) && !s->suspect[i];
	}
	for (const struct set *set = s->sets; set < s->sets + s->n_sets; set++) {
		size_t n = 0;
		double median;

		for (size_t i = 0; i < set->n_judged; i++) {
			uint32_t row = set->judged[i];
			double v = dispersion_value_of(s, row, c->k);

			if (!isnan(v) && c->healthy[row])
				c->work[n++] = v;
		}
		median = n < 2 ? 0 : stat_median(c->work, n);
		if (s->stats[c->k].from_low && n > 2)
			qsort(c->work, n, sizeof(*c->work), stat_compare);
		for (size_t i = 0; i < set->n_judged; i++) {
			uint32_t row = set->judged[i];
			double v = dispersion_value_of(s, row, c->k), usual = median;

			if (s->stats[c->k].from_low && n > 2)
				usual = second_of(c->work, n, v);
			c->y[row] = v - usual;
		}
	}
}

/* Magnitudes on the harmless side, divided by 'by' (may be NULL), into c->work: how many. The
 * largest of them are left out, because a member may also be far better than its peers, for
 * example an idle one. */
static size_t harmless(struct column *c, const double *by)
{
	size_t n = 0;

	for (size_t i = 0; i < c->s->n_rows; i++)
		if (c->y[i] <= 0 || (c->y[i] > 0 && !survey_with(c->s, FLEET_SIDE)))
			c->work[n++] = fabs(c->y[i]) / (by ? by[i] : 1);
	qsort(c->work, n, sizeof(*c->work), stat_compare);
	return n - (size_t)(TRIM * (double)n);
}

/* Too few rows for tails: their scale by the median magnitude of all, which a third of ill ones
 * does not carry away, and prior rows. */
static struct fit fit_few(struct column *c, double prior)
{
	double mad = 0, n = 0;
	size_t k = 0;

	for (size_t i = 0; i < c->s->n_rows; i++)
		if (!isnan(c->y[i]))
			c->work[k++] = fabs(c->y[i]);
	if (k) {
		mad = 1.4826 * stat_median(c->work, k);
		n = (double)k;
	}
	return (struct fit){sqrt((PRIOR_ROWS * prior * prior + n * mad * mad) / (PRIOR_ROWS + n)),
		PRIOR_FREEDOM};
}

/* How much wider the other side is, by the lowest quarter of it. At least 1. */
static double widening(struct column *c, const double *by, const struct fit *fit)
{
	size_t n = 0;
	double usual, quarter;

	for (size_t i = 0; i < c->s->n_rows; i++)
		if (c->y[i] > 0)
			c->work[n++] = c->y[i] / by[i];
	if (n < 12)
		return 1;
	quarter = gsl_stats_select(c->work, 1, n, n / 4);
	usual = gsl_cdf_tdist_Pinv(0.625, fit->freedom) * fit->scale;
	return fmax(1, quarter / usual);
}

static bool counts_for_scale(const struct column *c, uint32_t row)
{
	return c->healthy[row] && !isnan(c->y[row]);
}

/* The first place of a value that stands in 'sorted'. */
static size_t dispersion_place_of(const double *sorted, size_t n, double value)
{
	size_t low = 0;

	while (n) {
		size_t half = n / 2;

		if (sorted[low + half] < value) {
			low += half + 1;
			n -= half + 1;
		} else {
			n = half;
		}
	}
	return low;
}

/* The median of sorted values without the one at this place; 'n': of all. */
static double median_without(const double *sorted, size_t n, size_t place)
{
	size_t left = n - (place < n), low = (left - 1) / 2, high = left / 2;

	return (sorted[low + (low >= place)] + sorted[high + (high >= place)]) / 2;
}

/* The scale of a row's set, from the other rows in it, moderated by the fleet's. */
static void moderate(struct column *c)
{
	const struct survey *s = c->s;

	for (size_t i = 0; i < s->n_rows; i++)
		c->scale[i] = c->fit.scale;
	if (s->n_sets < 2 || !survey_with(s, FLEET_SCALES))
		return;
	for (const struct set *set = s->sets; set < s->sets + s->n_sets; set++) {
		size_t n = 0;

		for (size_t i = 0; i < set->n_judged; i++)
			if (counts_for_scale(c, set->judged[i]))
				c->work[n++] = fabs(c->y[set->judged[i]]);
		qsort(c->work, n, sizeof(*c->work), stat_compare);
		for (size_t i = 0; i < set->n_judged; i++) {
			double own, weight, freedom = c->fit.freedom;
			uint32_t row = set->judged[i];
			bool counts = counts_for_scale(c, row);

			if (n < 2u + counts)
				continue;
			/* The median of magnitudes is worth 0.37 of as many rows. */
			own = 1.4826 *
				median_without(c->work, n,
					counts ? dispersion_place_of(c->work, n, fabs(c->y[row]))
					       : n);
			weight = 0.37 * (double)(n - counts);
			c->scale[row] = sqrt(
				(freedom * c->fit.scale * c->fit.scale + weight * own * own) /
				(freedom + weight));
		}
	}
}

/* How many scales above its peers a healthy row is with probability p. Quantiles have the tails
 * that were fitted. The largest of many windows has a Gumbel distribution if levels have
 * exponential tails or lighter ones in the logarithm, as log-normal and Pareto levels do. */
static double quantile(const struct stat *t, const struct fit *fit)
{
	double fitted = gsl_cdf_tdist_Qinv(t->p, fit->freedom);

	return t->exceeding >= EXCEEDING_FEW ? fitted : fmax(fitted, (log(1 / t->p) - 0.37) / 1.03);
}

/* Of a quantile that few windows of few rows exceed, the tail is all but unknown. */
static double freedom_of_few(const struct stat *t)
{
	return t->exceeding < EXCEEDING_ANY ? FREEDOM_LEAST : PRIOR_FREEDOM;
}

static void judge_column(struct survey *s, struct column *c)
{
	const struct stat *t = &s->stats[c->k];
	double prior = s->rare ? PRIOR_RARE : PRIOR_SCALE, wide, q;
	struct fit fit;
	size_t n = 0;
	bool few;

	for (size_t i = 0; i < s->n_rows; i++)
		if (!isnan(dispersion_value_of(s, i, c->k)))
			c->work[n++] = dispersion_value_of(s, i, c->k);
	if (n < SET_PEERS_MIN)
		return;
	if (c->k)
		prior = fmax(prior, NOISE_SCALE * fabs(stat_median(c->work, n)));
	center(c);
	few = n < ROWS_FEW;
	c->fit = few ? fit_few(c, prior) : fit_tails(c->work, harmless(c, NULL), prior);
	moderate(c);
	fit = few ? (struct fit){1, freedom_of_few(t)}
		  : fit_tails(c->work, harmless(c, c->scale), 1);
	if (!survey_with(s, FLEET_TAILS))
		fit.freedom = NORMAL;
	wide = widening(c, c->scale, &fit);
	q = quantile(t, &fit) * fit.scale * wide;
	for (size_t i = 0; i < s->n_rows; i++) {
		/* It must exceed what is usual, and its peers as they are, and what is printed. */
		double own = c->y[i] / fmax(t->least, q * c->scale[i]);
		double peers = fmin((double)s->plain[i * s->n_stats + c->k],
				       (double)s->values[i * s->n_stats + c->k]) /
			t->least;

		s->excess[i * s->n_stats + c->k] = isnan(own) ? NAN
							      : (float)(peers < own ? peers : own);
	}
	if (!c->k) {
		s->dispersion = c->fit.scale;
		s->limit = fmax(t->least, q * c->fit.scale);
	}
}

void dispersion_apply(struct survey *s)
{
	struct column c = {.s = s,
		.y = alloc_zero(s->n_rows, sizeof(double)),
		.healthy = alloc_zero(s->n_rows, sizeof(bool)),
		.scale = alloc_zero(s->n_rows, sizeof(double)),
		.work = alloc_zero(s->n_rows, sizeof(double))};

	for (c.k = 0; c.k < s->n_stats; c.k++)
		judge_column(s, &c);
	for (size_t i = 0; i < s->n_rows; i++) {
		s->severity[i] = NAN;
		for (unsigned k = 0; k < s->n_stats; k++) {
			double x = (double)s->excess[i * s->n_stats + k];

			if (!isnan(x) && !(x <= s->severity[i])) {
				s->severity[i] = x;
				s->worst[i] = (uint8_t)k;
			}
		}
	}
	free(c.y);
	free(c.healthy);
	free(c.scale);
	free(c.work);
}
