#include "diag/detectors/detector.h"

#include <dirent.h>
#include <errno.h>
#include <lauxlib.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "diag/detectors/detector_impl.h"
#include "diag/detectors/vec.h"
#include "harness/base/home.h"
#include "harness/base/lua/luajson.h"

enum {
	MEMORY_MAX = 256 << 20,
	STEP = 1000,          /* instructions between two looks at the clock */
	STEPS_MAX = 100000,   /* 1e8 instructions: seconds */
	DETECTORS_MAX = 256,
};

static void *counted_alloc(void *ud, void *p, size_t old, size_t new)
{
	struct detector *d = ud;
	size_t had = p ? old : 0;
	void *got;

	if (d->limited && new > had && d->memory + (new - had) > MEMORY_MAX) {
		/* After the first refusal Lua collects garbage and asks again. */
		if (++d->refusals > 1)
			d->out_of_memory = true;
		return NULL;
	}
	got = d->alloc(d->alloc_ud, p, old, new);
	if (got || !new)
		d->memory += new - had;
	if (new > had)
		d->refusals = 0;
	return got;
}

static void count_steps(lua_State *L, lua_Debug *ar)
{
	void *ud;
	struct detector *d;

	(void)ar;
	lua_getallocf(L, &ud);
	d = ud;
	if (++d->steps < STEPS_MAX && !d->out_of_memory)
		return;
	d->out_of_time = true;
	/* A pcall in the detector catches this one: the next instruction after it raises again. */
	lua_sethook(L, count_steps, LUA_MASKCOUNT, 1);
	luaL_error(L, "used up its %d million instructions", STEPS_MAX / 1000 * STEP / 1000);
}

static void limits_on(struct detector *d)
{
	d->limited = true;
	d->out_of_memory = d->out_of_time = false;
	d->steps = d->refusals = 0;
	lua_sethook(d->L, count_steps, LUA_MASKCOUNT, STEP);
}

static int limits_off(struct detector *d, int rc, struct err *e)
{
	d->limited = false;
	lua_sethook(d->L, NULL, 0, 0);
	if (rc && d->out_of_memory)
		return err_set(e, -E2BIG, "%s: the detector used up its %d MiB of memory", d->src.path,
			       MEMORY_MAX >> 20);
	return rc && d->out_of_time ? -E2BIG : rc;
}

int detector_call(struct detector *d, const char *name, int nargs, struct err *e)
{
	int rc;

	lua_getfield(d->L, 1, name);
	lua_insert(d->L, -nargs - 1);
	limits_on(d);
	rc = luax_call(d->L, nargs, 1, e);
	return limits_off(d, rc, e);
}

/* Names of the built-in detectors, sorted, ended by NULL; the caller frees each and the list. */
static char **built_in_names(void)
{
	char **names = calloc(DETECTORS_MAX + 1, sizeof(*names)), *folder = NULL;
	struct dirent **found = NULL;
	int count, n = 0;

	if (!names || home_path("diag/detectors", &folder, NULL))
		return names;
	count = scandir(folder, &found, NULL, alphasort);
	for (int i = 0; i < count; i++) {
		size_t len = strlen(found[i]->d_name);
		const char *end = found[i]->d_name + len;
		bool meta = len > 9 && !strcmp(end - 9, ".meta.lua");

		if (n < DETECTORS_MAX && len > 4 && !strcmp(end - 4, ".lua") && !meta && found[i]->d_name[0] != '.')
			names[n++] = strndup(found[i]->d_name, len - 4);
		free(found[i]);
	}
	free(found);
	free(folder);
	return names;
}

static void free_names(char **names)
{
	for (size_t i = 0; names && names[i]; i++)
		free(names[i]);
	free(names);
}

static int refuse_name(const char *name, struct err *e)
{
	char **names = built_in_names(), all[512] = "";
	const char *near = names ? luax_nearest(name, (const char *const *)names) : NULL;
	size_t n = 0;
	int rc;

	for (size_t i = 0; names && names[i] && n < sizeof(all); i++)
		n += (size_t)snprintf(all + n, sizeof(all) - n, "%s%s", i ? ", " : "", names[i]);
	if (near)
		rc = err_set(e, -ENOENT, "there is no detector '%s'; did you mean '%s'?", name, near);
	else
		rc = err_set(e, -ENOENT, "there is no detector '%s'; there are %s, or the path of a file ('./my.lua')",
			     name, all);
	free_names(names);
	return rc;
}

