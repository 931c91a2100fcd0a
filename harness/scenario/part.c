#include "harness/scenario/part.h"

#include <dirent.h>
#include <errno.h>
#include <lauxlib.h>
#include <libgen.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/home.h"
#include "harness/scenario/plan.h"

static const char *const kind_names[] = {[PART_FAULT] = "fault", [PART_WORKLOAD] = "workload"};
static const char *const kind_folders[] = {[PART_FAULT] = "faults", [PART_WORKLOAD] = "workloads"};

#define MAX_PARAMS 32
#define MAX_PARTS 256

/* A declared parameter: { default = "5%", unit = "percent", min = ..., max = ..., help = "..." } */
struct param {
	char name[64];
	enum unit unit;
	double value, min, max;
	bool integer;
};

void part_clear(lua_State *L, struct part *p)
{
	free(p->name);
	free(p->label);
	free(p->path);
	free(p->summary);
	free(p->resource);
	free(p->needs);
	part_under_free(p->under);
	json_decref(p->params);
	luaL_unref(L, LUA_REGISTRYINDEX, p->def_ref);
	luaL_unref(L, LUA_REGISTRYINDEX, p->params_ref);
	*p = (struct part){.def_ref = LUA_NOREF, .params_ref = LUA_NOREF};
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Names of culprit's own parts of a kind, sorted, ended by NULL; the caller frees each and the
 * list. */
static char **own_names(enum part_kind kind)
{
	char **names = calloc(MAX_PARTS + 2, sizeof(*names)), *folder = NULL;
	size_t n = 0;
	DIR *dir;

	if (!names || home_path(kind_folders[kind], &folder, NULL))
		return names;
	dir = opendir(folder);
	for (struct dirent *d; dir && n < MAX_PARTS && (d = readdir(dir));) {
		size_t len = strlen(d->d_name);

		if (len > 4 && d->d_name[0] != '.' && !strcmp(d->d_name + len - 4, ".lua"))
			names[n++] = strndup(d->d_name, len - 4);
	}
	if (dir)
		closedir(dir);
	if (kind == PART_FAULT)
		names[n++] = strdup("none");
	qsort(names, n, sizeof(*names), by_text);
	free(folder);
	return names;
}

static void free_names(char **names)
{
	for (size_t i = 0; names && names[i]; i++)
		free(names[i]);
	free(names);
}

static int refuse_name(
	enum part_kind kind, const char *name, const struct luax_source *src, struct err *e)
{
	char **names = own_names(kind), all[512] = "";
	const char *near = names ? luax_nearest(name, (const char *const *)names) : NULL;
	size_t n = 0;
	int rc;

	for (size_t i = 0; names && names[i] && n < sizeof(all); i++)
		n += (size_t)snprintf(all + n, sizeof(all) - n, "%s%s", i ? ", " : "", names[i]);
	if (near)
		rc = luax_complain(src, name, e, "there is no %s '%s'; did you mean '%s'?",
			kind_names[kind], name, near);
	else
		rc = luax_complain(src, name, e,
			"there is no %s '%s'; there are %s, or the path of a file ('./my.lua')",
			kind_names[kind], name, all);
	free_names(names);
	return rc;
}

/* A name with a slash or ".lua" is a path relative to the scenario's folder. */
static int find_file(enum part_kind kind, const char *name, const struct luax_source *src,
	char **path, struct err *e)
{
	char *sub = NULL, *copy = NULL;
	size_t len = strlen(name);
	int rc = 0;

	if (strchr(name, '/') || (len > 4 && !strcmp(name + len - 4, ".lua"))) {
		const char *file = strncmp(name, "./", 2) ? name : name + 2, *folder;

		copy = strdup(src && src->path ? src->path : ".");
		folder = copy ? dirname(copy) : "";
		if (!copy ||
			(file[0] == '/' || !strcmp(folder, ".")
					? asprintf(path, "%s", file)
					: asprintf(path, "%s/%s", folder, file)) < 0)
			rc = err_errno(e, -ENOMEM, "cannot find '%s'", name);
		free(copy);
		if (!rc && access(*path, R_OK) < 0) {
			rc = luax_complain(src, name, e, "cannot read the %s '%s': %s",
				kind_names[kind], name, strerror(errno));
			free(*path);
			*path = NULL;
		}
		return rc;
	}
	if (asprintf(&sub, "%s/%s.lua", kind_folders[kind], name) < 0)
		return err_errno(e, -ENOMEM, "cannot find '%s'", name);
	rc = home_path(sub, path, e);
	free(sub);
	if (!rc && access(*path, R_OK) < 0) {
		free(*path);
		*path = NULL;
		rc = refuse_name(kind, name, src, e);
	}
	return rc;
}

static int read_definition(
	lua_State *L, struct part *p, const struct luax_source *own, struct err *e)
{
	const struct luax_field fault_fields[] = {
		{"summary", LUAX_STRING, .required = true, .out = &p->summary},
		{"resource", LUAX_STRING, .required = true, .out = &p->resource},
		{"needs", LUAX_STRING, .out = &p->needs},
		{"params", LUAX_TABLE},
		{"check", LUAX_FUNCTION},
		{"inject", LUAX_FUNCTION, .required = true},
		{"verify", LUAX_FUNCTION, .required = true},
		{"trigger", LUAX_FUNCTION},
		{"step", LUAX_FUNCTION},
		{"from_start", LUAX_BOOLEAN, .out = &p->from_start},
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
		{"prepare", LUAX_FUNCTION},
		{"command", LUAX_FUNCTION, .required = true},
		{"cleanup", LUAX_FUNCTION},
		{"result", LUAX_FUNCTION},
		{NULL},
	};

	return luax_read(L, -1, own, kind_names[p->kind],
		p->kind == PART_FAULT ? fault_fields : workload_fields, false, e);
}

/* Reads one declaration; the declaring table is on top of the stack, its name below it. */
static int read_param(lua_State *L, const struct luax_source *own, struct param *out, struct err *e)
{
	struct param p = {.min = -INFINITY, .max = INFINITY};
	char *unit = NULL, what[128];
	struct luax_field first[] = {
		{"default", LUAX_ANY, .required = true},
		{"unit", LUAX_STRING, .out = &unit},
		{"min", LUAX_ANY},
		{"max", LUAX_ANY},
		{"integer", LUAX_BOOLEAN, .out = &p.integer},
		{"help", LUAX_STRING, .required = true},
		{NULL},
	};
	int rc;

	if (lua_type(L, -2) != LUA_TSTRING)
		return luax_complain(own, "params", e, "params: a parameter needs a name");
	snprintf(p.name, sizeof(p.name), "%s", lua_tostring(L, -2));
	snprintf(what, sizeof(what), "parameter '%s'", p.name);
	rc = luax_read(L, -1, own, what, first, false, e);
	if (!rc && unit && unit_from_name(unit, &p.unit))
		rc = luax_complain(own, unit, e,
			"%s: unknown unit '%s'; there are number, bytes, seconds, percent, bytes_per_second",
			what, unit);
	if (!rc) {
		const struct luax_field second[] = {
			{"default", LUAX_QUANTITY, .unit = p.unit, .out = &p.value},
			{"min", LUAX_QUANTITY, .unit = p.unit, .out = &p.min},
			{"max", LUAX_QUANTITY, .unit = p.unit, .out = &p.max},
			{"unit", LUAX_ANY},
			{"integer", LUAX_ANY},
			{"help", LUAX_ANY},
			{NULL},
		};

		rc = luax_read(L, -1, own, what, second, false, e);
	}
	free(unit);
	if (!rc)
		*out = p;
	return rc;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct param *)a)->name, ((const struct param *)b)->name);
}

