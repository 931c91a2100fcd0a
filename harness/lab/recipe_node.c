/* What a file system's functions can do on a node of the lab: culprit.LabNode in
 * harness/lua/culprit.meta.lua. They run in the node's pid 1. */
#include <errno.h>
#include <fcntl.h>
#include <lauxlib.h>
#include <lua.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/clock.h"
#include "harness/base/file.h"
#include "harness/base/proc.h"
#include "harness/lab/recipe.h"
#include "harness/lua/luax.h"

#define RUN_S 30

/* The words of the list at 'index', after "env KEY=VALUE ..." if the options at 'options' have
 * 'env'. They are Lua's: valid while both tables are. The array is a userdata on the stack. */
static const char **push_words(lua_State *L, int index, int options)
{
	size_t n = lua_rawlen(L, index), k = 0, more = 0;
	bool env = lua_istable(L, options) && lua_getfield(L, options, "env") == LUA_TTABLE;
	int environment = lua_gettop(L);
	const char **words;

	if (env)
		for (lua_pushnil(L); lua_next(L, environment); lua_pop(L, 1))
			more++;
	luaL_argcheck(L, n, index, "a list of words");
	words = lua_newuserdatauv(L, (n + more + 2) * sizeof(*words), (int)more);
	if (env) {
		words[k++] = "env";
		for (lua_pushnil(L); lua_next(L, environment); lua_pop(L, 1)) {
			lua_pushfstring(L, "%s=%s", lua_tostring(L, -2), lua_tostring(L, -1));
			words[k] = lua_tostring(L, -1);
			lua_setiuservalue(L, environment + 1, (int)k++);
		}
	}
	for (size_t i = 1; i <= n; i++) {
		lua_rawgeti(L, index, (lua_Integer)i);
		if (!lua_isstring(L, -1))
			luaL_error(L, "word %d of the command is no text", (int)i);
		/* A number becomes its own text in the list. */
		words[k++] = lua_tostring(L, -1);
		lua_rawseti(L, index, (lua_Integer)i);
	}
	words[k] = NULL;
	return words;
}

static double timeout_of(lua_State *L, int options)
{
	double seconds = RUN_S;

	if (lua_istable(L, options)) {
		if (lua_getfield(L, options, "timeout") == LUA_TNUMBER)
			seconds = lua_tonumber(L, -1);
		lua_pop(L, 1);
	}
	return seconds;
}

/* Appends the last line of options.log that matches options.complaint. */
static void add_complaint(lua_State *L, int options, struct err *e)
{
	auto_free char *text = NULL;
	char *rest;
	struct err first = *e;
	char last[400] = "";

	if (!lua_istable(L, options) || lua_getfield(L, options, "log") != LUA_TSTRING ||
		lua_getfield(L, options, "complaint") != LUA_TSTRING ||
		file_read(lua_tostring(L, -2), &text, NULL, NULL))
		return;
	for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		lua_getglobal(L, "string");
		lua_getfield(L, -1, "find");
		lua_pushstring(L, line);
		lua_getfield(L, options, "complaint");
		lua_call(L, 2, 1);
		if (lua_toboolean(L, -1))
			snprintf(last, sizeof(last), "%s", line);
		lua_pop(L, 2);
	}
	if (*last)
		err_set(e, -EIO, "%.500s; its log: %s", first.text, last);
}

/* Runs words; pushes the output. */
static int run_words(lua_State *L, struct err *e)
{
	const char **words = push_words(L, 2, 3);
	char *output = NULL;
	int rc = proc_run_ok(words, timeout_of(L, 3), &output, e);

	lua_pushstring(L, output ? output : "");
	free(output);
	return rc;
}

static int node_run(lua_State *L)
{
	struct err e;
	int rc;

	luaL_checktype(L, 2, LUA_TTABLE);
	lua_settop(L, 3);
	rc = run_words(L, &e);
	if (!rc)
		return 1;
	add_complaint(L, 3, &e);
	return luax_raise(L, rc, &e);
}

static int node_try(lua_State *L)
{
	struct err e;

	luaL_checktype(L, 2, LUA_TTABLE);
	lua_settop(L, 3);
	if (!run_words(L, &e))
		return 1;
	lua_pushnil(L);
	lua_pushstring(L, e.text);
	return 2;
}

struct started {
	int rc; /* 0 or a positive errno */
	pid_t pid;
};

/* In a child that leads the session. */
static struct started start_in_session(const char *const words[], const char *log)
{
	posix_spawn_file_actions_t files;
	struct started s;

	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&files, 1, log, O_WRONLY | O_CREAT | O_APPEND, 0644);
	posix_spawn_file_actions_adddup2(&files, 1, 2);
	s.rc = posix_spawnp(&s.pid, words[0], &files, NULL, (char *const *)words, environ);
	return s;
}

