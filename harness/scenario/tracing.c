#include "harness/scenario/tracing.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/scenario/part.h"

static const char *const names[] = {"none", "ebpf", "ptrace", "strace", "sysstat", NULL};

void tracing_clear(struct tracing *t)
{
	part_under_free(t->under);
	free(t->name);
	free(t->label);
	free(t->mode);
	*t = (struct tracing){0};
}

bool tracing_none(const struct tracing *t)
{
	return !strcmp(t->name, "none");
}

bool tracing_has_log(const struct tracing *t)
{
	return !strcmp(t->name, "ebpf") || !strcmp(t->name, "ptrace");
}

/* The sampler is a common mistake. */
static const char *no_choice(const char *name)
{
	return strcmp(name, "sampler")
		? ""
		: "; the sampler cannot be chosen: it always runs, in every run that gives "
		  "verdicts";
}

static bool known(const char *name)
{
	for (size_t i = 0; names[i]; i++)
		if (!strcmp(names[i], name))
			return true;
	return false;
}

/* Sums suffice for peer comparison; ptrace has events only. */
static int complete(struct tracing *t, struct err *e)
{
	bool ebpf = !strcmp(t->name, "ebpf");
	int rc;

	if (!t->mode && tracing_has_log(t))
		t->mode = strdup(ebpf ? "sums" : "events");
	rc = asprintf(&t->label, "%s%s%s", t->name,
		ebpf && t->mode && strcmp(t->mode, "sums") ? "(mode=events)" : "",
		t->one_server ? "(one server)" : "");
	if (rc < 0)
		t->label = NULL;
	return rc < 0 || (tracing_has_log(t) && !t->mode)
		? err_errno(e, -ENOMEM, "cannot choose a tracer")
		: 0;
}

int tracing_named(const char *name, bool events, struct tracing *out, struct err *e)
{
	*out = (struct tracing){0};
	if (!known(name))
		return err_set(e, -EINVAL,
			"there is no tracer '%s'; there are ebpf, ptrace, strace and sysstat%s",
			name, no_choice(name));
	out->name = strdup(name);
	if (out->name && events && tracing_has_log(out))
		out->mode = strdup("events");
	return out->name ? complete(out, e) : err_errno(e, -ENOMEM, "cannot choose a tracer");
}

static int read_table(lua_State *L, const struct luax_source *src, struct tracing *t, struct err *e)
{
	char *nodes = NULL, whose[96];
	const struct luax_field fields[] = {
		{"mode", LUAX_STRING, .out = &t->mode},
		{"memory", LUAX_QUANTITY, .unit = UNIT_BYTES, .min = 65536, .max = 4294967296.0,
			.out = &t->memory_bytes},
		{"nodes", LUAX_STRING, .out = &nodes},
		{"workloads", LUAX_TABLE},
		{NULL},
	};
	int rc;

	lua_rawgeti(L, -1, 1);
	if (lua_type(L, -1) == LUA_TSTRING)
		t->name = strdup(lua_tostring(L, -1));
	lua_pop(L, 1);
	if (!t->name)
		return luax_complain(
			src, "tracer", e, "a tracer is a name or { \"name\", mode = ... }");
	rc = luax_read(L, -1, src, "tracer", fields, true, e);
	if (!rc && t->mode &&
		(strcmp(t->name, "ebpf") || (strcmp(t->mode, "sums") && strcmp(t->mode, "events"))))
		rc = luax_complain(src, t->mode, e,
			"tracer '%s' has no mode '%s': ebpf has sums and events", t->name, t->mode);
	if (!rc && nodes && strcmp(nodes, "all") && strcmp(nodes, "one-server"))
		rc = luax_complain(src, nodes, e,
			"tracer '%s': nodes is all or one-server, not '%s'", t->name, nodes);
	t->one_server = nodes && !strcmp(nodes, "one-server");
	free(nodes);
	snprintf(whose, sizeof(whose), "tracer '%s'", t->name);
	return rc ? rc : part_under_read(L, lua_gettop(L), src, whose, &t->under, e);
}

int tracing_load(lua_State *L, const struct luax_source *src, struct tracing *out, struct err *e)
{
	struct tracing t = {0};
	int top = lua_gettop(L), rc = 0;

	if (lua_type(L, -1) == LUA_TSTRING) {
		t.name = strdup(lua_tostring(L, -1));
		if (!t.name)
			rc = err_errno(e, -ENOMEM, "cannot read the tracers");
	} else if (lua_istable(L, -1)) {
		rc = read_table(L, src, &t, e);
	} else {
		rc = luax_complain(
			src, "tracer", e, "a tracer is a name or { \"name\", mode = ... }");
	}
	if (!rc && !known(t.name)) {
		const char *near = luax_nearest(t.name, names);

		rc = luax_complain(src, t.name, e,
			"there is no tracer '%s'%s%s%s; there are ebpf, ptrace, strace and "
			"sysstat%s",
			t.name, near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "",
			no_choice(t.name));
	}
	if (!rc)
		rc = complete(&t, e);
	lua_settop(L, top - 1);
	if (rc)
		tracing_clear(&t);
	else
		*out = t;
	return rc;
}

json_t *tracing_args(const struct tracing *t, const char *out, const char *storage)
{
	json_t *args = json_pack("{s:s, s:s}", "tracer", t->name, "out", out);

	if (t->mode)
		json_object_set_new(args, "mode", json_string(t->mode));
	if (t->memory_bytes > 0)
		json_object_set_new(
			args, "memory_bytes", json_integer((json_int_t)t->memory_bytes));
	/* Events hold the path of each descriptor; sums need to know the server's storage. */
	if (storage && t->mode && !strcmp(t->mode, "sums"))
		json_object_set_new(args, "paths", json_pack("[s]", storage));
	return args;
}
