/*
 * The Lua binding of nodes, without a node: what the agents would do is made up. An act that was
 * done is remembered and can be undone, whichever allocation fails.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <lauxlib.h>

#include "harness/base/file.h"
#include "harness/base/home.h"

static int made_up_error; /* of the next call; 0: it succeeds */

#define node_call made_up_call
#include "harness/run/bind_node.c"
#include "harness/fs/fs.h"

static long left = -1; /* allocations that succeed until the first that fails; -1: all */
static int running;    /* acts on the node that are not undone */

static bool no_memory(void)
{
	if (left > 0)
		left--;
	return !left;
}

/* Fails to grow once no allocation is left; Lua demands that shrinking succeeds. */
static void *lua_alloc(void *ctx, void *p, size_t was, size_t size)
{
	(void)ctx;
	if (!size) {
		free(p);
		return NULL;
	}
	return (!p || size > was) && no_memory() ? NULL : realloc(p, size);
}

int made_up_call(struct node *n, const char *op, json_t *args, double timeout_s, json_t **result,
	struct err *e)
{
	(void)n, (void)timeout_s;
	json_decref(args);
	if (made_up_error)
		return err_set(e, made_up_error, "s1: %s: refused", op);
	running += !strcmp(op, "undo") ? -1 : 1;
	if (result)
		*result = json_pack("{s:s}", "handle", "h1");
	return 0;
}

static struct host host = {.ssh = {.name = "s1"}, .allow_restart = true};
static struct member member = {.host = &host, .name = "s1"};

/* A chunk with the node as its argument, on 'L'. */
static lua_State *open_chunk(lua_State *L, struct acts **a, const char *chunk)
{
	*a = bind_open(L);
	assert_int_equal(luaL_loadstring(L, chunk), LUA_OK);
	bind_push_node(L, *a, &member);
	return L;
}

static void no_act_is_lost_whichever_allocation_fails(void **state)
{
	bool failed = true;
	long n;

	(void)state;
	for (n = 1; failed; n++) {
		struct acts *a;
		lua_State *L = open_chunk(lua_newstate(lua_alloc, NULL), &a,
			"local node = ... return node:process { argv = { 'dd' } }");
		struct err e;

		running = 0;
		left = n;
		failed = lua_pcall(L, 1, 1, 0) != LUA_OK;
		left = -1;
		if ((size_t)running != acts_count(a))
			fail_msg("allocation %ld fails: %d acts run, %zu are remembered", n,
				running, acts_count(a));
		assert_true(failed || running == 1);
		assert_int_equal(acts_undo(a, &e), 0);
		assert_int_equal(running, 0);
		lua_close(L);
		bind_close(a);
	}
	/* At least the script's tables and the handle were made to fail. */
	assert_true(n > 3);
}

static void a_refused_act_leaves_no_handle_and_its_class_tells_whose_error_it_is(void **state)
{
	static const struct {
		int rc;
		enum err_class class;
	} cases[] = {{-EINVAL, ERR_SCENARIO}, {-EIO, ERR_CLUSTER}, {-ENOTCONN, ERR_CLUSTER}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct acts *a;
		lua_State *L = open_chunk(
			luax_new(), &a, "local node = ... return node:kill_service()");
		struct err e;

		made_up_error = cases[i].rc;
		assert_int_equal(luax_call(L, 1, 1, &e), cases[i].rc);
		made_up_error = 0;
		assert_int_equal(e.class, cases[i].class);
		if (!strstr(e.text, "service.kill: refused"))
			fail_msg("%s", e.text);
		assert_int_equal(acts_count(a), 0);
		lua_close(L);
		bind_close(a);
	}
}

static void a_mistake_in_lua_is_the_scenarios(void **state)
{
	struct acts *a;
	lua_State *L = open_chunk(luax_new(), &a, "local node = ... return node:processs()");
	json_t *value = NULL;
	struct err e;

	(void)state;
	assert_int_equal(luax_call(L, 1, 1, &e), -EINVAL);
	assert_int_equal(e.class, ERR_SCENARIO);
	assert_non_null(strstr(e.text, "a node has no 'processs'"));
	/* So is a value that cannot be kept: 'verify' returned a function as its evidence, say. */
	lua_pushcfunction(L, node_tostring);
	assert_int_equal(luajson_get(L, -1, &value, &e), -EINVAL);
	assert_int_equal(e.class, ERR_SCENARIO);
	lua_close(L);
	bind_close(a);
}

