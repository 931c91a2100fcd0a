/* Compares detectors that judged the same cells, cell by cell. */
#include <gsl/gsl_cdf.h>
#include <gsl/gsl_randist.h>
#include <math.h>
#include <stdlib.h>

#include "diag/judge/score_impl.h"
#include "harness/base/alloc.h"
#include "harness/base/auto.h"

static int by_id(const void *a, const void *b)
{
	const struct judged_cell *x = a, *y = b;

	return (x->id > y->id) - (x->id < y->id);
}

/* The cells of a detector, sorted by id; malloced. */
static struct judged_cell *cells_of(const struct score_table *t, size_t detector, size_t *n)
{
	struct judged_cell *list = alloc_zero(t->n_cells, sizeof(*list));

	*n = 0;
	for (size_t i = 0; i < t->n_cells; i++)
		if (t->cells[i].detector == detector)
			list[(*n)++] = t->cells[i];
	qsort(list, *n, sizeof(*list), by_id);
	return list;
}

bool score_paired(const struct score_table *t, size_t first, size_t second, struct paired *out)
{
	size_t n, n_second;
	auto_free struct judged_cell *a = cells_of(t, first, &n);
	auto_free struct judged_cell *b = cells_of(t, second, &n_second);

	*out = (struct paired){.cells = (unsigned)n};
	if (!n || n != n_second)
		return false;
	for (size_t i = 0; i < n; i++) {
		if (!a[i].id || a[i].id != b[i].id || (i && a[i].id == a[i - 1].id))
			return false;
		out->only_first += a[i].right && !b[i].right;
		out->only_second += b[i].right && !a[i].right;
	}
	out->p = score_mcnemar(out->only_first, out->only_second);
	return true;
}

double score_mcnemar(unsigned only_first, unsigned only_second)
{
	unsigned n = only_first + only_second, least = only_first;

	if (only_second < least)
		least = only_second;
	return n ? fmin(1, 2 * gsl_cdf_binomial_P(least, 0.5, n)) : 1;
}

unsigned score_cells_needed(double rate, double level, double power)
{
	enum { MOST = 1000000 };
	unsigned right = 1, n;

	if (rate <= 0)
		return 0;
	while (right < MOST && score_mcnemar(right, 0) > level)
		right++;
	/* At least 'right' of n must be right. */
	for (n = right; n < MOST && rate < 1; n++)
		if (gsl_cdf_binomial_Q(right - 1, rate, n) >= power)
			break;
	return n;
}

unsigned score_controls_needed(double rate)
{
	double low, high = 1;
	unsigned n = 0;

	while (high > rate && n < 100000)
		score_interval(0, ++n, 0.95, &low, &high);
	return n;
}
