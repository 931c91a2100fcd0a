/* Loads time series into memory as samples for detectors. */
#include "diag/derive/series.h"

#include <errno.h>
#include <gsl/gsl_statistics_float.h>
#include <math.h>
#include <search.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"

/* Trees from names to indexes, one for servers and one for metrics. */
struct named {
	char *name;
	uint32_t index;
};

struct series_index {
	void *servers, *metrics, *pairs; /* tsearch trees of struct named */
	struct pair {
		uint32_t server, metric;
	} * list; /* by number of the series */
	size_t n;
};

struct last {
	double time_s;
	bool any;
};

/* The state of reading one file. */
struct reader {
	struct series_names *names;
	struct series *out;
	size_t room;       /* of points */
	struct last *last; /* by number of the series */
	size_t n_last;
	float *steps; /* between consecutive points of a series */
	size_t n_steps;
};

static int series_by_name(const void *a, const void *b)
{
	return strcmp(((const struct named *)a)->name, ((const struct named *)b)->name);
}

/* Finds or adds a name in a tree; a new one gets index 'n'. */
static uint32_t find_name(void **tree, const char *name, size_t n)
{
	struct named key = {.name = (char *)name}, *fresh,
		     **found = tfind(&key, tree, series_by_name);

	if (found)
		return (*found)->index;
	fresh = alloc_zero(1, sizeof(*fresh));
	fresh->name = alloc_copy(name);
	fresh->index = (uint32_t)n;
	if (!tsearch(fresh, tree, series_by_name))
		alloc_end();
	return fresh->index;
}

/* Finds or adds a name in the tree and in the caller's list. */
static int list_name(void **tree, char ***names, size_t *n, size_t max, const char *name,
	uint32_t *index, struct err *e)
{
	uint32_t i = find_name(tree, name, *n);

	*index = i;
	if (i < *n)
		return 0;
	*names = alloc_room(*names, *n, sizeof(**names));
	(*names)[(*n)++] = alloc_copy(name);
	return *n <= max
		? 0
		: err_set(e, -E2BIG, "more than %zu names of this kind ('%.60s')", max, name);
}

static int on_series(void *ctx, const struct series_key *key, uint32_t *id, struct err *e)
{
	struct reader *r = ctx;
	struct series_names *names = r->names;
	struct series_index *index = names->index;
	char server[(IMPORT_GROUPS_MAX + 1) * (IMPORT_NAME_MAX + 1) + 1], pair[32];
	struct pair p;
	size_t n = 0;

	if (!strcmp(key->metric, "any"))
		return err_set(e, -EINVAL, "a metric cannot be called 'any'");
	for (size_t g = 0; g < key->n_groups; g++)
		n += (size_t)snprintf(server + n, sizeof(server) - n, "%s/", key->group[g]);
	snprintf(server + n, sizeof(server) - n, "%s", key->member);
	if (list_name(&index->servers, &names->servers, &names->n_servers, SERIES_SERVERS_MAX,
		    server, &p.server, e) ||
		list_name(&index->metrics, &names->metrics, &names->n_metrics, SERIES_METRICS_MAX,
			key->metric, &p.metric, e))
		return -E2BIG;
	snprintf(pair, sizeof(pair), "%u %u", p.server, p.metric);
	*id = find_name(&index->pairs, pair, index->n);
	if (*id < index->n)
		return 0;
	index->list = alloc_room(index->list, index->n, sizeof(*index->list));
	index->list[index->n++] = p;
	return 0;
}

/* Returns where the last time of a series is kept. */
static struct last *last_of(struct reader *r, uint32_t id)
{
	if (id >= r->n_last) {
		size_t n = (size_t)id * 2 + 64;

		r->last = alloc_resize(r->last, n, sizeof(*r->last));
		memset(r->last + r->n_last, 0, (n - r->n_last) * sizeof(*r->last));
		r->n_last = n;
	}
	return &r->last[id];
}

static void add_step(struct reader *r, double step)
{
	r->steps = alloc_room(r->steps, r->n_steps, sizeof(*r->steps));
	r->steps[r->n_steps++] = (float)step;
}

