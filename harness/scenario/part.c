/* Loads the faults and workloads that a scenario names. */
#include "harness/scenario/part.h"

#include <errno.h>
#include <lauxlib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/scenario/plan.h"

void part_clear(lua_State *L, struct part *p)
{
	free(p->name);
	free(p->label);
	free(p->path);
	free(p->summary);
	free(p->resource);
	free(p->needs);
	alloc_free_list(p->under);
	json_decref(p->params);
	json_decref(p->files);
	luaL_unref(L, LUA_REGISTRYINDEX, p->def_ref);
	luaL_unref(L, LUA_REGISTRYINDEX, p->params_ref);
	*p = (struct part){.def_ref = LUA_NOREF, .params_ref = LUA_NOREF};
}

bool part_under_has(char *const *under, const struct part *workload)
{
	bool any = !under;

	for (size_t i = 0; under && under[i]; i++)
		any = any || !strcmp(under[i], workload->name) ||
			!strcmp(under[i], workload->label);
	return any;
}

int part_under_read(lua_State *L, int given, const struct luax_source *src, const char *whose,
	char ***under, struct err *e)
{
	int top = lua_gettop(L), type = lua_getfield(L, given, "workloads");
	size_t n = type == LUA_TTABLE ? lua_rawlen(L, -1) : 0;
	char **list = alloc_zero(n + 1, sizeof(*list));
	int rc = 0;

	if (type != LUA_TNIL && !n)
		rc = luax_complain(
			src, "workloads", e, "%s: 'workloads' must list at least one", whose);
	for (size_t i = 0; i < n && !rc; i++) {
		if (lua_rawgeti(L, top + 1, (lua_Integer)i + 1) != LUA_TSTRING)
			rc = luax_complain(src, "workloads", e,
				"%s: 'workloads' must be a list of names", whose);
		else
			list[i] = alloc_copy(lua_tostring(L, -1));
		lua_pop(L, 1);
	}
	lua_settop(L, top);
	if (rc || type == LUA_TNIL)
		alloc_free_list(list);
	else
		*under = list;
	return rc;
}

/* Of a fault, whose table is on top of the stack. */
static int read_storage(lua_State *L, struct part *p, const struct luax_source *own, struct err *e)
{
	static const char *const words[] = {
		[PART_STORAGE_FOLDER] = "folder", [PART_STORAGE_EMPTY] = "empty"};
	const char *word = NULL;

	if (lua_getfield(L, -1, "storage") == LUA_TSTRING)
		word = lua_tostring(L, -1);
	for (int i = PART_STORAGE_FOLDER; word && i <= PART_STORAGE_EMPTY; i++)
		if (!strcmp(words[i], word))
			p->storage = (enum part_storage)i;
	lua_pop(L, 1);
	return word && p->storage == PART_STORAGE_ANY
		? luax_complain(own, "storage", e,
			  "fault '%s': 'storage' must be \"folder\" or \"empty\"", p->name)
		: 0;
}

/* The file is the one that 'name' means; its table is left on the stack. */
static int open_file(lua_State *L, struct part *p, const char *name, const struct luax_source *src,
	struct luax_source *own, struct err *e)
{
	const struct luax_field fault_fields[] = {
		{"summary", LUAX_STRING, .required = true, .out = &p->summary},
		{"resource", LUAX_STRING, .required = true, .out = &p->resource},
		{"needs", LUAX_STRING, .out = &p->needs},
		{"storage", LUAX_STRING},
		{"params", LUAX_TABLE},
		{"check", LUAX_FUNCTION},
		{"inject", LUAX_FUNCTION, .required = true},
		{"verify", LUAX_FUNCTION, .required = true},
		{"trigger", LUAX_FUNCTION},
		{"step", LUAX_FUNCTION},
		{"from_start", LUAX_BOOLEAN, .out = &p->from_start},
		{"lookalike", LUAX_BOOLEAN, .out = &p->lookalike},
		{"workload_may_fail", LUAX_BOOLEAN, .out = &p->may_fail},
		{"verify_timeout", LUAX_QUANTITY, .unit = UNIT_SECONDS, .min = 0.1, .max = 600,
			.out = &p->verify_s},
		{NULL},
	};
	const struct luax_field workload_fields[] = {
		{"summary", LUAX_STRING, .required = true, .out = &p->summary},
		{"params", LUAX_TABLE},
		{"needs", LUAX_TABLE},
		{"packages", LUAX_TABLE},
		{"files", LUAX_FUNCTION},
		{"prepare", LUAX_FUNCTION},
		{"command", LUAX_FUNCTION, .required = true},
		{"cleanup", LUAX_FUNCTION},
		{"result", LUAX_FUNCTION},
		{NULL},
	};
	enum library_kind kind = (enum library_kind)p->kind;
	int rc = library_open(
		L, kind, name, src, p->kind == PART_FAULT ? fault_fields : workload_fields, own, e);

