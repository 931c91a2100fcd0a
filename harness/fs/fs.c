/* Loads a file system's Lua file and calls its functions. */
#include "harness/fs/fs.h"

#include <errno.h>
#include <lauxlib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"
#include "harness/base/jget.h"
#include "harness/fs/bulk.h"
#include "harness/fs/facts.h"
#include "harness/fs/messages.h"
#include "harness/lua/luajson.h"
#include "harness/lua/library.h"

struct fs {
	lua_State *L; /* the adapter's table is at stack index 1 */
	struct luax_source src;
	json_t *facts;
	struct flow_protocol protocol;
	struct bulk_rule bulk;
};

int fs_load(const char *type, struct fs **out, struct err *e)
{
	static const struct luax_field fields[] = {
		{"summary", LUAX_STRING, .required = true},
		{"server_pids", LUAX_FUNCTION, .required = true},
		{"client_pids", LUAX_FUNCTION, .required = true},
		{"service", LUAX_FUNCTION},
		{"discover", LUAX_FUNCTION},
		{"lost_errnos", LUAX_TABLE, .required = true},
		{"errno_map", LUAX_TABLE},
		{"probe", LUAX_FUNCTION},
		{"health", LUAX_FUNCTION},
		{"storage", LUAX_STRING},
		{"empty_storage", LUAX_ANY},
		{"cannot", LUAX_TABLE},
		{"missing", LUAX_TABLE},
		{"messages", LUAX_TABLE},
		{"bulk", LUAX_TABLE},
		{"layers", LUAX_TABLE},
		{"lab", LUAX_TABLE},
		{NULL},
	};
	struct fs *fs = alloc_zero(1, sizeof(*fs));
	int rc;

	fs->L = luax_new();
	rc = library_open(fs->L, LIBRARY_FILE_SYSTEM, type, NULL, fields, &fs->src, e)
		?: facts_read(fs->L, 1, &fs->src, &fs->facts, e)
		?: messages_read(fs->L, 1, &fs->src, &fs->protocol, e)
		?: bulk_read(fs->L, 1, &fs->src, &fs->protocol, &fs->bulk, e);
	if (rc) {
		fs_free(fs);
		return rc;
	}
	*out = fs;
	return 0;
}

void fs_free(struct fs *fs)
{
	if (!fs)
		return;
	lua_close(fs->L);
	luax_source_clear(&fs->src);
	json_decref(fs->facts);
	flow_protocol_clear(&fs->protocol);
	free(fs);
}

lua_State *fs_state(const struct fs *fs)
{
	return fs->L;
}

const struct luax_source *fs_source(const struct fs *fs)
{
	return &fs->src;
}

bool fs_storage_is_device(const struct fs *fs)
{
	const char *storage = jget_text(fs->facts, "storage");

	return storage && !strcmp(storage, "device");
}

const struct flow_protocol *fs_protocol(const struct fs *fs)
{
	return fs->protocol.id.size ? &fs->protocol : NULL;
}

