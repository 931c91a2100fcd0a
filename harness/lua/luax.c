/* Loads Lua files and reads their tables strictly. */
#include "harness/base/near.h"
#include "harness/lua/luax.h"

#include <ctype.h>
#include <errno.h>
#include <lauxlib.h>
#include <libgen.h>
#include <lualib.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/file.h"
#include "harness/base/home.h"
#include "harness/lua/limits.h"

/* Registry keys: the code, class and sentence that luax_raise passes to luax_call, and the
 * prelude. */
static const char raised_code, raised_class, raised_text, prelude_key;

static int require_prelude(lua_State *L)
{
	const char *name = luaL_checkstring(L, 1);
	char *path, *text = NULL;
	struct err e;
	size_t size;
	int status;

	if (strcmp(name, "culprit"))
		return luaL_error(L, "no module '%s'; only require \"culprit\" is possible", name);
	if (lua_rawgetp(L, LUA_REGISTRYINDEX, &prelude_key) != LUA_TNIL)
		return 1;
	if (home_path(LUAX_PRELUDE, &path, &e) || file_read(path, &text, &size, &e))
		return luaL_error(L, "%s", e.text);
	free(path);
	status = luaL_loadbufferx(L, text, size, "@culprit.lua", "t");
	free(text);
	if (status != LUA_OK)
		return lua_error(L);
	lua_call(L, 0, 1);
	lua_pushvalue(L, -1);
	lua_rawsetp(L, LUA_REGISTRYINDEX, &prelude_key);
	return 1;
}

lua_State *luax_new(void)
{
	static const luaL_Reg libs[] = {{LUA_GNAME, luaopen_base}, {LUA_STRLIBNAME, luaopen_string},
		{LUA_TABLIBNAME, luaopen_table}, {LUA_MATHLIBNAME, luaopen_math},
		{LUA_UTF8LIBNAME, luaopen_utf8}, {NULL, NULL}};
	/* Metamethods (__gc, __index of a table) would run outside luax_call, without limits. */
	static const char *const removed[] = {"dofile", "loadfile", "load", "collectgarbage",
		"print", "warn", "setmetatable", "getmetatable", NULL};
	/* Random numbers come from the plan's seed, not from a script. */
	static const char *const removed_math[] = {"random", "randomseed", NULL};
	lua_State *L = limits_new_state();

	for (const luaL_Reg *l = libs; l->name; l++) {
		luaL_requiref(L, l->name, l->func, 1);
		lua_pop(L, 1);
	}
	luax_remove(L, LUA_GNAME, removed);
	luax_remove(L, LUA_MATHLIBNAME, removed_math);
	lua_register(L, "require", require_prelude);
	return L;
}

void luax_remove(lua_State *L, const char *table, const char *const names[])
{
	lua_getglobal(L, table);
	for (; *names; names++) {
		lua_pushnil(L);
		lua_setfield(L, -2, *names);
	}
	lua_pop(L, 1);
}

/* Does the error object on the stack contain the sentence that luax_raise raised last? The file
 * may have caught that error with pcall and failed otherwise, or added words to it. */
static bool is_raised(lua_State *L)
{
	const char *text = lua_isstring(L, -1) ? lua_tostring(L, -1) : "";
	bool same = lua_rawgetp(L, LUA_REGISTRYINDEX, &raised_text) == LUA_TSTRING &&
		strstr(text, lua_tostring(L, -1));

	lua_pop(L, 1);
	return same;
}

/* Pops the error object and sets the sentence and class of 'e'. */
static int take_error(lua_State *L, struct err *e)
{
	enum err_class class = ERR_SCENARIO;
	int code = limits_explain(L, e);

	if (!code) {
		code = -EINVAL;
		if (is_raised(L)) {
			lua_rawgetp(L, LUA_REGISTRYINDEX, &raised_code);
			code = (int)lua_tointeger(L, -1);
			lua_rawgetp(L, LUA_REGISTRYINDEX, &raised_class);
			class = (enum err_class)lua_tointeger(L, -1);
			lua_pop(L, 2);
		}
		err_set(e, code, "%s",
			lua_isstring(L, -1) ? lua_tostring(L, -1) : "the error is not a string");
	}
	lua_pushnil(L);
	lua_rawsetp(L, LUA_REGISTRYINDEX, &raised_text);
	lua_pop(L, 1);
	return err_blame(e, class, code);
}

int luax_call(lua_State *L, int nargs, int nresults, struct err *e)
{
	/* Forget an error that an earlier call caught. */
	lua_pushnil(L);
	lua_rawsetp(L, LUA_REGISTRYINDEX, &raised_text);
	return limits_pcall(L, nargs, nresults) == LUA_OK ? 0 : take_error(L, e);
}

