/* Asks the scenario's safety condition while a fault acts. */
#include "harness/run/trial_impl.h"

#include <errno.h>
#include <lauxlib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/auto.h"
#include "harness/base/clock.h"
#include "harness/base/jget.h"
#include "harness/fs/fs.h"
#include "harness/lua/luax.h"

#define PERIOD_S 1
#define LUA_S 1                 /* processor time of one call of 'abort_if' */
#define NODES_S 5               /* for which one call may wait for nodes, in all */
#define ASKING "culprit.safety" /* registry: the trial whose condition is being asked */

/* ---- what the condition can look at ---- */

static double left_s(const struct trial *t)
{
	double left = t->safety.until_s - clock_mono_s();

	return left > 0.01 ? left : 0.01;
}

static int load_fs(struct trial *t, struct err *e)
{
	return t->safety.fs ? 0 : fs_load(t->x->cluster->inv->fs_type, &t->safety.fs, e);
}

static int app_args(void *ctx, const struct member *m, json_t **args, struct err *e)
{
	const struct job *app = trial_job(ctx, JOB_WORKLOAD, m);

	(void)e;
	if (!app)
		return 1;
	*args = json_pack("{s:s}", "handle", app->handle);
	return 0;
}

/* What the applications have read and written so far. */
static int read_bytes(struct trial *t, double *bytes, struct err *e)
{
	auto_json json_t *results = NULL;
	json_t *result = NULL;
	const char *name;
	int rc = cluster_ask(t->x->cluster, "process.status", app_args, t, left_s(t), &results, e);

	*bytes = 0;
	json_object_foreach(results, name, result)
		*bytes += (double)(jget_int(result, "rchar") + jget_int(result, "wchar"));
	return rc;
}

/* Since the last look: of the condition before, or at the injection. */
static int push_bytes(struct trial *t, lua_State *L, struct err *e)
{
	const double now_s = clock_mono_s(), last_s = t->safety.read_s, last = t->safety.bytes;
	double bytes;
	int rc = last_s > 0 ? read_bytes(t, &bytes, e)
			    : err_set(e, -EIO,
				      "what the applications had done at the injection is "
				      "not known");

	if (rc)
		return rc;
	t->safety.read_s = now_s;
	t->safety.bytes = bytes;
	lua_pushnumber(L, bytes > last ? (bytes - last) / (now_s - last_s) : 0);
	return 0;
}

static int push_elapsed(struct trial *t, lua_State *L, struct err *e)
{
	(void)e;
	lua_pushnumber(L, (double)(clock_real_ns() - t->inject_ns) / 1e9);
	return 0;
}

static int free_args(void *ctx, const struct member *m, json_t **args, struct err *e)
{
	(void)ctx, (void)e;
	if (m->host->role != ROLE_CLIENT)
		return 1;
	*args = json_pack("{s:[s, s, s, s, s], s:i}", "argv", "stat", "-f", "-c", "%a %S",
		m->host->mount, "timeout_s", NODES_S);
	return 0;
}

/* On the client that has the least. */
static int push_free(struct trial *t, lua_State *L, struct err *e)
{
	auto_json json_t *results = NULL;
	double least = -1, blocks, size;
	json_t *result;
	const char *name;
	int rc = cluster_ask(t->x->cluster, "run", free_args, NULL, left_s(t), &results, e);

	json_object_foreach(results, name, result) {
		const char *output = jget_text(result, "output");

		if (!rc &&
			(jget_int(result, "exit") ||
				sscanf(output, "%lf %lf", &blocks, &size) != 2))
			rc = err_set(e, -EIO, "%s: cannot tell what is free: %.200s", name, output);
		else if (!rc && (least < 0 || blocks * size < least))
			least = blocks * size;
	}
	if (!rc)
		lua_pushnumber(L, least);
	return rc;
}

