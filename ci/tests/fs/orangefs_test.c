/* OrangeFS's adapter on command lines, config files and mount tables of hosts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants those four first */
#include <cmocka.h>
#include <string.h>

#include "harness/fs/fs.h"
#include "harness/lua/luajson.h"
#include "harness/lua/luax.h"

/* A host, as recorded: the outputs of commands ("cat /etc/x.conf"), ended by NULL. */
struct said {
	const char *command, *output;
};

/* run(argv) in place of the host's. */
static int recorded(lua_State *L)
{
	const struct said *said = lua_touserdata(L, lua_upvalueindex(1));
	char command[300] = "";

	for (lua_Integer i = 1; lua_geti(L, 1, i) == LUA_TSTRING; i++)
		snprintf(command + strlen(command), sizeof(command) - strlen(command), "%s%s",
			i > 1 ? " " : "", lua_tostring(L, -1));
	for (; said->command; said++)
		if (!strcmp(said->command, command)) {
			lua_pushstring(L, said->output);
			return 1;
		}
	lua_pushnil(L);
	return 1;
}

/* The result of the adapter's function 'name' for a host. 'host' and 'processes' are JSON with
 * single quotes. */
static json_t *ask(
	const char *name, const char *host, const char *processes, const struct said *said)
{
	const char *texts[] = {host, processes};
	json_t *answer = NULL;
	struct fs *fs = NULL;
	struct err e;
	lua_State *L;

	assert_int_equal(fs_load("orangefs", &fs, &e), 0);
	L = fs_state(fs);
	lua_getfield(L, 1, name);
	for (size_t i = 0; i < 2; i++) {
		char *text = strdup(texts[i]);
		json_t *value;

		for (char *p = text; (p = strchr(p, '\'')); p++)
			*p = '"';
		value = json_loads(text, 0, NULL);
		assert_non_null(value);
		luajson_push(L, value);
		json_decref(value);
		free(text);
	}
	lua_pushlightuserdata(L, (void *)said);
	lua_pushcclosure(L, recorded, 1);
	if (luax_call(L, 3, 1, &e) || luajson_get(L, -1, &answer, &e))
		fail_msg("%s: %s", name, e.text);
	fs_free(fs);
	return answer;
}

/* Is the value of 'key' in the i-th answer 'wanted'? NULL: is it missing? */
static void is(const json_t *found, size_t i, const char *key, const char *wanted)
{
	const json_t *got = json_object_get(json_array_get(found, i), key);

	if (!wanted)
		assert_null(got);
	else if (json_is_integer(got))
		assert_int_equal(json_integer_value(got), atoi(wanted));
	else
		assert_string_equal(json_string_value(got) ?: "nothing", wanted);
}

static const char server[] = "{'role': 'server', 'name': 'io1'}";

/* As pvfs2-genconfig writes it, with what people add to it. */
static const char config[] =
	"# two collections, one of them elsewhere\n"
	"<Defaults>\n"
	"\tUnexpectedRequests 50\n"
	"\tdatastoragespace /nowhere\n"
	"\tDataStorageSpace \"/data/all servers\" # quoted\n"
	"\tMetadataStorageSpace /meta\n"
	"\tLogFile /var/log/orangefs-server.log\n"
	"\t<Security>\n\t\tTurnOffTimeouts yes\n\t</Security>\n"
	"</Defaults>\n"
	"<Aliases>\r\n"
	"\tAlias io1 tcp://io1.example:3334,ib://io1-ib:3335\r\n"
	"\tAlias io10 tcp://io10.example:3344\r\n"
	"\tAlias io2 \\\n\t\tib://io2-ib:3335,tcp://192.0.2.2:3335\n"
	"</Aliases>\n"
	"<ServerOptions>\n\tDataStorageSpace /data/of-nobody\n\tServer io1\n</ServerOptions>\n"
	"<ServerOptions>\n\tServer io2\n\tDataStorageSpace /data/io2\n</ServerOptions>\n"
	"<FileSystem>\n\tName scratch\n\tID 1\n"
	"\t<MetaHandleRanges>\n\t\tRange io1 3-100\n\t\tRange io2 101-200\n\t</MetaHandleRanges>\n"
	"\t<DataHandleRanges>\n\t\tRange io1 201-300\n\t\tRange io2 301-400\n"
	"\t</DataHandleRanges>\n"
	"\t<Distribution>\n\t\tName simple_stripe\n\t</Distribution>\n"
	"</FileSystem>\n"
	"<filesystem>\n\tname home\n\tID 2\n"
	"\t<DataHandleRanges>\n\t\tRange io2 3-100\n\t</DataHandleRanges>\n"
	"</filesystem>\n";

