/*
 * Values between Lua and JSON. A Lua table with elements 1..n and no other key is an array (also an
 * empty table); one with string keys only is an object.
 */
#ifndef CULPRIT_HARNESS_LUA_LUAJSON_H
#define CULPRIT_HARNESS_LUA_LUAJSON_H

#include <jansson.h>
#include <lua.h>

#include "harness/base/err.h"

/* Pushes 'v' as a Lua value; JSON null becomes nil. */
void luajson_push(lua_State *L, const json_t *v);

/* New reference in '*out' from the value at 'index', which stays. -EINVAL for functions, userdata,
 * mixed tables, NaN, tables nested deeper than 32, and more than 4 million values. */
int luajson_get(lua_State *L, int index, json_t **out, struct err *e);

#endif