/* The definition is on top of the stack. */
static int read_params(lua_State *L, const struct luax_source *own, struct param *params,
	size_t *count, struct err *e)
{
	size_t n = 0;
	int rc = 0;

	lua_getfield(L, -1, "params");
	if (lua_isnil(L, -1)) {
		lua_pop(L, 1);
		*count = 0;
		return 0;
	}
	for (lua_pushnil(L); !rc && lua_next(L, -2); lua_pop(L, 1)) {
		if (n == MAX_PARAMS)
			rc = luax_complain(
				own, "params", e, "params: at most %d are allowed", MAX_PARAMS);
		else
			rc = read_param(L, own, &params[n++], e);
	}
	lua_pop(L, rc ? 2 : 1);
	qsort(params, n, sizeof(*params), by_name);
	*count = n;
	return rc;
}

void part_under_free(char **under)
{
	for (size_t i = 0; under && under[i]; i++)
		free(under[i]);
	free(under);
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
	char **list = NULL;
	size_t n;
	int rc = 0;

	if (lua_getfield(L, given, "workloads") == LUA_TNIL) {
		lua_pop(L, 1);
		return 0;
	}
	n = lua_rawlen(L, -1);
	list = calloc(n + 1, sizeof(*list));
	if (!list || !n)
		rc = luax_complain(
			src, "workloads", e, "%s: 'workloads' must list at least one", whose);
	for (size_t i = 0; i < n && !rc; i++) {
		lua_rawgeti(L, -1, (lua_Integer)i + 1);
		if (lua_type(L, -1) == LUA_TSTRING)
			list[i] = strdup(lua_tostring(L, -1));
		if (!list[i])
			rc = luax_complain(src, "workloads", e,
				"%s: 'workloads' must be a list of names", whose);
		lua_pop(L, 1);
	}
	lua_pop(L, 1);
	if (rc)
		part_under_free(list);
	else
		*under = list;
	return rc;
}

