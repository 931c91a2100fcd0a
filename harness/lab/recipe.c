/* Runs the steps by which a file system starts in the lab. */
#include "harness/lab/recipe.h"

#include <errno.h>
#include <lauxlib.h>
#include <lua.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/clock.h"
#include "harness/base/near.h"
#include "harness/fs/fs.h"
#include "harness/lua/library.h"
#include "harness/lua/luajson.h"
#include "harness/lua/luax.h"

#define READY_S 60
#define LAYOUTS_MAX 16

struct recipe {
	struct fs *fs;
	lua_State
		*L; /* the adapter's own; between calls only the adapter's table is on the stack */
	const struct luax_source *src;
	json_t *params;
	char *changes; /* what differs from the params' defaults: "method=alt-aio" */
	char *layout;
	long layout_servers; /* the least number */
	long managers, port;
};

/* Puts the field of the table 'lab' at 3, and that table at 2. Returns the field's type. */
static int recipe_get(const struct recipe *r, const char *field)
{
	lua_settop(r->L, 1);
	lua_getfield(r->L, 1, "lab");
	return lua_getfield(r->L, 2, field);
}

/* Checks the layouts, and takes the one that is 'wanted' or else the first. */
static int read_layouts(struct recipe *r, const char *wanted, struct err *e)
{
	const char *names[LAYOUTS_MAX + 1] = {NULL};
	char hint[96];
	int rc = 0;

	recipe_get(r, "layouts");
	for (size_t i = 0; !rc && lua_rawgeti(r->L, 3, (lua_Integer)i + 1) != LUA_TNIL; i++) {
		auto_free char *name = NULL;
		long servers = 1;
		const struct luax_field fields[] = {
			{"name", LUAX_STRING, .required = true, .out = &name},
			{"summary", LUAX_STRING, .required = true},
			{"servers", LUAX_INTEGER, .min = 1, .max = LAB_MAX_OF_A_ROLE,
				.out = &servers},
			{NULL},
		};

		if (i == LAYOUTS_MAX || !lua_istable(r->L, -1))
			rc = luax_complain(r->src, "layouts", e,
				"lab.layouts must be a list of at most %d tables", LAYOUTS_MAX);
		rc = rc ?: luax_read(r->L, -1, r->src, "lab.layouts", fields, false, e);
		if (rc)
			break;
		lua_getfield(r->L, -1, "name");
		names[i] = lua_tostring(r->L, -1);
		lua_settop(r->L, 3);
		if (!r->layout && (!*wanted || !strcmp(name, wanted))) {
			r->layout = AUTO_TAKE(name);
			r->layout_servers = servers;
		}
	}
	if (!rc && !names[0])
		rc = luax_complain(r->src, "layouts", e, "lab.layouts: there must be one");
	if (!rc && !r->layout)
		rc = luax_complain(NULL, NULL, e,
			"--layout: %s has no '%s'%s; 'culprit list file-systems' shows its layouts",
			r->src->path, wanted, near_hint(wanted, names, hint));
	lua_settop(r->L, 1);
	return rc;
}

static int check_texts(struct recipe *r, const char *key, struct err *e)
{
	int rc = 0;

	if (recipe_get(r, key) == LUA_TTABLE)
		for (lua_pushnil(r->L); !rc && lua_next(r->L, 3); lua_settop(r->L, 4))
			if (lua_type(r->L, 5) != LUA_TSTRING)
				rc = luax_complain(r->src, key, e, "lab.%s: texts only", key);
	lua_settop(r->L, 1);
	return rc;
}

