/*
 * A recording in memory, with a fault if one is wanted, and simple statistics of it: of each series
 * of one metric, its level over the median of its peers' levels. For fleet_public_trial.c.
 */
#ifndef CULPRIT_CI_BENCH_FLEET_SIMPLE_H
#define CULPRIT_CI_BENCH_FLEET_SIMPLE_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "diag/fleet/metric.h"
#include "diag/import/import.h"
#include "harness/base/alloc.h"

enum { PIECES = 40, PEERS_LEAST = 4 };

struct series {
	char *metric, *member, *group;
	struct series_key key;
};
struct sample {
	uint32_t series;
	double time_s, value;
};
struct recording {
	struct series *series;
	size_t n_series, room_series;
	struct sample *samples;
	size_t n_samples, room_samples;
	char **declarations;
	size_t n_declarations;
	double from_s, to_s;
};

/* A fault: values of one series are multiplied while it is on. */
struct plant {
	uint32_t series;
	double ratio;
	bool on[PIECES]; /* equal parts of the time */
};

static void fail(const char *what)
{
	fprintf(stderr, "fleet_public_trial: %s\n", what);
	exit(2);
}

static int take_series(void *ctx, const struct series_key *key, uint32_t *id, struct err *e)
{
	struct recording *r = ctx;
	struct series *s;

	(void)e;
	if (r->n_series == r->room_series) {
		r->room_series = r->room_series ? 2 * r->room_series : 64;
		r->series = alloc_resize(r->series, r->room_series, sizeof(*r->series));
	}
	s = &r->series[r->n_series];
	s->metric = alloc_copy(key->metric);
	s->member = alloc_copy(key->member);
	s->group = alloc_copy(key->n_groups ? key->group[0] : "all");
	*id = (uint32_t)r->n_series++;
	return 0;
}

static int take_sample(void *ctx, uint32_t id, double time_s, double value, struct err *e)
{
	struct recording *r = ctx;

	(void)e;
	if (r->n_samples == r->room_samples) {
		r->room_samples = r->room_samples ? 2 * r->room_samples : 4096;
		r->samples = alloc_resize(r->samples, r->room_samples, sizeof(*r->samples));
	}
	if (!r->n_samples || time_s < r->from_s)
		r->from_s = time_s;
	if (!r->n_samples || time_s > r->to_s)
		r->to_s = time_s;
	r->samples[r->n_samples++] = (struct sample){id, time_s, value};
	return 0;
}

static int take_metric(void *ctx, const char *declaration, struct err *e)
{
	struct recording *r = ctx;

	(void)e;
	r->declarations = alloc_resize(
		r->declarations, r->n_declarations + 1, sizeof(*r->declarations));
	r->declarations[r->n_declarations++] = alloc_copy(declaration);
	return 0;
}

static void recording_read(struct recording *r, const char *path)
{
	struct import_options o = {.member = "member", .group = {"group"}};
	struct import_sink sink = {r, take_series, take_sample, take_metric};
	struct err e;

	*r = (struct recording){0};
	if (import_file(path, &o, &sink, NULL, &e))
		fail(e.text);
	for (size_t i = 0; i < r->n_series; i++) {
		struct series *s = &r->series[i];
		s->key = (struct series_key){s->metric, s->member, {s->group}, 1};
	}
}

static void recording_clear(struct recording *r)
{
	for (size_t i = 0; i < r->n_series; i++) {
		free(r->series[i].metric);
		free(r->series[i].member);
		free(r->series[i].group);
	}
	for (size_t i = 0; i < r->n_declarations; i++)
		free(r->declarations[i]);
	free(r->declarations);
	free(r->series);
	free(r->samples);
}

static double planted(const struct recording *r, const struct plant *p, const struct sample *s)
{
	size_t piece = (size_t)((s->time_s - r->from_s) / (r->to_s - r->from_s) * PIECES);

	if (!p || s->series != p->series || !p->on[piece < PIECES ? piece : PIECES - 1])
		return s->value;
	return s->value * p->ratio;
}

/*
 * The simple statistics: of each series of one metric, its level at each time over the median of
 * its peers' levels (of the group, or of all where the group has fewer than PEERS_LEAST values),
 * as a logarithm.
 */
