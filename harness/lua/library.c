#include "harness/lua/library.h"

#include <dirent.h>
#include <errno.h>
#include <libgen.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/home.h"
#include "harness/base/name.h"

enum { PARAMS_MAX = 32, FIELDS_MAX = PARAMS_MAX + 8 };

static const struct {
	const char *name, *folder;
	const char *without_file; /* a name that has no file */
} kinds[] = {
	[LIBRARY_FAULT] = {"fault", "faults", "none"},
	[LIBRARY_WORKLOAD] = {"workload", "workloads", NULL},
	[LIBRARY_DETECTOR] = {"detector", "diag/detectors", NULL},
	[LIBRARY_FILE_SYSTEM] = {"file system", "harness/fs", NULL},
};

struct param {
	char name[NAME_LENGTH_MAX + 1];
	enum luax_type type; /* LUAX_NUMBER, LUAX_QUANTITY, LUAX_BOOLEAN or LUAX_STRING */
	enum unit unit;
	double value, fallback, min, max;
	bool integer, flag, flag_fallback;
	char *text, *text_fallback;
};

const char *library_kind_name(enum library_kind kind)
{
	return kinds[kind].name;
}

static bool is_lua(const char *name)
{
	size_t len = strlen(name);

	return len > 4 && !strcmp(name + len - 4, ".lua");
}

bool library_is_path(const char *name)
{
	return strchr(name, '/') || is_lua(name);
}

