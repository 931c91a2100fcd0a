#include "diag/judge/vec.h"

#include <gsl/gsl_statistics.h>
#include <lauxlib.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "diag/judge/vec_impl.h"

static const char vec_type[] = "culprit.vec";

enum { LENGTH_MAX = 1 << 24 };

struct vec *vec_push_raw(lua_State *L, size_t n)
{
	struct vec *x;

	if (n > LENGTH_MAX)
		luaL_error(L, "a vec has at most %d elements", LENGTH_MAX);
	x = lua_newuserdatauv(L, sizeof(*x) + n * sizeof(double), 0);
	x->n = n;
	luaL_setmetatable(L, vec_type);
	return x;
}

struct vec *vec_push(lua_State *L, size_t n)
{
	struct vec *x = vec_push_raw(L, n);

	for (size_t i = 0; i < n; i++)
		x->v[i] = NAN;
	return x;
}

struct vec *vec_test(lua_State *L, int index)
{
	return luaL_testudata(L, index, vec_type);
}

struct vec *vec_check(lua_State *L, int index)
{
	return luaL_checkudata(L, index, vec_type);
}

/* Room for n doubles that the collector frees; on the stack's top. */
double *vec_scratch(lua_State *L, size_t n)
{
	return lua_newuserdatauv(L, (n ? n : 1) * sizeof(double), 0);
}

static size_t finite_of(const struct vec *x, size_t from, size_t to, double *out)
{
	size_t n = 0;

	for (size_t i = from; i < to; i++)
		if (isfinite(x->v[i]))
			out[n++] = x->v[i];
	return n;
}

/* Median of n values, whose order is lost; NaN for none. */
double vec_median_of(double *a, size_t n)
{
	return n ? gsl_stats_median(a, 1, n) : NAN;
}

static double mean_of(const double *a, size_t n)
{
	return n ? gsl_stats_mean(a, 1, n) : NAN;
}

/* vec.new(n [, value]) */
static int f_new(lua_State *L)
{
	lua_Integer n = luaL_checkinteger(L, 1);
	double value = luaL_optnumber(L, 2, NAN);
	struct vec *x;

	luaL_argcheck(L, n >= 0 && n <= LENGTH_MAX, 1, "length out of range");
	x = vec_push_raw(L, (size_t)n);
	for (size_t i = 0; i < x->n; i++)
		x->v[i] = value;
	return 1;
}

/* vec.of { 1, 2, 3 } */
static int f_of(lua_State *L)
{
	struct vec *x;

	luaL_checktype(L, 1, LUA_TTABLE);
	x = vec_push(L, (size_t)lua_rawlen(L, 1));
	for (size_t i = 0; i < x->n; i++) {
		lua_rawgeti(L, 1, (lua_Integer)i + 1);
		x->v[i] = luaL_checknumber(L, -1);
		lua_pop(L, 1);
	}
	return 1;
}

/* The k-th smallest of n, whose order is lost. */
static double smallest(double *a, size_t n, size_t k)
{
	return gsl_stats_select(a, 1, n, k);
}

/* As gsl_stats_quantile_from_sorted_data, without sorting. */
static double quantile_of(double *a, size_t n, double q)
{
	double at = q * (double)(n - 1), low = smallest(a, n, (size_t)at);

	return at == floor(at) ? low
			       : low + (at - floor(at)) * (smallest(a, n, (size_t)at + 1) - low);
}

static int m_count(lua_State *L)
{
	const struct vec *x = vec_check(L, 1);
	lua_Integer n = 0;

	for (size_t i = 0; i < x->n; i++)
		n += isfinite(x->v[i]);
	lua_pushinteger(L, n);
	return 1;
}

static int m_sum(lua_State *L)
{
	const struct vec *x = vec_check(L, 1);
	double sum = 0;

	for (size_t i = 0; i < x->n; i++)
		if (isfinite(x->v[i]))
			sum += x->v[i];
	lua_pushnumber(L, sum);
	return 1;
}

static int m_mean(lua_State *L)
{
	const struct vec *x = vec_check(L, 1);
	double *a = vec_scratch(L, x->n);

	lua_pushnumber(L, mean_of(a, finite_of(x, 0, x->n, a)));
	return 1;
}

