/* Decides when a stream is judged and over which periods. */
#include "harness/live/horizons.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"
#include "harness/base/stat.h"

static const double week_s = 7 * 86400.0;
static const double default_cells[] = {64, 512, 4096, 32768};

void pace_sample(struct pace *p, uint32_t series, double time_s)
{
	if (p->n == PACE_DISTANCES)
		return;
	if (series >= p->room) {
		size_t room = 2 * (size_t)series + 64;

		p->last_s = alloc_resize(p->last_s, room, sizeof(*p->last_s));
		while (p->room < room)
			p->last_s[p->room++] = NAN;
	}
	if (time_s > p->last_s[series])
		p->distance_s[p->n++] = time_s - p->last_s[series];
	p->last_s[series] = time_s;
}

double pace_step(const struct pace *p, unsigned least)
{
	double sorted[PACE_DISTANCES];

	if (!p->n || p->n < least)
		return 0;
	memcpy(sorted, p->distance_s, p->n * sizeof(*sorted));
	return gsl_stats_select(sorted, 1, p->n, p->n / 2);
}

void pace_clear(struct pace *p)
{
	free(p->last_s);
	*p = (struct pace){0};
}

bool horizons_add(struct horizons *h, double length_s)
{
	size_t at = 0;

	while (at < h->n && h->v[at].length_s < length_s)
		at++;
	if (h->n == HORIZONS_MAX || (at < h->n && h->v[at].length_s == length_s))
		return false;
	memmove(&h->v[at + 1], &h->v[at], (h->n - at) * sizeof(h->v[0]));
	h->v[at] = (struct horizon){.length_s = length_s, .next_s = -INFINITY};
	h->n++;
	return true;
}

void horizons_default(struct horizons *h, double step_s, double cells)
{
	h->n = 0;
	for (size_t i = 0; i < sizeof(default_cells) / sizeof(default_cells[0]); i++)
		if (!i || cells <= 0 || default_cells[i] <= cells)
			horizons_add(h, default_cells[i] * step_s);
}

double horizons_due(const struct horizons *h, size_t i, double first_s)
{
	double reach_s = i ? h->v[i - 1].length_s : h->v[0].length_s / 4;

	return fmax(h->v[i].next_s, first_s + reach_s);
}

double horizons_next(const struct horizons *h, double first_s)
{
	double next_s = INFINITY;

	for (size_t i = 0; i < h->n; i++)
		next_s = fmin(next_s, horizons_due(h, i, first_s));
	return next_s;
}

void horizons_judged(struct horizons *h, size_t i, double now_s)
{
	h->v[i].next_s = now_s + h->v[i].length_s / HORIZON_LOOKS;
}

double horizons_alarms(const struct horizons *h, size_t i, double alarms)
{
	return alarms / (double)h->n / HORIZON_LOOKS_PAID * fmin(1, h->v[i].length_s / week_s);
}
