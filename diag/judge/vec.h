/*
 * vec: arrays of doubles for detectors, so that no loop over seconds runs in Lua.
 *
 * NaN means that there is no sample. Arithmetic passes NaN on; functions that condense (mean,
 * median, max, quantile, rolling ...) use the finite elements only and are NaN if there is none.
 * Indices begin at 1. The functions are typed in detector.meta.lua.
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

/* Pushes a new one, all NaN; raises a Lua error when there is no memory. */
struct vec *vec_push(lua_State *L, size_t n);

/* The same, for the caller to write all of. */
struct vec *vec_push_raw(lua_State *L, size_t n);

/* Sets the global table 'vec'. */
void vec_open(lua_State *L);

/* Names of the functions or methods, ended by NULL, for the test of the meta file. */
const char *const *vec_names(bool of_methods);

#endif
