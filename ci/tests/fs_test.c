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
	struct host host = {.ssh = {.name = "s1"}, .address = "192.0.2.7", .role = ROLE_SERVER, .service_port = 24007};
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_unknown_file_system_is_refused),
		cmocka_unit_test(the_adapter_says_where_a_server_serves),
		cmocka_unit_test(the_adapter_says_which_errors_mean_a_lost_server),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
