/* Finds out which programs clients lack. */
#include "harness/run/needs.h"

#include <errno.h>
#include <lauxlib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/alloc.h"
#include "harness/base/jget.h"

#define CALL_TIMEOUT_S 30

static json_t *entry_of(json_t *list, const char *program)
{
	json_t *entry;
	size_t i;

	json_array_foreach(list, i, entry)
		if (!strcmp(jget_text(entry, "program"), program))
			return entry;
	entry = json_pack("{s:s, s:n, s:[]}", "program", program, "package", "workloads");
	json_array_append_new(list, entry);
	return entry;
}

static int malformed(const struct part *w, const char *what, struct err *e)
{
	return err_blame(e, ERR_SCENARIO, err_set(e, -EINVAL, "%s: %s", w->path, what));
}

/* The list 'needs' is at 'needs', the table 'packages' (or nil) above it. */
static int add_all(lua_State *L, int needs, const struct part *w, json_t *list, struct err *e)
{
	bool named = lua_istable(L, needs + 1);

	for (lua_Integer i = 1; i <= (lua_Integer)lua_rawlen(L, needs); i++) {
		json_t *entry;

		lua_settop(L, needs + 1);
		if (lua_rawgeti(L, needs, i) != LUA_TSTRING)
			return malformed(w, "'needs' must be a list of programs", e);
		entry = entry_of(list, lua_tostring(L, -1));
		json_array_append_new(jget(entry, "workloads"), json_string(w->name));
		if (!named || lua_getfield(L, needs + 1, lua_tostring(L, -1)) == LUA_TNIL)
			continue;
		if (lua_type(L, -1) != LUA_TSTRING)
			return malformed(
				w, "'packages' must give a package's name for each program", e);
		json_object_set_new(entry, "package", json_string(lua_tostring(L, -1)));
	}
	return 0;
}

int needs_add(lua_State *L, const struct part *workload, json_t *list, struct err *e)
{
	int top = lua_gettop(L), rc = 0;

	lua_rawgeti(L, LUA_REGISTRYINDEX, workload->def_ref);
	if (lua_istable(L, -1) && lua_getfield(L, -1, "needs") == LUA_TTABLE) {
		lua_getfield(L, -2, "packages");
		rc = add_all(L, lua_gettop(L) - 1, workload, list, e);
	}
	lua_settop(L, top);
	return rc;
}

static bool in_path(const char *program)
{
	const char *path = getenv("PATH"), *next;
	char file[4096];

	for (; path && *path; path = *next ? next + 1 : next) {
		next = path + strcspn(path, ":");
		snprintf(file, sizeof(file), "%.*s/%s", (int)(next - path), path, program);
		if (!access(file, X_OK))
			return true;
	}
	return false;
}

/* Lines of which(1) are paths of the programs that it found. */
static bool in_output(const char *output, const char *program)
{
	size_t len = strlen(program);

	for (const char *line = output; *line; line += *line == '\n') {
		size_t n = strcspn(line, "\n");

		if (n > len && line[n - len - 1] == '/' && !strncmp(line + n - len, program, len))
			return true;
		line += n;
	}
	return false;
}

static int needs_ask(struct node *n, const json_t *list, char **output, struct err *e)
{
	json_t *argv = json_pack("[s]", "which"), *result = NULL, *entry;
	size_t i;
	int rc;

	json_array_foreach((json_t *)list, i, entry)
		json_array_append(argv, jget(entry, "program"));
	rc = node_call(n, "run", json_pack("{s:o}", "argv", argv), CALL_TIMEOUT_S, &result, e);
	if (rc)
		err_blame(e, ERR_CLUSTER, rc);
	else
		*output = alloc_copy(jget_text(result, "output"));
	json_decref(result);
	return rc;
}

int needs_missing(struct node *n, const json_t *list, json_t **missing, struct err *e)
{
	char *output = NULL;
	json_t *entry;
	size_t i;
	int rc;

	if (n) {
		rc = needs_ask(n, list, &output, e);
		if (rc)
			return rc;
	}
	*missing = json_array();
	json_array_foreach((json_t *)list, i, entry) {
		const char *program = jget_text(entry, "program");

		if (n ? !in_output(output, program) : !in_path(program))
			json_array_append(*missing, entry);
	}
	free(output);
	return 0;
}

char *needs_text(const json_t *entry, char *buf, size_t size)
{
	const json_t *workloads = jget(entry, "workloads");
	const char *package = jget_text(entry, "package");
	size_t n;

	n = (size_t)snprintf(buf, size, "%s (workload%s", jget_text(entry, "program"),
		json_array_size(workloads) > 1 ? "s" : "");
	for (size_t i = 0; i < json_array_size(workloads) && n < size; i++)
		n += (size_t)snprintf(buf + n, size - n, "%s %s", i ? "," : "",
			json_string_value(json_array_get(workloads, i)));
	if (n < size)
		snprintf(buf + n, size - n, package ? ")%s%s" : ")",
			"; on Debian: apt-get install ", package);
	return buf;
}
