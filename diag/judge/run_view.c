/*
 * Runs as detectors see them: their metrics, and the Lua table. A large run has more numbers than a
 * detector reads, so vecs are made from the columns on access.
 */
#include <lauxlib.h>
#include <string.h>

#include "diag/judge/detector_impl.h"
#include "diag/judge/vec.h"
#include "harness/lua/luajson.h"

struct detector_run run_open(const struct detector_run *given)
{
	struct detector_run run = *given;

	if (!run.columns)
		run.columns = columns_from_samples(given->samples, given->n_samples,
			run_metrics(given), given->n_servers, given->seconds);
	return run;
}

void run_close(const struct detector_run *given, struct detector_run *run)
{
	if (!given->columns)
		columns_free((struct columns *)run->columns);
}

size_t run_metrics(const struct detector_run *run)
{
	return run->metrics ? run->n_metrics : METRIC_COUNT;
}

const char *run_metric(const struct detector_run *run, size_t i)
{
	return run->metrics ? run->metrics[i] : metric_name((enum metric)i);
}

/* culprit's own metric with that name, or METRIC_COUNT. */
static enum metric own_metric(const struct detector_run *run, size_t i)
{
	enum metric m = METRIC_COUNT;

	if (!run->metrics)
		return (enum metric)i;
	metric_from_name(run->metrics[i], &m);
	return m;
}

/* Unknown metrics are treated as service times, the kind that detectors were written for. */
bool run_is_service_time(const struct detector_run *run, size_t i)
{
	enum metric m = own_metric(run, i);

	return m < METRIC_COMPARED || m == METRIC_COUNT;
}

const char *run_unit(const struct detector_run *run, size_t i)
{
	enum metric m = own_metric(run, i);

	return m < METRIC_COUNT ? metric_unit(m) : NULL;
}

bool run_lists(const struct detector_run *run, size_t i)
{
	bool listed = run->metrics || i < METRIC_COMPARED;

	for (size_t s = 0; s < run->n_servers && !listed; s++)
		listed = columns_has(run->columns, i, s);
	return listed;
}

/* culprit.Series: refers to its numbers. */
struct series {
	const struct columns *columns;
	size_t metric, server;
	lua_Integer first; /* key of its first vec */
};

static const char series_type[] = "culprit.Series";
const char *const series_fields[] = {"mean", "sum", "count", "max", "bytes", NULL};

enum { SERIES_FIELDS = COLUMNS + 1 };

/* Index of a field's name, or SERIES_FIELDS. */
static int field_index(const char *name)
{
	int field = 0;

	while (series_fields[field] && strcmp(series_fields[field], name))
		field++;
	return field;
}

/* The upvalue refers weakly to the vecs made so far, so that a second access is cheap. */
static int series_index(lua_State *L)
{
	const struct series *s = luaL_checkudata(L, 1, series_type);
	int field = field_index(luaL_checkstring(L, 2));

	if (field == SERIES_FIELDS)
		return 0;
	if (lua_rawgeti(L, lua_upvalueindex(1), s->first + field) == LUA_TNIL) {
		columns_series(s->columns, s->metric, s->server, (enum column)(field - 1),
			vec_push_raw(L, (size_t)columns_seconds(s->columns))->v);
		lua_pushvalue(L, -1);
		lua_rawseti(L, lua_upvalueindex(1), s->first + field);
	}
	return 1;
}

/* next(series, name), with the value from __index. */
static int series_next(lua_State *L)
{
	int field = lua_isnoneornil(L, 2) ? 0 : field_index(luaL_checkstring(L, 2)) + 1;

	if (field >= SERIES_FIELDS)
		return 0;
	lua_pushstring(L, series_fields[field]);
	lua_getfield(L, 1, series_fields[field]);
	return 2;
}

static int series_pairs(lua_State *L)
{
	lua_pushcfunction(L, series_next);
	lua_pushvalue(L, 1);
	lua_pushnil(L);
	return 3;
}

