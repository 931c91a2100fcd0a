/* Medians and quantiles. Values must be finite; NaN comes back where there are none. */
#ifndef CULPRIT_HARNESS_BASE_STAT_H
#define CULPRIT_HARNESS_BASE_STAT_H

#include <gsl/gsl_statistics.h>
#include <math.h>
#include <stddef.h>

/* Of values in any order, which is lost. */
static inline double stat_median(double *v, size_t n)
{
	return n ? gsl_stats_median(v, 1, n) : NAN;
}

static inline double stat_median_sorted(const double *v, size_t n)
{
	return n ? gsl_stats_median_from_sorted_data(v, 1, n) : NAN;
}

/* 'q' from 0 to 1; between two values it is interpolated. Their order is lost. */
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

/* ... of float. */
static inline int stat_compare_float(const void *a, const void *b)
{
	const float x = *(const float *)a, y = *(const float *)b;

	return (x > y) - (x < y);
}

#endif
