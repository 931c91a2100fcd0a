#include "harness/fs/fs.h"

#include <errno.h>
#include <lauxlib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/home.h"
#include "harness/lua/luajson.h"
#include "harness/lua/luax.h"

struct fs {
	lua_State *L; /* its stack holds the adapter's table at 1 */
};

static int check(lua_State *L, const struct luax_source *src, struct err *e)
{
	const struct luax_field fields[] = {
		{"summary", LUAX_STRING, .required = true},
		{"server_pids", LUAX_FUNCTION, .required = true},
		{"client_pids", LUAX_FUNCTION, .required = true},
		{"service", LUAX_FUNCTION},
		{"discover", LUAX_FUNCTION},
		{"lost_errnos", LUAX_TABLE, .required = true},
		{"errno_map", LUAX_TABLE},
		{"probe", LUAX_FUNCTION},
		{NULL},
	};

	return luax_read(L, 1, src, "file-system adapter", fields, false, e);
}

int fs_load(const char *type, struct fs **out, struct err *e)
{
	struct luax_source src = {0};
	struct fs *fs = calloc(1, sizeof(*fs));
	char sub[128], *path = NULL;
	int rc;

	snprintf(sub, sizeof(sub), "harness/fs/%s.lua", type);
	rc = home_path(sub, &path, e);
	if (!rc && access(path, R_OK) < 0)
		rc = err_set(e, -ENOENT, "file system '%s' is not known: there is no adapter '%s'",
			type, path);
	if (!rc && (!fs || !(fs->L = luax_new())))
		rc = err_errno(e, -ENOMEM, "cannot load '%s'", path);
	if (!rc)
		rc = luax_load_file(fs->L, path, &src, e);
	if (!rc)
		rc = check(fs->L, &src, e);
	luax_source_clear(&src);
	free(path);
	if (rc)
		fs_free(fs);
	else
		*out = fs;
	return rc;
}

void fs_free(struct fs *fs)
{
	if (!fs)
		return;
	if (fs->L)
		lua_close(fs->L);
	free(fs);
}

static void push_host(lua_State *L, const struct host *h)
{
	const struct {
		const char *key, *value;
	} texts[] = {{"name", h->ssh.name}, {"address", h->address}, {"role", role_name(h->role)},
		{"storage", h->storage}, {"spare", h->spare}, {"mount", h->mount}};

	lua_newtable(L);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		lua_pushstring(L, texts[i].value);
		lua_setfield(L, -2, texts[i].key);
	}
	lua_pushinteger(L, h->service_port);
	lua_setfield(L, -2, "service_port");
}

int fs_pids(struct fs *fs, const struct host *host, const json_t *processes, json_t **pids,
	struct err *e)
{
	lua_State *L = fs->L;
	json_t *found = NULL;
	int rc;

	if (host->role == ROLE_OUTSIDER) {
		*pids = json_array();
		return 0;
	}
	lua_getfield(L, 1, host->role == ROLE_SERVER ? "server_pids" : "client_pids");
	push_host(L, host);
	luajson_push(L, json_object_get(processes, "processes"));
	rc = luax_call(L, 2, 1, e);
	if (!rc)
		rc = luajson_get(L, -1, &found, e);
	lua_settop(L, 1);
	if (!rc && !json_is_array(found)) {
		json_decref(found);
		rc = err_set(e, -EINVAL, "the file-system adapter must return a list of pids");
	}
	if (!rc)
		*pids = found;
	return rc;
}

/* run(argv): the adapter's way to look at a host: what the command printed, or nil. */
static int run_there(lua_State *L)
{
	struct node *node = lua_touserdata(L, lua_upvalueindex(1));
	json_t *argv = NULL, *result = NULL;
	struct err e;

	if (luajson_get(L, 1, &argv, &e))
		return luaL_error(L, "%s", e.text);
	if (!node_call(node, "run", json_pack("{s:o}", "argv", argv), 40, &result, &e))
		lua_pushstring(L, json_string_value(json_object_get(result, "output")));
	else
		lua_pushnil(L);
	json_decref(result);
	return 1;
}

int fs_look(
	struct fs *fs, const struct host *host, struct node *node, json_t **found, struct err *e)
{
	lua_State *L = fs->L;
	json_t *processes = NULL, *list = NULL;
	int rc;

	if (host->role == ROLE_OUTSIDER || lua_getfield(L, 1, "discover") != LUA_TFUNCTION) {
		lua_settop(L, 1);
		*found = json_array();
		return 0;
	}
	rc = node_call(node, "processes", NULL, 20, &processes, e);
	if (!rc) {
		push_host(L, host);
		luajson_push(L, json_object_get(processes, "processes"));
		lua_pushlightuserdata(L, node);
		lua_pushcclosure(L, run_there, 1);
		rc = luax_call(L, 3, 1, e);
	}
	if (!rc)
		rc = luajson_get(L, -1, &list, e);
	lua_settop(L, 1);
	json_decref(processes);
	/* An empty Lua table may be either. */
	if (!rc && !json_is_array(list)) {
		json_decref(list);
		list = json_array();
	}
	if (!rc)
		*found = list;
	return rc;
}

int fs_probe(struct fs *fs, const struct host *host, json_t **argv, struct err *e)
{
	lua_State *L = fs->L;
	int rc = 0;

	*argv = NULL;
	if (lua_getfield(L, 1, "probe") == LUA_TFUNCTION) {
		push_host(L, host);
		rc = luax_call(L, 1, 1, e);
		if (!rc)
			rc = luajson_get(L, -1, argv, e);
	}
	lua_settop(L, 1);
	return rc;
}

int fs_service(
	struct fs *fs, const struct host *server, char **address, uint16_t *port, struct err *e)
{
	lua_State *L = fs->L;
	const char *at = server->address;
	lua_Integer number = server->service_port;
	int rc = 0;

	lua_getfield(L, 1, "service");
	if (lua_isfunction(L, -1)) {
		push_host(L, server);
		rc = luax_call(L, 1, 2, e);
		if (!rc && (!lua_isstring(L, -2) || !lua_isinteger(L, -1)))
			rc = err_set(e, -EINVAL,
				"%s: the file-system adapter's 'service' must return address and port",
				server->ssh.name);
		if (!rc) {
			at = lua_tostring(L, -2);
			number = lua_tointeger(L, -1);
		}
	}
	if (!rc && (number < 0 || number > 65535))
		rc = err_set(
			e, -EINVAL, "%s: %lld is no port", server->ssh.name, (long long)number);
	if (!rc) {
		char *copy = strdup(at);

		if (copy) {
			*address = copy;
			*port = (uint16_t)number;
		} else {
			rc = err_errno(e, -ENOMEM, "cannot ask the file-system adapter");
		}
	}
	lua_settop(L, 1);
	return rc;
}

int fs_errors(struct fs *fs, json_t **out, struct err *e)
{
	lua_State *L = fs->L;
	json_t *lost = NULL, *map = NULL;
	int rc;

	lua_getfield(L, 1, "lost_errnos");
	rc = luajson_get(L, -1, &lost, e);
	lua_getfield(L, 1, "errno_map");
	if (!rc && !lua_isnil(L, -1))
		rc = luajson_get(L, -1, &map, e);
	lua_settop(L, 1);
	/* An empty Lua table may be either. */
	if (!json_is_object(map)) {
		json_decref(map);
		map = json_object();
	}
	if (!rc)
		*out = json_pack("{s:O, s:O}", "lost_errnos", lost, "errno_map", map);
	json_decref(lost);
	json_decref(map);
	return rc;
}