int luax_raise(lua_State *L, int code, const struct err *e)
{
	lua_pushinteger(L, code);
	lua_rawsetp(L, LUA_REGISTRYINDEX, &raised_code);
	lua_pushinteger(L, e->class);
	lua_rawsetp(L, LUA_REGISTRYINDEX, &raised_class);
	lua_pushstring(L, e->text);
	lua_rawsetp(L, LUA_REGISTRYINDEX, &raised_text);
	return luaL_error(L, "%s", e->text);
}

int luax_load_text(lua_State *L, const struct luax_source *src, struct err *e)
{
	auto_free char *chunk = alloc_format("@%s", src->path);
	int rc = limits_load(L, src->text, strlen(src->text), chunk) == LUA_OK ? 0
									       : take_error(L, e);

	if (!rc)
		rc = luax_call(L, 0, 1, e);
	if (!rc && !lua_istable(L, -1)) {
		lua_pop(L, 1);
		rc = err_set(e, -EINVAL, "%s: the file must return a table ('return { ... }')",
			src->path);
	}
	return rc ? err_blame(e, ERR_SCENARIO, rc) : 0;
}

int luax_load_file(lua_State *L, const char *path, struct luax_source *src, struct err *e)
{
	struct luax_source mine = {.path = alloc_copy(path)};
	size_t size = 0, line = 1;
	int rc = file_read(path, &mine.text, &size, e);

	if (!rc && *mine.text != *LUA_SIGNATURE && strlen(mine.text) < size) {
		for (const char *p = mine.text; *p; p++)
			line += *p == '\n';
		rc = err_set(e, -EINVAL, "%s:%zu: a NUL byte: the file is not text", path, line);
	}
	rc = rc ? err_blame(e, ERR_SCENARIO, rc) : luax_load_text(L, &mine, e);
	if (rc || !src)
		luax_source_clear(&mine);
	else
		*src = mine;
	return rc;
}

void luax_source_clear(struct luax_source *src)
{
	free(src->path);
	free(src->text);
	*src = (struct luax_source){0};
}

char *luax_beside(const char *file, const char *path)
{
	auto_free char *copy = alloc_copy(file);

	return *path == '/' ? alloc_copy(path) : alloc_format("%s/%s", dirname(copy), path);
}

