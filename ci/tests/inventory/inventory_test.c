/* Inventories: refused input with its error messages; values from the SSH configuration; and
 * random input for both. */
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

#include "harness/base/file.h"
#include "harness/nodes/inventory.h"
#include "harness/nodes/ssh_config.h"

static char folder[] = "/tmp/culprit-inventory-XXXXXX", path[64], fake_ssh[64], fake_out[64];

/* Not file_write_atomic: nothing of this is worth a sync. */
static void put(const char *name, const char *text, size_t size)
{
	FILE *f = fopen(name, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, size, f), size);
	assert_int_equal(fclose(f), 0);
}

static int load(const char *text, size_t size, struct inventory **inv, struct err *e)
{
	put(path, text, size);
	*inv = NULL;
	e->text[0] = '\0';
	return inventory_load(path, inv, e);
}

/* Nodes, or further keys of the file, in an otherwise valid inventory; the nodes are on line 3. */
static void refused(const char *keys, const char *nodes, const char *words)
{
	struct inventory *inv;
	struct err e;
	char *text;

	assert_true(
		asprintf(&text,
			"return { file_system = { type = \"glusterfs\" }, ssh_config = \"none\", "
			"%s\n nodes = {\n%s\n} }",
			keys, nodes) > 0);
	assert_int_equal(load(text, strlen(text), &inv, &e), -EINVAL);
	if (!strstr(e.text, words) || strncmp(e.text, path, strlen(path)))
		fail_msg("'%s' should have '%s'", e.text, words);
	free(text);
}

#define S1 "{ name = \"s1\", role = \"server\" },"

static void mistakes_are_refused_with_line_and_hint(void **state)
{
	(void)state;
	refused("", "{ name = \"s1\", rôle = \"server\" }", "lua");
	refused("", "{ name = \"s1\", rol = \"server\" }",
		":3: node 's1': unknown key 'rol'; did you mean 'role'?");
	refused("", "{ name = \"s1\", role = \"sever\" }",
		"unknown role 'sever'; did you mean 'server'?");
	refused("", "{ role = \"server\" }", "name");
	refused("", S1 S1, "two nodes are named 's1'");
	refused("", "{ name = \"a b\", role = \"server\" }", "node name 'a b' may hold letters");
	refused("", "{ name = \"s1\", role = \"server\", ssh_port = 70000 }", "ssh_port");
	refused("", "{ name = \"s1\", role = \"server\", storage = \"x\" }", "absolute");
	refused("", "{ name = \"s1\", role = \"server\", mount = \"/mnt\" }",
		"'mount' is for clients");
	refused("", "{ name = \"c1\", role = \"client\", spare = \"/dev/x\" }",
		"'spare' is for servers");
	refused("", "{ name = \"s1\", role = \"server\", become = \"su\" }",
		"'become' can be \"sudo\"");
	refused("", "{ name = \"s1\", role = \"server\", jump = \"gate\" }",
		"needs the SSH configuration");
	refused("",
		"{ name = \"s1\", role = \"server\", address = \"10.0.0.1\", service_port = 5 },"
		"{ name = \"s2\", role = \"server\", address = \"10.0.0.1\", service_port = 5 }",
		"the same address and service_port");
	refused("", "", "at least one node");
	refused("alow_restart = true,", S1,
		":1: inventory: unknown key 'alow_restart'; did you mean 'allow_restart'?");
	refused("allow_restart = 1,", S1, "allow_restart");
}

static void omitted_keys_have_defaults(void **state)
{
	static const char text[] =
		"return { file_system = { type = \"glusterfs\" }, ssh_config = \"none\", "
		"allow_restart = true,\n"
		"nodes = { { name = \"s1\", role = \"server\" },\n"
		"{ name = \"s2\", role = \"server\", ssh = \"other\", address = \"10.0.0.2\", "
		"allow_restart = false } } }";
	struct inventory *inv;
	struct err e;

	(void)state;
	assert_int_equal(load(text, strlen(text), &inv, &e), 0);
	assert_string_equal(inv->hosts[0].address, "s1");
	assert_string_equal(inv->hosts[0].ssh.address, "s1");
	assert_true(inv->hosts[0].allow_restart);
	assert_null(inv->hosts[0].storage);
	assert_string_equal(inv->hosts[1].address, "10.0.0.2");
	assert_string_equal(inv->hosts[1].ssh.address, "other");
	assert_false(inv->hosts[1].allow_restart);
	inventory_free(inv);
}

