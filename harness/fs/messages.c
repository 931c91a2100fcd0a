/*
 * Reads 'messages' and 'layers' of a file system's Lua file; harness/fs/README.md defines them.
 */
#include "harness/fs/messages.h"

#include <errno.h>
#include <lauxlib.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"
#include "harness/base/near.h"

enum { NAMES = 4096 };

static const char where[] = "file system: messages";

/* A field's table as read. */
struct raw {
	long offset, size;
	bool big;
	double mask, add;
};

static int make_field(const struct luax_source *src, const char *key, const struct raw *r,
	struct flow_field *out, struct err *e)
{
	const uint64_t all = r->size < 8 ? (1ull << 8 * r->size) - 1 : UINT64_MAX;

	if (r->size != 1 && r->size != 2 && r->size != 4 && r->size != 8)
		return luax_complain(
			src, key, e, "%s: the 'size' of '%s' must be 1, 2, 4 or 8", where, key);
	if (r->offset + r->size > FLOW_HEADER)
		return luax_complain(src, key, e,
			"%s: '%s' ends at byte %ld; only a message's first %d bytes are recorded",
			where, key, r->offset + r->size, FLOW_HEADER);
	*out = (struct flow_field){.offset = (uint8_t)r->offset,
		.size = (uint8_t)r->size,
		.big = r->big,
		.mask = r->mask > 0 ? (uint64_t)r->mask : all,
		.addend = (int64_t)r->add};
	return 0;
}

/* Reads the table on top of the stack. 'more' (may be NULL): further allowed keys,
 * NULL-terminated, whose values are not checked. */
static int read_field(lua_State *L, const struct luax_source *src, const char *key,
	const char *const *more, struct flow_field *out, struct err *e)
{
	struct raw r = {0};
	char what[96];
	struct luax_field fields[12] = {
		{"offset", LUAX_INTEGER, .required = true, .max = FLOW_HEADER, .out = &r.offset},
		{"size", LUAX_INTEGER, .required = true, .min = 1, .max = 8, .out = &r.size},
		{"big", LUAX_BOOLEAN, .out = &r.big},
		{"mask", LUAX_NUMBER, .min = 1, .max = 9007199254740992.0, .out = &r.mask},
		{"add", LUAX_NUMBER, .min = -4096, .max = 4096, .out = &r.add},
	};

	for (size_t i = 5; more && *more; i++)
		fields[i] = (struct luax_field){*more++, LUAX_ANY};
	snprintf(what, sizeof(what), "%s: '%s'", where, key);
	return luax_read(L, -1, src, what, fields, false, e) ?: make_field(src, key, &r, out, e);
}

/* A number, or a list of numbers, at 'key' of the table on top of the stack. */
static int read_values(lua_State *L, const struct luax_source *src, const char *key,
	struct flow_values *out, struct err *e)
{
	bool good = true;

	out->n = 0;
	if (lua_getfield(L, -1, key) == LUA_TTABLE) {
		lua_Unsigned n = lua_rawlen(L, -1);

		good = n >= 1 && n <= FLOW_VALUES;
		for (lua_Unsigned i = 1; good && i <= n; i++) {
			lua_rawgeti(L, -1, (lua_Integer)i);
			good = lua_isinteger(L, -1);
			out->values[out->n++] = (uint64_t)lua_tointeger(L, -1);
			lua_pop(L, 1);
		}
	} else {
		good = lua_isinteger(L, -1);
		out->values[out->n++] = (uint64_t)lua_tointeger(L, -1);
	}
	lua_pop(L, 1);
	return good ? 0
		    : luax_complain(src, key, e,
			      "%s: '%s' must be a whole number, or a list of at most %d", where,
			      key, FLOW_VALUES);
}

/* Reads one field at 'key' of the table at 'index'; unchanged if the key is missing. */
static int messages_read_one(lua_State *L, int index, const struct luax_source *src,
	const char *key, struct flow_field *out, struct err *e)
{
	int rc = 0;

	if (lua_getfield(L, index, key) != LUA_TNIL)
		rc = read_field(L, src, key, NULL, out, e);
	lua_pop(L, 1);
	return rc;
}

