/* Reads the scenario's flight recorder. */
#include "harness/scenario/recorder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"
#include "harness/scenario/trigger.h"

#define RING_S 30

static int read_name(lua_State *L, const struct luax_source *src, char **out, struct err *e)
{
	const char *name;
	int rc = 0;

	lua_rawgeti(L, -1, 1);
	name = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : NULL;
	if (!name || strcmp(name, "ebpf"))
		rc = luax_complain(src, name ? name : "recorder", e,
			"recorder: its tracer, the first element, is \"ebpf\": no other keeps a "
			"ring");
	else
		*out = alloc_copy(name);
	lua_pop(L, 1);
	return rc;
}

static int read_moments(
	lua_State *L, const struct luax_source *src, struct recorder *r, struct err *e)
{
	const struct luax_field fields[] = {
		{"after_onset", LUAX_QUANTITY, .unit = UNIT_SECONDS, .min = 0, .max = 86400,
			.out = &r->after_onset_s},
		{"at_offset", LUAX_BOOLEAN, .out = &r->at_offset},
		{"at_end", LUAX_BOOLEAN, .out = &r->at_end},
		{NULL},
	};
	int rc = 0;

	if (lua_getfield(L, -1, "write") != LUA_TNIL)
		rc = luax_read(L, -1, src, "recorder: write", fields, false, e);
	lua_pop(L, 1);
	return rc;
}

/* 'given': the path as the scenario has it. */
static int read_trigger(
	const struct luax_source *src, const char *given, struct recorder *r, struct err *e)
{
	struct trigger *t;
	struct err why;
	int rc;

	if (!given)
		return 0;
	r->trigger = luax_beside(src->path, given);
	rc = trigger_open(r->trigger, &t, &why);
	if (!rc)
		trigger_close(t);
	else if (rc == -EINVAL)
		*e = why; /* it names the trigger's file and line */
	else
		rc = luax_complain(src, given, e, "recorder: trigger: %s", why.text);
	return rc;
}

static int read_table(
	lua_State *L, const struct luax_source *src, struct recorder *r, struct err *e)
{
	struct tracing *t = &r->tracing;
	char *trigger = NULL;
	const struct luax_field fields[] = {
		{"mode", LUAX_STRING, .out = &t->mode},
		{"heads", LUAX_BOOLEAN, .out = &t->heads},
		{"memory", LUAX_QUANTITY, .unit = UNIT_BYTES, .min = 65536, .max = 4294967296.0,
			.out = &t->memory_bytes},
		{"ring", LUAX_QUANTITY, .unit = UNIT_SECONDS, .min = 2, .max = 3600,
			.out = &r->ring_s},
		{"write", LUAX_TABLE},
		{"trigger", LUAX_STRING, .out = &trigger},
		{NULL},
	};
	int rc = luax_read(L, -1, src, "recorder", fields, true, e);

	if (!rc && t->mode && strcmp(t->mode, "events") && strcmp(t->mode, "flow"))
		rc = luax_complain(src, t->mode, e,
			"recorder: its mode is \"events\" or \"flow\", not '%s'", t->mode);
	if (!rc && !t->mode)
		t->mode = alloc_copy("flow");
	if (!rc && t->heads && strcmp(t->mode, "flow"))
		rc = luax_complain(
			src, "heads", e, "recorder: heads need mode = \"flow\", not '%s'", t->mode);
	rc = rc ?: read_moments(L, src, r, e) ?: read_trigger(src, trigger, r, e);
	if (!rc && r->after_onset_s < 0 && !r->at_offset && !r->at_end && !trigger)
		rc = luax_complain(src, "recorder", e,
			"recorder: nothing has it written; give write = { after_onset = \"5s\" }, "
			"at_offset, at_end, or a trigger");
	free(trigger);
	return rc;
}

int recorder_load(lua_State *L, const struct luax_source *src, struct recorder *out, struct err *e)
{
	struct recorder r = {.ring_s = RING_S, .after_onset_s = -1};
	int rc = lua_istable(L, -1)
		? read_name(L, src, &r.tracing.name, e) ?: read_table(L, src, &r, e)
		: luax_complain(src, "recorder", e,
			  "a recorder is a table: { \"ebpf\", mode = \"flow\", ring = \"30s\", "
			  "write = { after_onset = \"5s\" } }");

	lua_pop(L, 1);
	if (rc) {
		recorder_clear(&r);
		return rc;
	}
	r.tracing.label = alloc_format(
		"%s(mode=%s%s)", r.tracing.name, r.tracing.mode, r.tracing.heads ? ",heads" : "");
	*out = r;
	return 0;
}

void recorder_clear(struct recorder *r)
{
	tracing_clear(&r->tracing);
	free(r->trigger);
	*r = (struct recorder){0};
}

int recorder_check(const struct recorder *r, const struct tracing *tracer, double after_s,
	const struct luax_source *src, struct err *e)
{
	if (!r->tracing.name)
		return 0;
	if (tracer->mode && !strcmp(tracer->mode, "flow"))
		return luax_complain(src, "recorder", e,
			"recorder: tracer '%s' records all of it already; leave the recorder out, "
			"or let the tracer record sums",
			tracer->label);
	if (r->after_onset_s >= after_s)
		return luax_complain(src, "after_onset", e,
			"recorder: 'after_onset' is %g s, but a cell ends %g s after the onset "
			"(phases: fault and after)",
			r->after_onset_s, after_s);
	return 0;
}

json_t *recorder_args(const struct recorder *r, const char *out)
{
	json_t *args = tracing_args(&r->tracing, out, NULL);

	json_object_set_new(args, "ring_s", json_real(r->ring_s));
	return args;
}