static int is_own(const struct dirent *d)
{
	return d->d_name[0] != '.' && is_lua(d->d_name) && !strstr(d->d_name, ".meta.lua");
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

char **library_names(enum library_kind kind)
{
	struct dirent **found = NULL;
	char *folder = NULL, **names;
	int n = 0;

	if (!home_path(kinds[kind].folder, &folder, NULL))
		n = scandir(folder, &found, is_own, NULL);
	n = n < 0 ? 0 : n;
	names = calloc((size_t)n + 2, sizeof(*names));
	for (int i = 0; i < n; i++) {
		if (names)
			names[i] = strndup(found[i]->d_name, strlen(found[i]->d_name) - 4);
		free(found[i]);
	}
	if (names && kinds[kind].without_file)
		names[n++] = strdup(kinds[kind].without_file);
	if (names)
		qsort(names, (size_t)n, sizeof(*names), by_text);
	free(found);
	free(folder);
	return names;
}

void library_free_names(char **names)
{
	for (size_t i = 0; names && names[i]; i++)
		free(names[i]);
	free(names);
}

static int refuse_name(
	enum library_kind kind, const char *name, const struct luax_source *src, struct err *e)
{
	char **names = library_names(kind), all[512] = "";
	const char *near = names ? luax_nearest(name, (const char *const *)names) : NULL;
	size_t n = 0;

	for (size_t i = 0; names && names[i] && n < sizeof(all); i++)
		n += (size_t)snprintf(all + n, sizeof(all) - n, "%s%s", i ? ", " : "", names[i]);
	if (near)
		luax_complain(src, name, e, "there is no %s '%s'; did you mean '%s'?",
			kinds[kind].name, name, near);
	else
		luax_complain(src, name, e,
			"there is no %s '%s'; there are %s, or the path of a file ('./my.lua')",
			kinds[kind].name, name, all);
	library_free_names(names);
	return -ENOENT;
}

/* 'name' relative to the folder of the file that names it. */
static char *beside(const struct luax_source *src, const char *name)
{
	const char *plain = strncmp(name, "./", 2) || !is_lua(name) ? name : name + 2, *folder;
	char *copy = strdup(src && src->path ? src->path : "."), *path = NULL;

	folder = copy ? dirname(copy) : "";
	if (*name == '/' || !strcmp(folder, "."))
		path = strdup(plain);
	else if (asprintf(&path, "%s/%s", folder, plain) < 0)
		path = NULL;
	free(copy);
	return path;
}

int library_find(enum library_kind kind, const char *name, const struct luax_source *src,
	char **path, struct err *e)
{
	bool is_path = library_is_path(name);
	char *sub = NULL, *found = NULL;
	int rc = 0;

	if (is_path)
		found = beside(src, name);
	else if (asprintf(&sub, "%s/%s.lua", kinds[kind].folder, name) >= 0)
		rc = home_path(sub, &found, e);
	free(sub);
	if (!rc && !found)
		return err_errno(e, -ENOMEM, "cannot find '%s'", name);
	if (!rc && (access(found, R_OK) < 0 || (!is_path && strstr(name, ".meta")))) {
		rc = errno == ENOENT || !is_path ? -ENOENT : -errno;
		if (is_path)
			luax_complain(src, name, e, "cannot read the %s '%s': %s", kinds[kind].name,
				name, strerror(errno));
		else
			refuse_name(kind, name, src, e);
	}
	if (rc)
		free(found);
	else
		*path = found;
	return rc;
}

int library_name(enum library_kind kind, const char *path, char **name, struct err *e)
{
	const char *base = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	size_t len = is_lua(base) ? strlen(base) - 4 : strcspn(base, ".");
	struct err why;

	*name = strndup(base, len ? len : strlen(base));
	if (!*name)
		return err_errno(e, -ENOMEM, "cannot load '%s'", path);
	if (!name_check(kinds[kind].name, *name, &why))
		return 0;
	free(*name);
	*name = NULL;
	err_set(e, -EINVAL, "%s: %s; rename the file", path, why.text);
	return err_blame(e, ERR_SCENARIO, -EINVAL);
}

int library_open(lua_State *L, enum library_kind kind, const char *name,
	const struct luax_source *src, const struct luax_field *fields, struct luax_source *own,
	struct err *e)
{
	struct luax_source file = {0};
	char *path = NULL;
	int rc = library_find(kind, name, src, &path, e);

	if (!rc)
		rc = luax_load_file(L, path, &file, e);
	if (!rc)
		rc = luax_read(L, -1, &file, kinds[kind].name, fields, false, e);
	free(path);
	if (rc)
		luax_source_clear(&file);
	else
		*own = file;
	return rc;
}

/* Reads one declaration; the declaring table is on top of the stack, its name below it. */
static int declare(lua_State *L, const struct luax_source *own, struct param *p, struct err *e)
{
	char *unit = NULL, what[128];
	const struct luax_field form[] = {
		{"default", LUAX_ANY, .required = true},
		{"unit", LUAX_STRING, .out = &unit},
		{"min", LUAX_ANY},
		{"max", LUAX_ANY},
		{"integer", LUAX_BOOLEAN, .out = &p->integer},
		{"help", LUAX_STRING, .required = true},
		{NULL},
	};
	int rc, type;

	*p = (struct param){.min = -INFINITY, .max = INFINITY};
	if (lua_type(L, -2) != LUA_TSTRING)
		return luax_complain(own, "params", e, "params: a parameter needs a name");
	snprintf(p->name, sizeof(p->name), "%s", lua_tostring(L, -2));
	snprintf(what, sizeof(what), "parameter '%s'", p->name);
	rc = luax_read(L, -1, own, what, form, false, e);
	if (!rc && unit && unit_from_name(unit, &p->unit))
		rc = luax_complain(own, unit, e,
			"%s: unknown unit '%s'; there are number, bytes, seconds, percent, "
			"bytes_per_second",
			what, unit);
	free(unit);
	if (rc)
		return rc;
	type = lua_getfield(L, -1, "default");
	lua_pop(L, 1);
	p->type = type == LUA_TBOOLEAN                        ? LUAX_BOOLEAN
		: type == LUA_TSTRING && p->unit == UNIT_NONE ? LUAX_STRING
		: p->unit == UNIT_NONE                        ? LUAX_NUMBER
							      : LUAX_QUANTITY;
	const bool number = p->type == LUAX_NUMBER || p->type == LUAX_QUANTITY;
	const struct luax_field values[] = {
		{"default", p->type, .unit = p->unit,
			.out = number                     ? (void *)&p->fallback
				: p->type == LUAX_BOOLEAN ? (void *)&p->flag_fallback
							  : (void *)&p->text_fallback},
		{"min", number ? p->type : LUAX_ANY, .unit = p->unit,
			.out = number ? &p->min : NULL},
		{"max", number ? p->type : LUAX_ANY, .unit = p->unit,
			.out = number ? &p->max : NULL},
		{"unit", LUAX_ANY},
		{"integer", LUAX_ANY},
		{"help", LUAX_ANY},
		{NULL},
	};

	rc = luax_read(L, -1, own, what, values, false, e);
	p->value = p->fallback;
	p->flag = p->flag_fallback;
	p->text = p->text_fallback ? strdup(p->text_fallback) : NULL;
	return rc;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct param *)a)->name, ((const struct param *)b)->name);
}