/* The first host on which the file system can be asked; a victim only if there is no other. */
static int find_teller(struct trial *t, struct member **teller, json_t **argv, struct err *e)
{
	int rc = load_fs(t, e);

	for (int hit = 0; hit < 2 && !rc && !*argv; hit++)
		cluster_each(m, t->x->cluster) {
			if (rc || *argv || m->host->role == ROLE_OUTSIDER ||
				trial_is_victim(t, m) != hit)
				continue;
			rc = fs_health(t->safety.fs, m->host, argv, e);
			*teller = m;
		}
	if (!rc && !*argv)
		rc = err_set(e, -ENOENT, "%s: its Lua file has no 'health' for these hosts",
			t->x->cluster->inv->fs_type);
	return rc;
}

static int push_health(struct trial *t, lua_State *L, struct err *e)
{
	auto_json json_t *result = NULL;
	struct member *teller = NULL;
	json_t *argv = NULL;
	int rc = find_teller(t, &teller, &argv, e);

	rc = rc
		?: node_call(teller->node, "run",
			   json_pack("{s:o, s:i}", "argv", argv, "timeout_s", NODES_S), left_s(t),
			   &result, e);
	if (rc)
		return rc;
	lua_createtable(L, 0, 3);
	lua_pushinteger(L, jget_int(result, "exit"));
	lua_setfield(L, -2, "exit");
	lua_pushstring(L, jget_text(result, "output"));
	lua_setfield(L, -2, "text");
	lua_pushstring(L, teller->name);
	lua_setfield(L, -2, "node");
	return 0;
}

static int probe_args(void *ctx, const struct member *m, json_t **args, struct err *e)
{
	json_t *argv = NULL;
	int rc = m->host->role == ROLE_CLIENT ? fs_probe(ctx, m->host, &argv, e) : 0;

	if (argv)
		*args = json_pack("{s:o, s:i}", "argv", argv, "timeout_s", NODES_S);
	return rc || argv ? rc : 1;
}

/* How long the file system's probe took on the slowest client. */
static int push_probe(struct trial *t, lua_State *L, struct err *e)
{
	auto_json json_t *results = NULL;
	double begin_s = clock_mono_s(), took_s;
	json_t *result;
	const char *name;
	int rc = load_fs(t, e)
		?: cluster_ask(
			   t->x->cluster, "run", probe_args, t->safety.fs, left_s(t), &results, e);

	took_s = clock_mono_s() - begin_s;
	json_object_foreach(results, name, result)
		if (!rc && jget_int(result, "exit"))
			rc = err_set(e, -EIO, "%s: the file system's probe failed: %.200s", name,
				jget_text(result, "output"));
	if (!rc && !json_object_size(results))
		rc = err_set(
			e, -ENOENT, "%s: its Lua file has no 'probe'", t->x->cluster->inv->fs_type);
	if (!rc)
		lua_pushnumber(L, took_s);
	return rc;
}

static const struct {
	const char *name;
	int (*push)(struct trial *t, lua_State *L, struct err *e);
} looks[] = {{"elapsed_s", push_elapsed}, {"bytes_per_s", push_bytes}, {"free_bytes", push_free},
	{"health", push_health}, {"probe_s", push_probe}};

/* Looks when a field is first read, and keeps what it saw in the table. */
static int now_index(lua_State *L)
{
	const char *key = luaL_checkstring(L, 2);
	struct trial *t;
	struct err e;
	int rc;

	lua_getfield(L, LUA_REGISTRYINDEX, ASKING);
	t = lua_touserdata(L, -1);
	if (!t)
		return luaL_error(L, "abort_if has returned: what it was given is gone");
	for (size_t i = 0; i < sizeof(looks) / sizeof(looks[0]); i++) {
		if (strcmp(looks[i].name, key))
			continue;
		rc = looks[i].push(t, L, &e);
		if (rc)
			return luax_raise(L, rc, &e);
		lua_pushvalue(L, 2);
		lua_pushvalue(L, -2);
		lua_rawset(L, 1);
		return 1;
	}
	return luaL_error(L, "there is no '%s' in what abort_if is given", key);
}

