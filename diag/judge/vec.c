/* The Lua type 'vec': arrays of doubles with arithmetic and statistics. */
#include "diag/judge/vec.h"

#include <gsl/gsl_statistics.h>
#include <lauxlib.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "diag/judge/vec_impl.h"
#include "harness/base/stat.h"

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

/* The vec at 'index', or a Lua error. */
static struct vec *vec_check(lua_State *L, int index)
{
	return luaL_checkudata(L, index, vec_type);
}

void vec_check_lengths(lua_State *L, const struct vec *a, const struct vec *b)
{
	if (a->n != b->n)
		luaL_error(L, "vecs of different lengths (%d and %d)", (int)a->n, (int)b->n);
}

double *vec_scratch(lua_State *L, size_t n)
{
	return lua_newuserdatauv(L, (n ? n : 1) * sizeof(double), 0);
}

size_t vec_finite(const double *x, size_t n, double *out)
{
	size_t count = 0;

	for (size_t i = 0; i < n; i++)
		if (isfinite(x[i]))
			out[count++] = x[i];
	return count;
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

/* The finite elements of the vec at index 1, in scratch memory on top of the stack. */
static double *finite_args(lua_State *L, size_t *n)
{
	const struct vec *x = vec_check(L, 1);
	double *a = vec_scratch(L, x->n);

	*n = vec_finite(x->v, x->n, a);
	return a;
}

static int m_sum(lua_State *L)
{
	size_t n;
	double *a = finite_args(L, &n), sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += a[i];
	lua_pushnumber(L, sum);
	return 1;
}

static int m_mean(lua_State *L)
{
	size_t n;
	double *a = finite_args(L, &n);

	lua_pushnumber(L, n ? gsl_stats_mean(a, 1, n) : NAN);
	return 1;
}

static int m_median(lua_State *L)
{
	size_t n;
	double *a = finite_args(L, &n);

	lua_pushnumber(L, stat_median(a, n));
	return 1;
}

static int m_quantile(lua_State *L)
{
	double q = luaL_checknumber(L, 2), *a;
	size_t n;

	luaL_argcheck(L, q >= 0 && q <= 1, 2, "a quantile is between 0 and 1");
	a = finite_args(L, &n);
	lua_pushnumber(L, n ? stat_quantile(a, n, q) : NAN);
	return 1;
}

/* v:above(limit): number of elements above it; with upvalue 1, v:count(): of elements with a
 * sample */
static int m_above(lua_State *L)
{
	double limit = lua_tointeger(L, lua_upvalueindex(1)) ? -INFINITY : luaL_checknumber(L, 2);
	lua_Integer count = 0;
	size_t n;
	double *a = finite_args(L, &n);

	for (size_t i = 0; i < n; i++)
		count += a[i] > limit;
	lua_pushinteger(L, count);
	return 1;
}

/* Value and index of the largest (upvalue 1) or smallest (-1) element; NaN and nil for none. */
static int m_extreme(lua_State *L)
{
	const struct vec *x = vec_check(L, 1);
	double sign = lua_tonumber(L, lua_upvalueindex(1));
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

/* Defines a method that turns each element 'x' of a vec into 'value', which may use two
 * arguments. */
#define ELEMENTWISE(name, first, second, value)                                                    \
	static int name(lua_State *L)                                                              \
	{                                                                                          \
		const struct vec *in = vec_check(L, 1);                                            \
		const double a __attribute__((unused)) = first;                                    \
		const double b __attribute__((unused)) = second;                                   \
		struct vec *out = vec_push_raw(L, in->n);                                          \
                                                                                                   \
		for (size_t i = 0; i < in->n; i++) {                                               \
			const double x = in->v[i];                                                 \
                                                                                                   \
			out->v[i] = value;                                                         \
		}                                                                                  \
		return 1;                                                                          \
	}

ELEMENTWISE(m_abs, 0, 0, fabs(x))
ELEMENTWISE(m_log, 0, 0, x > 0 ? log(x) : NAN)
ELEMENTWISE(m_unm, 0, 0, x * -1)
/* v:fill(value): replaces missing samples */
ELEMENTWISE(m_fill, luaL_checknumber(L, 2), 0, isfinite(x) ? x : a)
/* v:clamp(low [, high]) */
ELEMENTWISE(m_clamp, luaL_checknumber(L, 2), luaL_optnumber(L, 3, INFINITY), x<a ? a : x> b ? b : x)

/* v:slice(from, to), both inclusive */
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

/* Windows end at their element; NaN if fewer than 'least' elements of the window have a sample. */
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

/* The mean if the upvalue is true. */
static int m_rolling_sum(lua_State *L)
{
	bool mean = lua_tointeger(L, lua_upvalueindex(1)) != 0;
	size_t width, least;
	const struct vec *x = rolling_args(L, &width, &least);
	struct vec *out = vec_push(L, x->n);

	/* Adds up each window anew: a running sum would accumulate rounding errors. */
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

/* The place of 'value' in a sorted array, existing or new. */
static size_t vec_place_of(const double *a, size_t n, double value)
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

	/* The window is kept sorted: one value leaves, one enters. */
	for (size_t i = 0; i < x->n; i++) {
		double comes = x->v[i], goes = i >= width ? x->v[i - width] : NAN;
		size_t at;

		if (isfinite(goes) && (at = vec_place_of(a, n, goes)) < n) {
			memmove(a + at, a + at + 1, (n - at - 1) * sizeof(*a));
			n--;
		}
		if (isfinite(comes)) {
			at = vec_place_of(a, n, comes);
			memmove(a + at + 1, a + at, (n - at) * sizeof(*a));
			a[at] = comes;
			n++;
		}
		if (n >= least)
			out->v[i] = n % 2 ? a[n / 2] : (a[n / 2 - 1] + a[n / 2]) / 2;
	}
	return 1;
}

/* Simple loops, which compilers vectorise. */
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

/* The upvalue is the operator. */
static int m_arithmetic(lua_State *L)
{
	int op = (int)lua_tointeger(L, lua_upvalueindex(1));
	const struct vec *a = vec_test(L, 1), *b = vec_test(L, 2);
	double x = a ? 0 : luaL_checknumber(L, 1), y = b ? 0 : luaL_checknumber(L, 2);
	struct vec *out;

	if (a && b)
		vec_check_lengths(L, a, b);
	out = vec_push_raw(L, a ? a->n : b->n);
	switch (op) {
	case '+': EACH(out->n, out->v, a, x, b, y, +); break;
	case '-': EACH(out->n, out->v, a, x, b, y, -); break;
	case '*': EACH(out->n, out->v, a, x, b, y, *); break;
	default: EACH(out->n, out->v, a, x, b, y, /);
	}
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

	luaL_argcheck(L, lag >= 0, 2, "a lag cannot be below 0");
	out = vec_push_raw(L, x->n);
	n = (lua_Unsigned)lag < x->n ? (size_t)lag : x->n;
	for (size_t i = 0; i < n; i++)
		out->v[i] = before;
	for (size_t i = n; i < x->n; i++)
		out->v[i] = x->v[i - n];
	return 1;
}

static int m_len(lua_State *L)
{
	lua_pushinteger(L, (lua_Integer)vec_check(L, 1)->n);
	return 1;
}

static double *element(lua_State *L)
{
	struct vec *x = vec_check(L, 1);
	lua_Integer i = luaL_checkinteger(L, 2);

	luaL_argcheck(L, i >= 1 && i <= (lua_Integer)x->n, 2, "index out of range");
	return &x->v[i - 1];
}

/* v[i], or v.method from the upvalue */
static int m_index(lua_State *L)
{
	if (lua_type(L, 2) != LUA_TSTRING) {
		lua_pushnumber(L, *element(L));
		return 1;
	}
	lua_pushvalue(L, 2);
	if (lua_rawget(L, lua_upvalueindex(1)) == LUA_TNIL)
		return luaL_error(L, "a vec has no method '%s'", lua_tostring(L, 2));
	return 1;
}

static int m_newindex(lua_State *L)
{
	double *at = element(L);

	*at = luaL_checknumber(L, 3);
	return 0;
}

static int m_tostring(lua_State *L)
{
	lua_pushfstring(L, "vec of %d", (int)vec_check(L, 1)->n);
	return 1;
}

/* A function, and its upvalue if several names share it. */
struct entry {
	const char *name;
	lua_CFunction function;
	int value;
};

static const struct entry functions[] = {{"least", vec_list_least}, {"likelihood", vec_likelihood},
	{"new", f_new}, {"of", f_of}, {"median", vec_list_median}, {"others", vec_list_others},
	{"present", vec_list_present}, {NULL}};

static const struct entry methods[] = {{"abs", m_abs}, {"above", m_above}, {"clamp", m_clamp},
	{"count", m_above, true}, {"fill", m_fill}, {"lag", m_lag}, {"log", m_log},
	{"max", m_extreme, 1}, {"mean", m_mean}, {"median", m_median}, {"min", m_extreme, -1},
	{"quantile", m_quantile}, {"rolling_mean", m_rolling_sum, true},
	{"rolling_median", m_rolling_median}, {"rolling_sum", m_rolling_sum, false},
	{"slice", m_slice}, {"sum", m_sum}, {NULL}};

static const struct entry metamethods[] = {{"__add", m_arithmetic, '+'},
	{"__sub", m_arithmetic, '-'}, {"__mul", m_arithmetic, '*'}, {"__div", m_arithmetic, '/'},
	{"__unm", m_unm}, {"__len", m_len}, {"__newindex", m_newindex}, {"__tostring", m_tostring},
	{NULL}};

/* Adds entries to the table on top of the stack. */
static void set_entries(lua_State *L, const struct entry *e)
{
	for (; e->name; e++) {
		lua_pushinteger(L, e->value);
		lua_pushcclosure(L, e->function, 1);
		lua_setfield(L, -2, e->name);
	}
}

void vec_open(lua_State *L)
{
	luaL_newmetatable(L, vec_type);
	set_entries(L, metamethods);
	lua_newtable(L);
	set_entries(L, methods);
	lua_pushcclosure(L, m_index, 1);
	lua_setfield(L, -2, "__index");
	lua_pop(L, 1);
	lua_newtable(L);
	set_entries(L, functions);
	lua_setglobal(L, "vec");
}

const char *const *vec_names(bool of_methods)
{
	static const char *names[2][sizeof(methods) / sizeof(*methods)];
	const struct entry *list = of_methods ? methods : functions;

	for (size_t i = 0; list[i].name; i++)
		names[of_methods][i] = list[i].name;
	return names[of_methods];
}
