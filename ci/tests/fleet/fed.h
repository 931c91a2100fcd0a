/* A fleet fed by a test: series by name, and noise that is the same each time. */
#ifndef CULPRIT_CI_TESTS_FLEET_FED_H
#define CULPRIT_CI_TESTS_FLEET_FED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants those four first */
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diag/fleet/fleet_impl.h"

struct fed {
	struct fleet *f;
	struct import_sink sink;
	struct fleet_result *r;
};

/* With declarations, one a line. 'o' NULL: the defaults. */
static inline struct fed fed_new(const char *declarations, const struct fleet_options *o)
{
	struct fed x = {.f = fleet_new(o ? o : &fleet_defaults)};
	char *copy = strdup(declarations), *rest = copy, *line;
	struct err e;

	x.sink = fleet_sink(x.f);
	while ((line = strsep(&rest, "\n")))
		if (*line && x.sink.metric(x.sink.ctx, line, &e))
			fail_msg("%s", e.text);
	free(copy);
	return x;
}

static inline void fed_free(struct fed *x)
{
	fleet_result_free(x->r);
	fleet_free(x->f);
	*x = (struct fed){0};
}

/* 'groups' is "rack1/host2", or "". */
static inline uint32_t fed_series(
	struct fed *x, const char *metric, const char *groups, const char *member)
{
	struct series_key key = {.metric = metric, .member = member};
	char *copy = strdup(groups), *rest = copy, *one;
	struct err e;
	uint32_t id;

	while ((one = strsep(&rest, "/")))
		if (*one)
			key.group[key.n_groups++] = one;
	if (x->sink.series(x->sink.ctx, &key, &id, &e))
		fail_msg("%s", e.text);
	free(copy);
	return id;
}

static inline void fed_put(struct fed *x, uint32_t series, double time_s, double value)
{
	struct err e;

	if (x->sink.sample(x->sink.ctx, series, time_s, value, &e))
		fail_msg("%s", e.text);
}

static inline const struct fleet_result *fed_judge(struct fed *x, double from_s, double to_s)
{
	struct err e;

	fleet_result_free(x->r);
	x->r = NULL;
	if (fleet_judge(x->f, from_s, to_s, &x->r, &e))
		fail_msg("%s", e.text);
	return x->r;
}

static inline uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
	x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
	return x ^ (x >> 31);
}

/* Uniform in (0, 1), and normal, of a place. */
static inline double chance(uint64_t a, uint64_t b, uint64_t c)
{
	return ((double)(mix(mix(mix(a) + b) + c) >> 11) + 0.5) * 0x1p-53;
}

static inline double normal(uint64_t a, uint64_t b, uint64_t c)
{
	return sqrt(-2 * log(chance(a, b, 2 * c))) * cos(2 * M_PI * chance(a, b, 2 * c + 1));
}

#endif
