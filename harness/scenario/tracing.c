/* Reads which tracer a scenario chooses, and makes its arguments. */
#include "harness/base/near.h"
#include "harness/scenario/tracing.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/jget.h"
#include "harness/scenario/part.h"

static const char *const names[] = {"none", "ebpf", "ptrace", "strace", "sysstat", NULL};

void tracing_clear(struct tracing *t)
{
	alloc_free_list(t->under);
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
	size_t i = 0;

	while (names[i] && strcmp(names[i], name))
		i++;
	return names[i];
}

static bool known_mode(const char *mode)
{
	return !strcmp(mode, "sums") || !strcmp(mode, "events") || !strcmp(mode, "flow");
}

/* Sums suffice for peer comparison; ptrace has events only. */
static void complete(struct tracing *t)
{
	bool ebpf = !strcmp(t->name, "ebpf");
	auto_free char *how = NULL;

	if (!t->mode && tracing_has_log(t))
		t->mode = alloc_copy(ebpf ? "sums" : "events");
	if (ebpf && strcmp(t->mode, "sums"))
		how = alloc_format("(mode=%s%s)", t->mode, t->heads ? ",heads" : "");
	t->label = alloc_format(
		"%s%s%s", t->name, how ? how : "", t->one_server ? "(one server)" : "");
}

int tracing_named(const char *name, bool events, struct tracing *out, struct err *e)
{
	if (!known(name))
		return err_set(e, -EINVAL,
			"there is no tracer '%s'; there are ebpf, ptrace, strace and sysstat%s",
			name, no_choice(name));
	*out = (struct tracing){.name = alloc_copy(name)};
	if (events && tracing_has_log(out))
		out->mode = alloc_copy("events");
	complete(out);
	return 0;
}

static int read_table(lua_State *L, const struct luax_source *src, struct tracing *t, struct err *e)
{
	auto_free char *nodes = NULL;
	char whose[96];
	const struct luax_field fields[] = {
		{"mode", LUAX_STRING, .out = &t->mode},
		{"heads", LUAX_BOOLEAN, .out = &t->heads},
		{"memory", LUAX_QUANTITY, .unit = UNIT_BYTES, .min = 65536, .max = 4294967296.0,
			.out = &t->memory_bytes},
		{"nodes", LUAX_STRING, .out = &nodes},
		{"workloads", LUAX_TABLE},
		{NULL},
	};
	int rc = luax_read(L, -1, src, "tracer", fields, true, e);
	if (!rc && t->mode && (strcmp(t->name, "ebpf") || !known_mode(t->mode)))
		rc = luax_complain(src, t->mode, e,
			"tracer '%s' has no mode '%s': ebpf has sums, events and flow", t->name,
			t->mode);
	if (!rc && t->heads && (!t->mode || strcmp(t->mode, "flow")))
		rc = luax_complain(
			src, "heads", e, "tracer '%s': heads need mode = \"flow\"", t->name);
	if (!rc && nodes && strcmp(nodes, "all") && strcmp(nodes, "one-server"))
		rc = luax_complain(src, nodes, e,
			"tracer '%s': nodes is all or one-server, not '%s'", t->name, nodes);
	t->one_server = nodes && !strcmp(nodes, "one-server");
	snprintf(whose, sizeof(whose), "tracer '%s'", t->name);
	return rc ? rc : part_under_read(L, lua_gettop(L), src, whose, &t->under, e);
}

int tracing_load(lua_State *L, const struct luax_source *src, struct tracing *out, struct err *e)
{
	struct tracing t = {0};
	int top = lua_gettop(L), rc = 0;
	bool table = lua_istable(L, -1);

	if (table)
		lua_rawgeti(L, -1, 1);
	if (lua_type(L, -1) == LUA_TSTRING)
		t.name = alloc_copy(lua_tostring(L, -1));
	lua_settop(L, top);
	if (!t.name)
		rc = luax_complain(
			src, "tracer", e, "a tracer is a name or { \"name\", mode = ... }");
	else if (table)
		rc = read_table(L, src, &t, e);
	if (!rc && !known(t.name)) {
		char hint[96];

		rc = luax_complain(src, t.name, e,
			"there is no tracer '%s'%s; there are ebpf, ptrace, strace and sysstat%s",
			t.name, near_hint(t.name, names, hint), no_choice(t.name));
	}
	lua_settop(L, top - 1);
	if (rc) {
		tracing_clear(&t);
		return rc;
	}
	complete(&t);
	*out = t;
	return 0;
}

json_t *tracing_args(const struct tracing *t, const char *out, const char *storage)
{
	json_t *args = json_pack("{s:s, s:s}", "tracer", t->name, "out", out);

	if (t->mode)
		json_object_set_new(args, "mode", json_string(t->mode));
	if (t->heads)
		json_object_set_new(args, "heads", json_true());
	if (t->memory_bytes > 0)
		json_object_set_new(
			args, "memory_bytes", json_integer((json_int_t)t->memory_bytes));
	/* Events hold the path of each descriptor; sums need to know the server's storage. */
	if (storage && t->mode && !strcmp(t->mode, "sums"))
		json_object_set_new(args, "paths", json_pack("[s]", storage));
	return args;
}

void tracing_add_bulk(json_t *args, const json_t *bulk)
{
	const char *mode = jget_text(args, "mode");

	if (mode && !strcmp(mode, "sums") && jget(bulk, "above"))
		json_object_set_new(args, "bulk",
			json_pack("{s:O, s:O}", "above", jget(bulk, "above"), "header",
				jget(bulk, "header")));
}
