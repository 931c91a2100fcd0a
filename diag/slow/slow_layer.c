/* What is known of a layer: its demand by phase and server, and how far seconds depend on each
 * other. */
#include <math.h>
#include <stdlib.h>

#include "diag/slow/slow_impl.h"

static const struct slow_second *phase_of(
	const struct slow_demand *d, size_t layer, size_t server, int phase, size_t *n)
{
	*n = phase == SLOW_BEFORE ? d->n_before : d->n - d->n_before;
	return slow_seconds_of(d, layer, server) + (phase == SLOW_BEFORE ? 0 : d->n_before);
}

static bool has_any(const struct slow_second *x)
{
	return x->busy_s > 0 || x->work_s > 0;
}

/* By how much a second moves the logarithm of the ratio of sums, times the number of seconds. */
static double influence(const struct slow_second *x, const struct slow_rate *r)
{
	return (x->busy_s - exp(r->log) * x->work_s) * (double)r->seconds / r->busy_s;
}

static void slow_layer_measure(const struct slow_second *v, size_t n, struct slow_rate *out)
{
	double work = 0, squares = 0, z;
	struct slow_rate r = {0};

	for (size_t i = 0; i < n; i++) {
		r.busy_s += v[i].busy_s;
		work += v[i].work_s;
		squares += v[i].work_s * v[i].work_s;
		r.seconds += has_any(&v[i]);
	}
	*out = (struct slow_rate){0};
	if (r.busy_s <= 0 || work <= 0)
		return;
	r.log = log(r.busy_s / work);
	r.n = work * work / squares;
	for (size_t i = 0; i < n; i++) {
		z = influence(&v[i], &r);
		r.s2 += z * z;
	}
	/* The mean's variance, first; then what makes it of 'n' seconds. */
	r.s2 = r.seconds > 1 ? r.s2 / (double)r.seconds / (double)(r.seconds - 1) * r.n : 0;
	*out = r;
}

/* Correlation of seconds that are 'lag' apart, over all servers and both phases, each in units of
 * its own deviation. Taking off a mean of n seconds lowers it by 1/n on average. */
static double correlation(
	const struct slow_demand *d, const struct slow_layer *y, size_t layer, size_t lag)
{
	double sum = 0, pairs = 0, seconds = 0, series = 0, scale;
	const struct slow_second *v;
	const struct slow_rate *r;
	size_t n;

	for (int p = SLOW_BEFORE; p <= SLOW_DURING; p++)
		for (size_t i = 0; i < d->n_servers; i++) {
			v = phase_of(d, layer, i, p, &n);
			r = &y->rates[p][i];
			scale = 0;
			for (size_t k = 0; r->seconds && k < n; k++)
				scale += pow(influence(&v[k], r), 2) / (double)r->seconds;
			if (scale <= 0)
				continue;
			series++;
			seconds += (double)r->seconds;
			for (size_t k = 0; k + lag < n; k++) {
				if (!has_any(&v[k]) || !has_any(&v[k + lag]))
					continue;
				sum += influence(&v[k], r) * influence(&v[k + lag], r) / scale;
				pairs++;
			}
		}
	return pairs > 0 ? sum / pairs + series / seconds : 0;
}

/* The integrated autocorrelation time, up to the first lag without a positive correlation. */
static double memory_of(const struct slow_demand *d, const struct slow_layer *y, size_t layer)
{
	const size_t during = d->n - d->n_before;
	const size_t longest = (d->n_before < during || y->last == SLOW_BEFORE ? d->n_before
									       : during) /
		2;
	double time = 1, r;

	for (size_t lag = 1; lag <= longest; lag++) {
		r = correlation(d, y, layer, lag);
		if (r <= 0)
			break;
		time += 2 * r;
	}
	return time;
}

void slow_layer_make(const struct slow_demand *d, size_t layer, struct slow_layer *y)
{
	const struct slow_second *v;
	size_t n;

	for (int p = SLOW_BEFORE; p <= SLOW_DURING; p++) {
		y->rates[p] = alloc_zero(d->n_servers, sizeof(struct slow_rate));
		for (int h = 0; h < 2; h++)
			y->halves[p][h] = alloc_zero(d->n_servers, sizeof(struct slow_rate));
		for (size_t i = 0; i < d->n_servers; i++) {
			v = phase_of(d, layer, i, p, &n);
			slow_layer_measure(v, n, &y->rates[p][i]);
			slow_layer_measure(v, n / 2, &y->halves[p][0][i]);
			slow_layer_measure(v + n / 2, n - n / 2, &y->halves[p][1][i]);
		}
	}
	y->memory_s = memory_of(d, y, layer);
}

void slow_layer_clear(struct slow_layer *y)
{
	for (int p = SLOW_BEFORE; p <= SLOW_DURING; p++) {
		free(y->rates[p]);
		free(y->halves[p][0]);
		free(y->halves[p][1]);
	}
}
