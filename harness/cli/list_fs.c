/* Lists file systems and the programs that they need. */
#include "harness/cli/list.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/jget.h"
#include "harness/cli/options.h"
#include "harness/fs/fs.h"
#include "harness/lua/library.h"
#include "harness/lua/luajson.h"

/* Moves fields of the table at 'index' that are data into 'to'. */
static int list_fs_take(
	lua_State *L, int index, const char *const keys[], json_t *to, struct err *e)
{
	int rc = 0;

	for (; *keys && !rc; keys++) {
		json_t *v = NULL;

		if (lua_getfield(L, index, *keys) != LUA_TNIL)
			rc = luajson_get(L, -1, &v, e);
		if (v)
			json_object_set_new(to, *keys, v);
		lua_pop(L, 1);
	}
	return rc;
}

/* The path of a program in the folders of $PATH and of 'more'; NULL: it is not there. */
static char *find_program(const char *name, const json_t *more)
{
	auto_free char *folders = alloc_copy(getenv("PATH") ? getenv("PATH") : "");
	char *rest, *folder = strtok_r(folders, ":", &rest);

	for (size_t i = 0; folder || i < json_array_size(more);) {
		const char *here = folder ? folder : json_string_value(json_array_get(more, i++));
		char *path = alloc_format("%s/%s", here ? here : "", name);

		if (!access(path, X_OK))
			return path;
		free(path);
		folder = folder ? strtok_r(NULL, ":", &rest) : NULL;
	}
	return NULL;
}

/* The lab's programs: {name: package} becomes a list that says which are here. */
static json_t *programs(const json_t *wanted, const json_t *more)
{
	json_t *list = json_array(), *package;
	const char *name;

	json_object_foreach((json_t *)wanted, name, package) {
		auto_free char *path = find_program(name, more);

		json_array_append_new(list,
			json_pack("{s:s, s:O, s:s?}", "name", name, "package", package, "here",
				path));
	}
	return list;
}

static int read_lab(lua_State *L, json_t *entry, struct err *e)
{
	static const char *const keys[] = {
		"layouts", "params", "managers", "port", "path", "programs", NULL};
	json_t *lab = NULL;
	int rc = 0;

	if (lua_getfield(L, 1, "lab") == LUA_TTABLE) {
		lab = json_object();
		json_object_set_new(entry, "lab", lab);
		rc = list_fs_take(L, 2, keys, lab, e);
	}
	if (!rc && lab) {
		json_object_set_new(
			lab, "programs", programs(jget(lab, "programs"), jget(lab, "path")));
		json_object_del(lab, "path");
	}
	lua_settop(L, 1);
	return rc;
}

/* Lua's order is random: 'v' (stolen) with sorted keys. */
static json_t *in_order(json_t *v)
{
	auto_free char *text = json_dumps(v, JSON_SORT_KEYS);

	json_decref(v);
	return json_loads(text, 0, NULL);
}

static int list_fs_read_one(const char *name, json_t **out, struct err *e)
{
	static const char *const keys[] = {"summary", "lost_errnos", "errno_map", "storage",
		"empty_storage", "cannot", "missing", NULL};
	static const char *const functions[] = {
		"discover", "server_pids", "client_pids", "service", "probe", NULL};
	struct fs *fs = NULL;
	json_t *entry, *has = json_array();
	int rc = fs_load(name, &fs, e);

	if (rc) {
		json_decref(has);
		return rc;
	}
	entry = json_pack("{s:s, s:o}", "name", name, "functions", has);
	rc = list_fs_take(fs_state(fs), 1, keys, entry, e);
	for (size_t i = 0; functions[i]; i++) {
		if (lua_getfield(fs_state(fs), 1, functions[i]) == LUA_TFUNCTION)
			json_array_append_new(has, json_string(functions[i]));
		lua_settop(fs_state(fs), 1);
	}
	rc = rc ?: read_lab(fs_state(fs), entry, e);
	fs_free(fs);
	if (json_is_array(jget(entry, "errno_map"))) /* an empty table */
		json_object_set_new(entry, "errno_map", json_object());
	if (rc)
		json_decref(entry);
	else
		*out = in_order(entry);
	return rc;
}

int list_fs_read(const char *which, json_t **out, struct err *e)
{
	char **names = *which ? NULL : library_names(LIBRARY_FILE_SYSTEM);
	json_t *list = json_array(), *one;
	int rc = 0;

	for (size_t i = 0; !rc && (*which ? !i : names[i] != NULL); i++) {
		rc = list_fs_read_one(*which ? which : names[i], &one, e);
		if (!rc)
			json_array_append_new(list, one);
	}
	if (names)
		alloc_free_list(names);
	if (rc)
		json_decref(list);
	else
		*out = list;
	return rc;
}

static void line(const char *label, const char *text)
{
	if (!*text)
		return;
	printf("      %-9s ", label);
	print_wrapped(stdout, 16, text);
}

static char *value_text(const json_t *v)
{
	if (json_is_string(v))
		return alloc_copy(json_string_value(v));
	return json_dumps(v, JSON_ENCODE_ANY | JSON_REAL_PRECISION(6));
}

/* "a, b" of a list of texts. */
static char *joined(const json_t *list)
{
	char *text = alloc_copy(""), *longer;
	json_t *v;
	size_t i;

	json_array_foreach((json_t *)list, i, v) {
		longer = alloc_format("%s%s%s", text, i ? ", " : "", json_string_value(v));
		free(text);
		text = longer;
	}
	return text;
}

static void print_programs(const json_t *list)
{
	json_t *v;
	size_t i;

	json_array_foreach((json_t *)list, i, v) {
		const char *here = jget_text(v, "here"), *package = jget_text(v, "package");
		auto_free char *text = here
			? alloc_format("%s: %s", jget_text(v, "name"), here)
			: alloc_format("%s: not here; %s%s", jget_text(v, "name"),
				  strchr(package, ' ') ? "" : "apt-get install ", package);

		line(i ? "" : "programs", text);
	}
}

static void print_lab(const json_t *lab)
{
	const char *label = "layouts", *name;
	json_t *v;
	size_t i;

	json_array_foreach(jget(lab, "layouts"), i, v) {
		auto_free char *text = alloc_format(
			"%s: %s", jget_text(v, "name"), jget_text(v, "summary"));

		line(label, text);
		label = "";
	}
	label = "settings";
	json_object_foreach(jget(lab, "params"), name, v) {
		auto_free char *value = value_text(jget(v, "default"));
		auto_free char *text = alloc_format("%s=%s: %s", name, value, jget_text(v, "help"));

		line(label, text);
		label = "";
	}
	print_programs(jget(lab, "programs"));
}

static void print_details(const json_t *fs)
{
	auto_free char *lost = joined(jget(fs, "lost_errnos"));
	auto_free char *missing = joined(jget(fs, "missing"));
	const char *key;
	json_t *v;

	if (jget(fs, "lab"))
		print_lab(jget(fs, "lab"));
	else
		line("lab", "none: it cannot be started by 'culprit lab up --fs'");
	line("lost", lost);
	line("missing", missing);
	json_object_foreach(jget(fs, "cannot"), key, v) {
		auto_free char *text = alloc_format("%s: %s", key, json_string_value(v));

		line("cannot", text);
	}
}

void list_fs_print(const json_t *list, bool details)
{
	json_t *fs;
	size_t i;

	json_array_foreach((json_t *)list, i, fs) {
		printf("  %-18s ", jget_text(fs, "name"));
		print_wrapped(stdout, 21, jget_text(fs, "summary"));
		if (details)
			print_details(fs);
	}
}
