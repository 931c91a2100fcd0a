/*
 * Limits Lua states: memory, and processor time for each call.
 *
 * The allocator refuses memory. A timer on the thread's processor-time clock measures time, so
 * waiting for a node is free. When it expires, a hook raises an error at the next Lua
 * instruction, and again at each one after it, so pcall cannot suppress it. Code that is still
 * inside a C function one second later (pattern matching can take years) cannot be unwound: the
 * process ends.
 */
#ifndef CULPRIT_HARNESS_LUA_LIMITS_H
#define CULPRIT_HARNESS_LUA_LIMITS_H

#include <lua.h>

#include "harness/base/err.h"

/* A state with limits and no libraries. lua_close frees it. */
lua_State *limits_new_state(void);

/* lua_pcall within the limits. On failure the error object is on the stack, as after lua_pcall,
 * and limits_explain reports whether a limit was the reason. */
int limits_pcall(lua_State *L, int nargs, int nresults);

/* luaL_loadbufferx of text, within the memory limit. */
int limits_load(lua_State *L, const char *text, size_t size, const char *chunk);

/* After a failure: -ETIMEDOUT or -E2BIG with "FILE:LINE: sentence" if a limit was reached;
 * otherwise 0. */
int limits_explain(lua_State *L, struct err *e);

#endif
