/* Gives Lua faults and workloads their context, nodes and handles. */
#include "harness/run/bind_node.h"

#include <errno.h>
#include <lauxlib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/agent/operations.h"
#include "harness/base/alloc.h"
#include "harness/base/clock.h"
#include "harness/base/jget.h"
#include "harness/lua/luajson.h"
#include "harness/lua/luax.h"

#define NODE_TYPE "culprit.Node"
#define HANDLE_TYPE "culprit.Handle"
#define CALL_LEAST_S 0.01       /* node_call takes 0 for no limit */
#define SHARED "culprit.shared" /* registry key of the table that all contexts share */

struct act {
	struct node *node;
	char handle[64];
};

struct acts {
	struct act *list;
	size_t n, room;
	json_t *able;   /* borrowed; NULL: not wanted */
	double until_s; /* CLOCK_MONOTONIC: no call waits longer; 0: as long as its operation may */
};

/* Lua userdata. The cluster outlives the Lua state's use of them. */
struct lua_node {
	struct member *member;
	struct acts *acts;
};

/* Closed, with an empty handle, until its act is done. */
struct lua_handle {
	struct act act;
	struct acts *acts;
};

size_t acts_count(const struct acts *a)
{
	return a->n;
}

void acts_forget(struct acts *a)
{
	a->n = 0;
}

static int undo(const struct act *act, struct err *e)
{
	json_t *args = json_pack("{s:s}", "handle", act->handle);

	return cluster_blame(
		node_call(act->node, "undo", args, operation_find("undo")->wait_s, NULL, e), e);
}

int acts_undo(struct acts *a, struct err *e)
{
	int first = 0;

	while (a->n) {
		struct err why;
		int rc = undo(&a->list[--a->n], &why);

		if (rc && !first) {
			first = rc;
			*e = why;
		}
	}
	return first;
}

/* The table at 'index' (nil: none) as a request's arguments; raises an error for other values. */
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

static struct lua_node *check_node(lua_State *L)
{
	return luaL_checkudata(L, 1, NODE_TYPE);
}

void acts_limit(struct acts *a, double until_s)
{
	a->until_s = until_s;
}

void acts_note_able(struct acts *a, json_t *list)
{
	a->able = list;
}

/* Calls 'op' and returns its result; raises an error if it fails. Takes 'args'. */
static json_t *call(lua_State *L, const struct acts *a, struct node *node,
	const struct operation *op, json_t *args)
{
	double timeout = jget_real(args, "timeout_s");
	double wait_s = (timeout > 0 ? timeout : 0) + op->wait_s;
	double left_s = a->until_s - clock_mono_s();
	json_t *result = NULL;
	struct err e;
	int rc;

	if (a->until_s > 0 && wait_s > left_s)
		wait_s = left_s > CALL_LEAST_S ? left_s : CALL_LEAST_S;
	rc = node_call(node, op->name, args, wait_s, &result, &e);

	if (rc)
		luax_raise(L, cluster_blame(rc, &e), &e);
	return result;
}

static int call_and_push(lua_State *L, const struct acts *a, struct node *node,
	const struct operation *op, json_t *args)
{
	json_auto_t *result = call(L, a, node, op, args);

	luajson_push(L, result);
	return 1;
}

static struct lua_handle *push_closed_handle(lua_State *L, struct node *node, struct acts *acts)
{
	struct lua_handle *h = lua_newuserdatauv(L, sizeof(*h), 0);

	*h = (struct lua_handle){.act.node = node, .acts = acts};
	luaL_setmetatable(L, HANDLE_TYPE);
	return h;
}

/* Calls 'op', which acts, and pushes its handle. All memory is there before the node is asked: an
 * act that was done is always remembered. */
static int act_and_push(lua_State *L, struct lua_node *n, const struct operation *op)
{
	struct lua_handle *h = push_closed_handle(L, n->member->node, n->acts);
	struct acts *a = n->acts;
	const char *name;
	json_t *result;

	if (a->n == a->room)
		a->list = alloc_resize(a->list, a->room += 16, sizeof(*a->list));
	result = call(L, a, n->member->node, op, arguments(L, 2));
	name = jget_text(result, "handle");
	snprintf(h->act.handle, sizeof(h->act.handle), "%s", name ? name : "");
	json_decref(result);
	a->list[a->n++] = h->act;
	return 1;
}