static int find_file(const char *name, char **path, struct err *e)
{
	size_t len = strlen(name);
	char *sub = NULL;
	int rc;

	if (strchr(name, '/') || (len > 4 && !strcmp(name + len - 4, ".lua"))) {
		*path = strdup(name);
		return *path ? 0 : err_errno(e, -ENOMEM, "cannot load the detector '%s'", name);
	}
	if (asprintf(&sub, "diag/detectors/%s.lua", name) < 0)
		return err_errno(e, -ENOMEM, "cannot load the detector '%s'", name);
	rc = home_path(sub, path, e);
	free(sub);
	if (!rc && (access(*path, R_OK) < 0 || strstr(name, ".meta"))) {
		free(*path);
		*path = NULL;
		rc = refuse_name(name, e);
	}
	return rc;
}

static int open_sandbox(struct detector *d, struct err *e)
{
	/* With a __gc metamethod a detector could run where no limit reaches it. */
	static const char *const removed[] = {"setmetatable", "getmetatable", "rawset", "warn", NULL};

	d->L = luax_new();
	if (!d->L)
		return err_errno(e, -ENOMEM, "cannot make a Lua state");
	d->alloc = lua_getallocf(d->L, &d->alloc_ud);
	d->memory = (size_t)lua_gc(d->L, LUA_GCCOUNT) * 1024 + (size_t)lua_gc(d->L, LUA_GCCOUNTB);
	lua_setallocf(d->L, counted_alloc, d);
	for (int i = 0; removed[i]; i++) {
		lua_pushnil(d->L);
		lua_setglobal(d->L, removed[i]);
	}
	vec_open(d->L);
	return 0;
}

/* A declared parameter: { default = "5s", unit = "seconds", min = , max = , integer = , help = }.
 * The declaration is on top of the stack; 'given' may be NULL. '*value' is new. */
static int read_param(struct detector *d, const char *key, const json_t *given, json_t **value, struct err *e)
{
	double number = 0, min = -INFINITY, max = INFINITY;
	enum unit unit = UNIT_NONE;
	char *unit_text = NULL, what[96];
	bool integer = false;
	struct luax_field form[] = {
		{"default", LUAX_ANY, .required = true},      {"unit", LUAX_STRING, .out = &unit_text},
		{"min", LUAX_ANY},                            {"max", LUAX_ANY},
		{"integer", LUAX_BOOLEAN, .out = &integer},   {"help", LUAX_STRING, .required = true},
		{NULL},
	};
	int rc, type;

	snprintf(what, sizeof(what), "parameter '%.60s'", key);
	rc = luax_read(d->L, -1, &d->src, what, form, false, e);
	if (!rc && unit_text && unit_from_name(unit_text, &unit))
		rc = luax_complain(&d->src, unit_text, e, "%s: unknown unit '%s'", what, unit_text);
	free(unit_text);
	if (rc)
		return rc;
	lua_getfield(d->L, -1, "default");
	type = lua_type(d->L, -1);
	lua_pop(d->L, 1);
	if (type == LUA_TBOOLEAN || (type == LUA_TSTRING && unit == UNIT_NONE)) {
		if (given && (type == LUA_TBOOLEAN ? !json_is_boolean(given) : !json_is_string(given)))
			return err_set(e, -EINVAL, "detector '%s': parameter '%s' must be a %s", d->name, key,
				       lua_typename(d->L, type));
		lua_getfield(d->L, -1, "default");
		rc = given ? (*value = json_deep_copy(given), 0) : luajson_get(d->L, -1, value, e);
		lua_pop(d->L, 1);
		return rc;
	}
	const struct luax_field numbers[] = {
		{"default", LUAX_QUANTITY, .unit = unit, .out = &number},
		{"min", LUAX_QUANTITY, .unit = unit, .out = &min},
		{"max", LUAX_QUANTITY, .unit = unit, .out = &max},
		{"unit", LUAX_ANY}, {"integer", LUAX_ANY}, {"help", LUAX_ANY},
		{NULL},
	};
	rc = luax_read(d->L, -1, &d->src, what, numbers, false, e);
	if (rc)
		return rc;
	if (given && json_is_string(given) && unit != UNIT_NONE) {
		rc = unit_parse(unit, json_string_value(given), &number, e);
		if (rc)
			return err_prefix(e, rc, "detector '%s': parameter '%s'", d->name, key);
	} else if (given && json_is_number(given) && (unit == UNIT_NONE || json_number_value(given) == 0)) {
		number = json_number_value(given);
	} else if (given) {
		return err_set(e, -EINVAL, "detector '%s': parameter '%s' must be a %s", d->name, key,
			       unit == UNIT_NONE ? "number" : "quantity in quotes, with its unit");
	}
	if (!(number >= min && number <= max))
		return err_set(e, -EINVAL, "detector '%s': parameter '%s' must be between %g and %g, not %g", d->name,
			       key, min, max, number);
	if (integer && number != floor(number))
		return err_set(e, -EINVAL, "detector '%s': parameter '%s' must be a whole number", d->name, key);
	*value = integer || (number == floor(number) && fabs(number) < 1e15) ? json_integer((json_int_t)number)
									     : json_real(number);
	return 0;
}