const struct bulk_rule *fs_bulk(const struct fs *fs)
{
	return &fs->bulk;
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

/* Calls the function below its 'nargs' arguments and returns its one result; clears the stack. */
static int fs_ask(struct fs *fs, int nargs, json_t **answer, struct err *e)
{
	int rc = luax_call(fs->L, nargs, 1, e);

	if (!rc)
		rc = luajson_get(fs->L, -1, answer, e);
	lua_settop(fs->L, 1);
	return rc;
}

/* An empty Lua table counts as an empty array. */
static json_t *as_type(json_t *v, json_type type)
{
	if (v && json_typeof(v) == type)
		return v;
	json_decref(v);
	return type == JSON_ARRAY ? json_array() : json_object();
}

static json_int_t parent_of(const json_t *processes, json_int_t pid)
{
	json_t *p;
	size_t i;

	json_array_foreach(processes, i, p) {
		if (jget_int(p, "pid") == pid)
			return jget_int(p, "ppid");
	}
	return 0;
}

static bool has_number(const json_t *pids, json_int_t pid)
{
	json_t *value;
	size_t i;

	json_array_foreach(pids, i, value) {
		if (json_is_integer(value) && json_integer_value(value) == pid)
			return true;
	}
	return false;
}

/* Removes each process that is a descendant of another one: tracers and faults find descendants
 * themselves. A descendant may exist only for a client, and must not change the fingerprint. */
static json_t *without_descendants(const json_t *pids, const json_t *processes)
{
	json_t *kept = json_array(), *value;
	size_t i;

	json_array_foreach(pids, i, value) {
		json_int_t at = json_integer_value(value);
		size_t steps = json_array_size(processes);

		do
			at = parent_of(processes, at);
		while (at > 0 && steps-- && !has_number(pids, at));
		if (at <= 0 || !has_number(pids, at))
			json_array_append(kept, value);
	}
	return kept;
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
	luajson_push(L, jget(processes, "processes"));
	rc = fs_ask(fs, 2, &found, e);
	if (!rc && !json_is_array(found)) {
		json_decref(found);
		return luax_complain(
			NULL, NULL, e, "the file-system adapter must return a list of pids");
	}
	if (!rc) {
		*pids = without_descendants(found, jget(processes, "processes"));
		json_decref(found);
	}
	return rc;
}

/* run(argv) for the adapter: returns the command's output, or nil. */
static int run_there(lua_State *L)
{
	struct node *node = lua_touserdata(L, lua_upvalueindex(1));
	json_auto_t *result = NULL;
	json_t *argv;
	struct err e;

	if (luajson_get(L, 1, &argv, &e))
		return luaL_error(L, "%s", e.text);
	if (!node_call(node, "run", json_pack("{s:o}", "argv", argv), 40, &result, &e))
		lua_pushstring(L, jget_text(result, "output"));
	else
		lua_pushnil(L);
	return 1;
}

int fs_look(
	struct fs *fs, const struct host *host, struct node *node, json_t **found, struct err *e)
{
	lua_State *L = fs->L;
	json_auto_t *processes = NULL;
	json_t *list = NULL;
	int rc;

	if (host->role == ROLE_OUTSIDER || lua_getfield(L, 1, "discover") != LUA_TFUNCTION) {
		lua_settop(L, 1);
		*found = json_array();
		return 0;
	}
	rc = node_call(node, "processes", NULL, 20, &processes, e);
	if (!rc) {
		push_host(L, host);
		luajson_push(L, jget(processes, "processes"));
		lua_pushlightuserdata(L, node);
		lua_pushcclosure(L, run_there, 1);
		rc = fs_ask(fs, 3, &list, e);
	}
	lua_settop(L, 1);
	if (!rc)
		*found = as_type(list, JSON_ARRAY);
	return rc;
}

/* The command that the adapter's function 'name' returns for 'host'. */
static int fs_command(
	struct fs *fs, const char *name, const struct host *host, json_t **argv, struct err *e)
{
	*argv = NULL;
	if (lua_getfield(fs->L, 1, name) != LUA_TFUNCTION) {
		lua_settop(fs->L, 1);
		return 0;
	}
	push_host(fs->L, host);
	return fs_ask(fs, 1, argv, e);
}

int fs_probe(struct fs *fs, const struct host *host, json_t **argv, struct err *e)
{
	return fs_command(fs, "probe", host, argv, e);
}

int fs_health(struct fs *fs, const struct host *host, json_t **argv, struct err *e)
{
	int rc = fs_command(fs, "health", host, argv, e);

	if (rc || !*argv || json_is_array(*argv))
		return rc;
	json_decref(*argv);
	*argv = NULL;
	return 0;
}

int fs_service(
	struct fs *fs, const struct host *server, char **address, uint16_t *port, struct err *e)
{
	lua_State *L = fs->L;
	const char *at = server->address;
	lua_Integer number = server->service_port;
	int rc = 0;

	if (lua_getfield(L, 1, "service") == LUA_TFUNCTION) {
		push_host(L, server);
		rc = luax_call(L, 1, 2, e);
		if (!rc && (!lua_isstring(L, -2) || !(lua_isinteger(L, -1) || lua_isnil(L, -1))))
			rc = luax_complain(NULL, NULL, e,
				"%s: the file-system adapter's 'service' must return an address, "
				"and a port unless clients use any",
				server->ssh.name);
		if (!rc) {
			at = lua_tostring(L, -2);
			number = lua_tointeger(L, -1); /* nil becomes 0 */
		}
	}
	if (!rc && (number < 0 || number > 65535))
		rc = luax_complain(NULL, NULL, e, "%s: %lld is not a port", server->ssh.name,
			(long long)number);
	if (!rc) {
		*address = alloc_copy(at);
		*port = (uint16_t)number;
	}
	lua_settop(L, 1);
	return rc;
}

int fs_errors(struct fs *fs, json_t **out, struct err *e)
{
	lua_State *L = fs->L;
	json_t *lost, *map = NULL;
	int rc;

	lua_getfield(L, 1, "lost_errnos");
	rc = luajson_get(L, -1, &lost, e);
	if (!rc && lua_getfield(L, 1, "errno_map") == LUA_TTABLE &&
		(rc = luajson_get(L, -1, &map, e)))
		json_decref(lost);
	lua_settop(L, 1);
	if (!rc)
		*out = json_pack(
			"{s:o, s:o}", "lost_errnos", lost, "errno_map", as_type(map, JSON_OBJECT));
	return rc;
}

json_t *fs_facts(const struct fs *fs)
{
	return json_incref(fs->facts);
}