static int declare_all(lua_State *L, int definition, const struct luax_source *own,
	struct param *params, size_t *n, struct err *e)
{
	int top = lua_gettop(L), rc = 0;

	if (lua_getfield(L, definition, "params") == LUA_TTABLE)
		for (lua_pushnil(L); !rc && lua_next(L, -2); lua_pop(L, 1)) {
			if (*n == PARAMS_MAX)
				rc = luax_complain(own, "params", e,
					"params: at most %d are allowed", PARAMS_MAX);
			else
				rc = declare(L, own, &params[(*n)++], e);
		}
	lua_settop(L, top);
	if (!rc)
		qsort(params, *n, sizeof(*params), by_name);
	return rc;
}

static json_t *value_of(const struct param *p)
{
	if (p->type == LUAX_BOOLEAN)
		return json_boolean(p->flag);
	if (p->type == LUAX_STRING)
		return json_string(p->text);
	return p->value == floor(p->value) && fabs(p->value) < 1e15
		? json_integer((json_int_t)p->value)
		: json_real(p->value);
}

/* "name=value", if that is not the default. */
static void print_change(FILE *f, const struct param *p)
{
	const char *comma = ftell(f) ? "," : "";
	char text[64];

	if (p->type == LUAX_BOOLEAN && p->flag != p->flag_fallback)
		fprintf(f, "%s%s=%s", comma, p->name, p->flag ? "true" : "false");
	else if (p->type == LUAX_STRING && strcmp(p->text, p->text_fallback))
		fprintf(f, "%s%s=%s", comma, p->name, p->text);
	else if (p->value != p->fallback)
		fprintf(f, "%s%s=%s", comma, p->name,
			unit_format(p->unit, p->value, text, sizeof(text)));
}

static int override(lua_State *L, int given, const struct luax_source *src, const char *what,
	const struct luax_field *reserved, struct param *params, size_t n, struct err *e)
{
	struct luax_field fields[FIELDS_MAX + 1] = {{0}};
	size_t k = n;
	int rc;

	for (size_t i = 0; i < n; i++) {
		struct param *p = &params[i];

		fields[i] = (struct luax_field){.name = p->name,
			.type = p->type,
			.unit = p->unit,
			.min = p->min,
			.max = p->max};
		fields[i].out = p->type == LUAX_BOOLEAN ? (void *)&p->flag
			: p->type == LUAX_STRING        ? (void *)&p->text
							: (void *)&p->value;
	}
	for (; reserved && reserved->name && k < FIELDS_MAX; reserved++)
		fields[k++] = *reserved;
	rc = luax_read(L, given, src, what, fields, true, e);
	for (size_t i = 0; i < n && !rc; i++)
		if (params[i].integer && params[i].value != floor(params[i].value))
			rc = luax_complain(src, params[i].name, e,
				"%s: '%s' must be a whole number", what, params[i].name);
	return rc;
}

int library_params(lua_State *L, int definition, const struct luax_source *own, int given,
	const struct luax_source *src, const char *what, const struct luax_field *reserved,
	json_t **params, char **changes, struct err *e)
{
	struct param list[PARAMS_MAX];
	size_t n = 0, size;
	char *text = NULL;
	json_t *values = json_object();
	FILE *f = open_memstream(&text, &size);
	int rc = declare_all(L, definition, own, list, &n, e);

	if (!rc && given)
		rc = override(L, given, src, what, reserved, list, n, e);
	for (size_t i = 0; i < n; i++) {
		if (!rc && (!f || json_object_set_new(values, list[i].name, value_of(&list[i]))))
			rc = err_errno(e, -ENOMEM, "cannot load the %s", what);
		if (!rc)
			print_change(f, &list[i]);
		free(list[i].text);
		free(list[i].text_fallback);
	}
	if (f)
		fclose(f);
	if (!rc && changes)
		*changes = text;
	else
		free(text);
	if (rc)
		json_decref(values);
	else
		*params = values;
	return rc;
}