/* NULL, or why an operation is not allowed there. */
static const char *refusal(const struct lua_node *n, const struct operation *op)
{
	if (op && op->effect == OP_ACTS && n->member->never)
		return "--never excludes it from faults";
	return op && op->restarts && !n->member->host->allow_restart
		? "the inventory does not allow restarts of its server (allow_restart = true)"
		: NULL;
}

/* Every method of a node but 'can'; its upvalue is the operation. */
static int call_method(lua_State *L)
{
	const struct operation *op = lua_touserdata(L, lua_upvalueindex(1));
	const struct op_argument *first = op->arguments;
	struct lua_node *n = check_node(L);
	const char *refused = refusal(n, op);
	json_t *args;

	lua_settop(L, 2);
	if (refused)
		return luaL_error(L, "%s: %s", n->member->name, refused);
	if (op->effect == OP_ACTS)
		return act_and_push(L, n, op);
	/* The only argument is given without its name. */
	if (!first->required || first[1].name)
		args = arguments(L, 2);
	else if (first->type == OP_INTEGER)
		args = json_pack("{s:I}", first->name, (json_int_t)luaL_checkinteger(L, 2));
	else
		args = json_pack("{s:s}", first->name, luaL_checkstring(L, 2));
	call_and_push(L, n->acts, n->member->node, op, args);
	/* So is the only part of a result: that of 'processes' is {processes = ...}. */
	if (lua_getfield(L, -1, op->name) == LUA_TNIL)
		lua_pop(L, 1);
	return 1;
}

/* can(op, arguments of op): true, or nil and the reason. */
static int node_can(lua_State *L)
{
	struct lua_node *n = check_node(L);
	const char *op = luaL_checkstring(L, 2), *reason = refusal(n, operation_find(op));
	json_auto_t *result = NULL;
	json_t *args = NULL;

	if (!reason && !lua_isnoneornil(L, 3))
		args = arguments(L, 3);
	if (!reason)
		result = call(L, n->acts, n->member->node, lua_touserdata(L, lua_upvalueindex(1)),
			json_pack("{s:s, s:o*}", "what", op, "with", args));
	bool able = jget_true(result, "able");

	if (!reason)
		reason = jget_text(result, "reason");
	if (able && n->acts->able)
		json_array_append_new(n->acts->able,
			json_pack("{s:s, s:s, s:s?}", "node", n->member->name, "what", op, "how",
				reason));
	if (able) {
		lua_pushboolean(L, 1);
	} else {
		lua_pushnil(L);
		lua_pushfstring(L, "%s: %s", n->member->name, reason ? reason : "no reason given");
	}
	return able ? 1 : 2;
}

static int node_tostring(lua_State *L)
{
	lua_pushstring(L, check_node(L)->member->name);
	return 1;
}