/* A user's file system is found relative to the inventory, from any working directory. */
static void a_file_system_is_a_name_or_a_path(void **state)
{
	static const char
		form[] = "return { ssh_config = \"none\", nodes = { { name = \"s1\", role = "
			 "\"server\" } },\n file_system = { type = \"%s\" } }";
	static const struct {
		const char *type, *words;
	} wrong[] = {{"glusterf", "did you mean 'glusterfs'?"},
		{"./none-there.lua",
			"cannot read the file system './none-there.lua': No such file"}};
	char own[96], text[256], want[96];
	struct inventory *inv;
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		snprintf(text, sizeof(text), form, wrong[i].type);
		assert_int_equal(load(text, strlen(text), &inv, &e), -EINVAL);
		snprintf(want, sizeof(want), "%s:2: ", path);
		if (strncmp(e.text, want, strlen(want)) != 0 || !strstr(e.text, wrong[i].words))
			fail_msg("'%s' should have '%s'", e.text, wrong[i].words);
	}
	snprintf(own, sizeof(own), "%s/own.lua", folder);
	put(own, "", 0);
	snprintf(text, sizeof(text), form, "./own.lua");
	assert_int_equal(load(text, strlen(text), &inv, &e), 0);
	assert_string_equal(inv->fs_type, own);
	inventory_free(inv);
	unlink(own);
}

/* Small, quick, and the same everywhere. */
static uint64_t dice_state = 1;
static size_t dice(size_t n)
{
	dice_state ^= dice_state << 13;
	dice_state ^= dice_state >> 7;
	dice_state ^= dice_state << 17;
	return (size_t)(dice_state % n);
}

/* Some bytes changed, cut out, doubled, or put elsewhere. '*size' never grows beyond 'room'. */
static void mutate(char *text, size_t *size, size_t room)
{
	for (size_t k = dice(4) + 1; k--;) {
		size_t at = dice(*size), len = dice(*size - at < 24 ? *size - at + 1 : 24), to;

		switch (dice(4)) {
		case 0: text[at] = (char)dice(256); break;
		case 1:
			if (*size - len < 8)
				break;
			memmove(text + at, text + at + len, *size - at - len);
			*size -= len;
			break;
		case 2:
			if (*size + len > room)
				break;
			memmove(text + at + len, text + at, *size - at);
			*size += len;
			break;
		default: to = dice(*size - len + 1); memmove(text + to, text + at, len);
		}
	}
}

static void any_inventory_loads_or_is_refused(void **state)
{
	static const char good[] =
		"return {\n file_system = { type = \"glusterfs\", volume = \"gv0\", layout = "
		"\"distribute\" },\n"
		" ssh_config = \"none\", allow_restart = true,\n nodes = {\n"
		"  { name = \"s1\", role = \"server\", address = \"10.0.0.1\", ssh_port = 2200, "
		"user = \"ann\", become = \"sudo\",\n"
		"    identity = \"id\", host_key = \"ssh-ed25519 AAAA\", storage = \"/b\", "
		"service_port = 49152, spare = \"/dev/x\" },\n"
		"  { name = \"c1\", role = \"client\", ssh = \"there\", jump = \"none\", mount = "
		"\"/mnt\" },\n"
		"  { name = \"o1\", role = \"outsider\" },\n },\n}\n";
	size_t loaded = 0, rounds = 4000;
	char text[2048];

	(void)state;
	for (size_t i = 0; i < rounds; i++) {
		struct inventory *inv;
		size_t size = strlen(good);
		struct err e;
		int rc;

		memcpy(text, good, size);
		mutate(text, &size, sizeof(text));
		/* Its own configuration file: never this machine's. */
		if (!memmem(text, size, "ssh_config = \"none\"", 19))
			continue;
		rc = load(text, size, &inv, &e);
		if (rc && (rc != -EINVAL || !*e.text || strncmp(e.text, path, strlen(path))))
			fail_msg("round %zu: %d '%s'", i, rc, e.text);
		loaded += !rc;
		inventory_free(inv);
	}
	/* Neither route is available. */
	assert_in_range(loaded, 100, rounds - 100);
}