/* Reads one field, or a list of fields that are added up. */
static int read_length(lua_State *L, int index, const struct luax_source *src,
	struct flow_protocol *out, struct err *e)
{
	const int most = sizeof(out->length) / sizeof(out->length[0]);
	int rc = 0, n;

	lua_getfield(L, index, "length");
	n = (int)lua_rawlen(L, -1);
	if (!n) {
		out->n_lengths = 1;
		rc = read_field(L, src, "length", NULL, &out->length[0], e);
	} else if (n > most) {
		rc = luax_complain(src, "length", e,
			"%s: 'length' may be the sum of %d fields at most", where, most);
	} else {
		for (int i = 1; i <= n && !rc; i++) {
			lua_rawgeti(L, -1, i);
			rc = read_field(L, src, "length", NULL, &out->length[out->n_lengths++], e);
			lua_pop(L, 1);
		}
	}
	lua_pop(L, 1);
	return rc;
}

static int read_kind(lua_State *L, int index, const struct luax_source *src,
	struct flow_protocol *out, struct err *e)
{
	static const char *const more[] = {"call", "answer", NULL};
	int rc;

	lua_getfield(L, index, "kind");
	rc = read_field(L, src, "kind", more, &out->call.field, e)
		?: read_values(L, src, "call", &out->call, e)
		?: read_values(L, src, "answer", &out->answer, e);
	out->answer.field = out->call.field;
	lua_pop(L, 1);
	return rc;
}

static int read_check(lua_State *L, int index, const struct luax_source *src, const char *key,
	struct flow_values *out, struct err *e)
{
	static const char *const more[] = {"value", NULL};
	int rc = 0;

	if (lua_getfield(L, index, key) != LUA_TNIL)
		rc = read_field(L, src, key, more, &out->field, e)
			?: read_values(L, src, "value", out, e);
	lua_pop(L, 1);
	return rc;
}

/* Reads the table on top of the stack: number -> name. */
static int add_names(lua_State *L, const struct luax_source *src, uint32_t program,
	struct flow_protocol *out, struct err *e)
{
	for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1)) {
		bool good = lua_isinteger(L, -2) && lua_type(L, -1) == LUA_TSTRING;

		if (!good || out->n_names >= NAMES) {
			lua_pop(L, 2);
			return luax_complain(src, "names", e,
				"%s: 'names' must map numbers to names, %d at most%s", where, NAMES,
				program ? "" : "; with 'program': program -> number -> name");
		}
		out->names = alloc_room(out->names, out->n_names, sizeof(*out->names));
		out->names[out->n_names++] = (struct flow_name){
			program, (uint32_t)lua_tointeger(L, -2), alloc_copy(lua_tostring(L, -1))};
	}
	return 0;
}

static int read_names(lua_State *L, int index, const struct luax_source *src,
	struct flow_protocol *out, struct err *e)
{
	int rc = 0;

	if (lua_getfield(L, index, "names") == LUA_TTABLE && !out->program.size)
		rc = add_names(L, src, 0, out, e);
	else if (lua_istable(L, -1))
		for (lua_pushnil(L); !rc && lua_next(L, -2); lua_pop(L, 1)) {
			if (lua_isinteger(L, -2) && lua_istable(L, -1))
				rc = add_names(L, src, (uint32_t)lua_tointeger(L, -2), out, e);
			else
				rc = luax_complain(src, "names", e,
					"%s: 'names' must map each program to its names", where);
		}
	lua_settop(L, index);
	return rc;
}

static uint8_t end_of(const struct flow_field *f)
{
	return f->size ? (uint8_t)(f->offset + f->size) : 0;
}

/* Checks that the fields needed for every message are given. */
static void messages_measure(struct flow_protocol *p)
{
	const struct flow_field *const all[] = {&p->length[0], &p->length[1], &p->length[2],
		&p->length[3], &p->id, &p->call.field, &p->last};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (end_of(all[i]) > p->header)
			p->header = end_of(all[i]);
}

