/* PROTOCOL.md lists the operations as their table has them, and the Lua manual knows every method.
 * With CULPRIT_UPDATE=1 the list is written into PROTOCOL.md. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ci/tests/built.h"
#include "harness/agent/operations.h"
#include "harness/base/file.h"

#define BEGIN "<!-- operations: generated from operations.def by protocol_test -->\n"
#define END "<!-- end of operations -->\n"

static void print_range(FILE *to, const struct op_argument *arg)
{
	if (arg->choices)
		fprintf(to, ", one of %s", arg->choices);
	else if (arg->type == OP_TEXTS && arg->most)
		fprintf(to, ", at most %g", arg->most);
	else if (arg->most >= 9e15 && arg->above)
		fprintf(to, ", above %.10g", arg->above);
	else if (arg->most == 2147483647 || arg->most >= 9e15)
		fprintf(to, ", above %g", arg->above);
	else if (arg->most)
		fprintf(to, ", above %g and at most %.10g", arg->above, arg->most);
}

static void print_arguments(FILE *to, const struct op_argument *list, const char *indent)
{
	for (const struct op_argument *arg = list; arg->name; arg++) {
		fprintf(to, "%s- `%s`%s: %s", indent, arg->name, arg->required ? "" : "?",
			op_type_name(arg->type));
		print_range(to, arg);
		fprintf(to, "; %s\n", arg->doc);
		if (arg->members)
			print_arguments(to, arg->members, "  ");
	}
}

static char *describe_all(void)
{
	static const char *const effects[] = {[OP_ASKS] = "only looks, may be sent again",
		[OP_RUNS] = "happens once",
		[OP_ACTS] = "leaves a handle",
		[OP_ENDS] = "ends what was begun"};
	size_t size;
	char *text;
	FILE *to = open_memstream(&text, &size);

	for (size_t i = 0; i < n_operations; i++) {
		const struct operation *op = &operations[i];

		fprintf(to, "### %s\n\n%s (%s%s%s%s)\n\n", op->name, op->doc, effects[op->effect],
			op->restarts ? "; needs allow_restart" : "", op->method ? "; Lua: " : "",
			op->method ? op->method : "");
		print_arguments(to, op->arguments, "");
		fprintf(to, "%sResult: %s.\n\n", op->arguments->name ? "\n" : "", op->result);
	}
	fclose(to);
	return text;
}

static char *read_source(const char *name)
{
	char path[4096 + 64], *text;

	/* OUT is in the source tree. */
	assert_non_null(built("../", path));
	strcat(path, name);
	assert_int_equal(file_read(path, &text, NULL, NULL), 0);
	return text;
}

static void protocol_lists_the_operations(void **unused)
{
	char *page = read_source("harness/agent/PROTOCOL.md"), *wanted = describe_all(), path[4200];
	char *begin = strstr(page, BEGIN), *end = strstr(page, END), *whole;

	(void)unused;
	assert_non_null(begin);
	assert_non_null(end);
	begin += strlen(BEGIN);
	if (getenv("CULPRIT_UPDATE")) {
		assert_true(
			asprintf(&whole, "%.*s%s%s", (int)(begin - page), page, wanted, end) > 0);
		assert_non_null(built("../harness/agent/PROTOCOL.md", path));
		assert_int_equal(file_write_atomic(path, 0644, whole, strlen(whole), NULL), 0);
		free(whole);
	} else {
		*end = '\0';
		assert_string_equal(begin, wanted);
	}
	free(page);
	free(wanted);
}

static void lua_manual_has_every_method(void **unused)
{
	char *manual = read_source("harness/lua/culprit.meta.lua"), wanted[80];

	(void)unused;
	for (size_t i = 0; i < n_operations; i++) {
		if (!operations[i].method)
			continue;
		snprintf(wanted, sizeof(wanted), "\nfunction %s(", operations[i].method);
		if (!strstr(manual, wanted))
			fail_msg("culprit.meta.lua has no %s", operations[i].method);
	}
	free(manual);
}

static void every_act_has_a_maximum(void **unused)
{
	(void)unused;
	for (size_t i = 0; i < n_operations; i++) {
		const struct operation *op = &operations[i];
		const struct op_argument *arg = op->arguments;

		while (arg->name && strcmp(arg->name, "max_s"))
			arg++;
		if (strcmp(op->name, "trace.start"))
			assert_int_equal(op->effect == OP_ACTS, arg->name != NULL);
		assert_true(!op->restarts || op->effect == OP_ACTS);
		assert_ptr_equal(operation_find(op->name), op);
	}
}

int main(void)
{
	const struct CMUnitTest all[] = {
		cmocka_unit_test(protocol_lists_the_operations),
		cmocka_unit_test(lua_manual_has_every_method),
		cmocka_unit_test(every_act_has_a_maximum),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("protocol", all, NULL, NULL);
}