static void push_now(lua_State *L)
{
	lua_newtable(L);
	lua_createtable(L, 0, 1);
	lua_pushcfunction(L, now_index);
	lua_setfield(L, -2, "__index");
	lua_setmetatable(L, -2);
}

/* ---- asking ---- */

static bool is_due(const struct trial *t)
{
	return t->x->scenario->abort_ref != LUA_NOREF && t->fault && t->n_contexts &&
		t->inject_ns && !t->row.offset_ns && clock_mono_s() >= t->safety.due_s;
}

/* Limits on one call of the condition, and no limits on the calls after it. */
static void limit(struct trial *t, bool on)
{
	lua_State *L = t->x->scenario->L;
	double usual_s = luax_seconds();

	if (usual_s > LUA_S)
		luax_allow(L, on ? LUA_S - usual_s : usual_s - LUA_S);
	t->safety.until_s = on ? clock_mono_s() + NODES_S : 0;
	acts_limit(t->x->acts, t->safety.until_s);
	if (on)
		lua_pushlightuserdata(L, t);
	else
		lua_pushnil(L);
	lua_setfield(L, LUA_REGISTRYINDEX, ASKING);
}

/* The condition's answer, at the top of the stack: 0 if it does not hold, else -ECANCELED and
 * why. */
static int take_answer(lua_State *L, struct err *e)
{
	int type = lua_type(L, -1);

	if (!lua_toboolean(L, -1))
		return 0;
	if (type != LUA_TSTRING && type != LUA_TBOOLEAN)
		return err_set(e, -EINVAL,
			"it returns a text (abort, for this reason), true or "
			"nothing, not a %s",
			lua_typename(L, type));
	return err_set(e, -ECANCELED, "%.500s",
		type == LUA_TSTRING ? lua_tostring(L, -1) : "it returned true");
}

static int ask(struct trial *t, struct err *e)
{
	lua_State *L = t->x->scenario->L;
	int top = lua_gettop(L), rc;

	limit(t, true);
	lua_rawgeti(L, LUA_REGISTRYINDEX, t->x->scenario->abort_ref);
	push_now(L);
	lua_rawgeti(L, LUA_REGISTRYINDEX, t->contexts[0]);
	rc = luax_call(L, 2, 1, e) ?: take_answer(L, e);
	lua_settop(L, top);
	limit(t, false);
	return rc;
}

void safety_begin(struct trial *t)
{
	struct err ignored;

	if (t->x->scenario->abort_ref == LUA_NOREF)
		return;
	t->safety.due_s = clock_mono_s() + PERIOD_S;
	t->safety.until_s = t->safety.due_s;
	t->safety.read_s = clock_mono_s();
	if (read_bytes(t, &t->safety.bytes, &ignored))
		t->safety.read_s = 0;
}

/* A condition that cannot be asked counts as one that holds. */
int safety_check(struct trial *t, struct err *e)
{
	int rc;

	if (!is_due(t))
		return 0;
	t->safety.due_s = clock_mono_s() + PERIOD_S;
	rc = ask(t, e);
	if (!rc || trial_stop_asked(t))
		return rc;
	err_prefix(e, rc, "abort_if");
	e->class = ERR_UNSAFE;
	json_object_set_new(t->detail, "aborted",
		json_pack("{s:s, s:I}", "why", e->text, "held_ns", (json_int_t)clock_real_ns()));
	trial_note_step(t, "undo");
	return -ECANCELED;
}

void safety_undone(struct trial *t)
{
	t->row.offset_ns = clock_real_ns();
	json_object_set_new(
		json_object_get(t->detail, "aborted"), "undone_ns", json_integer(t->row.offset_ns));
	progress_fault(t->x->progress, t->inject_ns, t->row.onset_ns, t->row.offset_ns);
	trial_note_step(t, "offset");
}

void safety_end(struct trial *t)
{
	fs_free(t->safety.fs);
}
