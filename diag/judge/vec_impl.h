/* What the parts of vec share. */
#ifndef CULPRIT_DIAG_JUDGE_VEC_IMPL_H
#define CULPRIT_DIAG_JUDGE_VEC_IMPL_H

#include "diag/judge/vec.h"

struct vec *vec_test(lua_State *L, int index); /* NULL if it is none */

/* Raises a Lua error unless both are of one length. */
void vec_check_lengths(lua_State *L, const struct vec *a, const struct vec *b);

/* Room for n doubles that the collector frees; on the stack's top. */
double *vec_scratch(lua_State *L, size_t n);

/* Copies the finite ones of n values; their number. */
size_t vec_finite(const double *x, size_t n, double *out);

/* Median of n values, whose order is lost; NaN for none. */

/* Functions of the table 'vec'. */
int vec_likelihood(lua_State *L);
int vec_list_least(lua_State *L);
int vec_list_median(lua_State *L);
int vec_list_others(lua_State *L);
int vec_list_present(lua_State *L);

#endif
