/* File-system adapters: what they say of services and of errors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants those four first */
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "harness/fs/fs.h"

static void an_unknown_file_system_is_refused(void **state)
{
	struct fs *fs;
	struct err e;

	(void)state;
	assert_int_equal(fs_load("nosuchfs", &fs, &e), -ENOENT);
	assert_non_null(strstr(e.text, "nosuchfs"));
}

static void the_adapter_says_where_a_server_serves(void **state)
{
	struct host host = {.ssh = {.name = "s1"},
		.address = "192.0.2.7",
		.role = ROLE_SERVER,
		.service_port = 24007};
	char *address = NULL;
	uint16_t port = 0;
	struct fs *fs;
	struct err e;

	(void)state;
	assert_int_equal(fs_load("glusterfs", &fs, &e), 0);
	assert_int_equal(fs_service(fs, &host, &address, &port, &e), 0);
	assert_string_equal(address, "192.0.2.7");
	assert_int_equal(port, 24007);
	free(address);
	fs_free(fs);
}

static void the_adapter_says_which_errors_mean_a_lost_server(void **state)
{
	json_t *errors, *name;
	bool found = false;
	struct fs *fs;
	struct err e;
	size_t i;

	(void)state;
	assert_int_equal(fs_load("glusterfs", &fs, &e), 0);
	assert_int_equal(fs_errors(fs, &errors, &e), 0);
	json_array_foreach(json_object_get(errors, "lost_errnos"), i, name)
		found |= !strcmp(json_string_value(name), "ENOTCONN");
	assert_true(found);
	assert_true(json_is_object(json_object_get(errors, "errno_map")));
	json_decref(errors);
	fs_free(fs);
}

/* What the inventory leaves out, of a host on which 'found' was found; what it says, if
 * anything. */
static int complete(enum role role, const char *storage, const char *volume, const char *found,
	struct host *h, struct err *e)
{
	json_t *list = json_loads(found, 0, NULL);
	int rc;

	*h = (struct host){
		.ssh = {.name = "s1"}, .role = role, .storage = storage ? strdup(storage) : NULL};
	rc = fs_complete(h, volume, list, e);
	json_decref(list);
	return rc;
}

static const char
	two[] = "[{\"storage\":\"/a\",\"service_port\":49152,\"volume\":\"gv0\",\"pid\":7},"
		"{\"storage\":\"/b\",\"service_port\":49153,\"volume\":\"gv1\",\"pid\":8}]";

static void what_is_found_alone_completes_a_host(void **state)
{
	struct host h;
	struct err e;

	(void)state;
	assert_int_equal(complete(ROLE_SERVER, NULL, "gv1", two, &h, &e), 0);
	assert_string_equal(h.storage, "/b");
	assert_int_equal(h.service_port, 49153);
	free(h.storage);
	assert_int_equal(complete(ROLE_SERVER, "/a", NULL, two, &h, &e), 0);
	assert_string_equal(h.storage, "/a");
	assert_int_equal(h.service_port, 49152);
	free(h.storage);
	assert_int_equal(complete(ROLE_CLIENT, NULL, NULL, "[{\"mount\":\"/mnt\"}]", &h, &e), 0);
	assert_string_equal(h.mount, "/mnt");
	free(h.mount);
	assert_int_equal(complete(ROLE_OUTSIDER, NULL, NULL, "[]", &h, &e), 0);
}

static void what_is_ambiguous_or_missing_is_refused_with_what_there_is(void **state)
{
	struct host h;
	struct err e;

	(void)state;
	assert_int_equal(complete(ROLE_SERVER, NULL, NULL, two, &h, &e), -ENOTUNIQ);
	assert_non_null(strstr(e.text, "/a (volume gv0, port 49152, pid 7); /b (volume gv1"));
	assert_null(h.storage);
	assert_int_equal(complete(ROLE_SERVER, NULL, "gv2", two, &h, &e), -ENOENT);
	assert_non_null(strstr(e.text, "gv2"));
	assert_int_equal(complete(ROLE_SERVER, "/c", NULL, two, &h, &e), -ENOENT);
	free(h.storage);
	assert_int_equal(complete(ROLE_CLIENT, NULL, NULL, "[]", &h, &e), -ENOENT);
	assert_non_null(strstr(e.text, "'mount'"));
	assert_int_equal(
		complete(ROLE_SERVER, NULL, NULL, "[{\"storage\":\"/a\"}]", &h, &e), -ENOENT);
	assert_non_null(strstr(e.text, "service_port"));
	assert_null(h.storage);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_unknown_file_system_is_refused),
		cmocka_unit_test(the_adapter_says_where_a_server_serves),
		cmocka_unit_test(the_adapter_says_which_errors_mean_a_lost_server),
		cmocka_unit_test(what_is_found_alone_completes_a_host),
		cmocka_unit_test(what_is_ambiguous_or_missing_is_refused_with_what_there_is),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