/* In its own session, which it does not lead: a leader may call neither setpgid(2) nor
 * setsid(2), as daemons do. So it is restarted by faults, too (faults/primitives/server.c). Its
 * parent ends, and this process, the node's pid 1, inherits it. */
static int recipe_node_start(const char *const words[], const char *log, pid_t *pid)
{
	struct started s = {.rc = EIO, .pid = 0};
	int ends[2];
	pid_t leader;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	leader = fork();
	if (leader == 0) {
		setsid();
		s = start_in_session(words, log);
		_exit(write(ends[1], &s, sizeof(s)) < 0);
	}
	close(ends[1]);
	if (leader < 0)
		s.rc = errno;
	else if (read(ends[0], &s, sizeof(s)) < 0)
		s.rc = errno;
	close(ends[0]);
	if (leader > 0)
		waitpid(leader, NULL, 0);
	*pid = s.pid;
	return -s.rc;
}

static int node_spawn(lua_State *L)
{
	const char *name = luaL_checkstring(L, 2), **words;
	struct err e;
	pid_t pid = 0;
	int rc;

	luaL_argcheck(L, *name && !strchr(name, '/'), 2, "a name without slashes");
	luaL_checktype(L, 3, LUA_TTABLE);
	lua_settop(L, 4);
	words = push_words(L, 3, 4);
	rc = recipe_node_start(words, lab_path(LAB_NODE_RUN "/log", "%s.log", name).s, &pid);
	if (rc)
		return luax_raise(L, rc, (err_errno(&e, rc, "cannot start '%s'", words[0]), &e));
	programs_add(name, pid);
	return 0;
}

static int node_write(lua_State *L)
{
	const char *name = luaL_checkstring(L, 2);
	size_t size;
	const char *text = luaL_checklstring(L, 3, &size);
	struct lab_path path = lab_path(LAB_NODE_RUN, "%s", name);
	struct err e;
	int rc;

	luaL_argcheck(L, *name && *name != '/' && !strstr(name, ".."), 2,
		"a path below the node's folder");
	*strrchr(path.s, '/') = '\0';
	rc = file_mkdirs(path.s, 0755, &e);
	path.s[strlen(path.s)] = '/';
	rc = rc ?: file_write_atomic(path.s, 0600, text, size, &e);
	if (rc)
		return luax_raise(L, rc, &e);
	lua_pushstring(L, path.s);
	return 1;
}

static int node_read(lua_State *L)
{
	char *text = NULL;
	size_t size = 0;
	struct err e;

	if (file_read(luaL_checkstring(L, 2), &text, &size, &e)) {
		lua_pushnil(L);
		lua_pushstring(L, e.text);
		return 2;
	}
	lua_pushlstring(L, text, size);
	free(text);
	return 1;
}

static int node_wait(lua_State *L)
{
	const double deadline = clock_mono_s() + luaL_checknumber(L, 2);
	const char *what = luaL_checkstring(L, 3);

	const struct lab_node *n = lua_touserdata(L, lua_upvalueindex(1));
	char said[LAB_SAID_MAX];
	struct err e;

	luaL_checktype(L, 4, LUA_TFUNCTION);
	for (;; usleep(20000)) {
		lua_settop(L, 4);
		lua_pushvalue(L, 4);
		lua_call(L, 0, 2);
		if (lua_toboolean(L, 5))
			return 0;
		if (programs_check(n, &e))
			return luaL_error(L, "%s: %s", what, e.text);
		if (clock_mono_s() <= deadline)
			continue;
		programs_last_words(n, said);
		return luaL_error(L, "%s: not within %f s%s%s%s", what, luaL_checknumber(L, 2),
			lua_isstring(L, 6) ? ": " : "",
			lua_isstring(L, 6) ? lua_tostring(L, 6) : "", said);
	}
}

void recipe_push_node(lua_State *L, const struct lab_node *n, const char *storage)
{
	static const luaL_Reg methods[] = {{"run", node_run}, {"try", node_try},
		{"spawn", node_spawn}, {"write", node_write}, {"read", node_read},
		{"wait", node_wait}, {NULL, NULL}};
	const struct {
		const char *key, *value;
	} texts[] = {{"name", n->name}, {"address", n->address}, {"role", lab_role_name(n)},
		{"storage", storage}, {"mount", n->role == ROLE_CLIENT ? LAB_MOUNT : NULL},
		{"dir", LAB_NODE_RUN}};

	luaL_newlibtable(L, methods);
	lua_pushlightuserdata(L, (void *)n);
	luaL_setfuncs(L, methods, 1);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		lua_pushstring(L, texts[i].value);
		lua_setfield(L, -2, texts[i].key);
	}
	lua_pushinteger(L, n->number);
	lua_setfield(L, -2, "number");
}