/* "key=value,key=value" as a table on the stack; numbers become numbers. */
static int push_settings(lua_State *L, const char *settings, struct err *e)
{
	auto_free char *copy = alloc_copy(settings);
	char *rest, *word;

	lua_newtable(L);
	for (word = strtok_r(copy, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
		char *value = strchr(word, '=');

		if (!value || value == word)
			return luax_complain(NULL, NULL, e,
				"--fs takes NAME or NAME,KEY=VALUE,...; '%s' is no KEY=VALUE",
				word);
		*value++ = '\0';
		if (!strcmp(value, "true") || !strcmp(value, "false"))
			lua_pushboolean(L, *value == 't');
		else if (!lua_stringtonumber(L, value))
			lua_pushstring(L, value);
		lua_setfield(L, -2, word);
	}
	return 0;
}

static int read_params(struct recipe *r, const struct lab_options *o, struct err *e)
{
	auto_free char *what = alloc_format("file system '%s'", o->fs);
	int rc;

	recipe_get(r, "params");
	rc = push_settings(r->L, o->settings, e)
		?: library_params(r->L, 2, r->src, 4, NULL, what, NULL, &r->params, &r->changes, e);
	lua_settop(r->L, 1);
	return rc;
}

static int read_lab(struct recipe *r, const struct lab_options *o, struct err *e)
{
	const struct luax_field fields[] = {
		{"programs", LUAX_TABLE, .required = true},
		{"path", LUAX_TABLE},
		{"layouts", LUAX_TABLE, .required = true},
		{"params", LUAX_TABLE},
		{"managers", LUAX_INTEGER, .min = 0, .max = LAB_MAX_MANAGERS, .out = &r->managers},
		{"port", LUAX_INTEGER, .min = 1, .max = 65535, .out = &r->port},
		{"start_manager", LUAX_FUNCTION},
		{"format", LUAX_FUNCTION},
		{"start_server", LUAX_FUNCTION},
		{"start_client", LUAX_FUNCTION},
		{"ready", LUAX_FUNCTION},
		{NULL},
	};

	if (lua_getfield(r->L, 1, "lab") != LUA_TTABLE)
		return luax_complain(r->src, NULL, e,
			"it has no 'lab', which says how the lab starts it: see "
			"harness/fs/README.md");
	return luax_read(r->L, 2, r->src, "lab", fields, false, e)
		?: check_texts(r, "programs", e)
		?: check_texts(r, "path", e)
		?: read_layouts(r, o->layout, e)
		?: read_params(r, o, e);
}

int recipe_open(const struct lab_options *o, struct recipe **out, struct err *e)
{
	struct recipe *r = alloc_zero(1, sizeof(*r));
	int rc = fs_load(o->fs, &r->fs, e);

	if (!rc) {
		r->L = fs_state(r->fs);
		r->src = fs_source(r->fs);
		rc = read_lab(r, o, e);
	}
	if (rc)
		recipe_free(r);
	else
		*out = r;
	return rc;
}

void recipe_free(struct recipe *r)
{
	if (!r)
		return;
	json_decref(r->params);
	free(r->changes);
	free(r->layout);
	fs_free(r->fs);
	free(r);
}

struct fs *recipe_fs(const struct recipe *r)
{
	return r->fs;
}

int recipe_complete(const struct recipe *r, struct lab_options *o, struct err *e)
{
	if (library_is_path(o->fs) && *o->fs != '/') {
		auto_free char *path = realpath(r->src->path, NULL);

		if (!path || strlen(path) >= sizeof(o->fs))
			return err_errno(e, -errno, "cannot resolve '%s'", r->src->path);
		strcpy(o->fs, path);
	}
	if (strlen(r->layout) >= sizeof(o->layout) || strlen(r->changes) >= sizeof(o->settings))
		return err_set(e, -EINVAL, "--fs and --layout: too long");
	strcpy(o->layout, r->layout);
	strcpy(o->settings, r->changes);
	o->managers = (unsigned)r->managers;
	if (o->servers < r->layout_servers)
		return err_set(e, -EINVAL, "--layout %s needs %ld servers or more, not %u",
			o->layout, r->layout_servers, o->servers);
	return 0;
}

bool recipe_raw_storage(const struct recipe *r)
{
	return fs_storage_is_device(r->fs);
}

unsigned recipe_port(const struct recipe *r)
{
	return (unsigned)r->port;
}

bool recipe_has(const struct recipe *r, const char *step)
{
	bool has = recipe_get(r, step) == LUA_TFUNCTION;

	lua_settop(r->L, 1);
	return has;
}

static void add_to_path(const char *folder)
{
	auto_free char *path = alloc_format("%s:%s", getenv("PATH"), folder);

	setenv("PATH", path, 1);
}

static bool program_there(const char *name)
{
	auto_free char *folders = alloc_copy(getenv("PATH"));
	char *rest;
	bool found = false;

	for (char *f = strtok_r(folders, ":", &rest); f && !found; f = strtok_r(NULL, ":", &rest))
		found = !access(lab_path(f, "%s", name).s, X_OK);
	return found;
}

int lab_program(const char *program, const char *package, struct err *e)
{
	if (program_there(program))
		return 0;
	/* A Debian package has no blank in its name. */
	return err_set(e, -ENOENT, "there is no '%s' here; %s%s%s", program,
		strchr(package, ' ') ? "" : "try 'apt-get install ", package,
		strchr(package, ' ') ? "" : "'");
}

int recipe_programs(const struct recipe *r, struct err *e)
{
	lua_State *L = r->L;
	int rc = 0;

	if (recipe_get(r, "path") == LUA_TTABLE)
		for (lua_pushnil(L); lua_next(L, 3); lua_settop(L, 4))
			add_to_path(lua_tostring(L, 5));
	recipe_get(r, "programs");
	for (lua_pushnil(L); !rc && lua_next(L, 3); lua_settop(L, 4))
		rc = lua_type(L, 4) != LUA_TSTRING
			? luax_complain(
				  r->src, "programs", e, "lab.programs: program = \"package\"")
			: lab_program(lua_tostring(L, 4), lua_tostring(L, 5), e);
	lua_settop(L, 1);
	return rc;
}

static void push_hosts(
	lua_State *L, const struct lab_options *o, unsigned from, unsigned n, const char *key)
{
	lua_createtable(L, (int)n, 0);
	for (unsigned i = 0; i < n; i++) {
		struct lab_node host = lab_node_at(o, from + i);

		lua_createtable(L, 0, 3);
		lua_pushstring(L, host.name);
		lua_setfield(L, -2, "name");
		lua_pushinteger(L, host.number);
		lua_setfield(L, -2, "number");
		lua_pushstring(L, host.address);
		lua_setfield(L, -2, "address");
		lua_rawseti(L, -2, i + 1);
	}
	lua_setfield(L, -2, key);
}

static void push_lab(const struct recipe *r, const struct lab_options *o)
{
	lua_State *L = r->L;

	lua_newtable(L);
	lua_pushstring(L, o->layout);
	lua_setfield(L, -2, "layout");
	luajson_push(L, r->params);
	lua_setfield(L, -2, "params");
	push_hosts(L, o, 0, o->servers, "servers");
	push_hosts(L, o, o->servers, o->clients, "clients");
	push_hosts(L, o, o->servers + o->clients + o->outsiders, o->managers, "managers");
}

int recipe_step(struct recipe *r, const char *step, const struct lab_options *o,
	const struct lab_node *n, const char *storage, struct err *e)
{
	int rc = 0;

	if (recipe_get(r, step) == LUA_TFUNCTION) {
		recipe_push_node(r->L, n, storage);
		push_lab(r, o);
		rc = luax_call(r->L, 2, 0, e);
	}
	lua_settop(r->L, 1);
	return rc;
}

int recipe_await(
	struct recipe *r, const struct lab_options *o, const struct lab_node *n, struct err *e)
{
	const double deadline = clock_mono_s() + READY_S;
	lua_State *L = r->L;
	char said[LAB_SAID_MAX];
	bool ready = false;
	int rc = 0;

	while (!ready && !rc && recipe_get(r, "ready") == LUA_TFUNCTION) {
		recipe_push_node(L, n, NULL);
		push_lab(r, o);
		rc = luax_call(L, 2, 2, e);
		ready = !rc && lua_toboolean(L, -2);
		if (!rc && !ready)
			rc = programs_check(n, e);
		if (!rc && !ready && clock_mono_s() > deadline) {
			programs_last_words(n, said);
			rc = err_set(e, -ETIMEDOUT, "not ready within %d s: %.300s%s", READY_S,
				lua_isstring(L, -1) ? lua_tostring(L, -1) : "no reason given",
				said);
		}
		lua_settop(L, 1);
		if (!rc && !ready)
			usleep(20000);
	}
	lua_settop(L, 1);
	return rc;
}
