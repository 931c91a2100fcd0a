/* File-system adapters: their services and errors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants those four first */
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/fs/fs.h"

static void an_unknown_file_system_is_refused(void **state)
{
	struct fs *fs;
	struct err e;

	(void)state;
	assert_int_equal(fs_load("nosuchfs", &fs, &e), -ENOENT);
	assert_non_null(strstr(e.text, "nosuchfs"));
}

static void the_adapter_defines_the_service_address(void **state)
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

static void the_adapter_defines_errors_of_a_lost_server(void **state)
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

/* Loads an adapter with these data fields. */
static int load_with(const char *fields, struct fs **fs, struct err *e)
{
	char path[] = "/tmp/culprit-fs-test-XXXXXX.lua", *text;
	int fd = mkstemps(path, 4), rc;

	assert_true(fd >= 0);
	assert_true(asprintf(&text,
			    "local no = function() return {} end\n"
			    "return { summary = '', server_pids = no, client_pids = no, "
			    "lost_errnos = {},\n%s }",
			    fields) > 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	rc = fs_load(path, fs, e);
	unlink(path);
	free(text);
	return rc;
}

static void missing_fields_of_an_adapter_have_defaults(void **state)
{
	json_t *facts, *wanted;
	struct fs *fs;
	struct err e;

	(void)state;
	assert_int_equal(load_with("cannot = {}, missing = {}", &fs, &e), 0);
	facts = fs_facts(fs);
	assert_non_null(strstr(json_string_value(json_object_get(facts, "type")), "culprit-fs"));
	json_object_del(facts, "type");
	wanted = json_pack("{s:s, s:{}, s:{}, s:[]}", "storage", "folder", "empty_storage",
		"cannot", "missing");
	assert_true(json_equal(facts, wanted));
	json_decref(wanted);
	json_decref(facts);
	fs_free(fs);
	assert_int_equal(
		load_with("storage = 'device', empty_storage = 'why',\n"
			  "cannot = { kill = 'x', ['my.lua'] = 'y' }, missing = { 'direct I/O' }",
			&fs, &e),
		0);
	facts = fs_facts(fs);
	json_object_del(facts, "type");
	wanted = json_pack("{s:s, s:s, s:{s:s, s:s}, s:[s]}", "storage", "device", "empty_storage",
		"why", "cannot", "kill", "x", "my.lua", "y", "missing", "direct I/O");
	assert_true(json_equal(facts, wanted));
	json_decref(wanted);
	json_decref(facts);
	fs_free(fs);
}

static void invalid_fields_of_an_adapter_are_refused_with_their_line(void **state)
{
	static const char *const wrong[][2] = {
		{"storage = 'devise'", "'devise'; did you mean 'device'?"},
		{"empty_storage = 7", "must be a table, or a string"},
		{"empty_storage = { keeps = {} }", "did you mean 'keep'?"},
		{"empty_storage = { keep = 'x' }", "'keep'"},
		{"empty_storage = { keep = { 7 } }", "'keep' must be a list of strings"},
		{"empty_storage = { prune = {} }", "'prune'"},
		{"empty_storage = { inodes_of_file = 0 }", "'inodes_of_file'"},
		{"cannot = { ['err-spce'] = 'x' }", "did you mean 'err-space'?"},
		{"cannot = { none = 'x' }", "there is no fault 'none'"},
		{"cannot = { kill = true }", "a reason, a string, for 'kill'"},
		{"cannot = { 'kill' }", "a reason for each fault"},
		{"missing = { 'hardlink' }", "did you mean 'hard link'?"},
		{"missing = { a = 'hard link' }", "a list of strings"},
		{"missing = 'truncate'", "'missing'"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct fs *fs;
		struct err e;

		if (load_with(wrong[i][0], &fs, &e) != -EINVAL || !strstr(e.text, wrong[i][1]) ||
			!strstr(e.text, ".lua:3: "))
			fail_msg("%s: %s", wrong[i][0], e.text);
	}
}

/* Completes the inventory entry of a host on which 'found' was found; returns the error, if any. */
static int complete(enum role role, const char *storage, const char *volume, const char *found,
	struct host *h, struct err *e)
{
	json_t *list = json_loads(found, 0, NULL);
	struct fs *fs;
	int rc;

	assert_int_equal(fs_load("glusterfs", &fs, e), 0);
	*h = (struct host){
		.ssh = {.name = "s1"}, .role = role, .storage = storage ? strdup(storage) : NULL};
	rc = fs_complete(fs, h, volume, list, e);
	json_decref(list);
	fs_free(fs);
	return rc;
}

/* An adapter with this 'service' function. */
static struct fs *adapter(const char *service)
{
	char path[] = "/tmp/fs-test-XXXXXX.lua";
	int fd = mkstemps(path, 4);
	struct fs *fs = NULL;
	struct err e = {""};

	assert_true(fd >= 0);
	dprintf(fd,
		"return { summary = 's', server_pids = function() return {} end,\n"
		"client_pids = function() return {} end, lost_errnos = {}%s%s }\n",
		*service ? ", service = " : "", service);
	close(fd);
	if (fs_load(path, &fs, &e))
		fail_msg("%s", e.text);
	unlink(path);
	return fs;
}

/* A server that forks for each client counts as one process in the fingerprint, whoever is
 * connected. */
static void descendants_are_left_out(void **state)
{
	char path[] = "/tmp/fs-test-XXXXXX.lua";
	const struct host h = {.ssh = {.name = "s1"}, .role = ROLE_SERVER};
	int fd = mkstemps(path, 4);
	json_t *processes, *pids, *wanted = json_pack("[i, i]", 40, 10);
	struct fs *fs;
	struct err e = {""};

	(void)state;
	assert_true(fd >= 0);
	/* 20 is another program's, between 10 and its descendant 30. */
	dprintf(fd,
		"return { summary = 's', lost_errnos = {},\n"
		"client_pids = function() return {} end,\n"
		"server_pids = function() return { 30, 40, 10, 11 } end }\n");
	close(fd);
	if (fs_load(path, &fs, &e))
		fail_msg("%s", e.text);
	unlink(path);
	processes = json_pack("{s:[{s:i, s:i}, {s:i, s:i}, {s:i, s:i}, {s:i, s:i}, {s:i, s:i}]}",
		"processes", "pid", 10, "ppid", 1, "pid", 11, "ppid", 10, "pid", 20, "ppid", 10,
		"pid", 30, "ppid", 20, "pid", 40, "ppid", 1);
	assert_int_equal(fs_pids(fs, &h, processes, &pids, &e), 0);
	assert_true(json_equal(pids, wanted));
	json_decref(processes);
	json_decref(wanted);
	json_decref(pids);
	fs_free(fs);
}

static void a_port_is_needed_if_the_service_depends_on_it(void **state)
{
	static const struct {
		const char *service;
		bool needed;
		int with, without; /* ports: the inventory gives 7, or none */
	} cases[] = {
		{"", true, 7, 0},
		{"function(h) return h.address, h.service_port end", true, 7, 0},
		{"function(h) return h.address, 3334 end", false, 3334, 3334},
		{"function(h) return h.address end", false, 0, 0},
		{"function(h) return h.address, 0 end", false, 0, 0},
		{"function(h) error('no') end", true, -EINVAL, -EINVAL},
		{"function(h) return nil end", true, -EINVAL, -EINVAL},
		{"function(h) return h.address, 65536 end", true, -EINVAL, -EINVAL},
	};
	char storage[] = "/dev/sdz", where[] = "192.0.2.7";

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct host h = {.ssh = {.name = "s1"},
			.address = where,
			.role = ROLE_SERVER,
			.storage = storage};
		struct fs *fs = adapter(cases[i].service);

		assert_int_equal(fs_complete_already(fs, &h), !cases[i].needed);
		for (int given = 0; given < 2; given++) {
			int want = given ? cases[i].with : cases[i].without, rc;
			char *address = NULL;
			uint16_t port = 1;
			struct err e;

			h.service_port = given ? 7 : 0;
			rc = fs_service(fs, &h, &address, &port, &e);
			assert_int_equal(rc, want < 0 ? want : 0);
			if (!rc)
				assert_int_equal(port, want);
			free(address);
		}
		fs_free(fs);
	}
}

static void a_server_without_a_port_is_completed_by_its_storage(void **state)
{
	struct fs *fs = adapter("function(h) return h.address end");
	struct host h = {.ssh = {.name = "s1"}, .role = ROLE_SERVER};
	json_t *found = json_loads("[{\"storage\":\"/dev/sdz\"}]", 0, NULL);
	struct err e;

	(void)state;
	assert_int_equal(fs_complete(fs, &h, NULL, found, &e), 0);
	assert_string_equal(h.storage, "/dev/sdz");
	assert_int_equal(h.service_port, 0);
	assert_true(fs_complete_already(fs, &h));
	free(h.storage);
	json_decref(found);
	fs_free(fs);
}

static const char
	two[] = "[{\"storage\":\"/a\",\"service_port\":49152,\"volume\":\"gv0\",\"pid\":7},"
		"{\"storage\":\"/b\",\"service_port\":49153,\"volume\":\"gv1\",\"pid\":8}]";

static void a_unique_match_completes_a_host(void **state)
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

static void ambiguous_and_missing_values_are_refused_with_candidates(void **state)
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
	assert_string_equal(
		e.text, "s1: cannot find where /a (no process) listens; set 'service_port'");
	assert_null(h.storage);
	assert_int_equal(
		complete(ROLE_SERVER, NULL, NULL, "[{\"service_port\":7,\"pid\":9}]", &h, &e),
		-ENOENT);
	assert_non_null(strstr(e.text, "pid 9"));
	assert_non_null(strstr(e.text, "keeps its data; set 'storage'"));
	for (int port = 0; port <= 65536; port += 65536) {
		char found[80];

		snprintf(found, sizeof(found), "[{\"storage\":\"/a\",\"service_port\":%d}]", port);
		assert_int_equal(complete(ROLE_SERVER, NULL, NULL, found, &h, &e), -ENOENT);
		assert_non_null(strstr(e.text, "set 'service_port'"));
	}
	assert_int_equal(complete(ROLE_SERVER, NULL, NULL,
				 "[{\"storage\":\"/a\",\"service_port\":65535}]", &h, &e),
		0);
	assert_int_equal(h.service_port, 65535);
	free(h.storage);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_unknown_file_system_is_refused),
		cmocka_unit_test(the_adapter_defines_the_service_address),
		cmocka_unit_test(the_adapter_defines_errors_of_a_lost_server),
		cmocka_unit_test(missing_fields_of_an_adapter_have_defaults),
		cmocka_unit_test(invalid_fields_of_an_adapter_are_refused_with_their_line),
		cmocka_unit_test(a_unique_match_completes_a_host),
		cmocka_unit_test(descendants_are_left_out),
		cmocka_unit_test(a_port_is_needed_if_the_service_depends_on_it),
		cmocka_unit_test(a_server_without_a_port_is_completed_by_its_storage),
		cmocka_unit_test(ambiguous_and_missing_values_are_refused_with_candidates),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
