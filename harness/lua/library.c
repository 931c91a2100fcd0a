/* Finds and opens the Lua files that users name. */
#include "harness/base/near.h"
#include "harness/lua/library.h"

#include <dirent.h>
#include <errno.h>
#include <libgen.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/home.h"
#include "harness/base/name.h"
#include "harness/base/text.h"

enum { PARAMS_MAX = 32, FIELDS_MAX = PARAMS_MAX + 8 };

static const struct {
	const char *name, *folder;
	const char *without_file; /* a valid name without a file */
	const char *other, *why;  /* a known name that a scenario cannot use */
} kinds[] = {
	[LIBRARY_FAULT] = {"fault", "faults", "none"},
	[LIBRARY_WORKLOAD] = {"workload", "workloads", NULL},
	[LIBRARY_DETECTOR] = {"detector", "diag/detectors", NULL, "fleet",
		"judges series, not runs: see 'culprit diagnose --csv FILE' and 'culprit watch'"},
	[LIBRARY_FILE_SYSTEM] = {"file system", "harness/fs", NULL},
	[LIBRARY_FINDING] = {"finding", "diag/findings", NULL},
	[LIBRARY_SCENARIO] = {"scenario", "scenarios", NULL},
};

struct param {
	char name[NAME_LENGTH_MAX + 1];
	enum luax_type type; /* LUAX_NUMBER, LUAX_QUANTITY, LUAX_BOOLEAN or LUAX_STRING */
	enum unit unit;
	bool integer;
	char *choices; /* of a string: "all|some"; NULL: any */
	char *at_most; /* another parameter, which may not be smaller; NULL: none */
	double min, max;
	struct value {
		double number;
		bool flag;
		char *text;
	} value, fallback;
};

/* The member of 'v' for the parameter's type. */
static void *member_of(const struct param *p, struct value *v)
{
	return p->type == LUAX_BOOLEAN   ? (void *)&v->flag
		: p->type == LUAX_STRING ? (void *)&v->text
					 : (void *)&v->number;
}

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

static int library_is_own(const struct dirent *d)
{
	return d->d_name[0] != '.' && is_lua(d->d_name) && !strstr(d->d_name, ".meta.lua");
}

static int library_by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

char **library_names(enum library_kind kind)
{
	struct dirent **found = NULL;
	auto_free char *folder = NULL;
	char **names;
	int n = 0;

	if (!home_path(kinds[kind].folder, &folder, NULL))
		n = scandir(folder, &found, library_is_own, NULL);
	n = n < 0 ? 0 : n;
	names = alloc_zero((size_t)n + 2, sizeof(*names));
	for (int i = 0; i < n; i++) {
		names[i] = alloc_copy(found[i]->d_name);
		names[i][strlen(names[i]) - 4] = '\0';
		free(found[i]);
	}
	if (kinds[kind].without_file)
		names[n++] = alloc_copy(kinds[kind].without_file);
	qsort(names, (size_t)n, sizeof(*names), library_by_text);
	free(found);
	return names;
}

static int refuse_name(
	enum library_kind kind, const char *name, const struct luax_source *src, struct err *e)
{
	char **names = library_names(kind), all[512] = "";
	const char *near = near_match(name, (const char *const *)names);
	size_t n = 0;

	for (size_t i = 0; names[i] && n < sizeof(all); i++)
		n += (size_t)snprintf(all + n, sizeof(all) - n, "%s%s", i ? ", " : "", names[i]);
	if (kinds[kind].other && !strcmp(name, kinds[kind].other))
		luax_complain(
			src, name, e, "the %s '%s' %s", kinds[kind].name, name, kinds[kind].why);
	else if (near)
		luax_complain(src, name, e, "there is no %s '%s'; did you mean '%s'?",
			kinds[kind].name, name, near);
	else
		luax_complain(src, name, e,
			"there is no %s '%s'; use %s, or the path of a file ('./my.lua')",
			kinds[kind].name, name, all);
	alloc_free_list(names);
	return -ENOENT;
}

/* 'name' relative to the folder of the file that contains it. */
static char *beside(const struct luax_source *src, const char *name)
{
	const char *plain = strncmp(name, "./", 2) || !is_lua(name) ? name : name + 2, *folder;
	auto_free char *copy = alloc_copy(src && src->path ? src->path : ".");

	folder = dirname(copy);
	return *name == '/' || !strcmp(folder, ".") ? alloc_copy(plain)
						    : alloc_format("%s/%s", folder, plain);
}

int library_find(enum library_kind kind, const char *name, const struct luax_source *src,
	char **path, struct err *e)
{
	bool is_path = library_is_path(name);
	auto_free char *sub = alloc_format("%s/%s.lua", kinds[kind].folder, name);
	auto_free char *found = is_path ? beside(src, name) : NULL;
	int rc = is_path ? 0 : home_path(sub, &found, e);

	if (rc)
		return rc;
	if (access(found, R_OK) < 0 || (!is_path && strstr(name, ".meta"))) {
		rc = errno == ENOENT ? -ENOENT : -errno;
		if (!is_path)
			return refuse_name(kind, name, src, e);
		luax_complain(src, name, e, "cannot read the %s '%s': %s", kinds[kind].name, name,
			strerror(errno));
		return rc;
	}
	*path = found;
	found = NULL;
	return 0;
}

