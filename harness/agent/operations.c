/* Checks requests against the table of operations. */
#include "harness/agent/operations.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "harness/base/text.h"

const struct operation operations[] = {
#define OPERATION(handler, name_, effect_, restarts_, method_, wait_s_, doc_, result_, ...)        \
	{.name = name_,                                                                            \
		.effect = OP_##effect_,                                                            \
		.restarts = restarts_,                                                             \
		.method = method_,                                                                 \
		.wait_s = wait_s_,                                                                 \
		.doc = doc_,                                                                       \
		.result = result_,                                                                 \
		.arguments = (const struct op_argument[]){__VA_ARGS__, {0}}},
#include "harness/agent/operations.def"
};

const size_t n_operations = sizeof(operations) / sizeof(operations[0]);

const char *op_type_name(enum op_type type)
{
	static const char *const names[] = {
		[OP_TEXT] = "a string",
		[OP_WORD] = "a word that does not begin with '-'",
		[OP_ABSOLUTE] = "an absolute path",
		[OP_INTEGER] = "an integer",
		[OP_NUMBER] = "a number",
		[OP_BOOLEAN] = "true or false",
		[OP_TEXTS] = "a list of strings, not empty",
		[OP_INTEGERS] = "a list of integers, not empty",
		[OP_TEXT_OBJECT] = "an object of strings",
		[OP_OBJECT] = "an object",
	};

	return names[type];
}

const struct operation *operation_find(const char *name)
{
	for (size_t i = 0; i < n_operations; i++)
		if (!strcmp(operations[i].name, name))
			return &operations[i];
	return NULL;
}

static bool has_type(const json_t *v, enum op_type type)
{
	const char *text = json_string_value(v), *key;
	json_t *value;
	size_t i;

	switch (type) {
	case OP_TEXT: return text;
	case OP_WORD: return text && *text && *text != '-';
	case OP_ABSOLUTE: return text && *text == '/';
	case OP_INTEGER: return json_is_integer(v);
	case OP_NUMBER: return json_is_number(v);
	case OP_BOOLEAN: return json_is_boolean(v);
	case OP_TEXTS:
	case OP_INTEGERS:
		json_array_foreach((json_t *)v, i, value) {
			if (!has_type(value, type == OP_TEXTS ? OP_TEXT : OP_INTEGER))
				return false;
		}
		return json_array_size(v) > 0;
	case OP_TEXT_OBJECT:
		json_object_foreach((json_t *)v, key, value) {
			if (!json_is_string(value) || !*key || strchr(key, '='))
				return false;
		}
		return json_is_object(v);
	case OP_OBJECT: return json_is_object(v);
	}
	return false;
}

static int check_range(
	const struct op_argument *arg, const char *name, const json_t *v, struct err *e)
{
	double value = json_number_value(v);
	json_t *one;
	size_t i;

	if (json_is_number(v) && arg->most && !(value > arg->above && value <= arg->most))
		return err_set(e, -EINVAL, "%s must be above %.10g and at most %.10g, not %.10g",
			name, arg->above, arg->most, value);
	if (arg->type == OP_TEXTS && arg->most && json_array_size(v) > arg->most)
		return err_set(e, -EINVAL, "%s takes at most %g strings, not %zu", name, arg->most,
			json_array_size(v));
	if (arg->choices && !text_is_choice(arg->choices, json_string_value(v)))
		return err_set(e, -EINVAL, "%s must be one of %s, not '%s'", name, arg->choices,
			json_string_value(v));
	json_array_foreach((json_t *)v, i, one) {
		int rc = arg->type == OP_INTEGERS ? check_range(arg, name, one, e) : 0;

		if (rc)
			return rc;
	}
	return 0;
}

static int unknown(const struct op_argument *list, const char *of, const char *noun,
	const char *key, struct err *e)
{
	char known[256] = "none";

	for (size_t n = 0; list->name && n < sizeof(known); list++)
		n += (size_t)snprintf(
			known + n, sizeof(known) - n, "%s%s", n ? ", " : "", list->name);
	return err_set(e, -EINVAL, "%s has no %s '%.200s'; there are: %s", of, noun, key, known);
}

/* 'of' is the operation, or the argument whose members 'object' holds. */
static int check_list(const struct op_argument *list, const char *of, bool nested,
	const json_t *object, struct err *e)
{
	const char *key, *noun = nested ? "member" : "argument";
	const struct op_argument *arg;
	json_t *value;

	json_object_foreach((json_t *)object, key, value) {
		char name[64];
		int rc;

		if (!nested && (!strcmp(key, "id") || !strcmp(key, "op")))
			continue;
		for (arg = list; arg->name && strcmp(arg->name, key); arg++)
			;
		if (!arg->name)
			return unknown(list, of, noun, key, e);
		snprintf(name, sizeof(name), "%s%s%s", nested ? of : "", nested ? "." : "", key);
		if (!has_type(value, arg->type))
			return err_set(e, -EINVAL, "%s must be %s", name, op_type_name(arg->type));
		rc = check_range(arg, name, value, e);
		if (!rc && arg->members)
			rc = check_list(arg->members, name, true, value, e);
		if (rc)
			return rc;
	}
	for (arg = list; arg->name; arg++)
		if (arg->required && !json_object_get(object, arg->name))
			return err_set(e, -EINVAL, "%s needs the %s '%s'", of, noun, arg->name);
	return 0;
}

int operation_check(const struct operation *op, const json_t *request, struct err *e)
{
	return check_list(op->arguments, op->name, false, request, e);
}
