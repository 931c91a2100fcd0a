/* Converts values between Lua and JSON. */
#include "harness/lua/luajson.h"

#include <errno.h>
#include <lauxlib.h>
#include <math.h>

enum { DEPTH_MAX = 32, VALUES_MAX = 4000000 };

void luajson_push(lua_State *L, const json_t *v)
{
	const char *key;
	json_t *item;
	size_t i;

	luaL_checkstack(L, 4, "JSON is nested too deeply");
	switch (v ? json_typeof(v) : JSON_NULL) {
	case JSON_OBJECT:
		lua_newtable(L);
		json_object_foreach((json_t *)v, key, item) {
			luajson_push(L, item);
			lua_setfield(L, -2, key);
		}
		break;
	case JSON_ARRAY:
		lua_createtable(L, (int)json_array_size(v), 0);
		json_array_foreach(v, i, item) {
			luajson_push(L, item);
			lua_rawseti(L, -2, (lua_Integer)i + 1);
		}
		break;
	case JSON_STRING: lua_pushlstring(L, json_string_value(v), json_string_length(v)); break;
	case JSON_INTEGER: lua_pushinteger(L, json_integer_value(v)); break;
	case JSON_REAL: lua_pushnumber(L, json_real_value(v)); break;
	case JSON_TRUE:
	case JSON_FALSE: lua_pushboolean(L, json_is_true(v)); break;
	default: lua_pushnil(L);
	}
}

/* '*left' counts down: tables with shared members can expand to more values than memory holds. */
static int lua_luajson_get(
	lua_State *L, int index, int depth, long *left, json_t **out, struct err *e);

/* The array or object for the table at 'index'; the caller owns '*v', even on failure. */
static int get_table(lua_State *L, int index, int depth, long *left, json_t **v, struct err *e)
{
	lua_Unsigned n = lua_rawlen(L, index), keys = 0;
	json_t *item;
	int rc = 0;

	if (depth > DEPTH_MAX)
		return err_set(e, -EINVAL, "a table has over %d nested levels, or contains itself",
			DEPTH_MAX);
	for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1))
		keys++;
	*v = keys == n ? json_array() : json_object();
	for (lua_Integer i = 1; keys == n && (lua_Unsigned)i <= n && !rc; i++) {
		lua_rawgeti(L, index, i);
		rc = lua_luajson_get(L, lua_gettop(L), depth + 1, left, &item, e);
		if (!rc)
			json_array_append_new(*v, item);
		lua_pop(L, 1);
	}
	if (keys == n)
		return rc;
	for (lua_pushnil(L); !rc && lua_next(L, index); lua_pop(L, 1)) {
		if (lua_type(L, -2) != LUA_TSTRING)
			rc = err_set(e, -EINVAL, "a table mixes numbered and named entries");
		else
			rc = lua_luajson_get(L, lua_gettop(L), depth + 1, left, &item, e);
		if (!rc)
			json_object_set_new(*v, lua_tostring(L, -2), item);
	}
	return rc;
}

static int lua_luajson_get(
	lua_State *L, int index, int depth, long *left, json_t **out, struct err *e)
{
	json_t *v = NULL;
	const char *s;
	size_t len;
	int rc = 0;

	if (!lua_checkstack(L, 4))
		return err_set(e, -ENOMEM, "a table is nested too deeply");
	if (--*left < 0)
		return err_set(e, -EINVAL, "a table has more than %d values", VALUES_MAX);
	switch (lua_type(L, index)) {
	case LUA_TNIL: v = json_null(); break;
	case LUA_TBOOLEAN: v = json_boolean(lua_toboolean(L, index)); break;
	case LUA_TNUMBER:
		v = lua_isinteger(L, index) ? json_integer(lua_tointeger(L, index))
					    : json_real(lua_tonumber(L, index));
		break;
	case LUA_TSTRING:
		s = lua_tolstring(L, index, &len);
		v = json_stringn(s, len);
		break;
	case LUA_TTABLE: rc = get_table(L, index, depth, left, &v, e); break;
	default: return err_set(e, -EINVAL, "cannot store a %s as data", luaL_typename(L, index));
	}
	if (!rc && !v)
		rc = err_set(e, -EINVAL, "a value is not finite, or a string is not UTF-8");
	if (rc)
		json_decref(v);
	else
		*out = v;
	return rc;
}

int luajson_get(lua_State *L, int index, json_t **out, struct err *e)
{
	long left = VALUES_MAX;
	int top = lua_gettop(L), rc = lua_luajson_get(L, lua_absindex(L, index), 0, &left, out, e);

	lua_settop(L, top);
	return rc ? err_blame(e, ERR_SCENARIO, rc) : 0;
}