static int read_fault_under(
	lua_State *L, int given, const struct luax_source *src, struct part *p, struct err *e)
{
	char whose[160];

	snprintf(whose, sizeof(whose), "fault '%s'", p->name);
	return part_under_read(L, given, src, whose, &p->under, e);
}

/* Overrides defaults by what the scenario gives; the scenario's table is at 'given' (0: none). */
static int take_given(lua_State *L, int given, const struct luax_source *src, struct part *p,
	struct param *params, size_t n, struct err *e)
{
	const struct luax_field reserved[] = {
		{"workloads", LUAX_TABLE},
		{"victims", LUAX_INTEGER, .min = 1, .max = MAX_VICTIMS, .out = &p->victims},
		{"after", LUAX_QUANTITY, .unit = UNIT_SECONDS, .min = 0, .max = 86400,
			.out = &p->after_s},
	};
	struct luax_field fields[MAX_PARAMS + 4] = {{0}};
	char what[96], text[64];
	size_t len = strlen(p->name);
	bool differs = false;
	double was[MAX_PARAMS];
	int rc = 0;

	snprintf(what, sizeof(what), "%s '%.60s'", kind_names[p->kind], p->name);
	for (size_t i = 0; i < n; i++) {
		was[i] = params[i].value;
		fields[i] = (struct luax_field){.name = params[i].name,
			.type = LUAX_QUANTITY,
			.unit = params[i].unit,
			.min = params[i].min,
			.max = params[i].max,
			.out = &params[i].value};
	}
	if (p->kind == PART_FAULT)
		memcpy(fields + n, reserved, sizeof(reserved));
	if (given)
		rc = luax_read(L, given, src, what, fields, true, e);
	if (!rc && given && p->kind == PART_FAULT)
		rc = read_fault_under(L, given, src, p, e);
	if (rc)
		return rc;
	p->params = json_object();
	p->label = calloc(1, len + MAX_PARAMS * 128 + 3);
	if (!p->params || !p->label)
		return err_errno(e, -ENOMEM, "cannot load the %s", what);
	strcpy(p->label, p->name);
	lua_newtable(L);
	for (size_t i = 0; i < n; i++) {
		if (params[i].integer && params[i].value != floor(params[i].value)) {
			lua_pop(L, 1);
			return luax_complain(src, params[i].name, e,
				"%s: '%s' must be a whole number", what, params[i].name);
		}
		if (params[i].value == floor(params[i].value) && fabs(params[i].value) < 1e15) {
			lua_pushinteger(L, (lua_Integer)params[i].value);
			json_object_set_new(p->params, params[i].name,
				json_integer((json_int_t)params[i].value));
		} else {
			lua_pushnumber(L, params[i].value);
			json_object_set_new(p->params, params[i].name, json_real(params[i].value));
		}
		lua_setfield(L, -2, params[i].name);
		if (params[i].value != was[i]) {
			sprintf(p->label + strlen(p->label), "%s%s=%s", differs ? "," : "(",
				params[i].name,
				unit_format(params[i].unit, params[i].value, text, sizeof(text)));
			differs = true;
		}
	}
	if (differs)
		strcat(p->label, ")");
	p->params_ref = luaL_ref(L, LUA_REGISTRYINDEX);
	return 0;
}

