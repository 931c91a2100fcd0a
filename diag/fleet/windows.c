/* What windows of one recording have in common: how severe a member is by chance in the worst of
 * them. A window alone cannot know that its one burst is usual, because the other members have
 * theirs in other windows. */
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdlib.h>

#include "diag/fleet/fleet.h"
#include "harness/base/alloc.h"

/* So few members have no quartiles that could be relied on. */
enum { MEMBERS_LEAST = 12 };

struct fleet_windows {
	double *worst; /* [metric * n_members + member]: over the windows; 0: none */
	size_t n_members, n_metrics, n;
};

struct fleet_windows *fleet_windows_new(size_t n_members, size_t n_metrics)
{
	struct fleet_windows *w = alloc_zero(1, sizeof(*w));

	w->worst = alloc_zero(n_members * n_metrics + 1, sizeof(*w->worst));
	w->n_members = n_members;
	w->n_metrics = n_metrics;
	return w;
}

void fleet_windows_free(struct fleet_windows *w)
{
	if (w)
		free(w->worst);
	free(w);
}

void fleet_windows_add(struct fleet_windows *w, const struct fleet_result *r)
{
	for (size_t i = 0; i < r->n_members && i < w->n_members; i++) {
		const struct fleet_member *m = &r->members[i];
		double *worst = &w->worst[m->metric * w->n_members + i];

		if (m->judged && m->metric < w->n_metrics)
			*worst = fmax(*worst, m->severity);
	}
	w->n++;
}

double fleet_windows_pay(const struct fleet_windows *w, uint32_t metric, double alarms)
{
	double *v = alloc_zero(w->n_members + 1, sizeof(*v)), quarter, half, scale;
	size_t n = 0;

	for (size_t i = 0; i < w->n_members; i++)
		if (w->worst[metric * w->n_members + i] > 0)
			v[n++] = w->worst[metric * w->n_members + i];
	if (w->n < 2 || n < MEMBERS_LEAST) {
		free(v);
		return 1;
	}
	/* The worst of many windows has a Gumbel distribution; the lower half of the members is
	 * healthy, and gives its scale. */
	quarter = gsl_stats_select(v, 1, n, n / 4);
	half = gsl_stats_select(v, 1, n, n / 2);
	free(v);
	scale = (half - quarter) / (log(log(4)) - log(log(2)));
	return fmax(1, half + scale * (log(log(2)) - log(-log1p(-alarms))));
}
