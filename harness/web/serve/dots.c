/* Merges nearby points until few are left. */
#include "harness/web/serve/dots.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"
#include "harness/base/hash.h"
#include "harness/base/map.h"

/* However coarse the grid, a series can have four points: on both sides of both axes. */
enum { SERIES_MAX = 24, LEAST = 4 * (SERIES_MAX + 1) };

struct dot {
	int64_t x, y; /* in steps */
	uint64_t n;
	int series;
};

struct dots {
	struct dot *dot; /* room for 'most' + 1 */
	size_t n, most;
	struct map index; /* by hash of position and series: index + 1 */
	double dx, dy;
	char *series[SERIES_MAX + 1];
	int n_series;
};

struct dots *dots_new(size_t most, double dx)
{
	struct dots *d = alloc_zero(1, sizeof(*d));

	d->most = most = most > LEAST ? most : LEAST;
	d->dot = alloc_zero(most + 1, sizeof(*d->dot));
	d->dx = dx > 0 ? dx : 1;
	d->dy = 1;
	return d;
}

void dots_free(struct dots *d)
{
	if (!d)
		return;
	for (int i = 0; i < d->n_series; i++)
		free(d->series[i]);
	free(d->dot);
	map_clear(&d->index);
	free(d);
}

/* Names beyond the limit share one series. */
static int series_of(struct dots *d, const char *name)
{
	for (int i = 0; i < d->n_series; i++)
		if (!strcmp(d->series[i], name))
			return i;
	if (d->n_series > SERIES_MAX)
		return SERIES_MAX;
	d->series[d->n_series] = alloc_copy(d->n_series < SERIES_MAX ? name : "other");
	return d->n_series++;
}

static void dots_put(struct dots *d, struct dot one)
{
	uint64_t hash = hash_mix(
		hash_mix(hash_mix(0, (uint64_t)one.x), (uint64_t)one.y), (uint64_t)one.series);
	uint64_t i;
	size_t at = 0;

	while ((i = map_next(&d->index, hash, &at))) {
		struct dot *is = &d->dot[i - 1];

		if (is->x == one.x && is->y == one.y && is->series == one.series) {
			is->n += one.n;
			return;
		}
	}
	d->dot[d->n++] = one;
	map_keep(&d->index, hash, d->n);
}

/* Halves the resolution along x or y; dots that now coincide are merged. */
static void halve(struct dots *d, bool x)
{
	const size_t n = d->n;

	map_clear(&d->index);
	d->n = 0;
	for (size_t i = 0; i < n; i++) {
		struct dot one = d->dot[i];

		*(x ? &one.x : &one.y) >>= 1;
		dots_put(d, one); /* index is at most i */
	}
}

/* Halves the resolution: along y, and along x if that does not suffice. */
static void coarsen(struct dots *d)
{
	const size_t before = d->n;

	d->dy *= 2;
	halve(d, false);
	if (d->n < before - before / 16)
		return;
	d->dx *= 2;
	halve(d, true);
}

static int64_t dots_step(double v, double size)
{
	v = floor(v / size);
	return v < -4e18 ? INT64_MIN / 2 : v > 4e18 ? INT64_MAX / 2 : (int64_t)v;
}

void dots_add(struct dots *d, double x, double y, const char *series)
{
	if (!isfinite(x) || !isfinite(y))
		return;
	dots_put(
		d, (struct dot){dots_step(x, d->dx), dots_step(y, d->dy), 1, series_of(d, series)});
	while (d->n > d->most)
		coarsen(d);
}

json_t *dots_rows(const struct dots *d, double *dx, double *dy)
{
	json_t *rows = json_array();

	for (size_t i = 0; i < d->n; i++) {
		const struct dot *o = &d->dot[i];

		json_array_append_new(rows,
			json_pack("[f, f, s, I]", (double)o->x * d->dx, (double)o->y * d->dy,
				d->series[o->series], (json_int_t)o->n));
	}
	*dx = d->dx;
	*dy = d->dy;
	return rows;
}
