#include "harness/experiment/bind_node.h"

#include <errno.h>
#include <lauxlib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/lua/luajson.h"
#include "harness/lua/luax.h"

#define NODE_TYPE "culprit.Node"
#define HANDLE_TYPE "culprit.Handle"
#define SHARED "culprit.shared" /* registry key of the table that all contexts share */
#define CALL_TIMEOUT_S 30
/* A server that ends and starts, and a file system that is checked, take their time; a node that is
 * lost is noticed meanwhile. */
#define SERVER_TIMEOUT_S 180
#define UNDO_TIMEOUT_S 1800

struct act {
	struct node *node;
	char *handle;
};

struct acts {
	struct act *list;
	size_t n, room;
};

/* Lua userdata. The cluster outlives the Lua state's use of them. */
struct lua_node {
	struct member *member;
	struct acts *acts;
};

struct lua_handle {
	struct node *node;
	struct acts *acts;
	char handle[64];
};

static int remember(struct acts *a, struct node *node, const char *handle)
{
	if (a->n == a->room) {
		size_t room = a->room ? a->room * 2 : 8;
		struct act *more = realloc(a->list, room * sizeof(*more));

		if (!more)
			return -ENOMEM;
		a->list = more;
		a->room = room;
	}
	a->list[a->n] = (struct act){.node = node, .handle = strdup(handle)};
	if (!a->list[a->n].handle)
		return -ENOMEM;
	a->n++;
	return 0;
}

size_t acts_count(const struct acts *a)
{
	return a->n;
}

void acts_forget(struct acts *a)
{
	while (a->n)
		free(a->list[--a->n].handle);
}

int acts_undo(struct acts *a, struct err *e)
{
	int first = 0;

	while (a->n) {
		struct act *act = &a->list[a->n - 1];
		struct err why;
		int rc = node_call(act->node, "undo", json_pack("{s:s}", "handle", act->handle),
			UNDO_TIMEOUT_S, NULL, &why);

		if (rc && !first)
			first = err_set(e, rc, "%s", why.text);
		free(act->handle);
		a->n--;
	}
	return first;
}

/* The table at 'index' (nil: none) as a request's arguments; raises on what is no data. */
static json_t *arguments(lua_State *L, int index)
{
	struct err e;
	json_t *args = NULL;

	if (lua_isnoneornil(L, index))
		return json_object();
	luaL_checktype(L, index, LUA_TTABLE);
	if (luajson_get(L, index, &args, &e))
		luaL_error(L, "%s", e.text);
	if (json_is_array(args) && !json_array_size(args)) {
		json_decref(args);
		args = json_object();
	}
	if (!json_is_object(args)) {
		json_decref(args);
		luaL_error(L, "arguments must be named: { key = value }");
	}
	return args;
}

/* Calls 'op' and pushes its result; raises on failure. Takes 'args'. */
static int call_and_push(lua_State *L, struct node *node, const char *op, json_t *args)
{
	double timeout = json_number_value(json_object_get(args, "timeout_s"));
	json_t *result = NULL;
	struct err e;
	int rc;

	rc = node_call(node, op, args, (timeout > 0 ? timeout : 0) + CALL_TIMEOUT_S, &result, &e);
	if (rc)
		return luax_raise(L, rc, &e);
	luajson_push(L, result);
	json_decref(result);
	return 1;
}

/* As call_and_push for an op that acts: pushes a handle and remembers it. */
static int act_and_push_for(
	lua_State *L, struct lua_node *n, const char *op, json_t *args, double timeout_s)
{
	json_t *result = NULL;
	struct lua_handle *h;
	const char *name;
	struct err e;
	int rc;

	rc = node_call(n->member->node, op, args, timeout_s, &result, &e);
	if (rc)
		return luax_raise(L, rc, &e);
	h = lua_newuserdatauv(L, sizeof(*h), 0);
	*h = (struct lua_handle){.node = n->member->node, .acts = n->acts};
	name = json_string_value(json_object_get(result, "handle"));
	strncpy(h->handle, name ? name : "", sizeof(h->handle) - 1);
	luaL_setmetatable(L, HANDLE_TYPE);
	json_decref(result);
	/* Out of memory here leaves the act to the guard, which undoes it when the session ends. */
	if (remember(n->acts, n->member->node, h->handle))
		return luaL_error(L, "out of memory");
	return 1;
}

static int act_and_push(lua_State *L, struct lua_node *n, const char *op, json_t *args)
{
	return act_and_push_for(L, n, op, args, CALL_TIMEOUT_S);
}

static struct lua_node *check_node(lua_State *L)
{
	return luaL_checkudata(L, 1, NODE_TYPE);
}

static int node_process(lua_State *L)
{
	struct lua_node *n = check_node(L);

	return act_and_push(L, n, "process.start", arguments(L, 2));
}