/* Lua's own tostring would show an address. */
static int series_tostring(lua_State *L)
{
	lua_pushliteral(L, "series");
	return 1;
}

static void open_series(lua_State *L)
{
	static const luaL_Reg metamethods[] = {
		{"__pairs", series_pairs}, {"__tostring", series_tostring}, {NULL}};

	if (luaL_newmetatable(L, series_type)) {
		luaL_setfuncs(L, metamethods, 0);
		lua_newtable(L);
		lua_newtable(L);
		lua_pushliteral(L, "v");
		lua_setfield(L, -2, "__mode");
		lua_setmetatable(L, -2);
		lua_pushcclosure(L, series_index, 1);
		lua_setfield(L, -2, "__index");
	}
	lua_pop(L, 1);
}

/* Sets a field of the table on top; an unknown value is an empty table, so that detectors need not
 * check. */
static void set_json(lua_State *L, const char *field, const json_t *v)
{
	if (v)
		luajson_push(L, v);
	else
		lua_newtable(L);
	lua_setfield(L, -2, field);
}

/* 'first': number of series before it, in all runs of the call. */
static void push_series(lua_State *L, const struct detector_run *run, size_t metric, size_t first)
{
	lua_createtable(L, 0, (int)run->n_servers);
	for (size_t s = 0; s < run->n_servers; s++) {
		struct series *one = lua_newuserdatauv(L, sizeof(*one), 0);

		*one = (struct series){
			run->columns, metric, s, (lua_Integer)((first + s) * SERIES_FIELDS)};
		luaL_setmetatable(L, series_type);
		lua_setfield(L, -2, run->servers[s]);
	}
}

/* Adds metrics, service_times, units and series to the table on top. */
static void push_metrics(lua_State *L, const struct detector_run *run, size_t first)
{
	static const char *const keys[] = {"metrics", "service_times", "units", "series"};
	enum { METRICS = 1, SERVICE_TIMES, UNITS, SERIES };
	int top = lua_gettop(L);

	open_series(L);
	for (int i = 0; i < 4; i++)
		lua_newtable(L);
	for (size_t m = 0; m < run_metrics(run); m++) {
		const char *metric = run_metric(run, m), *unit = run_unit(run, m);

		if (!run_lists(run, m))
			continue;
		for (int list = METRICS;
			list <= (run_is_service_time(run, m) ? SERVICE_TIMES : METRICS); list++) {
			lua_pushstring(L, metric);
			lua_rawseti(L, top + list, (lua_Integer)lua_rawlen(L, top + list) + 1);
		}
		if (unit) {
			lua_pushstring(L, unit);
			lua_setfield(L, top + UNITS, metric);
		}
		push_series(L, run, m, first + m * run->n_servers);
		lua_setfield(L, top + SERIES, metric);
	}
	for (int i = 3; i >= 0; i--)
		lua_setfield(L, top, keys[i]);
}

void run_push(lua_State *L, const struct detector_run *run, size_t before)
{
	lua_createtable(L, 0, 9);
	lua_pushstring(L, run->id);
	lua_setfield(L, -2, "id");
	lua_pushinteger(L, run->seconds);
	lua_setfield(L, -2, "seconds");
	lua_createtable(L, (int)run->n_servers, 0);
	for (size_t i = 0; i < run->n_servers; i++) {
		lua_pushstring(L, run->servers[i]);
		lua_rawseti(L, -2, (lua_Integer)i + 1);
	}
	lua_setfield(L, -2, "servers");
	push_metrics(L, run, before);
	set_json(L, "events", run->events);
	lua_newtable(L);
	set_json(L, "lost_errnos", json_object_get(run->file_system, "lost_errnos"));
	set_json(L, "errno_map", json_object_get(run->file_system, "errno_map"));
	lua_setfield(L, -2, "file_system");
}
