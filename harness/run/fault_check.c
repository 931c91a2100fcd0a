/* Asks whether a fault can run on the cluster. */
#include "harness/run/fault_check.h"

#include <errno.h>
#include <string.h>

#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/jget.h"
#include "harness/lua/luax.h"

/* A fault in a user's file is listed as "NAME.lua". */
static const char *listed(const json_t *cannot, const struct part *fault)
{
	auto_free char *file = alloc_format("%s.lua", fault->name);

	return jget_text(cannot, fault->name) ?: jget_text(cannot, file);
}

int fault_allowed(const struct cluster *c, const struct part *fault, struct err *e)
{
	const json_t *fs = c->file_system, *empty = jget(fs, "empty_storage");
	const char *type = jget_text(fs, "type"), *storage = jget_text(fs, "storage");
	const char *why = listed(jget(fs, "cannot"), fault);

	if (why)
		return err_set(e, -EOPNOTSUPP, "%s: %s", type, why);
	if (fault->storage != PART_STORAGE_ANY && storage && !strcmp(storage, "device"))
		return err_set(e, -EOPNOTSUPP,
			"%s: its servers keep their data on raw devices, and the fault needs a "
			"folder on a file system",
			type);
	if (fault->storage == PART_STORAGE_EMPTY && json_is_string(empty))
		return err_set(e, -EOPNOTSUPP, "%s: a server cannot start on an empty storage: %s",
			type, json_string_value(empty));
	return 0;
}

static int fault_check_ask(lua_State *L, struct acts *acts, struct cluster *c,
	struct member *victim, const struct part *fault, const char *run_id, struct err *e)
{
	int top = lua_gettop(L), rc;

	if (!bind_push_function(L, fault, "check"))
		return 0;
	bind_push_context(L, acts, c, victim, fault, run_id);
	rc = luax_call(L, 1, 2, e);
	if (!rc && !lua_toboolean(L, -2))
		rc = err_set(e, -EOPNOTSUPP, "%s",
			lua_isstring(L, -1) ? lua_tostring(L, -1) : "its check gave no reason");
	lua_settop(L, top);
	return rc;
}

int fault_check(lua_State *L, struct acts *acts, struct cluster *c, const struct part *fault,
	const char *run_id, struct err *e)
{
	int rc = fault_allowed(c, fault, e);

	for (size_t i = 0; i < c->n_servers && !rc; i++)
		rc = c->servers[i]->never
			? 0
			: fault_check_ask(L, acts, c, c->servers[i], fault, run_id, e);
	return rc;
}