static int read_messages(
	lua_State *L, const struct luax_source *src, struct flow_protocol *out, struct err *e)
{
	double longest = 64 << 20;
	const struct luax_field fields[] = {
		{"length", LUAX_TABLE, .required = true},
		{"longest", LUAX_QUANTITY, .unit = UNIT_BYTES, .min = 1, .max = 4294967296.0,
			.out = &longest},
		{"last", LUAX_TABLE},
		{"id", LUAX_TABLE, .required = true},
		{"kind", LUAX_TABLE, .required = true},
		{"check", LUAX_TABLE},
		{"check_call", LUAX_TABLE},
		{"program", LUAX_TABLE},
		{"procedure", LUAX_TABLE},
		{"names", LUAX_TABLE},
		{"several", LUAX_BOOLEAN, .out = &out->parts},
		{NULL},
	};
	const int at = lua_gettop(L);
	int rc = luax_read(L, at, src, where, fields, false, e) ?: read_length(L, at, src, out, e)
		?: messages_read_one(L, at, src, "last", &out->last, e)
		?: messages_read_one(L, at, src, "id", &out->id, e) ?: read_kind(L, at, src, out, e)
		?: read_check(L, at, src, "check", &out->check[0], e)
		?: read_check(L, at, src, "check_call", &out->check[1], e)
		?: messages_read_one(L, at, src, "program", &out->program, e)
		?: messages_read_one(L, at, src, "procedure", &out->procedure, e)
		?: read_names(L, at, src, out, e);

	out->longest = (uint64_t)longest;
	messages_measure(out);
	return rc;
}

/* Reads { name = source } from the table on top of the stack, sorted by source. */
static int read_layers(
	lua_State *L, const struct luax_source *src, struct flow_protocol *out, struct err *e)
{
	const char *names[LAYER_SOURCES + 1] = {0};
	char hint[96], what[64];
	char *name = NULL, *from = NULL;
	const struct luax_field fields[] = {{"name", LUAX_STRING, .required = true, .out = &name},
		{"from", LUAX_STRING, .required = true, .out = &from}, {NULL}};
	int rc = 0, source, n = (int)lua_rawlen(L, -1);

	for (int i = 0; i < LAYER_SOURCES; i++)
		names[i] = flow_source_name((enum flow_source)i);
	if (n > FLOW_LAYERS)
		return luax_complain(
			src, "layers", e, "file system: at most %d 'layers'", FLOW_LAYERS);
	for (int i = 1; i <= n && !rc; i++) {
		lua_rawgeti(L, -1, i);
		snprintf(what, sizeof(what), "file system: layer %d", i);
		rc = luax_read(L, -1, src, what, fields, false, e);
		for (source = 0; !rc && source < LAYER_SOURCES; source++)
			if (!strcmp(names[source], from))
				break;
		if (!rc && source == LAYER_SOURCES)
			rc = luax_complain(src, from, e, "%s: '%s' cannot be measured%s", what,
				from, near_hint(from, names, hint));
		if (!rc) {
			out->layers[out->n_layers].name = alloc_copy(name);
			out->layers[out->n_layers++].source = (enum flow_source)source;
		}
		lua_pop(L, 1);
	}
	free(name);
	free(from);
	return rc;
}

/* Layers of a file system that defines no layers. */
static void default_layers(struct flow_protocol *out)
{
	for (; out->n_layers < LAYER_SOURCES; out->n_layers++) {
		out->layers[out->n_layers].source = (enum flow_source)out->n_layers;
		out->layers[out->n_layers].name = alloc_copy(
			flow_source_name((enum flow_source)out->n_layers));
	}
}

int messages_read(lua_State *L, int index, const struct luax_source *src, struct flow_protocol *out,
	struct err *e)
{
	struct flow_protocol p = {0};
	const int top = lua_gettop(L);
	int rc = 0;

	if (lua_getfield(L, index, "messages") == LUA_TTABLE)
		rc = read_messages(L, src, &p, e);
	lua_settop(L, top);
	if (!rc && lua_getfield(L, index, "layers") == LUA_TTABLE)
		rc = read_layers(L, src, &p, e);
	else if (!rc)
		default_layers(&p);
	lua_settop(L, top);
	if (rc)
		flow_protocol_clear(&p);
	else
		*out = p;
	return rc;
}
