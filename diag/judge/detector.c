#include "diag/judge/detector.h"

#include <dirent.h>
#include <errno.h>
#include <lauxlib.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "diag/judge/detector_impl.h"
#include "harness/base/home.h"
#include "harness/lua/luajson.h"

enum { DETECTORS_MAX = 256 };

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

		if (n < DETECTORS_MAX && len > 4 && !strcmp(end - 4, ".lua") && !meta &&
			found[i]->d_name[0] != '.')
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
		rc = err_set(
			e, -ENOENT, "there is no detector '%s'; did you mean '%s'?", name, near);
	else
		rc = err_set(e, -ENOENT,
			"there is no detector '%s'; there are %s, or the path of a file ('./my.lua')",
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

/* A declared parameter: { default = "5s", unit = "seconds", min = , max = , integer = , help = }.
 * The declaration is on top of the stack; 'given' may be NULL. '*value' is new. */
static int read_param(
	struct detector *d, const char *key, const json_t *given, json_t **value, struct err *e)
{
	double number = 0, min = -INFINITY, max = INFINITY;
	enum unit unit = UNIT_NONE;
	char *unit_text = NULL, what[96];
	bool integer = false;
	struct luax_field form[] = {
		{"default", LUAX_ANY, .required = true},
		{"unit", LUAX_STRING, .out = &unit_text},
		{"min", LUAX_ANY},
		{"max", LUAX_ANY},
		{"integer", LUAX_BOOLEAN, .out = &integer},
		{"help", LUAX_STRING, .required = true},
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
		if (given &&
			(type == LUA_TBOOLEAN ? !json_is_boolean(given) : !json_is_string(given)))
			return err_set(e, -EINVAL, "detector '%s': parameter '%s' must be a %s",
				d->name, key, lua_typename(d->L, type));
		lua_getfield(d->L, -1, "default");
		rc = given ? (*value = json_deep_copy(given), 0) : luajson_get(d->L, -1, value, e);
		lua_pop(d->L, 1);
		return rc;
	}
	const struct luax_field numbers[] = {
		{"default", LUAX_QUANTITY, .unit = unit, .out = &number},
		{"min", LUAX_QUANTITY, .unit = unit, .out = &min},
		{"max", LUAX_QUANTITY, .unit = unit, .out = &max},
		{"unit", LUAX_ANY},
		{"integer", LUAX_ANY},
		{"help", LUAX_ANY},
		{NULL},
	};
	rc = luax_read(d->L, -1, &d->src, what, numbers, false, e);
	if (rc)
		return rc;
	if (given && json_is_string(given) && unit != UNIT_NONE) {
		rc = unit_parse(unit, json_string_value(given), &number, e);
		if (rc)
			return err_prefix(e, rc, "detector '%s': parameter '%s'", d->name, key);
	} else if (given && json_is_number(given) &&
		(unit == UNIT_NONE || json_number_value(given) == 0)) {
		number = json_number_value(given);
	} else if (given) {
		return err_set(e, -EINVAL, "detector '%s': parameter '%s' must be a %s", d->name,
			key, unit == UNIT_NONE ? "number" : "quantity in quotes, with its unit");
	}
	if (!(number >= min && number <= max))
		return err_set(e, -EINVAL,
			"detector '%s': parameter '%s' must be between %g and %g, not %g", d->name,
			key, min, max, number);
	if (integer && number != floor(number))
		return err_set(e, -EINVAL, "detector '%s': parameter '%s' must be a whole number",
			d->name, key);
	*value = integer || (number == floor(number) && fabs(number) < 1e15)
		? json_integer((json_int_t)number)
		: json_real(number);
	return 0;
}

static int refuse_param(struct detector *d, const char *key, struct err *e)
{
	const char *names[64] = {NULL}, *near, *name;
	json_t *value;
	size_t n = 0;

	json_object_foreach(d->params, name, value) if (n < 63) names[n++] = name;
	near = luax_nearest(key, names);
	if (near)
		return err_set(e, -EINVAL,
			"detector '%s' has no parameter '%s'; did you mean '%s'?", d->name, key,
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
				rc = luax_complain(
					&d->src, "params", e, "params: a parameter needs a name");
				continue;
			}
			key = lua_tostring(L, -2);
			rc = read_param(d, key, json_object_get(given, key), &value, e);
			if (!rc)
				json_object_set_new(d->params, key, value);
		}
	}
	lua_settop(L, 1);
	json_object_foreach((json_t *)given, key,
		value) if (!rc && !json_object_get(d->params, key)) rc = refuse_param(d, key, e);
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
		{"events", LUAX_BOOLEAN, .out = &d->events},
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

/* A program has no definition to read: it is named for its file. */
static int read_program(struct detector *d, const json_t *params, struct err *e)
{
	const char *base = strrchr(d->path, '/') ? strrchr(d->path, '/') + 1 : d->path;
	size_t len = strcspn(base, ".");

	if (access(d->path, X_OK) < 0)
		return err_set(e, errno == ENOENT ? -ENOENT : -EINVAL,
			errno == ENOENT
				? "there is no detector '%s'"
				: "the detector '%s' is neither a Lua file ('.lua') nor executable",
			d->path);
	d->external = d->trains = true;
	d->name = strndup(base, len ? len : strlen(base));
	d->src.path = strdup(d->path);
	d->summary = strdup("a program");
	if (!d->name || !d->src.path || !d->summary ||
		(params && json_object_update(d->params, (json_t *)params)))
		return err_errno(e, -ENOMEM, "cannot load the detector '%s'", d->path);
	return 0;
}

int detector_load(const char *name, const json_t *params, struct detector **out, struct err *e)
{
	struct detector *d = calloc(1, sizeof(*d));
	size_t len;
	int rc;

	if (!d || !(d->params = json_object())) {
		rc = err_errno(e, -ENOMEM, "cannot load the detector '%s'", name);
		goto out;
	}
	rc = find_file(name, &d->path, e);
	if (rc)
		goto out;
	len = strlen(d->path);
	if (len < 5 || strcmp(d->path + len - 4, ".lua")) {
		rc = read_program(d, params, e);
	} else {
		rc = sandbox_load(d, e);
		if (!rc)
			rc = read_definition(d, e);
		if (!rc)
			rc = read_params(d, params, e);
	}
	if (rc)
		goto out;
	*out = d;
	d = NULL;
out:
	detector_free(d);
	return rc;
}

void detector_free(struct detector *d)
{
	if (!d)
		return;
	sandbox_close(d);
	luax_source_clear(&d->src);
	free(d->path);
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

bool detector_wants_events(const struct detector *d)
{
	return d->events;
}

bool detector_trains(const struct detector *d)
{
	return d->trains;
}

bool detector_external(const struct detector *d)
{
	return d->external;
}

size_t detector_at_once(const struct detector *d)
{
	return d->external ? external_at_once() : 1;
}

const char *const *detector_nulls(void)
{
	static const char *const nulls[] = {"always-healthy", "always-same", "seeded-random", NULL};

	return nulls;
}

bool detector_is_null(const char *name)
{
	for (const char *const *null = detector_nulls(); *null; null++)
		if (!strcmp(*null, name))
			return true;
	return false;
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