static int load_none(
	struct part *p, int given, const struct luax_source *src, lua_State *L, struct err *e)
{
	const struct luax_field fields[] = {{"workloads", LUAX_TABLE}, {NULL}};
	int rc = 0;

	p->label = strdup(p->name);
	p->summary = strdup("no fault: the control");
	p->resource = strdup("-");
	p->params = json_object();
	if (!p->label || !p->summary || !p->resource || !p->params)
		return err_errno(e, -ENOMEM, "cannot load the fault 'none'");
	if (given)
		rc = luax_read(L, given, src, "fault 'none'", fields, true, e);
	if (given && !rc)
		rc = read_fault_under(L, given, src, p, e);
	return rc;
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
	struct luax_source own = {0};
	struct param params[MAX_PARAMS];
	int top = lua_gettop(L), given = 0, rc;
	size_t n;

	if (lua_istable(L, top)) {
		given = top;
		lua_rawgeti(L, top, 1);
	} else {
		lua_pushvalue(L, top);
	}
	if (lua_type(L, -1) != LUA_TSTRING) {
		rc = luax_complain(src, kind_folders[kind], e,
			"%s: each entry is a name or { \"name\", param = value }",
			kind_folders[kind]);
		goto out;
	}
	p.name = strdup(lua_tostring(L, -1));
	if (!p.name) {
		rc = err_errno(e, -ENOMEM, "cannot load a %s", kind_names[kind]);
		goto out;
	}
	if (kind == PART_FAULT && !strcmp(p.name, "none")) {
		rc = load_none(&p, given, src, L, e);
		goto out;
	}
	rc = find_file(kind, p.name, src, &p.path, e);
	if (rc)
		goto out;
	if (strchr(p.name, '/') || strstr(p.name, ".lua")) {
		char *base = strdup(basename(p.path)), *dot = base ? strstr(base, ".lua") : NULL;

		if (dot)
			*dot = '\0';
		free(p.name);
		p.name = base;
	}
	rc = luax_load_file(L, p.path, &own, e);
	if (!rc)
		rc = read_definition(L, &p, &own, e);
	if (!rc)
		rc = read_params(L, &own, params, &n, e);
	if (!rc)
		rc = take_given(L, given, src, &p, params, n, e);
	if (!rc) {
		lua_pushvalue(L, -1);
		p.def_ref = luaL_ref(L, LUA_REGISTRYINDEX);
	}
out:
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
	char **names = own_names(kind);
	lua_State *L = luax_new();
	int rc = 0;

	if (!names || !L)
		rc = err_errno(e, -ENOMEM, "cannot list the %s", kind_folders[kind]);
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
	if (L)
		lua_close(L);
	free_names(names);
	return rc;
}
