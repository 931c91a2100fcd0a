/* Files of this machine that a workload takes to its clients (part.h). */
#include <errno.h>
#include <lauxlib.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/home.h"
#include "harness/scenario/part.h"

/* A path next to the scenario; a bare name is one of culprit's own traces. */
static int resolve(const char *name, const struct luax_source *src, char **path, struct err *e)
{
	auto_free char *sub = alloc_format("workloads/traces/%s.app", name);

	if (!strchr(name, '/') && !strchr(name, '.'))
		return home_path(sub, path, e);
	*path = luax_beside(src && src->path ? src->path : ".", name);
	return 0;
}

static int part_files_add(struct part *p, const char *key, const char *name,
	const struct luax_source *src, struct err *e)
{
	auto_free char *path = NULL;
	char remote[32];
	int rc = resolve(name, src, &path, e);

	if (rc)
		return rc;
	if (access(path, R_OK) < 0)
		return luax_complain(src, name, e, "workload '%s': cannot read its %s '%s': %s",
			p->label, key, path, strerror(errno));
	snprintf(remote, sizeof(remote), "input-%08lx",
		crc32(0, (const void *)path, (uInt)strlen(path)));
	json_object_set_new(p->files, key, json_pack("{s:s, s:s}", "path", path, "name", remote));
	return 0;
}

int part_files_read(lua_State *L, const struct luax_source *src, struct part *p, struct err *e)
{
	int top = lua_gettop(L), rc = 0;
	json_auto_t *list = NULL;
	const char *key;
	json_t *name;

	if (p->def_ref == LUA_NOREF)
		return 0;
	lua_rawgeti(L, LUA_REGISTRYINDEX, p->def_ref);
	if (lua_getfield(L, -1, "files") == LUA_TFUNCTION) {
		lua_rawgeti(L, LUA_REGISTRYINDEX, p->params_ref);
		rc = luax_call(L, 1, 1, e) ?: luajson_get(L, -1, &list, e);
		if (!rc && !json_is_object(list))
			rc = err_set(
				e, -EINVAL, "%s: 'files' must return { key = \"FILE\" }", p->path);
		rc = rc ? err_blame(e, ERR_SCENARIO, rc) : 0;
	}
	lua_settop(L, top);
	if (rc || !list)
		return rc;
	p->files = json_object();
	json_object_foreach(list, key, name) {
		if (!rc)
			rc = part_files_add(p, key,
				json_is_string(name) ? json_string_value(name) : "", src, e);
	}
	return rc;
}
