/*
 * Converts values between Lua and JSON. A Lua table with only elements 1..n (or none) is an
 * array; one with only string keys is an object.
 */
#ifndef CULPRIT_HARNESS_LUA_LUAJSON_H
#define CULPRIT_HARNESS_LUA_LUAJSON_H

#include <jansson.h>
#include <lua.h>

#include "harness/base/err.h"

/* Pushes 'v' as a Lua value; JSON null becomes nil. */
void luajson_push(lua_State *L, const json_t *v);

/* '*out' receives a new reference to the value at 'index', which stays on the stack. -EINVAL for
 * functions, userdata, mixed tables, NaN, tables nested deeper than 32, and more than 4 million
 * values. */
int luajson_get(lua_State *L, int index, json_t **out, struct err *e);

#endif