static int node_command(lua_State *L)
{
	struct lua_node *n = check_node(L);

	return act_and_push(L, n, "command", arguments(L, 2));
}

static int node_drop_packets(lua_State *L)
{
	struct lua_node *n = check_node(L);

	return act_and_push(L, n, "packets.drop", arguments(L, 2));
}

static int node_limit(lua_State *L)
{
	struct lua_node *n = check_node(L);

	return act_and_push(L, n, "limits.set", arguments(L, 2));
}

static int node_limits(lua_State *L)
{
	struct lua_node *n = check_node(L);

	return call_and_push(L, n->member->node, "limits.get",
		json_pack("{s:I}", "pid", (json_int_t)luaL_checkinteger(L, 2)));
}

static int node_hold(lua_State *L)
{
	struct lua_node *n = check_node(L);

	return act_and_push(L, n, "signal.stop", arguments(L, 2));
}

static int node_processes(lua_State *L)
{
	struct lua_node *n = check_node(L);

	call_and_push(L, n->member->node, "processes", NULL);
	lua_getfield(L, -1, "processes");
	return 1;
}

static const char
	no_restart[] = "the inventory does not allow restarts of its server (allow_restart = true)";

/* Ops that end a server, or may have to when they are undone. */
static bool restarts(const char *op)
{
	return !strncmp(op, "service.", 8) || !strcmp(op, "fs.readonly");
}

static int act_on_server(lua_State *L, const char *op)
{
	struct lua_node *n = check_node(L);

	if (!n->member->host->allow_restart)
		return luaL_error(L, "%s: %s", n->member->host->ssh.name, no_restart);
	return act_and_push_for(L, n, op, arguments(L, 2), SERVER_TIMEOUT_S);
}

static int node_kill_service(lua_State *L)
{
	return act_on_server(L, "service.kill");
}

static int node_limit_service(lua_State *L)
{
	return act_on_server(L, "service.limit");
}

static int node_restart_service(lua_State *L)
{
	return act_on_server(L, "service.restart");
}

static int node_make_readonly(lua_State *L)
{
	return act_on_server(L, "fs.readonly");
}

static int node_fs_info(lua_State *L)
{
	struct lua_node *n = check_node(L);

	return call_and_push(
		L, n->member->node, "fs.info", json_pack("{s:s}", "path", luaL_checkstring(L, 2)));
}

static int node_run(lua_State *L)
{
	struct lua_node *n = check_node(L);

	return call_and_push(L, n->member->node, "run", arguments(L, 2));
}

/* can(op): true, or nil and the reason. */
static int node_can(lua_State *L)
{
	struct lua_node *n = check_node(L);
	json_t *result = NULL;
	struct err e;
	int rc;

	if (restarts(luaL_checkstring(L, 2)) && !n->member->host->allow_restart) {
		lua_pushnil(L);
		lua_pushfstring(L, "%s: %s", n->member->host->ssh.name, no_restart);
		return 2;
	}

	rc = node_call(n->member->node, "check", json_pack("{s:s}", "what", luaL_checkstring(L, 2)),
		CALL_TIMEOUT_S, &result, &e);
	if (rc)
		return luax_raise(L, rc, &e);
	if (json_is_true(json_object_get(result, "able"))) {
		lua_pushboolean(L, 1);
		rc = 1;
	} else {
		const char *reason = json_string_value(json_object_get(result, "reason"));

		lua_pushnil(L);
		lua_pushfstring(L, "%s: %s", n->member->host->ssh.name,
			reason ? reason : "no reason given");
		rc = 2;
	}
	json_decref(result);
	return rc;
}

static int node_tostring(lua_State *L)
{
	lua_pushstring(L, check_node(L)->member->host->ssh.name);
	return 1;
}

static const luaL_Reg node_methods[] = {{"process", node_process}, {"command", node_command},
	{"drop_packets", node_drop_packets}, {"limit", node_limit}, {"limits", node_limits},
	{"hold", node_hold}, {"processes", node_processes}, {"kill_service", node_kill_service},
	{"limit_service", node_limit_service}, {"restart_service", node_restart_service},
	{"make_readonly", node_make_readonly}, {"fs_info", node_fs_info}, {"run", node_run},
	{"can", node_can}, {NULL, NULL}};