static void a_server_is_found_by_its_command_line_and_config(void **state)
{
	const struct said said[] = {{"cat /etc/orangefs/fs.conf", config},
		{"cat /proc/8/cwd/conf/fs.conf", config}, {"hostname", "io2\n"}, {NULL}};
	json_t *found;

	(void)state;
	found = ask("discover", server,
		"[{'pid': 1, 'cmdline': ['/sbin/init']}, {'pid': 6, 'cmdline': []},"
		" {'pid': 7, 'cmdline': ['/opt/orangefs/sbin/pvfs2-server', '-p', "
		"'/run/server.pid', '/etc/orangefs/fs.conf', '-a', 'io1']}]",
		said);
	assert_int_equal(json_array_size(found), 1);
	is(found, 0, "pid", "7");
	is(found, 0, "storage", "/data/all servers");
	is(found, 0, "service_port", "3334");
	is(found, 0, "volume", "scratch");
	is(found, 0, "how", "config file /etc/orangefs/fs.conf, alias io1");
	json_decref(found);

	/* Combined short options, a path in a separate folder; one entry per collection. */
	found = ask("discover", server,
		"[{'pid': 8, 'cmdline': ['pvfs2-server', '-dp', '/run/a', '-aio2', "
		"'conf/fs.conf']}]",
		said);
	assert_int_equal(json_array_size(found), 2);
	is(found, 0, "storage", "/data/io2");
	is(found, 0, "service_port", "3335");
	is(found, 0, "volume", "scratch");
	is(found, 1, "storage", "/data/io2");
	is(found, 1, "volume", "home");
	json_decref(found);

	/* Long options; without an alias it is the host's name. */
	found = ask("discover", server,
		"[{'pid': 9, 'cmdline': ['pvfs2-server', '--pidfile=/run/a', '--foreground', "
		"'/etc/orangefs/fs.conf']},"
		" {'pid': 10, 'cmdline': ['pvfs2-server', '--alias', 'io10', "
		"'/etc/orangefs/fs.conf']}]",
		said);
	assert_int_equal(json_array_size(found), 3);
	is(found, 0, "how", "config file /etc/orangefs/fs.conf, alias io2");
	is(found, 2, "service_port", "3344");
	is(found, 2, "volume", NULL); /* no collection uses it */
	json_decref(found);
}

static void unreadable_config_is_reported(void **state)
{
	static const char *const damaged[] = {"", "<", "</", "</Defaults>\n</x>\n", "<FileSystem",
		"Name x\n", "<FileSystem>\nName\nRange\n", "\\", "\"",
		"<Defaults>\nDataStorageSpace\n", "Range io1 1-2\n<Aliases>\nAlias io1\n",
		"<FileSystem>\n<Aliases>\nAlias io1 x\n", NULL};
	json_t *found;

	(void)state;
	found = ask("discover", server,
		"[{'pid': 7, 'cmdline': ['pvfs2-server', '-a', 'io1', '/gone.conf']},"
		" {'pid': 8, 'cmdline': ['pvfs2-server']}, {'pid': 9, 'cmdline': ['pvfs2-server', "
		"'-a']}]",
		(struct said[]){{NULL}});
	assert_int_equal(json_array_size(found), 3);
	is(found, 0, "storage", NULL);
	is(found, 0, "how", "config file /gone.conf, which cannot be read");
	is(found, 1, "how", "command line without a config file");
	json_decref(found);
	for (size_t i = 0; damaged[i]; i++) {
		const struct said said[] = {{"cat /x.conf", damaged[i]}, {NULL}};

		found = ask("discover", server,
			"[{'pid': 7, 'cmdline': ['pvfs2-server', '-a', 'io1', '/x.conf']}]", said);
		assert_int_equal(json_array_size(found), 1);
		is(found, 0, "storage", NULL);
		is(found, 0, "service_port", NULL);
		json_decref(found);
	}
}