static int m_median(lua_State *L)
{
	const struct vec *x = vec_check(L, 1);
	double *a = vec_scratch(L, x->n);

	lua_pushnumber(L, vec_median_of(a, finite_of(x, 0, x->n, a)));
	return 1;
}

static int m_quantile(lua_State *L)
{
	const struct vec *x = vec_check(L, 1);
	double q = luaL_checknumber(L, 2), *a;
	size_t n;

	luaL_argcheck(L, q >= 0 && q <= 1, 2, "a quantile is between 0 and 1");
	a = vec_scratch(L, x->n);
	n = finite_of(x, 0, x->n, a);
	lua_pushnumber(L, n ? quantile_of(a, n, q) : NAN);
	return 1;
}

/* Value and index of the largest (sign 1) or smallest (-1); NaN and nil for none. */
static int extreme(lua_State *L, double sign)
{
	const struct vec *x = vec_check(L, 1);
	size_t at = 0;

	for (size_t i = 0; i < x->n; i++)
		if (isfinite(x->v[i]) && (!at || sign * x->v[i] > sign * x->v[at - 1]))
			at = i + 1;
	lua_pushnumber(L, at ? x->v[at - 1] : NAN);
	if (at)
		lua_pushinteger(L, (lua_Integer)at);
	else
		lua_pushnil(L);
	return 2;
}

static int m_max(lua_State *L)
{
	return extreme(L, 1);
}

static int m_min(lua_State *L)
{
	return extreme(L, -1);
}

static int m_abs(lua_State *L)
{
	const struct vec *x = vec_check(L, 1);
	struct vec *out = vec_push_raw(L, x->n);

	for (size_t i = 0; i < x->n; i++)
		out->v[i] = fabs(x->v[i]);
	return 1;
}

static int m_log(lua_State *L)
{
	const struct vec *x = vec_check(L, 1);
	struct vec *out = vec_push_raw(L, x->n);

	for (size_t i = 0; i < x->n; i++)
		out->v[i] = x->v[i] > 0 ? log(x->v[i]) : NAN;
	return 1;
}

/* v:slice(from, to), both included */
static int m_slice(lua_State *L)
{
	const struct vec *x = vec_check(L, 1);
	lua_Integer from = luaL_checkinteger(L, 2), to = luaL_optinteger(L, 3, (lua_Integer)x->n);
	struct vec *out;

	luaL_argcheck(L, from >= 1 && from <= (lua_Integer)x->n + 1, 2, "out of range");
	luaL_argcheck(L, to >= from - 1 && to <= (lua_Integer)x->n, 3, "out of range");
	out = vec_push(L, (size_t)(to - from + 1));
	memcpy(out->v, x->v + from - 1, out->n * sizeof(double));
	return 1;
}

/* v:above(limit): how many elements are */
static int m_above(lua_State *L)
{
	const struct vec *x = vec_check(L, 1);
	double limit = luaL_checknumber(L, 2);
	lua_Integer n = 0;

	for (size_t i = 0; i < x->n; i++)
		n += isfinite(x->v[i]) && x->v[i] > limit;
	lua_pushinteger(L, n);
	return 1;
}

/* Windows end at their element; NaN where fewer than 'least' of the window have a sample. */
static const struct vec *rolling_args(lua_State *L, size_t *width, size_t *least)
{
	const struct vec *x = vec_check(L, 1);
	lua_Integer w = luaL_checkinteger(L, 2), l = luaL_optinteger(L, 3, w);

	luaL_argcheck(L, w >= 1 && w <= LENGTH_MAX, 2, "a window is at least 1 wide");
	luaL_argcheck(L, l >= 1 && l <= w, 3, "must be between 1 and the width");
	*width = (size_t)w;
	*least = (size_t)l;
	return x;
}

static int rolling_sum(lua_State *L, bool mean)
{
	size_t width, least;
	const struct vec *x = rolling_args(L, &width, &least);
	struct vec *out = vec_push(L, x->n);

	/* Each window anew: what is added and taken away again leaves rounding errors behind. */
	for (size_t i = least - 1; i < x->n; i++) {
		size_t n = 0;
		double sum = 0;

		for (size_t k = i + 1 > width ? i + 1 - width : 0; k <= i; k++)
			if (isfinite(x->v[k])) {
				sum += x->v[k];
				n++;
			}
		if (n >= least)
			out->v[i] = mean ? sum / (double)n : sum;
	}
	return 1;
}