static int node_index(lua_State *L)
{
	struct lua_node *n = check_node(L);
	const struct host *h = n->member->host;
	const char *key = luaL_checkstring(L, 2);
	const struct {
		const char *key, *value;
	} texts[] = {{"name", h->ssh.name}, {"address", h->address}, {"role", role_name(h->role)},
		{"storage", h->storage}, {"spare", h->spare}, {"mount", h->mount}};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		if (!strcmp(texts[i].key, key)) {
			lua_pushstring(L, texts[i].value);
			return 1;
		}
	}
	if (!strcmp(key, "service_port")) {
		lua_pushinteger(L, h->service_port);
		return 1;
	}
	if (!strcmp(key, "pids")) {
		if (n->member->pids)
			luajson_push(L, n->member->pids);
		else
			lua_newtable(L);
		return 1;
	}
	luaL_getmetatable(L, NODE_TYPE);
	lua_getfield(L, -1, "methods");
	if (lua_getfield(L, -1, key) == LUA_TNIL)
		return luaL_error(L, "a node has no '%s'", key);
	return 1;
}

static struct lua_handle *check_handle(lua_State *L)
{
	return luaL_checkudata(L, 1, HANDLE_TYPE);
}

static int handle_call(lua_State *L, const char *op)
{
	struct lua_handle *h = check_handle(L);

	return call_and_push(L, h->node, op, json_pack("{s:s}", "handle", h->handle));
}

static int handle_status(lua_State *L)
{
	return handle_call(L, "process.status");
}

static int handle_counters(lua_State *L)
{
	return handle_call(L, "packets.counters");
}

static int handle_undo(lua_State *L)
{
	struct lua_handle *h = check_handle(L);

	handle_call(L, "undo");
	for (size_t i = 0; i < h->acts->n; i++) {
		struct act *a = &h->acts->list[i];

		if (a->node == h->node && !strcmp(a->handle, h->handle)) {
			free(a->handle);
			memmove(a, a + 1, (--h->acts->n - i) * sizeof(*a));
			break;
		}
	}
	return 0;
}

int bind_open(lua_State *L, struct acts **out, struct err *e)
{
	static const luaL_Reg node_meta[] = {
		{"__index", node_index}, {"__tostring", node_tostring}, {NULL, NULL}};
	static const luaL_Reg handle_methods[] = {{"status", handle_status},
		{"counters", handle_counters}, {"undo", handle_undo}, {NULL, NULL}};
	struct acts *a = calloc(1, sizeof(*a));

	if (!a)
		return err_errno(e, -ENOMEM, "cannot open the Lua binding");
	luaL_newmetatable(L, NODE_TYPE);
	luaL_setfuncs(L, node_meta, 0);
	lua_newtable(L);
	luaL_setfuncs(L, node_methods, 0);
	lua_setfield(L, -2, "methods");
	luaL_newmetatable(L, HANDLE_TYPE);
	lua_newtable(L);
	luaL_setfuncs(L, handle_methods, 0);
	lua_setfield(L, -2, "__index");
	lua_pop(L, 2);
	lua_newtable(L);
	lua_setfield(L, LUA_REGISTRYINDEX, SHARED);
	*out = a;
	return 0;
}

void bind_close(struct acts *a)
{
	if (!a)
		return;
	acts_forget(a);
	free(a->list);
	free(a);
}

void bind_push_node(lua_State *L, struct acts *a, struct member *m)
{
	struct lua_node *n = lua_newuserdatauv(L, sizeof(*n), 0);

	*n = (struct lua_node){.member = m, .acts = a};
	luaL_setmetatable(L, NODE_TYPE);
}

void bind_push_handle(lua_State *L, struct acts *a, struct member *m, const char *handle)
{
	struct lua_handle *h = lua_newuserdatauv(L, sizeof(*h), 0);

	*h = (struct lua_handle){.node = m->node, .acts = a};
	snprintf(h->handle, sizeof(h->handle), "%s", handle);
	luaL_setmetatable(L, HANDLE_TYPE);
}

static void push_list(lua_State *L, struct acts *a, struct member **list, size_t n, const char *key)
{
	lua_createtable(L, (int)n, 0);
	for (size_t i = 0; i < n; i++) {
		bind_push_node(L, a, list[i]);
		lua_rawseti(L, -2, (lua_Integer)i + 1);
	}
	lua_setfield(L, -2, key);
}

void bind_push_context(lua_State *L, struct acts *a, struct cluster *c, struct member *victim,
	const struct part *p, const char *run_id)
{
	lua_newtable(L);
	push_list(L, a, c->servers, c->n_servers, "servers");
	push_list(L, a, c->clients, c->n_clients, "clients");
	push_list(L, a, c->outsiders, c->n_outsiders, "outsiders");
	if (victim) {
		bind_push_node(L, a, victim);
		lua_setfield(L, -2, "victim");
	}
	lua_rawgeti(L, LUA_REGISTRYINDEX, p->params_ref);
	lua_setfield(L, -2, "params");
	lua_newtable(L);
	lua_setfield(L, -2, "state");
	lua_getfield(L, LUA_REGISTRYINDEX, SHARED);
	lua_setfield(L, -2, "shared");
	lua_pushstring(L, run_id);
	lua_setfield(L, -2, "run");
}