static int add_point(struct reader *r, struct series_point p, struct err *e)
{
	struct series *s = r->out;

	if (s->n == SERIES_POINTS_MAX)
		return err_set(e, -E2BIG, "more than %d values", SERIES_POINTS_MAX);
	if (s->n == r->room) {
		r->room = r->room ? r->room * 2 : 1024;
		s->points = alloc_resize(s->points, r->room, sizeof(*s->points));
	}
	s->from_s = !s->n || p.time_s < s->from_s ? p.time_s : s->from_s;
	s->to_s = !s->n || p.time_s > s->to_s ? p.time_s : s->to_s;
	s->points[s->n++] = p;
	return 0;
}

static int on_sample(void *ctx, uint32_t id, double time_s, double value, struct err *e)
{
	struct reader *r = ctx;
	const struct series_names *names = r->names;
	const struct pair *p = &names->index->list[id];
	struct last *last = last_of(r, id);

	if (last->any && time_s <= last->time_s)
		return err_set(e, -EINVAL, "'%.60s' of '%.60s' %s", names->metrics[p->metric],
			names->servers[p->server],
			time_s < last->time_s ? "goes back in time; sort the rows by it"
					      : "has had this time in an earlier row");
	if (last->any)
		add_step(r, time_s - last->time_s);
	*last = (struct last){time_s, true};
	if (isnan(value))
		return 0;
	return add_point(r, (struct series_point){time_s, value, p->server, p->metric}, e);
}

static struct import_sink derive_series_begin(struct reader *r)
{
	if (!r->names->index)
		r->names->index = alloc_zero(1, sizeof(*r->names->index));
	return (struct import_sink){.ctx = r, .series = on_series, .sample = on_sample};
}

static int series_end(struct reader *r, struct series *out, int rc)
{
	struct series *s = r->out;

	if (!rc && r->n_steps)
		s->step_s = (double)gsl_stats_float_select(r->steps, 1, r->n_steps, r->n_steps / 2);
	free(r->last);
	free(r->steps);
	if (rc)
		series_clear(s);
	else
		*out = *s;
	return rc;
}

int series_read(const char *path, const struct import_options *o, struct series_names *names,
	struct series *out, struct import_said *said, struct err *e)
{
	struct series s = {0};
	struct reader r = {.names = names, .out = &s};
	struct import_sink sink = derive_series_begin(&r);

	return series_end(&r, out, import_file(path, o, &sink, said, e));
}

void series_clear(struct series *s)
{
	free(s->points);
	*s = (struct series){0};
}

static void free_named(void *node)
{
	struct named *n = node;

	free(n->name);
	free(n);
}

void series_names_clear(struct series_names *names)
{
	if (names->index) {
		tdestroy(names->index->servers, free_named);
		tdestroy(names->index->metrics, free_named);
		tdestroy(names->index->pairs, free_named);
		free(names->index->list);
	}
	for (size_t i = 0; i < names->n_servers; i++)
		free(names->servers[i]);
	for (size_t i = 0; i < names->n_metrics; i++)
		free(names->metrics[i]);
	free(names->index);
	free(names->servers);
	free(names->metrics);
	*names = (struct series_names){0};
}

struct sample *series_samples(
	const struct series *s, double from_s, double to_s, double step_s, size_t *n)
{
	struct sample *list = alloc_zero(s->n, sizeof(*list));
	size_t k = 0;

	for (size_t i = 0; i < s->n; i++) {
		const struct series_point *p = &s->points[i];
		/* A step is rarely exact in binary: 0.3 / 0.1 is below 3. */
		double second = floor((p->time_s - from_s) / step_s + 1e-6);

		if (p->time_s < from_s || p->time_s >= to_s || second > INT32_MAX)
			continue;
		list[k++] = (struct sample){.metric = (enum metric)p->metric,
			.server = p->server,
			.second = (int32_t)second,
			.count = 1,
			.sum_s = p->value,
			.max_s = p->value};
	}
	*n = k;
	return list;
}