static void mounts_of_all_clients_are_found(void **state)
{
	static const char client[] = "{'role': 'client', 'name': 'c1'}";
	const struct said said[] = {
		{"cat /proc/mounts",
			"/dev/sda1 / ext4 rw 0 0\n"
			"pvfs2fuse\\043tcp://io1:3334/scratch /mnt/my\\040fs fuse rw,user_id=0 0 "
			"0\n"
			"sshfs#host:/ /mnt/other fuse rw 0 0\n"
			"tcp://io1:3334/scratch /mnt/k orangefs rw 0 0\n"
			"tcp://io2:3334/home /mnt/n fuse.pvfs2fuse rw 0 0\n"
			"broken line\n"},
		{NULL}};
	json_t *found = ask("discover", client,
		"[{'pid': 5, 'cmdline': ['/opt/orangefs/bin/pvfs2fuse', '/mnt/my fs/', '-o', "
		"'fs_spec=tcp://io1:3334/scratch']},"
		" {'pid': 6, 'cmdline': ['pvfs2fuse', '-f', '/mnt/n', '-o', 'x']},"
		" {'pid': 7, 'cmdline': ['/opt/orangefs/sbin/pvfs2-client-core', '-a', '5']}]",
		said);

	(void)state;
	assert_int_equal(json_array_size(found), 3);
	is(found, 0, "mount", "/mnt/my fs");
	is(found, 0, "source", "tcp://io1:3334/scratch");
	is(found, 0, "volume", "scratch");
	is(found, 0, "pid", "5");
	is(found, 1, "mount", "/mnt/k");
	is(found, 1, "pid", "7");
	is(found, 2, "volume", "home");
	is(found, 2, "pid", "6");
	json_decref(found);
}

static void processes_are_distinguished(void **state)
{
	static const char processes[] =
		"[{'pid': 3, 'cmdline': ['/opt/orangefs/sbin/pvfs2-server', '-a', 'io1', '/a']},"
		" {'pid': 4, 'cmdline': ['pvfs2-server', '/a', '-a', 'io2']},"
		" {'pid': 5, 'cmdline': ['grep', 'pvfs2-server']},"
		" {'pid': 6, 'cmdline': ['pvfs2fuse', '/mnt/fs/', '-o', 'x']},"
		" {'pid': 7, 'cmdline': ['pvfs2fuse', '/mnt/fs2', '-o', 'x']},"
		" {'pid': 8, 'cmdline': ['pvfs2-client-core']}, {'pid': 9, 'cmdline': []}]";
	const struct {
		const char *function, *host, *wanted;
	} cases[] = {
		{"server_pids", "{'name': 'io1'}", "[3]"},
		{"server_pids", "{'name': 'other'}", "[3, 4]"},
		{"client_pids", "{'name': 'c', 'mount': '/mnt/fs'}", "[6]"},
		{"client_pids", "{'name': 'c', 'mount': '/mnt/fs2/'}", "[7]"},
		{"client_pids", "{'name': 'c', 'mount': '/mnt/k'}", "[8]"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		json_t *got = ask(cases[i].function, cases[i].host, processes, NULL);
		json_t *wanted = json_loads(cases[i].wanted, 0, NULL);

		assert_true(json_equal(got, wanted));
		json_decref(wanted);
		json_decref(got);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_server_is_found_by_its_command_line_and_config),
		cmocka_unit_test(unreadable_config_is_reported),
		cmocka_unit_test(mounts_of_all_clients_are_found),
		cmocka_unit_test(processes_are_distinguished),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
