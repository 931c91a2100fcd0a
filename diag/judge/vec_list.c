/*
 * Functions of vec over lists of vecs, second by second.
 */
#include <gsl/gsl_statistics.h>
#include <lauxlib.h>
#include <math.h>

#include "diag/judge/vec_impl.h"
#include "harness/base/stat.h"

/* Puts the vecs of a list, all of one length, into an array in a scratch on the stack; the list
 * keeps them alive. */
static const struct vec **list_of(lua_State *L, int index, size_t *count)
{
	const struct vec **list;
	size_t n;

	luaL_checktype(L, index, LUA_TTABLE);
	n = (size_t)lua_rawlen(L, index);
	luaL_argcheck(L, n > 0, index, "at least one vec is needed");
	list = lua_newuserdatauv(L, n * sizeof(*list), 0);
	for (size_t i = 0; i < n; i++) {
		lua_rawgeti(L, index, (lua_Integer)i + 1);
		list[i] = vec_test(L, -1);
		if (!list[i])
			luaL_error(L, "element %d of the list is a %s, not a vec", (int)i + 1,
				luaL_typename(L, -1));
		vec_check_lengths(L, list[0], list[i]);
		lua_pop(L, 1);
	}
	*count = n;
	return list;
}

/* The middle of n values, to compute the median after one value is left out: 'low' without a value
 * of the upper half, 'high' without one of the lower half, 'middle' without the middle value itself
 * (if n is odd). */
struct middle {
	double low, middle, high, at;
};

static struct middle middle_of(double *a, size_t n)
{
	size_t h = n / 2;
	double x = gsl_stats_select(a, 1, n, h - 1), y = gsl_stats_select(a, 1, n, h), z;

	if (n % 2 == 0)
		return (struct middle){x, x, y, y};
	z = gsl_stats_select(a, 1, n, h + 1);
	return (struct middle){(x + y) / 2, (x + z) / 2, (y + z) / 2, y};
}

/* Seconds handled at once for all vecs of a list: a cache line of each vec instead of one
 * number. */
enum { ABREAST = 8 };

/* [second][vec] */
static size_t vec_list_gather(const struct vec *const *list, size_t count, size_t from, double *to)
{
	size_t n = list[0]->n - from < ABREAST ? list[0]->n - from : ABREAST;

	for (size_t k = 0; k < count; k++)
		for (size_t j = 0; j < n; j++)
			to[j * count + k] = list[k]->v[from + j];
	return n;
}

/* vec.median(list [, least]): per second; NaN if fewer than 'least' vecs have a sample */
int vec_list_median(lua_State *L)
{
	lua_Integer least = luaL_optinteger(L, 2, 1);
	size_t count;
	const struct vec **list = list_of(L, 1, &count);
	double *abreast = vec_scratch(L, ABREAST * count), *a = vec_scratch(L, count);
	struct vec *out = vec_push(L, list[0]->n);

	for (size_t from = 0; from < out->n; from += ABREAST)
		for (size_t j = 0, seconds = vec_list_gather(list, count, from, abreast);
			j < seconds; j++) {
			size_t n = vec_finite(abreast + j * count, count, a);

			if ((lua_Integer)n >= least)
				out->v[from + j] = stat_median(a, n);
		}
	return 1;
}

/* vec.least(list): the smallest value of each second, among the vecs with a sample */
int vec_list_least(lua_State *L)
{
	size_t count;
	const struct vec **list = list_of(L, 1, &count);
	struct vec *out = vec_push(L, list[0]->n);

	for (size_t k = 0; k < count; k++)
		for (size_t i = 0; i < out->n; i++)
			if (isfinite(list[k]->v[i]) && !(out->v[i] <= list[k]->v[i]))
				out->v[i] = list[k]->v[i];
	return 1;
}

/* In place: replaces each of 'count' values by the median of the other finite values. */
static void medians_of_others(double *x, size_t count, lua_Integer least, double *a)
{
	size_t n = vec_finite(x, count, a);
	struct middle m = {NAN, NAN, NAN, NAN};
	double all = n == 1 ? a[0] : NAN;

	if (n >= 2) {
		m = middle_of(a, n);
		all = n % 2 ? m.at : (m.low + m.high) / 2;
	}
	for (size_t k = 0; k < count; k++) {
		if (!isfinite(x[k]))
			x[k] = (lua_Integer)n < least ? NAN : all;
		else if ((lua_Integer)n <= least)
			x[k] = NAN;
		else
			x[k] = n % 2 && x[k] == m.at ? m.middle : x[k] < m.at ? m.high : m.low;
	}
}

/* vec.others(list [, least]): for each vec, per second, the median of the others; NaN if fewer than
 * 'least' of them have a sample */
int vec_list_others(lua_State *L)
{
	lua_Integer least = luaL_optinteger(L, 2, 1);
	size_t count, length;
	const struct vec **list = list_of(L, 1, &count);
	double *abreast = vec_scratch(L, ABREAST * count), *a = vec_scratch(L, count);
	struct vec **out = lua_newuserdatauv(L, count * sizeof(*out), 0);

	luaL_argcheck(L, least >= 1, 2, "at least one other is needed");
	length = list[0]->n;
	lua_createtable(L, (int)count, 0);
	for (size_t k = 0; k < count; k++) {
		out[k] = vec_push_raw(L, length);
		lua_rawseti(L, -2, (lua_Integer)k + 1);
	}
	for (size_t from = 0; from < length; from += ABREAST) {
		size_t seconds = vec_list_gather(list, count, from, abreast);

		for (size_t j = 0; j < seconds; j++)
			medians_of_others(abreast + j * count, count, least, a);
		for (size_t k = 0; k < count; k++)
			for (size_t j = 0; j < seconds; j++)
				out[k]->v[from + j] = abreast[j * count + k];
	}
	return 1;
}

/* vec.present(list): the number of vecs with a sample, per second */
int vec_list_present(lua_State *L)
{
	size_t count;
	const struct vec **list = list_of(L, 1, &count);
	struct vec *out = vec_push(L, list[0]->n);

	for (size_t i = 0; i < out->n; i++) {
		out->v[i] = 0;
		for (size_t k = 0; k < count; k++)
			out->v[i] += isfinite(list[k]->v[i]);
	}
	return 1;
}

/* vec.likelihood(k, n, p): k ln p + (n - k) ln(1 - p), per second; each a vec or a number */
int vec_likelihood(lua_State *L)
{
	const struct vec *of[3], *first = NULL;
	double all[3];
	struct vec *out;

	for (int a = 0; a < 3; a++) {
		of[a] = vec_test(L, a + 1);
		all[a] = of[a] ? 0 : luaL_checknumber(L, a + 1);
		if (!first)
			first = of[a];
		else if (of[a])
			vec_check_lengths(L, first, of[a]);
	}
	luaL_argcheck(L, first, 1, "at least one of the three must be a vec");
	out = vec_push(L, first->n);
	for (size_t i = 0; i < out->n; i++) {
		double k = of[0] ? of[0]->v[i] : all[0], n = of[1] ? of[1]->v[i] : all[1],
		       p = of[2] ? of[2]->v[i] : all[2];

		/* An event that never happened contributes nothing: 0 ln 0 is 0. */
		out->v[i] = (k == 0 ? 0 : k * log(p)) + (n - k == 0 ? 0 : (n - k) * log(1 - p));
	}
	return 1;
}
