/* Reads a file system's rule for bulk data, from Lua and from a run. */
#include "harness/fs/bulk.h"

#include <errno.h>

#include "harness/base/jget.h"

static const char where[] = "file system: bulk";

int bulk_read(lua_State *L, int index, const struct luax_source *src, const struct flow_protocol *p,
	struct bulk_rule *out, struct err *e)
{
	double above = 0;
	long header = 0, kind = -1;
	const struct luax_field fields[] = {
		{"above", LUAX_QUANTITY, .unit = UNIT_BYTES, .required = true, .min = 1,
			.max = 4294967296.0, .out = &above},
		{"header", LUAX_INTEGER, .min = 1, .max = FLOW_HEADER, .out = &header},
		{"kind", LUAX_INTEGER, .max = 1e9, .out = &kind}, {NULL}};
	const int top = lua_gettop(L);
	int rc = 0;

	*out = (struct bulk_rule){0};
	if (lua_getfield(L, index, "bulk") == LUA_TTABLE)
		rc = luax_read(L, -1, src, where, fields, false, e);
	lua_settop(L, top);
	if (!rc && above > 0 && header >= above)
		rc = luax_complain(src, "header", e,
			"%s: 'header' must not be larger than 'above' (%.0f bytes)", where, above);
	if (!rc && kind >= 0 && (!p->call.n || !p->check[0].n))
		rc = luax_complain(src, "kind", e,
			"%s: 'kind' is a value of messages.kind, and needs that and "
			"messages.check",
			where);
	if (rc)
		return rc;
	*out = (struct bulk_rule){.above = (uint64_t)above, .header = (uint32_t)header};
	if (kind >= 0) {
		out->check = p->check[0];
		out->kind = (struct flow_values){
			.field = p->call.field, .values = {(uint64_t)kind}, .n = 1};
	}
	return 0;
}

static json_t *values_to_json(const struct flow_values *v)
{
	const struct flow_field *f = &v->field;
	json_t *values = json_array();

	for (unsigned i = 0; i < v->n; i++)
		json_array_append_new(values, json_integer((json_int_t)v->values[i]));
	return json_pack("{s:i s:i s:b s:I s:I s:o}", "offset", f->offset, "size", f->size, "big",
		f->big, "mask", (json_int_t)f->mask, "add", (json_int_t)f->addend, "values",
		values);
}

json_t *bulk_to_json(const struct bulk_rule *rule)
{
	json_t *v = json_object();

	if (!rule->above)
		return v;
	json_object_set_new(v, "above", json_integer((json_int_t)rule->above));
	json_object_set_new(v, "header", json_integer(rule->header));
	if (rule->kind.n) {
		json_object_set_new(v, "check", values_to_json(&rule->check));
		json_object_set_new(v, "kind", values_to_json(&rule->kind));
	}
	return v;
}

static int values_from_json(const json_t *v, struct flow_values *out)
{
	const long long offset = jget_int(v, "offset"), size = jget_int(v, "size");
	const json_t *values = jget(v, "values");
	const size_t n = json_array_size(values);

	if (offset < 0 || size < 1 || size > 8 || offset + size > FLOW_HEADER || !n ||
		n > FLOW_VALUES)
		return -EINVAL;
	out->field = (struct flow_field){.offset = (uint8_t)offset,
		.size = (uint8_t)size,
		.big = jget_true(v, "big"),
		.mask = (uint64_t)jget_int(v, "mask"),
		.addend = jget_int(v, "add")};
	for (; out->n < n; out->n++)
		out->values[out->n] = (uint64_t)json_integer_value(json_array_get(values, out->n));
	return 0;
}

int bulk_from_json(const json_t *v, struct bulk_rule *out, struct err *e)
{
	const long long above = jget_int(v, "above"), header = jget_int(v, "header");

	*out = (struct bulk_rule){0};
	if (above < 0 || header < 0 || header > FLOW_HEADER ||
		(jget(v, "kind") &&
			(values_from_json(jget(v, "check"), &out->check) ||
				values_from_json(jget(v, "kind"), &out->kind))))
		return err_set(e, -EINVAL, "the run's rule for bulk data cannot be read");
	out->above = (uint64_t)above;
	out->header = (uint32_t)header;
	return 0;
}