/* A failed call that the file caught is not what a later mistake is taken for. */
static void a_caught_failure_does_not_hide_a_later_mistake(void **state)
{
	static const struct {
		const char *chunk, *text;
		int rc;
		enum err_class class;
	} cases[] = {
		{"local n = ... pcall(n.kill_service, n) error('a mistake')", "a mistake", -EINVAL,
			ERR_SCENARIO},
		{"local n = ... pcall(n.kill_service, n) return n.nothing.at_all", "no 'nothing'",
			-EINVAL, ERR_SCENARIO},
		/* Raised again, with and without words around it. */
		{"local n = ... local _, why = pcall(n.kill_service, n) error(why, 0)", "refused",
			-EIO, ERR_CLUSTER},
		{"local n = ... local _, why = pcall(n.kill_service, n) error('s1: ' .. why)",
			"refused", -EIO, ERR_CLUSTER},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct acts *a;
		lua_State *L = open_chunk(luax_new(), &a, cases[i].chunk);
		struct err e;

		made_up_error = -EIO;
		assert_int_equal(luax_call(L, 1, 1, &e), cases[i].rc);
		assert_int_equal(e.class, cases[i].class);
		assert_non_null(strstr(e.text, cases[i].text));
		/* Nor is the mistake of the next call. */
		assert_int_equal(
			luaL_loadstring(L, "local n = ... pcall(n.kill_service, n)"), LUA_OK);
		bind_push_node(L, a, &member);
		assert_int_equal(luax_call(L, 1, 0, &e), 0);
		made_up_error = 0;
		assert_int_equal(
			luaL_loadstring(L, "error('s1: service.kill: of the next')"), LUA_OK);
		assert_int_equal(luax_call(L, 0, 0, &e), -EINVAL);
		assert_int_equal(e.class, ERR_SCENARIO);
		lua_close(L);
		bind_close(a);
	}
}

/* Every method of 'type' is 'function CLASS:name' in the manual, and the other way round. */
static void compare_methods(
	lua_State *L, const char *type, const char *key, const char *class, const char *manual)
{
	char wanted[96];
	int there = 0, documented = 0;

	luaL_getmetatable(L, type);
	lua_getfield(L, -1, key);
	for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1)) {
		snprintf(wanted, sizeof(wanted), "\nfunction %s:%s(", class, lua_tostring(L, -2));
		if (!strstr(manual, wanted))
			fail_msg("the manual lacks '%s'", wanted + 1);
		there++;
	}
	snprintf(wanted, sizeof(wanted), "\nfunction %s:", class);
	for (const char *p = strstr(manual, wanted); p; p = strstr(p + 1, wanted))
		documented++;
	assert_int_equal(there, documented);
	assert_true(there > 0);
}

/* Every field of the file system that a context has is an '@field' of the manual's class, and the
 * other way round. */
static void the_manual_has_exactly_the_facts_of_a_file_system(void **state)
{
	struct cluster c = {0};
	struct part part = {.params_ref = LUA_NOREF};
	lua_State *L = luax_new();
	struct acts *a = bind_open(L);
	char *path, *manual, *class, wanted[64];
	int there = 0, documented = 0;
	struct fs *fs;
	struct err e;

	(void)state;
	assert_int_equal(home_path("harness/lua/culprit.meta.lua", &path, &e), 0);
	assert_int_equal(file_read(path, &manual, NULL, &e), 0);
	class = strstr(manual, "---@class culprit.FileSystemFacts\n");
	assert_non_null(class);
	*strstr(class, "\n\n") = '\0';
	assert_int_equal(fs_load("glusterfs", &fs, &e), 0);
	c.file_system = fs_facts(fs);
	json_object_set_new(c.file_system, "layout", json_string("distribute"));
	bind_push_context(L, a, &c, NULL, &part, "run");
	lua_getfield(L, -1, "file_system");
	for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1), there++) {
		snprintf(wanted, sizeof(wanted), "\n---@field %s", lua_tostring(L, -2));
		if (!strstr(class, wanted))
			fail_msg("the manual lacks '%s'", wanted + 1);
	}
	for (const char *p = class; (p = strstr(p, "\n---@field ")); p++)
		documented++;
	assert_int_equal(there, documented);
	json_decref(c.file_system);
	fs_free(fs);
	lua_close(L);
	bind_close(a);
	free(path);
	free(manual);
}

static void the_manual_has_exactly_the_methods_that_there_are(void **state)
{
	lua_State *L = luax_new();
	char *path, *manual;
	struct acts *a;
	struct err e;

	(void)state;
	assert_int_equal(home_path("harness/lua/culprit.meta.lua", &path, &e), 0);
	assert_int_equal(file_read(path, &manual, NULL, &e), 0);
	a = bind_open(L);
	compare_methods(L, "culprit.Node", "methods", "Node", manual);
	compare_methods(L, "culprit.Handle", "__index", "Handle", manual);
	bind_close(a);
	free(manual);
	free(path);
	lua_close(L);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_act_is_lost_whichever_allocation_fails),
		cmocka_unit_test(
			a_refused_act_leaves_no_handle_and_its_class_tells_whose_error_it_is),
		cmocka_unit_test(a_mistake_in_lua_is_the_scenarios),
		cmocka_unit_test(a_caught_failure_does_not_hide_a_later_mistake),
		cmocka_unit_test(the_manual_has_exactly_the_facts_of_a_file_system),
		cmocka_unit_test(the_manual_has_exactly_the_methods_that_there_are),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
