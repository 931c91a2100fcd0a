/* Asks a Lua condition when the flight recorder is to write. */
#include "harness/scenario/trigger.h"

#include <errno.h>
#include <lauxlib.h>
#include <stdio.h>
#include <stdlib.h>

#include "harness/base/alloc.h"
#include "harness/base/clock.h"
#include "harness/lua/luajson.h"
#include "harness/lua/luax.h"

struct trigger {
	lua_State *L; /* its table is at 1 */
	char *path;
	double pause_s, last_s; /* CLOCK_MONOTONIC; 0: never */
};

int trigger_open(const char *path, struct trigger **out, struct err *e)
{
	struct trigger *t = alloc_zero(1, sizeof(*t));
	struct luax_source src = {0};
	const struct luax_field fields[] = {
		{"pause", LUAX_QUANTITY, .unit = UNIT_SECONDS, .min = 1, .max = 1e6,
			.out = &t->pause_s},
		{"when", LUAX_FUNCTION, .required = true},
		{NULL},
	};
	int rc;

	t->L = luax_new();
	t->path = alloc_copy(path);
	t->pause_s = 60;
	rc = luax_load_file(t->L, path, &src, e)
		?: luax_read(t->L, 1, &src, "trigger", fields, false, e);
	luax_source_clear(&src);
	if (rc)
		trigger_close(t);
	else
		*out = t;
	return rc;
}

void trigger_close(struct trigger *t)
{
	if (!t)
		return;
	lua_close(t->L);
	free(t->path);
	free(t);
}

static int take_reason(struct trigger *t, char why[256], struct err *e)
{
	int type = lua_type(t->L, -1);

	if (type == LUA_TNIL || (type == LUA_TBOOLEAN && !lua_toboolean(t->L, -1)))
		return 0;
	if (type != LUA_TSTRING)
		return err_set(e, -EINVAL,
			"%s: 'when' returns a text (write, for this reason) or "
			"nothing, not a %s",
			t->path, lua_typename(t->L, type));
	snprintf(why, 256, "%.255s", lua_tostring(t->L, -1));
	for (char *c = why; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
	return 1;
}

int trigger_ask(struct trigger *t, const json_t *now, char why[256], struct err *e)
{
	int rc;

	if (t->last_s > 0 && clock_mono_s() - t->last_s < t->pause_s)
		return 0;
	lua_getfield(t->L, 1, "when");
	luajson_push(t->L, now);
	rc = luax_call(t->L, 1, 1, e) ?: take_reason(t, why, e);
	lua_settop(t->L, 1);
	if (rc == 1)
		t->last_s = clock_mono_s();
	return rc;
}