static bool word_char(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* Is 'word' at 'p' a key (word = , ["word"] =) or a whole quoted string? */
static bool stands_here(const char *text, const char *p, size_t len)
{
	bool quoted = p > text && (p[-1] == '"' || p[-1] == '\'') && p[len] == p[-1];
	const char *q = p + len;

	if (quoted)
		return true;
	if ((p > text && word_char(p[-1])) || word_char(*q))
		return false;
	q += strspn(q, " \t");
	return *q == '=' && q[1] != '=';
}

static int line_of(const char *text, const char *word)
{
	size_t len = strlen(word);
	int line = 1;

	for (const char *p = text; len && *p; p++) {
		if (*p == '\n')
			line++;
		else if (p[0] == '-' && p[1] == '-')
			p += strcspn(p, "\n") - 1;
		else if (!strncmp(p, word, len) && stands_here(text, p, len))
			return line;
	}
	return 0;
}

int luax_complain(
	const struct luax_source *src, const char *word, struct err *e, const char *fmt, ...)
{
	const char *path = src && src->path ? src->path : "";
	int line = src && word && src->text ? line_of(src->text, word) : 0;
	char sentence[900], number[16] = "";
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(sentence, sizeof(sentence), fmt, ap);
	va_end(ap);
	if (line)
		snprintf(number, sizeof(number), ":%d", line);
	err_set(e, -EINVAL, "%s%s%s%s", path, number, *path ? ": " : "", sentence);
	return err_blame(e, ERR_SCENARIO, -EINVAL);
}

static int refuse_unknown(lua_State *L, const struct luax_source *src, const char *what,
	const struct luax_field *fields, bool array, struct err *e)
{
	const char *names[64], *key, *near;
	char all[512] = "";
	size_t n = 0, len = 0;

	if (lua_type(L, -2) != LUA_TSTRING) {
		if (array && lua_isinteger(L, -2))
			return 0;
		return luax_complain(src, NULL, e, "%s: only named keys are allowed", what);
	}
	key = lua_tostring(L, -2);
	for (; n < 63 && fields[n].name; n++) {
		if (!strcmp(fields[n].name, key))
			return 0;
		names[n] = fields[n].name;
	}
	names[n] = NULL;
	near = near_match(key, names);
	if (near)
		return luax_complain(
			src, key, e, "%s: unknown key '%s'; did you mean '%s'?", what, key, near);
	for (size_t i = 0; i < n && len < sizeof(all); i++)
		len += (size_t)snprintf(
			all + len, sizeof(all) - len, "%s%s", i ? ", " : "", names[i]);
	return luax_complain(src, key, e, "%s: unknown key '%s'; there %s %s", what, key,
		n == 1 ? "is" : "are", n ? all : "none");
}

static int read_number(lua_State *L, const struct luax_source *src, const char *what,
	const struct luax_field *f, double *value, struct err *e)
{
	struct err why;
	char lo[32], hi[32];

	if (f->type == LUAX_QUANTITY && lua_type(L, -1) == LUA_TSTRING) {
		if (unit_parse(f->unit, lua_tostring(L, -1), value, &why))
			return luax_complain(
				src, f->name, e, "%s: '%s': %s", what, f->name, why.text);
	} else if (lua_type(L, -1) == LUA_TNUMBER) {
		*value = lua_tonumber(L, -1);
		if (f->type == LUAX_QUANTITY && f->unit != UNIT_NONE && *value != 0) {
			snprintf(lo, sizeof(lo), "%g", *value);
			unit_parse(f->unit, lo, value, &why);
			return luax_complain(
				src, f->name, e, "%s: '%s': %s", what, f->name, why.text);
		}
	} else {
		return luax_complain(src, f->name, e, "%s: '%s' must be a %s, not a %s", what,
			f->name,
			f->type == LUAX_QUANTITY ? "quantity in quotes, with its unit" : "number",
			luaL_typename(L, -1));
	}
	if ((f->min != 0 || f->max != 0) && !(*value >= f->min && *value <= f->max))
		return luax_complain(src, f->name, e, "%s: '%s' must be between %s and %s", what,
			f->name, unit_format(f->unit, f->min, lo, sizeof(lo)),
			unit_format(f->unit, f->max, hi, sizeof(hi)));
	return 0;
}

static int read_field(lua_State *L, const struct luax_source *src, const char *what,
	const struct luax_field *f, struct err *e)
{
	static const struct {
		int type;
		const char *name;
	} wanted[] = {[LUAX_STRING] = {LUA_TSTRING, "string"},
		[LUAX_BOOLEAN] = {LUA_TBOOLEAN, "boolean"},
		[LUAX_TABLE] = {LUA_TTABLE, "table"},
		[LUAX_FUNCTION] = {LUA_TFUNCTION, "function"}};
	double value;
	int rc;

	switch (f->type) {
	case LUAX_ANY: return 0;
	case LUAX_INTEGER:
	case LUAX_NUMBER:
	case LUAX_QUANTITY:
		rc = read_number(L, src, what, f, &value, e);
		if (rc)
			return rc;
		if (f->type == LUAX_INTEGER && value != floor(value))
			return luax_complain(
				src, f->name, e, "%s: '%s' must be a whole number", what, f->name);
		if (f->out && f->type == LUAX_INTEGER)
			*(long *)f->out = (long)value;
		else if (f->out)
			*(double *)f->out = value;
		return 0;
	default: break;
	}
	if (lua_type(L, -1) != wanted[f->type].type)
		return luax_complain(src, f->name, e, "%s: '%s' must be a %s, not a %s", what,
			f->name, wanted[f->type].name, luaL_typename(L, -1));
	if (f->out && f->type == LUAX_BOOLEAN) {
		*(bool *)f->out = lua_toboolean(L, -1);
	} else if (f->out && f->type == LUAX_STRING) {
		free(*(char **)f->out);
		*(char **)f->out = alloc_copy(lua_tostring(L, -1));
	}
	return 0;
}

int luax_read(lua_State *L, int index, const struct luax_source *src, const char *what,
	const struct luax_field *fields, bool array, struct err *e)
{
	int rc = 0;

	index = lua_absindex(L, index);
	if (!lua_istable(L, index))
		return luax_complain(src, NULL, e, "%s must be a table, not a %s", what,
			luaL_typename(L, index));
	for (lua_pushnil(L); !rc && lua_next(L, index); lua_pop(L, 1))
		rc = refuse_unknown(L, src, what, fields, array, e);
	if (rc) {
		lua_pop(L, 1);
		return rc;
	}
	for (const struct luax_field *f = fields; f->name && !rc; f++) {
		lua_getfield(L, index, f->name);
		if (!lua_isnil(L, -1))
			rc = read_field(L, src, what, f, e);
		else if (f->required)
			rc = luax_complain(src, NULL, e, "%s: '%s' is missing", what, f->name);
		lua_pop(L, 1);
	}
	return rc;
}