/* Where 'value' is, or belongs, in a sorted array. */
static size_t place_of(const double *a, size_t n, double value)
{
	size_t from = 0;

	while (n) {
		size_t half = n / 2;

		if (a[from + half] < value) {
			from += half + 1;
			n -= half + 1;
		} else {
			n = half;
		}
	}
	return from;
}

static int m_rolling_median(lua_State *L)
{
	size_t width, least, n = 0;
	const struct vec *x = rolling_args(L, &width, &least);
	double *a = vec_scratch(L, width < x->n ? width : x->n);
	struct vec *out = vec_push(L, x->n);

	/* The window, kept sorted: one goes, one comes. */
	for (size_t i = 0; i < x->n; i++) {
		double comes = x->v[i], goes = i >= width ? x->v[i - width] : NAN;
		size_t at;

		if (isfinite(goes) && (at = place_of(a, n, goes)) < n) {
			memmove(a + at, a + at + 1, (n - at - 1) * sizeof(*a));
			n--;
		}
		if (isfinite(comes)) {
			at = place_of(a, n, comes);
			memmove(a + at + 1, a + at, (n - at) * sizeof(*a));
			a[at] = comes;
			n++;
		}
		if (n >= least)
			out->v[i] = n % 2 ? a[n / 2] : (a[n / 2 - 1] + a[n / 2]) / 2;
	}
	return 1;
}

static int m_rolling_mean(lua_State *L)
{
	return rolling_sum(L, true);
}

static int m_rolling_sum(lua_State *L)
{
	return rolling_sum(L, false);
}

/* The loops are simple ones, which compilers turn into a few values a step. */
#define EACH(n, out, a, x, b, y, op)                                                               \
	do {                                                                                       \
		if ((a) && (b))                                                                    \
			for (size_t i = 0; i < (n); i++)                                           \
				(out)[i] = (a)->v[i] op(b)->v[i];                                  \
		else if (a)                                                                        \
			for (size_t i = 0; i < (n); i++)                                           \
				(out)[i] = (a)->v[i] op(y);                                        \
		else                                                                               \
			for (size_t i = 0; i < (n); i++)                                           \
				(out)[i] = (x)op(b)->v[i];                                         \
	} while (0)

static int arithmetic(lua_State *L, char op)
{
	const struct vec *a = vec_test(L, 1), *b = vec_test(L, 2);
	double x = a ? 0 : luaL_checknumber(L, 1), y = b ? 0 : luaL_checknumber(L, 2);
	struct vec *out;

	if (a && b && a->n != b->n)
		return luaL_error(L, "vecs of different lengths (%d and %d)", (int)a->n, (int)b->n);
	out = vec_push_raw(L, a ? a->n : b->n);
	switch (op) {
	case '+': EACH(out->n, out->v, a, x, b, y, +); break;
	case '-': EACH(out->n, out->v, a, x, b, y, -); break;
	case '*': EACH(out->n, out->v, a, x, b, y, *); break;
	default: EACH(out->n, out->v, a, x, b, y, /);
	}
	return 1;
}

/* v:fill(value): value where there is no sample */
static int m_fill(lua_State *L)
{
	const struct vec *x = vec_check(L, 1);
	double value = luaL_checknumber(L, 2);
	struct vec *out = vec_push_raw(L, x->n);

	for (size_t i = 0; i < x->n; i++)
		out->v[i] = isfinite(x->v[i]) ? x->v[i] : value;
	return 1;
}

/* v:clamp(low [, high]) */
static int m_clamp(lua_State *L)
{
	const struct vec *x = vec_check(L, 1);
	double low = luaL_checknumber(L, 2), high = luaL_optnumber(L, 3, INFINITY);
	struct vec *out = vec_push_raw(L, x->n);

	for (size_t i = 0; i < x->n; i++)
		out->v[i] = x->v[i] < low ? low : x->v[i] > high ? high : x->v[i];
	return 1;
}