static int node_index(lua_State *L)
{
	struct lua_node *n = check_node(L);
	const struct host *h = n->member->host;
	const char *key = luaL_checkstring(L, 2);
	const struct {
		const char *key, *value;
	} texts[] = {{"name", h->ssh.name}, {"address", h->address}, {"role", role_name(h->role)},
		{"storage", h->storage}, {"spare", h->spare}, {"mount", h->mount},
		{"folder", n->member->node ? node_dir(n->member->node) : NULL}};

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

/* The handle at 1; raises an error if it is closed. */
static struct lua_handle *check_handle(lua_State *L)
{
	struct lua_handle *h = luaL_checkudata(L, 1, HANDLE_TYPE);

	luaL_argcheck(L, h->act.handle[0], 1, "the handle is closed");
	return h;
}

/* Every method of a handle but 'undo'; its upvalue is the operation. */
static int ask_handle(lua_State *L)
{
	struct lua_handle *h = check_handle(L);

	return call_and_push(L, h->acts, h->act.node, lua_touserdata(L, lua_upvalueindex(1)),
		json_pack("{s:s}", "handle", h->act.handle));
}

static int handle_undo(lua_State *L)
{
	struct lua_handle *h = check_handle(L);
	struct err e;
	int rc = undo(&h->act, &e);

	if (rc)
		return luax_raise(L, rc, &e);
	for (size_t i = 0; i < h->acts->n; i++) {
		struct act *a = &h->acts->list[i];

		if (a->node == h->act.node && !strcmp(a->handle, h->act.handle)) {
			memmove(a, a + 1, (--h->acts->n - i) * sizeof(*a));
			break;
		}
	}
	return 0;
}

/* Pushes a table of the operations' methods that begin with 'type' ("Node:"): 'fn', or 'own_fn' for
 * the method 'own'. The upvalue is the operation. */
static void push_methods(
	lua_State *L, const char *type, lua_CFunction fn, const char *own, lua_CFunction own_fn)
{
	size_t n = strlen(type);

	lua_newtable(L);
	for (const struct operation *op = operations; op < operations + n_operations; op++) {
		if (!op->method || strncmp(op->method, type, n))
			continue;
		lua_pushlightuserdata(L, (void *)op);
		lua_pushcclosure(L, strcmp(op->method + n, own) ? fn : own_fn, 1);
		lua_setfield(L, -2, op->method + n);
	}
}

struct acts *bind_open(lua_State *L)
{
	static const luaL_Reg node_meta[] = {
		{"__index", node_index}, {"__tostring", node_tostring}, {NULL, NULL}};

	luaL_newmetatable(L, NODE_TYPE);
	luaL_setfuncs(L, node_meta, 0);
	push_methods(L, "Node:", call_method, "can", node_can);
	lua_setfield(L, -2, "methods");
	luaL_newmetatable(L, HANDLE_TYPE);
	push_methods(L, "Handle:", ask_handle, "undo", handle_undo);
	lua_setfield(L, -2, "__index");
	lua_pop(L, 2);
	lua_newtable(L);
	lua_setfield(L, LUA_REGISTRYINDEX, SHARED);
	return alloc_zero(1, sizeof(struct acts));
}

void bind_close(struct acts *a)
{
	if (!a)
		return;
	free(a->list);
	free(a);
}

bool bind_push_function(lua_State *L, const struct part *p, const char *name)
{
	int top = lua_gettop(L);

	lua_rawgeti(L, LUA_REGISTRYINDEX, p->def_ref);
	if (lua_istable(L, -1) && lua_getfield(L, -1, name) == LUA_TFUNCTION) {
		lua_remove(L, -2);
		return true;
	}
	lua_settop(L, top);
	return false;
}

void bind_push_node(lua_State *L, struct acts *a, struct member *m)
{
	struct lua_node *n = lua_newuserdatauv(L, sizeof(*n), 0);

	*n = (struct lua_node){.member = m, .acts = a};
	luaL_setmetatable(L, NODE_TYPE);
}

void bind_push_handle(lua_State *L, struct acts *a, struct member *m, const char *handle)
{
	struct lua_handle *h = push_closed_handle(L, m->node, a);

	snprintf(h->act.handle, sizeof(h->act.handle), "%s", handle);
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

/* {key: name in each client's folder}. */
static void push_files(lua_State *L, const struct part *p)
{
	const char *key;
	json_t *file;

	lua_newtable(L);
	json_object_foreach(p->files, key, file) {
		lua_pushstring(L, jget_text(file, "name"));
		lua_setfield(L, -2, key);
	}
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
	luajson_push(L, c->file_system);
	lua_setfield(L, -2, "file_system");
	lua_rawgeti(L, LUA_REGISTRYINDEX, p->params_ref);
	lua_setfield(L, -2, "params");
	lua_newtable(L);
	lua_setfield(L, -2, "state");
	lua_getfield(L, LUA_REGISTRYINDEX, SHARED);
	lua_setfield(L, -2, "shared");
	lua_pushstring(L, run_id);
	lua_setfield(L, -2, "run");
	push_files(L, p);
	lua_setfield(L, -2, "files");
}
