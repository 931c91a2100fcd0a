/*
 * vec: arrays of doubles for detectors, so that no loop over seconds runs in Lua.
 *
 * NaN means no sample. Arithmetic propagates NaN; functions that condense (mean, median, max,
 * quantile, rolling ...) use only the finite elements and give NaN without any. Indices begin at 1.
 * The functions are typed in detector.meta.lua.
 */
#ifndef CULPRIT_DIAG_JUDGE_VEC_H
#define CULPRIT_DIAG_JUDGE_VEC_H

#include <lua.h>
#include <stdbool.h>
#include <stddef.h>

struct vec {
	size_t n;
	double v[];
};

/* Pushes a new vec of NaN; raises a Lua error if memory runs out. */
struct vec *vec_push(lua_State *L, size_t n);

/* Likewise, uninitialised: the caller must write every element. */
struct vec *vec_push_raw(lua_State *L, size_t n);

/* Sets the global table 'vec'. */
void vec_open(lua_State *L);

/* Names of the functions or methods, NULL at the end, for the test of the meta file. */
const char *const *vec_names(bool of_methods);

#endif