static int refuse_param(struct detector *d, const char *key, struct err *e)
{
	const char *names[64] = {NULL}, *near, *name;
	json_t *value;
	size_t n = 0;

	json_object_foreach(d->params, name, value)
		if (n < 63)
			names[n++] = name;
	near = luax_nearest(key, names);
	if (near)
		return err_set(e, -EINVAL, "detector '%s' has no parameter '%s'; did you mean '%s'?", d->name, key,
			       near);
	return err_set(e, -EINVAL, "detector '%s' has no parameter '%s'", d->name, key);
}

static int read_params(struct detector *d, const json_t *given, struct err *e)
{
	lua_State *L = d->L;
	const char *key;
	json_t *value;
	int rc = 0;

	lua_getfield(L, 1, "params");
	if (lua_istable(L, -1)) {
		for (lua_pushnil(L); !rc && lua_next(L, -2); lua_pop(L, 1)) {
			if (lua_type(L, -2) != LUA_TSTRING) {
				rc = luax_complain(&d->src, "params", e, "params: a parameter needs a name");
				continue;
			}
			key = lua_tostring(L, -2);
			rc = read_param(d, key, json_object_get(given, key), &value, e);
			if (!rc)
				json_object_set_new(d->params, key, value);
		}
	}
	lua_settop(L, 1);
	json_object_foreach((json_t *)given, key, value)
		if (!rc && !json_object_get(d->params, key))
			rc = refuse_param(d, key, e);
	return rc;
}

static int read_definition(struct detector *d, struct err *e)
{
	const struct luax_field form[] = {
		{"name", LUAX_STRING, .required = true, .out = &d->name},
		{"summary", LUAX_STRING, .required = true, .out = &d->summary},
		{"params", LUAX_TABLE},
		{"train", LUAX_FUNCTION},
		{"diagnose", LUAX_FUNCTION, .required = true},
		{NULL},
	};
	int rc = luax_read(d->L, 1, &d->src, "detector", form, false, e);

	if (rc)
		return rc;
	lua_getfield(d->L, 1, "train");
	d->trains = lua_isfunction(d->L, -1);
	lua_pop(d->L, 1);
	return 0;
}

int detector_load(const char *name, const json_t *params, struct detector **out, struct err *e)
{
	struct detector *d = calloc(1, sizeof(*d));
	char *path = NULL;
	int rc;

	if (!d || !(d->params = json_object())) {
		rc = err_errno(e, -ENOMEM, "cannot load the detector '%s'", name);
		goto out;
	}
	rc = find_file(name, &path, e);
	if (!rc)
		rc = open_sandbox(d, e);
	if (rc)
		goto out;
	limits_on(d);
	rc = luax_load_file(d->L, path, &d->src, e);
	rc = limits_off(d, rc, e);
	if (!rc)
		rc = read_definition(d, e);
	if (!rc)
		rc = read_params(d, params, e);
	if (rc)
		goto out;
	*out = d;
	d = NULL;
out:
	free(path);
	detector_free(d);
	return rc;
}

void detector_free(struct detector *d)
{
	if (!d)
		return;
	if (d->L)
		lua_close(d->L);
	luax_source_clear(&d->src);
	free(d->name);
	free(d->summary);
	json_decref(d->params);
	free(d);
}

const char *detector_name(const struct detector *d)
{
	return d->name;
}

const char *detector_summary(const struct detector *d)
{
	return d->summary;
}

bool detector_trains(const struct detector *d)
{
	return d->trains;
}

const json_t *detector_params(const struct detector *d)
{
	return d->params;
}

int detector_each(int (*fn)(void *ctx, const struct detector *d), void *ctx, struct err *e)
{
	char **names = built_in_names();
	struct detector *d;
	int rc = 0;

	for (size_t i = 0; !rc && names && names[i]; i++) {
		rc = detector_load(names[i], NULL, &d, e);
		if (rc)
			break;
		rc = fn(ctx, d);
		detector_free(d);
	}
	free_names(names);
	return rc;
}