struct simple {
	const struct recording *r;
	uint32_t *row;    /* of each series; UINT32_MAX: of another metric */
	uint32_t *series; /* of each row */
	size_t n_rows, n_times;
	double *time_s;
	double *level, *peers; /* by row and time; NAN: no value */
	double *lasting;       /* of each row: the median of level - peers over time */
	bool less;             /* less is worse */
	double center, scale;  /* of 'lasting' over the rows: median, 1.4826 MAD */
};

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Reorders 'v'. NAN without values. */
static double median(double *v, size_t n)
{
	if (!n)
		return NAN;
	qsort(v, n, sizeof(*v), by_value);
	return n % 2 || v[n / 2 - 1] == v[n / 2] ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

static size_t time_index(const struct simple *s, double time_s)
{
	double *at = bsearch(&time_s, s->time_s, s->n_times, sizeof(*at), by_value);

	return (size_t)(at - s->time_s);
}

static void simple_times(struct simple *s)
{
	const struct recording *r = s->r;
	size_t n = 0;

	s->time_s = alloc_zero(r->n_samples, sizeof(*s->time_s));
	for (size_t i = 0; i < r->n_samples; i++)
		s->time_s[i] = r->samples[i].time_s;
	qsort(s->time_s, r->n_samples, sizeof(*s->time_s), by_value);
	for (size_t i = 0; i < r->n_samples; i++)
		if (!n || s->time_s[i] != s->time_s[n - 1])
			s->time_s[n++] = s->time_s[i];
	s->n_times = n;
}

/* Levels as logarithms: the value, or the value over that of metric 'per' of the same member. */
static void simple_levels(struct simple *s, const char *per)
{
	const struct recording *r = s->r;
	uint32_t *below = alloc_zero(r->n_series, sizeof(*below)); /* row that a series divides */

	s->level = alloc_zero(s->n_rows * s->n_times, sizeof(*s->level));
	for (size_t i = 0; i < s->n_rows * s->n_times; i++)
		s->level[i] = NAN;
	for (size_t i = 0; i < r->n_series; i++) {
		below[i] = UINT32_MAX;
		for (size_t k = 0; per && !strcmp(r->series[i].metric, per) && k < s->n_rows; k++) {
			const struct series *a = &r->series[i], *b = &r->series[s->series[k]];
			if (!strcmp(a->member, b->member) && !strcmp(a->group, b->group))
				below[i] = (uint32_t)k;
		}
	}
	for (size_t i = 0; i < r->n_samples; i++) {
		const struct sample *m = &r->samples[i];
		if (s->row[m->series] != UINT32_MAX)
			s->level[s->row[m->series] * s->n_times + time_index(s, m->time_s)] = log(
				m->value);
	}
	for (size_t i = 0; i < r->n_samples; i++) {
		const struct sample *m = &r->samples[i];
		if (below[m->series] != UINT32_MAX)
			s->level[below[m->series] * s->n_times + time_index(s, m->time_s)] -= log(
				m->value);
	}
	free(below);
}

static void simple_peers(struct simple *s)
{
	double *of_group = alloc_zero(s->n_rows, sizeof(double));
	double *of_all = alloc_zero(s->n_rows, sizeof(double));

	s->peers = alloc_zero(s->n_rows * s->n_times, sizeof(*s->peers));
	for (size_t i = 0; i < s->n_rows; i++)
		for (size_t t = 0; t < s->n_times; t++) {
			size_t in_group = 0, all = 0;
			const char *group = s->r->series[s->series[i]].group;
			for (size_t k = 0; k < s->n_rows; k++) {
				double v = s->level[k * s->n_times + t];
				if (k == i || isnan(v))
					continue;
				of_all[all++] = v;
				if (!strcmp(s->r->series[s->series[k]].group, group))
					of_group[in_group++] = v;
			}
			s->peers[i * s->n_times + t] = in_group >= PEERS_LEAST
				? median(of_group, in_group)
				: median(of_all, all);
		}
	free(of_group);
	free(of_all);
}

/* The lasting ratio of a row, as a logarithm, with a fault (or NULL). */
static double simple_lasting(const struct simple *s, size_t row, const struct plant *p)
{
	double *v = alloc_zero(s->n_times, sizeof(*v)), m;
	size_t n = 0;

	for (size_t t = 0; t < s->n_times; t++) {
		struct sample one = {s->series[row], s->time_s[t], 1};
		double d = s->level[row * s->n_times + t] - s->peers[row * s->n_times + t];
		if (!isnan(d))
			v[n++] = d + log(planted(s->r, p, &one));
	}
	m = median(v, n);
	free(v);
	return s->less ? -m : m;
}

static void simple_new(struct simple *s, const struct recording *r, const char *metric)
{
	struct metric_models models = {0};
	const struct metric_model *model;
	struct err e;
	double *v;
	size_t n = 0;

	*s = (struct simple){.r = r};
	for (size_t i = 0; i < r->n_declarations; i++)
		if (metric_declare(&models, r->declarations[i], &e))
			fail(e.text);
	model = metric_find(&models, metric);
	s->less = model && model->worse == WORSE_LESS;
	s->row = alloc_zero(r->n_series, sizeof(*s->row));
	s->series = alloc_zero(r->n_series, sizeof(*s->series));
	for (size_t i = 0; i < r->n_series; i++) {
		bool is = !strcmp(r->series[i].metric, metric);
		s->row[i] = is ? (uint32_t)s->n_rows : UINT32_MAX;
		if (is)
			s->series[s->n_rows++] = (uint32_t)i;
	}
	simple_times(s);
	simple_levels(s, model ? model->per : NULL);
	simple_peers(s);
	s->lasting = alloc_zero(s->n_rows, sizeof(*s->lasting));
	v = alloc_zero(s->n_rows, sizeof(*v));
	for (size_t i = 0; i < s->n_rows; i++) {
		s->lasting[i] = simple_lasting(s, i, NULL);
		if (isfinite(s->lasting[i]))
			v[n++] = s->lasting[i];
	}
	s->center = median(v, n);
	for (size_t i = 0; i < n; i++)
		v[i] = fabs(v[i] - s->center);
	s->scale = 1.4826 * median(v, n);
	free(v);
	metric_models_clear(&models);
}

static void simple_clear(struct simple *s)
{
	free(s->row);
	free(s->series);
	free(s->time_s);
	free(s->level);
	free(s->peers);
	free(s->lasting);
}

#endif
