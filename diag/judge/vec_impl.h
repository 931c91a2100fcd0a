/* Shared by the files of vec. */
#ifndef CULPRIT_DIAG_JUDGE_VEC_IMPL_H
#define CULPRIT_DIAG_JUDGE_VEC_IMPL_H

#include "diag/judge/vec.h"

struct vec *vec_test(lua_State *L, int index); /* NULL if it is not a vec */

/* Raises a Lua error unless both have the same length. */
void vec_check_lengths(lua_State *L, const struct vec *a, const struct vec *b);

/* Pushes room for n doubles, which the garbage collector frees. */
double *vec_scratch(lua_State *L, size_t n);

/* Copies the finite ones of n values; returns their number. */
size_t vec_finite(const double *x, size_t n, double *out);

/* Median of n values, which are reordered; NaN for n = 0. */

/* Functions of the table 'vec'. */
int vec_likelihood(lua_State *L);
int vec_list_least(lua_State *L);
int vec_list_median(lua_State *L);
int vec_list_others(lua_State *L);
int vec_list_present(lua_State *L);

#endif
