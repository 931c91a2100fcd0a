/*
 * The state that a detector runs in: no way out of it, nothing in it that tells two runs apart but
 * the measurements, and limits on instructions and memory.
 */
#include <errno.h>
#include <lauxlib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diag/judge/detector_impl.h"
#include "diag/judge/vec.h"

enum {
	MEMORY_MAX = 256 << 20,
	STEP = 1000,        /* instructions between two looks at the clock */
	STEPS_MAX = 100000, /* 1e8 instructions: seconds; and more for large runs: */
	PER_SECOND = 1000,  /* instructions for each server and second */
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
	if (++d->steps < d->steps_max && !d->out_of_memory)
		return;
	d->out_of_time = true;
	/* A pcall in the detector catches this one: the next instruction after it raises again. */
	lua_sethook(L, count_steps, LUA_MASKCOUNT, 1);
	luaL_error(
		L, "used up its %d million instructions", (int)(d->steps_max / 1000 * STEP / 1000));
}

void sandbox_allow(struct detector *d, double server_seconds)
{
	d->steps_max += (unsigned long)(server_seconds * PER_SECOND / STEP);
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
		return err_set(e, -E2BIG, "%s: the detector used up its %d MiB of memory",
			d->src.path, MEMORY_MAX >> 20);
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

/* luaL_tolstring, but for values that would show an address: those become the name of their
 * type. */
static void push_text(lua_State *L, int index)
{
	int type = lua_type(L, index);

	if (type == LUA_TTABLE || type == LUA_TFUNCTION || type == LUA_TTHREAD ||
		type == LUA_TLIGHTUSERDATA)
		lua_pushstring(L, lua_typename(L, type));
	else
		luaL_tolstring(L, index, NULL);
}

static int safe_tostring(lua_State *L)
{
	luaL_checkany(L, 1);
	push_text(L, 1);
	return 1;
}

/* string.format, which is the upvalue, without "%p" and addresses in "%s". */
static int safe_format(lua_State *L)
{
	const char *form = luaL_checkstring(L, 1);
	int n = lua_gettop(L);

	for (const char *p = strchr(form, '%'); p; p = strchr(p, '%')) {
		p += 1 + strspn(p + 1, "-+ #0123456789.");
		luaL_argcheck(L, *p != 'p', 1, "'%p' is not to be had here");
		p += *p == '%';
	}
	for (int i = 2; i <= n; i++)
		if (lua_istable(L, i) || lua_isfunction(L, i) || lua_isthread(L, i)) {
			push_text(L, i);
			lua_replace(L, i);
		}
	lua_pushvalue(L, lua_upvalueindex(1));
	lua_insert(L, 1);
	lua_call(L, n, 1);
	return 1;
}

/* Nor is there a way to the machine's code for a function. */
static void hide_addresses(lua_State *L)
{
	lua_pushcfunction(L, safe_tostring);
	lua_setglobal(L, "tostring");
	lua_getglobal(L, "string");
	lua_getfield(L, -1, "format");
	lua_pushcclosure(L, safe_format, 1);
	lua_setfield(L, -2, "format");
	lua_pushnil(L);
	lua_setfield(L, -2, "dump");
	lua_pop(L, 1);
}

static int open_state(struct detector *d, struct err *e)
{
	/* With a __gc metamethod a detector could run where no limit reaches it. */
	static const char *const removed[] = {
		"setmetatable", "getmetatable", "rawset", "warn", NULL};

	sandbox_close(d);
	d->L = luax_new();
	if (!d->L)
		return err_errno(e, -ENOMEM, "cannot make a Lua state");
	/* Nearly all that a detector makes is a vec of one expression. */
	lua_gc(d->L, LUA_GCGEN, 0, 0);
	d->alloc = lua_getallocf(d->L, &d->alloc_ud);
	d->memory = (size_t)lua_gc(d->L, LUA_GCCOUNT) * 1024 + (size_t)lua_gc(d->L, LUA_GCCOUNTB);
	lua_setallocf(d->L, counted_alloc, d);
	for (int i = 0; removed[i]; i++) {
		lua_pushnil(d->L);
		lua_setglobal(d->L, removed[i]);
	}
	hide_addresses(d->L);
	vec_open(d->L);
	return 0;
}

void sandbox_close(struct detector *d)
{
	if (d->L)
		lua_close(d->L);
	d->L = NULL;
}

/* The text is kept: an edit in the middle of a run does not make two detectors of one. */
static int load_again(struct detector *d, struct err *e)
{
	char chunk[4096];

	snprintf(chunk, sizeof(chunk), "@%s", d->path);
	if (luaL_loadbufferx(d->L, d->src.text, strlen(d->src.text), chunk, "t") != LUA_OK)
		return err_set(e, -EINVAL, "%s", lua_tostring(d->L, -1));
	return luax_call(d->L, 0, 1, e);
}

int sandbox_load(struct detector *d, struct err *e)
{
	int rc = open_state(d, e);

	d->steps_max = STEPS_MAX;
	if (rc)
		return rc;
	limits_on(d);
	rc = d->src.text ? load_again(d, e) : luax_load_file(d->L, d->path, &d->src, e);
	return limits_off(d, rc, e);
}