static void any_output_of_ssh_is_accepted_or_refused(void **state)
{
	static const char good[] =
		"host s1\nuser ann\nhostname 10.0.0.1\nport 2200\nidentitiesonly "
		"yes\nidentityfile ~/.ssh/%h-%r.%%\n"
		"identityfile culprit.unset\nidentityagent ${SSH_AUTH}\nhostkeyalias s1-key\n"
		"userknownhostsfile /root/.ssh/known_hosts ~/k2 none\nglobalknownhostsfile "
		"/etc/ssh/ssh_known_hosts\n"
		"proxyjump ann@gate:22,[::1]:2\nproxycommand none\n";
	size_t taken = 0, rounds = 300;
	struct bag *bag = bag_new();
	struct ssh_config *c;
	char text[2048];
	struct err e;

	(void)state;
	setenv("PATH", folder, 1);
	assert_int_equal(ssh_config_open(NULL, &c, &e), 0);
	for (size_t i = 0; i < rounds; i++) {
		struct ssh_settings s;
		size_t size = strlen(good);
		int rc;

		memcpy(text, good, size);
		if (i)
			mutate(text, &size, sizeof(text));
		put(fake_out, text, size);
		rc = ssh_config_lookup(c, "s1", NULL, 0, bag, &s, &e);
		if (rc && (rc != -EINVAL || !*e.text))
			fail_msg("round %zu: %d '%s'", i, rc, e.text);
		if (!rc) {
			assert_non_null(s.host_name);
			assert_in_range(s.port, 1, 65535);
		}
		/* Unknown by all: ${SSH_AUTH} is not set. */
		if (!i)
			assert_int_equal(rc, -EINVAL);
		taken += !rc;
	}
	bag_free(bag);
	ssh_config_free(c);
	assert_in_range(taken, 1, rounds - 1);
}

static void the_users_connect_timeout_is_taken(void **state)
{
	struct bag *bag = bag_new();
	struct ssh_settings s;
	struct ssh_config *c;
	struct err e;

	(void)state;
	setenv("PATH", folder, 1);
	assert_int_equal(ssh_config_open(NULL, &c, &e), 0);
	put(fake_out, "hostname h\nconnecttimeout 60\n", 30);
	assert_int_equal(ssh_config_lookup(c, "h", NULL, 0, bag, &s, &e), 0);
	assert_int_equal(s.connect_timeout_s, 60);
	put(fake_out, "hostname h\nconnecttimeout none\n", 32);
	assert_int_equal(ssh_config_lookup(c, "h", NULL, 0, bag, &s, &e), 0);
	assert_int_equal(s.connect_timeout_s, 0);
	bag_free(bag);
	ssh_config_free(c);
}

static int setup(void **state)
{
	static const char script[] =
		"#!/bin/sh\n[ \"$1\" = -V ] && exit 0\nwhile IFS= read -r line; do printf "
		"'%s\\n' \"$line\"; done <";
	char *text;

	(void)state;
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/hosts.lua", folder);
	snprintf(fake_ssh, sizeof(fake_ssh), "%s/ssh", folder);
	snprintf(fake_out, sizeof(fake_out), "%s/out", folder);
	if (asprintf(&text, "%s%s\n", script, fake_out) < 0 ||
		file_write_atomic(fake_ssh, 0755, text, strlen(text), NULL))
		return -1;
	free(text);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	return file_remove_tree(folder, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mistakes_are_refused_with_line_and_hint),
		cmocka_unit_test(omitted_keys_have_defaults),
		cmocka_unit_test(a_file_system_is_a_name_or_a_path),
		cmocka_unit_test(any_inventory_loads_or_is_refused),
		cmocka_unit_test(any_output_of_ssh_is_accepted_or_refused),
		cmocka_unit_test(the_users_connect_timeout_is_taken),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, setup, teardown);
}
