/* Reads defaults of options from the user's configuration file. */
#include "harness/cli/config.h"

#include <errno.h>
#include <lauxlib.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/near.h"
#include "harness/cli/cmd.h"
#include "harness/lua/luax.h"

/* Where the file would be; NULL: nowhere. */
static char *config_path(void)
{
	const char *own = getenv("CULPRIT_CONFIG"), *xdg = getenv("XDG_CONFIG_HOME"),
		   *home = getenv("HOME");

	if (own)
		return *own ? alloc_copy(own) : NULL;
	if (xdg && *xdg == '/')
		return alloc_format("%s/culprit/config.lua", xdg);
	return home && *home == '/' ? alloc_format("%s/.config/culprit/config.lua", home) : NULL;
}

static const struct command *command_named(const char *name)
{
	for (const struct command *const *c = commands; *c; c++) {
		if (!strcmp((*c)->name, name))
			return *c;
		for (const struct command *const *p = (*c)->parts; p && *p; p++)
			if (!strcmp((*p)->name, name))
				return *p;
	}
	return NULL;
}

/* Every key must be a command that takes options. */
static int check_commands(lua_State *L, const struct luax_source *src, struct err *e)
{
	int rc = 0;

	for (lua_pushnil(L); !rc && lua_next(L, 1); lua_pop(L, 1)) {
		const char *name = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : NULL;
		const struct command *c = name ? command_named(name) : NULL;
		char hint[96];

		if (!name)
			rc = luax_complain(src, NULL, e, "takes commands as keys only");
		else if (!c || c->hidden || !c->options)
			rc = luax_complain(src, name, e, "there is no command '%s' with options%s",
				name, c ? "" : command_hint(name, hint));
		else if (!lua_istable(L, -1))
			rc = luax_complain(src, name, e,
				"'%s' must be a table of options, not a %s", name,
				luaL_typename(L, -1));
	}
	lua_settop(L, 1);
	return rc;
}

static int config_refuse(
	const struct command *c, const struct luax_source *src, const char *name, struct err *e)
{
	const char *names[65] = {NULL}, *near;
	struct option_walk w = {c->options};
	const struct option_row *o;

	for (size_t n = 0; n < 64 && (o = option_next(&w));)
		if (o->type != OPTION_GROUP)
			names[n++] = o->name;
	near = near_match(name, names);
	return luax_complain(src, name, e, "'culprit %s' has no option '%s'%s%s%s", c->name, name,
		near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

/* The pair on top of the stack: an option's name and its value. */
static int set_one(lua_State *L, const struct command *c, const struct luax_source *src,
	void *options, config_set_fn *set, struct config *held, struct err *e)
{
	const char *name = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : "";
	struct option_walk w = {c->options};
	const struct option_row *o = option_find(&w, name, strlen(name), 0);
	const bool flag = lua_isboolean(L, -1);
	struct err why;
	char *text;

	if (!*name)
		return luax_complain(src, NULL, e, "%s: takes options as keys only", c->name);
	if (!o)
		return config_refuse(c, src, name, e);
	if (o->type == OPTION_LIST)
		return luax_complain(src, name, e,
			"'%s' may be repeated, so it stands on the command line only", name);
	if (flag == option_takes_value(o) || (!flag && !lua_isstring(L, -1)))
		return luax_complain(src, name, e, "'%s' takes %s", name,
			option_takes_value(o) ? "a text or a number" : "true or false");
	if (flag && !lua_toboolean(L, -1))
		return 0;
	text = alloc_copy(flag ? "" : lua_tostring(L, -1));
	held->texts = alloc_room(held->texts, held->n, sizeof(*held->texts));
	held->texts[held->n++] = text;
	if (set(o, (char *)options + w.at, flag ? NULL : text, &why))
		return luax_complain(src, name, e, "'%s' %s", name, why.text);
	return 0;
}

int config_apply(const struct command *c, void *options, config_set_fn *set, struct config *held,
	struct err *e)
{
	auto_free char *path = c->hidden || !c->options ? NULL : config_path();
	struct luax_source src = {0};
	lua_State *L;
	int rc;

	if (!path || (!getenv("CULPRIT_CONFIG") && access(path, F_OK) < 0))
		return 0;
	L = luax_new();
	rc = luax_load_file(L, path, &src, e);
	rc = rc ?: check_commands(L, &src, e);
	if (!rc && lua_getfield(L, 1, c->name) == LUA_TTABLE)
		for (lua_pushnil(L); !rc && lua_next(L, 2); lua_pop(L, 1))
			rc = set_one(L, c, &src, options, set, held, e);
	luax_source_clear(&src);
	lua_close(L);
	return rc;
}

void config_clear(struct config *held)
{
	for (size_t i = 0; i < held->n; i++)
		free(held->texts[i]);
	free(held->texts);
	*held = (struct config){0};
}
