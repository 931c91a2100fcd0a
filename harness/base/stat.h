/* Medians and quantiles. Values must be finite; the result is NaN if there are no values. */
#ifndef CULPRIT_HARNESS_BASE_STAT_H
#define CULPRIT_HARNESS_BASE_STAT_H

#include <gsl/gsl_statistics.h>
#include <math.h>
#include <stddef.h>

/* The median of values in any order. Reorders 'v'. */
static inline double stat_median(double *v, size_t n)
{
	return n ? gsl_stats_median(v, 1, n) : NAN;
}

static inline double stat_median_sorted(const double *v, size_t n)
{
	return n ? gsl_stats_median_from_sorted_data(v, 1, n) : NAN;
}

/* The quantile 'q' (0 to 1), interpolated between two values. Reorders the values. */
static inline double stat_quantile(double *v, size_t n, double q)
{
	const double at = q * (double)(n - 1);
	double low;

	if (!n)
		return NAN;
	low = gsl_stats_select(v, 1, n, (size_t)at);
	return at == floor(at)
		? low
		: low + (at - floor(at)) * (gsl_stats_select(v, 1, n, (size_t)at + 1) - low);
}

/* For qsort and bsearch of double. */
static inline int stat_compare(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The same for float. */
static inline int stat_compare_float(const void *a, const void *b)
{
	const float x = *(const float *)a, y = *(const float *)b;

	return (x > y) - (x < y);
}

#endif