	rc = rc ?: library_name(kind, own->path, &p->name, e);
	return rc || kind != LIBRARY_FAULT ? rc : read_storage(L, p, own, e);
}

/* 'given': the scenario's table for this part; 0: none. */
static int take_given(lua_State *L, int definition, int given, const struct luax_source *src,
	const struct luax_source *own, struct part *p, struct err *e)
{
	const struct luax_field reserved[] = {
		{"workloads", LUAX_TABLE},
		{"victims", LUAX_INTEGER, .min = 1, .max = MAX_VICTIMS, .out = &p->victims},
		{"after", LUAX_QUANTITY, .unit = UNIT_SECONDS, .min = 0, .max = 86400,
			.out = &p->after_s},
		{NULL},
	};
	bool fault = p->kind == PART_FAULT;
	auto_free char *changes = NULL;
	char what[96];
	int rc;

	snprintf(what, sizeof(what), "%s '%s'", library_kind_name((enum library_kind)p->kind),
		p->name);
	rc = library_params(L, definition, own, given, src, what, fault ? reserved : NULL,
		&p->params, &changes, e);
	if (!rc && given && fault)
		rc = part_under_read(L, given, src, what, &p->under, e);
	if (rc)
		return rc;
	p->label = *changes ? alloc_format("%s(%s)", p->name, changes) : alloc_copy(p->name);
	luajson_push(L, p->params);
	p->params_ref = luaL_ref(L, LUA_REGISTRYINDEX);
	return 0;
}

/* The fault "none" has no file. */
static int load_none(
	struct part *p, int given, const struct luax_source *src, lua_State *L, struct err *e)
{
	const struct luax_field fields[] = {{"workloads", LUAX_TABLE}, {NULL}};
	int rc = given ? luax_read(L, given, src, "fault 'none'", fields, true, e) : 0;

	p->name = alloc_copy("none");
	p->label = alloc_copy("none");
	p->summary = alloc_copy("no fault: the control");
	p->resource = alloc_copy("-");
	p->params = json_object();
	return given && !rc ? part_under_read(L, given, src, "fault 'none'", &p->under, e) : rc;
}

int part_load(lua_State *L, enum part_kind kind, const struct luax_source *src, struct part *out,
	struct err *e)
{
	struct part p = {.kind = kind,
		.verify_s = 5,
		.after_s = -1,
		.victims = 1,
		.def_ref = LUA_NOREF,
		.params_ref = LUA_NOREF};
	int top = lua_gettop(L), given = lua_istable(L, top) ? top : 0, rc;
	struct luax_source own = {0};
	const char *name;

	if (given)
		lua_rawgeti(L, top, 1);
	name = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : NULL;
	if (!name) {
		const char *key = kind == PART_FAULT ? "faults" : "workloads";

		rc = luax_complain(src, key, e,
			"%s: each entry is a name or { \"name\", param = value }", key);
	} else if (kind == PART_FAULT && !strcmp(name, "none")) {
		rc = load_none(&p, given, src, L, e);
	} else {
		rc = open_file(L, &p, name, src, &own, e);
		if (!rc)
			rc = take_given(L, lua_gettop(L), given, src, &own, &p, e);
		if (!rc) {
			p.def_ref = luaL_ref(L, LUA_REGISTRYINDEX);
			p.path = own.path;
			own.path = NULL;
		}
	}
	luax_source_clear(&own);
	if (rc)
		part_clear(L, &p);
	else
		*out = p;
	lua_settop(L, top - 1);
	return rc;
}

int part_each(enum part_kind kind, part_fn fn, void *ctx, struct err *e)
{
	char **names = library_names((enum library_kind)kind);
	lua_State *L = luax_new();
	int rc = 0;

	for (size_t i = 0; !rc && names[i]; i++) {
		struct part p;

		lua_pushstring(L, names[i]);
		rc = part_load(L, kind, NULL, &p, e);
		if (rc)
			break;
		lua_rawgeti(L, LUA_REGISTRYINDEX, p.def_ref);
		if (lua_istable(L, -1))
			lua_getfield(L, -1, "params");
		else
			lua_pushnil(L);
		rc = fn(ctx, L, &p);
		lua_settop(L, 0);
		part_clear(L, &p);
	}
	lua_close(L);
	alloc_free_list(names);
	return rc;
}
