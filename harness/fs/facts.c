/* Reads and checks a file system's data fields. */
#include "harness/fs/facts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/near.h"
#include "harness/lua/library.h"
#include "harness/lua/luajson.h"

static bool is_one_of(const char *word, const char *const names[])
{
	while (*names && strcmp(*names, word))
		names++;
	return *names;
}

static void facts_join(const char *const names[], char *buf, size_t size)
{
	*buf = '\0';
	for (size_t n = 0; *names && n < size; names++)
		n += (size_t)snprintf(buf + n, size - n, "%s'%s'", n ? ", " : "", *names);
}

/* The list of strings at 'key' of the table at 'index'; NULL if it is missing or empty. 'names'
 * (may be NULL): the allowed strings. */
static int read_list(lua_State *L, int index, const char *key, const char *const names[],
	const struct luax_source *src, json_t **out, struct err *e)
{
	auto_json json_t *list = NULL;
	char hint[96], known[256];
	json_t *one;
	size_t i;
	int rc = 0;

	if (lua_getfield(L, index, key) != LUA_TNIL)
		rc = luajson_get(L, -1, &list, e);
	lua_pop(L, 1);
	if (!rc && list && !json_is_array(list))
		rc = luax_complain(src, key, e, "file system: '%s' must be a list of strings", key);
	json_array_foreach(list, i, one) {
		const char *text = json_string_value(one);

		if (rc)
			break;
		if (!text)
			rc = luax_complain(
				src, key, e, "file system: '%s' must be a list of strings", key);
		else if (names && !is_one_of(text, names)) {
			facts_join(names, known, sizeof(known));
			rc = luax_complain(src, text, e,
				"file system: '%s' has no '%s'%s; there are %s", key, text,
				near_hint(text, names, hint), known);
		}
	}
	if (!rc && json_array_size(list))
		*out = AUTO_TAKE(list);
	return rc;
}

static int read_storage(
	lua_State *L, int index, const struct luax_source *src, json_t *facts, struct err *e)
{
	static const char *const kinds[] = {"folder", "device", NULL};
	const char *kind = "folder";
	char hint[96];
	int rc = 0;

	if (lua_getfield(L, index, "storage") == LUA_TSTRING)
		kind = lua_tostring(L, -1);
	if (!is_one_of(kind, kinds))
		rc = luax_complain(src, "storage", e,
			"file system: 'storage' must be 'folder' or 'device', not '%s'%s", kind,
			near_hint(kind, kinds, hint));
	else
		json_object_set_new(facts, "storage", json_string(kind));
	lua_pop(L, 1);
	return rc;
}

/* The table at 'index', or a string with a reason instead. */
static int read_empty(
	lua_State *L, int index, const struct luax_source *src, json_t *facts, struct err *e)
{
	auto_free char *prune = NULL;
	long inodes = 0;
	const struct luax_field fields[] = {{"prune", LUAX_STRING, .out = &prune},
		{"keep", LUAX_TABLE},
		{"inodes_of_file", LUAX_INTEGER, .min = 1, .max = 1000, .out = &inodes}, {NULL}};
	json_t *keep = NULL, *empty = json_object();
	int type = lua_getfield(L, index, "empty_storage"), rc = 0;

	if (type == LUA_TSTRING) {
		json_decref(empty);
		empty = json_string(lua_tostring(L, -1));
	} else if (type != LUA_TNIL && type != LUA_TTABLE) {
		rc = luax_complain(src, "empty_storage", e,
			"file system: 'empty_storage' must be a table, or a string that says why "
			"a server cannot start on an empty storage");
	} else if (type == LUA_TTABLE) {
		rc = luax_read(L, -1, src, "empty_storage", fields, false, e)
			?: read_list(L, lua_gettop(L), "keep", NULL, src, &keep, e);
		if (prune)
			json_object_set_new(empty, "prune", json_string(prune));
		if (keep)
			json_object_set_new(empty, "keep", keep);
		if (inodes)
			json_object_set_new(empty, "inodes_of_file", json_integer(inodes));
	}
	lua_pop(L, 1);
	json_object_set_new(facts, "empty_storage", empty);
	return rc;
}

/* Names of culprit's own faults, without "none"; for alloc_free_list. */
static char **fault_names(void)
{
	char **names = library_names(LIBRARY_FAULT), **to = names;

	for (char **from = names; *from; from++) {
		if (strcmp(*from, "none"))
			*to++ = *from;
		else
			free(*from);
	}
	*to = NULL;
	return names;
}

/* A fault is one of culprit's own, or a user's file, which is identified by its name only. */
static int check_fault(
	const char *name, const char *const own[], const struct luax_source *src, struct err *e)
{
	char hint[96];

	if ((library_is_path(name) && !strchr(name, '/')) || is_one_of(name, own))
		return 0;
	return luax_complain(src, name, e,
		"file system: 'cannot': there is no fault '%s'%s; a fault in your own file is "
		"\"NAME.lua\"",
		name, near_hint(name, own, hint));
}

static int read_cannot(
	lua_State *L, int index, const struct luax_source *src, json_t *facts, struct err *e)
{
	char **own = fault_names();
	json_t *cannot = NULL, *why;
	const char *fault;
	int rc = 0;

	if (lua_getfield(L, index, "cannot") == LUA_TTABLE)
		rc = luajson_get(L, -1, &cannot, e);
	lua_pop(L, 1);
	if (!rc && json_array_size(cannot))
		rc = luax_complain(src, "cannot", e,
			"file system: 'cannot' must give a reason for each fault: { [\"kill\"] = "
			"\"...\" }");
	json_object_foreach(cannot, fault, why) {
		if (rc)
			break;
		rc = check_fault(fault, (const char *const *)own, src, e);
		if (!rc && !json_string_length(why))
			rc = luax_complain(src, fault, e,
				"file system: 'cannot' must give a reason, a string, for '%s'",
				fault);
	}
	alloc_free_list(own);
	if (!json_is_object(cannot)) {
		json_decref(cannot);
		cannot = json_object();
	}
	json_object_set_new(facts, "cannot", cannot);
	return rc;
}

static int read_missing(
	lua_State *L, int index, const struct luax_source *src, json_t *facts, struct err *e)
{
	static const char *const steps[] = {
		"hard link", "symbolic link", "truncate", "direct I/O", NULL};
	json_t *missing = NULL;
	int rc = read_list(L, index, "missing", steps, src, &missing, e);

	json_object_set_new(facts, "missing", missing ?: json_array());
	return rc;
}

int facts_read(lua_State *L, int index, const struct luax_source *src, json_t **out, struct err *e)
{
	auto_json json_t *facts = json_object();
	auto_free char *name = NULL;
	int at = lua_absindex(L, index);
	int rc = library_name(LIBRARY_FILE_SYSTEM, src->path, &name, e)
		?: read_storage(L, at, src, facts, e)
		?: read_empty(L, at, src, facts, e)
		?: read_cannot(L, at, src, facts, e)
		?: read_missing(L, at, src, facts, e);

	if (rc)
		return rc;
	json_object_set_new(facts, "type", json_string(name));
	*out = AUTO_TAKE(facts);
	return 0;
}