/* v:lag(seconds [, before]) */
static int m_lag(lua_State *L)
{
	const struct vec *x = vec_check(L, 1);
	lua_Integer lag = luaL_checkinteger(L, 2);
	double before = luaL_optnumber(L, 3, NAN);
	struct vec *out;
	size_t n;

	luaL_argcheck(L, lag >= 0, 2, "a lag is not below 0");
	out = vec_push_raw(L, x->n);
	n = (lua_Unsigned)lag < x->n ? (size_t)lag : x->n;
	for (size_t i = 0; i < n; i++)
		out->v[i] = before;
	for (size_t i = n; i < x->n; i++)
		out->v[i] = x->v[i - n];
	return 1;
}

static int m_add(lua_State *L)
{
	return arithmetic(L, '+');
}

static int m_sub(lua_State *L)
{
	return arithmetic(L, '-');
}

static int m_mul(lua_State *L)
{
	return arithmetic(L, '*');
}

static int m_div(lua_State *L)
{
	return arithmetic(L, '/');
}

static int m_unm(lua_State *L)
{
	lua_settop(L, 1);
	lua_pushnumber(L, -1);
	return arithmetic(L, '*');
}

static int m_len(lua_State *L)
{
	lua_pushinteger(L, (lua_Integer)vec_check(L, 1)->n);
	return 1;
}

static int m_index(lua_State *L)
{
	const struct vec *x = vec_check(L, 1);
	lua_Integer i;

	if (lua_type(L, 2) == LUA_TSTRING) {
		lua_pushvalue(L, 2);
		lua_rawget(L, lua_upvalueindex(1));
		if (lua_isnil(L, -1))
			return luaL_error(L, "a vec has no method '%s'", lua_tostring(L, 2));
		return 1;
	}
	i = luaL_checkinteger(L, 2);
	luaL_argcheck(L, i >= 1 && i <= (lua_Integer)x->n, 2, "index out of range");
	lua_pushnumber(L, x->v[i - 1]);
	return 1;
}

static int m_newindex(lua_State *L)
{
	struct vec *x = vec_check(L, 1);
	lua_Integer i = luaL_checkinteger(L, 2);

	luaL_argcheck(L, i >= 1 && i <= (lua_Integer)x->n, 2, "index out of range");
	x->v[i - 1] = luaL_checknumber(L, 3);
	return 0;
}

static int m_tostring(lua_State *L)
{
	lua_pushfstring(L, "vec of %d", (int)vec_check(L, 1)->n);
	return 1;
}

static const luaL_Reg functions[] = {
	{"least", vec_list_least},
	{"likelihood", vec_likelihood},
	{"new", f_new},
	{"of", f_of},
	{"median", vec_list_median},
	{"others", vec_list_others},
	{"present", vec_list_present},
	{NULL, NULL},
};

static const luaL_Reg methods[] = {
	{"abs", m_abs},
	{"above", m_above},
	{"clamp", m_clamp},
	{"count", m_count},
	{"fill", m_fill},
	{"lag", m_lag},
	{"log", m_log},
	{"max", m_max},
	{"mean", m_mean},
	{"median", m_median},
	{"min", m_min},
	{"quantile", m_quantile},
	{"rolling_mean", m_rolling_mean},
	{"rolling_median", m_rolling_median},
	{"rolling_sum", m_rolling_sum},
	{"slice", m_slice},
	{"sum", m_sum},
	{NULL, NULL},
};

static const luaL_Reg metamethods[] = {
	{"__add", m_add},
	{"__sub", m_sub},
	{"__mul", m_mul},
	{"__div", m_div},
	{"__unm", m_unm},
	{"__len", m_len},
	{"__newindex", m_newindex},
	{"__tostring", m_tostring},
	{NULL, NULL},
};

void vec_open(lua_State *L)
{
	luaL_newmetatable(L, vec_type);
	luaL_setfuncs(L, metamethods, 0);
	luaL_newlib(L, methods);
	lua_pushcclosure(L, m_index, 1);
	lua_setfield(L, -2, "__index");
	lua_pop(L, 1);
	luaL_newlib(L, functions);
	lua_setglobal(L, "vec");
}

static const char *const *names_of(const luaL_Reg *list, const char **names)
{
	for (size_t i = 0; list[i].name; i++)
		names[i] = list[i].name;
	return names;
}

const char *const *vec_functions(void)
{
	static const char *names[sizeof(functions) / sizeof(*functions)];

	return names_of(functions, names);
}

const char *const *vec_methods(void)
{
	static const char *names[sizeof(methods) / sizeof(*methods)];

	return names_of(methods, names);
}
