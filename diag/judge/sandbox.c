/*
 * The Lua state of a detector: two runs differ in it only by their measurements.
 */
#include <errno.h>
#include <lauxlib.h>
#include <string.h>

#include "diag/judge/detector_impl.h"
#include "diag/judge/vec.h"

/* luaL_tolstring, except that a value that would show an address becomes its type's name. */
static void push_text(lua_State *L, int index)
{
	int type = lua_type(L, index);

	if (type == LUA_TTABLE || type == LUA_TFUNCTION || type == LUA_TTHREAD ||
		type == LUA_TLIGHTUSERDATA)
		lua_pushstring(L, lua_typename(L, type));
	else
		luaL_tolstring(L, index, NULL);
}

static int safe_tostring(lua_State *L)
{
	luaL_checkany(L, 1);
	push_text(L, 1);
	return 1;
}

/* string.format (the upvalue) without "%p" and without addresses in "%s". */
static int safe_format(lua_State *L)
{
	const char *form = luaL_checkstring(L, 1);
	int n = lua_gettop(L);

	for (const char *p = strchr(form, '%'); p; p = strchr(p, '%')) {
		p += 1 + strspn(p + 1, "-+ #0123456789.");
		luaL_argcheck(L, *p != 'p', 1, "'%p' is not available");
		p += *p == '%';
	}
	for (int i = 2; i <= n; i++)
		if (lua_istable(L, i) || lua_isfunction(L, i) || lua_isthread(L, i)) {
			push_text(L, i);
			lua_replace(L, i);
		}
	lua_pushvalue(L, lua_upvalueindex(1));
	lua_insert(L, 1);
	lua_call(L, n, 1);
	return 1;
}

static void hide_addresses(lua_State *L)
{
	static const char *const dump[] = {"dump", NULL};

	lua_register(L, "tostring", safe_tostring);
	lua_getglobal(L, "string");
	lua_getfield(L, -1, "format");
	lua_pushcclosure(L, safe_format, 1);
	lua_setfield(L, -2, "format");
	lua_pop(L, 1);
	luax_remove(L, "string", dump);
}

void sandbox_close(struct detector *d)
{
	if (d->L)
		lua_close(d->L);
	d->L = NULL;
}

int sandbox_load(struct detector *d, struct err *e)
{
	static const char *const removed[] = {"require", "rawset", NULL};

	sandbox_close(d);
	d->L = luax_new();
	if (!d->L)
		return err_errno(e, -ENOMEM, "cannot make a Lua state");
	/* Nearly all objects of a detector are vecs that live for one expression. */
	lua_gc(d->L, LUA_GCGEN, 0, 0);
	luax_remove(d->L, LUA_GNAME, removed);
	hide_addresses(d->L);
	vec_open(d->L);
	return d->src.text ? luax_load_text(d->L, &d->src, e)
			   : luax_load_file(d->L, d->path, &d->src, e);
}