int library_name(enum library_kind kind, const char *path, char **name, struct err *e)
{
	const char *base = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	size_t len = is_lua(base) ? strlen(base) - 4 : strcspn(base, ".");
	struct err why;

	*name = alloc_format("%.*s", (int)(len ? len : strlen(base)), base);
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
	auto_free char *path = NULL;
	int rc = library_find(kind, name, src, &path, e);

	if (!rc)
		rc = luax_load_file(L, path, &file, e);
	if (!rc)
		rc = luax_read(L, -1, &file, kinds[kind].name, fields, false, e);
	if (rc)
		luax_source_clear(&file);
	else
		*own = file;
	return rc;
}

/* Reads one declaration; the declaring table is on top of the stack, its name below. */
static int library_declare(
	lua_State *L, const struct luax_source *own, struct param *p, struct err *e)
{
	auto_free char *unit = NULL;
	char what[128];
	const struct luax_field form[] = {
		{"default", LUAX_ANY, .required = true},
		{"unit", LUAX_STRING, .out = &unit},
		{"min", LUAX_ANY},
		{"max", LUAX_ANY},
		{"integer", LUAX_BOOLEAN, .out = &p->integer},
		{"choices", LUAX_STRING, .out = &p->choices},
		{"at_most", LUAX_STRING, .out = &p->at_most},
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
			"%s: unknown unit '%s'; use number, bytes, seconds, percent or "
			"bytes_per_second",
			what, unit);
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
		{"default", p->type, .unit = p->unit, .out = member_of(p, &p->fallback)},
		{"min", number ? p->type : LUAX_ANY, .unit = p->unit,
			.out = number ? &p->min : NULL},
		{"max", number ? p->type : LUAX_ANY, .unit = p->unit,
			.out = number ? &p->max : NULL},
		{"unit", LUAX_ANY},
		{"integer", LUAX_ANY},
		{"choices", LUAX_ANY},
		{"at_most", LUAX_ANY},
		{"help", LUAX_ANY},
		{NULL},
	};

	rc = luax_read(L, -1, own, what, values, false, e);
	p->value = p->fallback;
	if (p->fallback.text)
		p->value.text = alloc_copy(p->fallback.text);
	return rc;
}

static int library_by_name(const void *a, const void *b)
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
				rc = library_declare(L, own, &params[(*n)++], e);
		}
	lua_settop(L, top);
	if (!rc && *n)
		qsort(params, *n, sizeof(*params), library_by_name);
	return rc;
}

static json_t *json_of(const struct param *p, const struct value *v)
{
	if (p->type == LUAX_BOOLEAN)
		return json_boolean(v->flag);
	if (p->type == LUAX_STRING)
		return json_string(v->text);
	return v->number == floor(v->number) && fabs(v->number) < 1e15
		? json_integer((json_int_t)v->number)
		: json_real(v->number);
}

/* "name=value" if the value differs from the default, otherwise "". */
static void print_change(FILE *f, const struct param *p)
{
	json_auto_t *value = json_of(p, &p->value), *fallback = json_of(p, &p->fallback);
	char number[64];

	if (!json_equal(value, fallback))
		fprintf(f, "%s%s=%s", ftell(f) ? "," : "", p->name,
			json_is_boolean(value) ? p->value.flag ? "true" : "false"
				: json_is_string(value)
				? p->value.text
				: unit_format(p->unit, p->value.number, number, sizeof(number)));
}

/* A parameter that may not exceed another one does not. */
static int check_at_most(const struct param *p, const struct param *params, size_t n,
	const struct luax_source *src, const char *what, struct err *e)
{
	size_t i = 0;

	if (!p->at_most)
		return 0;
	while (i < n && strcmp(params[i].name, p->at_most))
		i++;
	if (i == n)
		return luax_complain(src, p->name, e, "%s: 'at_most' of '%s': there is no '%s'",
			what, p->name, p->at_most);
	if (p->value.number > params[i].value.number)
		return luax_complain(src, p->name, e, "%s: '%s' must be at most '%s'", what,
			p->name, p->at_most);
	return 0;
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
			.max = p->max,
			.out = member_of(p, &p->value)};
	}
	for (; reserved && reserved->name && k < FIELDS_MAX; reserved++)
		fields[k++] = *reserved;
	rc = luax_read(L, given, src, what, fields, true, e);
	for (size_t i = 0; i < n && !rc; i++)
		if (params[i].choices && params[i].type == LUAX_STRING &&
			!text_is_choice(params[i].choices, params[i].value.text))
			rc = luax_complain(src, params[i].name, e,
				"%s: '%s' must be one of %s, not '%s'", what, params[i].name,
				params[i].choices, params[i].value.text);
	for (size_t i = 0; i < n && !rc; i++)
		rc = check_at_most(&params[i], params, n, src, what, e);
	for (size_t i = 0; i < n && !rc; i++)
		if (params[i].integer && params[i].value.number != floor(params[i].value.number))
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
	auto_free char *text = NULL;
	json_t *values = json_object();
	FILE *f = alloc_text(&text, &size);
	int rc = declare_all(L, definition, own, list, &n, e);

	if (!rc && given)
		rc = override(L, given, src, what, reserved, list, n, e);
	for (size_t i = 0; i < n; i++) {
		if (!rc) {
			json_object_set_new(
				values, list[i].name, json_of(&list[i], &list[i].value));
			print_change(f, &list[i]);
		}
		free(list[i].value.text);
		free(list[i].fallback.text);
		free(list[i].choices);
		free(list[i].at_most);
	}
	fclose(f);
	if (!rc && changes) {
		*changes = text;
		text = NULL;
	}
	if (rc)
		json_decref(values);
	else
		*params = values;
	return rc;
}
