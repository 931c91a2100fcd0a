/* Joins nearby points until few are left. */
#include "harness/serve/dots.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"

/* However coarse, a series can have four: on both sides of both axes. */
enum { SERIES_MAX = 24, LEAST = 4 * (SERIES_MAX + 1) };

struct dot {
	int64_t x, y; /* in steps */
	uint64_t n;   /* 0: no dot */
	int series;
};

struct dots {
	struct dot *dot; /* open addressing, half full at most */
	size_t slots, n, most;
	double dx, dy;
	char *series[SERIES_MAX + 1];
	int n_series;
};

struct dots *dots_new(size_t most, double dx)
{
	struct dots *d = alloc_zero(1, sizeof(*d));

	d->most = most = most > LEAST ? most : LEAST;
	d->slots = 1;
	while (d->slots < 2 * (most + 1))
		d->slots *= 2;
	d->dot = alloc_zero(d->slots, sizeof(*d->dot));
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
	free(d);
}

/* Names that come late are one series. */
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

static void put(struct dots *d, struct dot one)
{
	uint64_t hash = ((uint64_t)one.x * 0x9e3779b97f4a7c15u) ^
		((uint64_t)one.y * 0xc2b2ae3d27d4eb4fu) ^ (uint64_t)one.series << 32;
	size_t i = (hash ^ hash >> 29) & (d->slots - 1);

	for (; d->dot[i].n; i = (i + 1) & (d->slots - 1))
		if (d->dot[i].x == one.x && d->dot[i].y == one.y &&
			d->dot[i].series == one.series) {
			d->dot[i].n += one.n;
			return;
		}
	d->dot[i] = one;
	d->n++;
}

/* Twice as coarse: along y, and along x where that alone does not help. */
static void coarsen(struct dots *d)
{
	struct dot *old = d->dot;
	const size_t before = d->n;

	d->dot = alloc_zero(d->slots, sizeof(*d->dot));
	d->n = 0;
	d->dy *= 2;
	for (size_t i = 0; i < d->slots; i++)
		if (old[i].n) {
			old[i].y >>= 1;
			put(d, old[i]);
		}
	free(old);
	if (d->n < before - before / 16)
		return;
	old = d->dot;
	d->dot = alloc_zero(d->slots, sizeof(*d->dot));
	d->n = 0;
	d->dx *= 2;
	for (size_t i = 0; i < d->slots; i++)
		if (old[i].n) {
			old[i].x >>= 1;
			put(d, old[i]);
		}
	free(old);
}

static int64_t step(double v, double size)
{
	v = floor(v / size);
	return v < -4e18 ? INT64_MIN / 2 : v > 4e18 ? INT64_MAX / 2 : (int64_t)v;
}

void dots_add(struct dots *d, double x, double y, const char *series)
{
	if (!isfinite(x) || !isfinite(y))
		return;
	put(d, (struct dot){step(x, d->dx), step(y, d->dy), 1, series_of(d, series)});
	while (d->n > d->most)
		coarsen(d);
}

json_t *dots_rows(const struct dots *d, double *dx, double *dy)
{
	json_t *rows = json_array();

	for (size_t i = 0; i < d->slots; i++) {
		const struct dot *o = &d->dot[i];

		if (o->n)
			json_array_append_new(rows,
				json_pack("[f, f, s, I]", (double)o->x * d->dx,
					(double)o->y * d->dy, d->series[o->series],
					(json_int_t)o->n));
	}
	*dx = d->dx;
	*dy = d->dy;
	return rows;
}
