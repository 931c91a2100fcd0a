/* Reads an inventory of hosts. */
#include "harness/nodes/inventory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/name.h"
#include "harness/base/near.h"
#include "harness/lua/library.h"
#include "harness/lua/luax.h"
#include "harness/nodes/reach.h"

static const char *const role_names[] = {
	[ROLE_SERVER] = "server", [ROLE_CLIENT] = "client", [ROLE_OUTSIDER] = "outsider"};

const char *role_name(enum role role)
{
	return role_names[role];
}

void inventory_free(struct inventory *inv)
{
	if (!inv)
		return;
	for (size_t i = 0; i < inv->n_hosts; i++) {
		struct host *h = &inv->hosts[i];

		free(h->address);
		free(h->storage);
		free(h->spare);
		free(h->mount);
		json_decref(h->origins);
	}
	bag_free(inv->bag);
	free(inv->hosts);
	free(inv->path);
	free(inv->fs_type);
	free(inv->layout);
	free(inv->settings);
	free(inv->volume);
	free(inv);
}

static int read_entry(lua_State *L, const struct luax_source *src, struct entry *en, struct err *e)
{
	const struct luax_field fields[] = {
		{"name", LUAX_STRING, .required = true, .out = &en->name},
		{"role", LUAX_STRING, .required = true, .out = &en->role},
		{"address", LUAX_STRING, .out = &en->address},
		{"ssh", LUAX_STRING, .out = &en->ssh},
		{"host_key", LUAX_STRING, .out = &en->host_key},
		{"identity", LUAX_STRING, .out = &en->identity},
		{"user", LUAX_STRING, .out = &en->user},
		{"jump", LUAX_STRING, .out = &en->jump},
		{"become", LUAX_STRING, .out = &en->become},
		{"ssh_port", LUAX_INTEGER, .min = 1, .max = 65535, .out = &en->ssh_port},
		{"storage", LUAX_STRING, .out = &en->storage},
		{"spare", LUAX_STRING, .out = &en->spare},
		{"service_port", LUAX_INTEGER, .min = 1, .max = 65535, .out = &en->service_port},
		{"mount", LUAX_STRING, .out = &en->mount},
		{"allow_restart", LUAX_BOOLEAN, .out = &en->allow_restart},
		{NULL},
	};
	char what[96] = "a node";

	if (lua_istable(L, -1)) {
		lua_getfield(L, -1, "name");
		if (lua_type(L, -1) == LUA_TSTRING)
			snprintf(what, sizeof(what), "node '%.64s'", lua_tostring(L, -1));
		lua_pop(L, 1);
	}
	return luax_read(L, -1, src, what, fields, false, e);
}

static int check_role(
	const struct luax_source *src, const struct entry *en, enum role *role, struct err *e)
{
	static const char *const names[] = {"server", "client", "outsider", NULL};
	char hint[96];
	int i = 0;

	while (names[i] && strcmp(names[i], en->role))
		i++;
	if (!names[i])
		return luax_complain(src, en->role, e,
			"node '%s': unknown role '%s'%s; use server, client or outsider", en->name,
			en->role, near_hint(en->role, names, hint));
	*role = (enum role)i;
	return 0;
}

/* Checks keys that belong to one role, and paths. */
static int check_places(
	const struct luax_source *src, const struct entry *en, enum role role, struct err *e)
{
	const struct {
		const char *key, *path;
		bool given;
		enum role role;
	} places[] = {{"storage", en->storage, en->storage != NULL, ROLE_SERVER},
		{"spare", en->spare, en->spare != NULL, ROLE_SERVER},
		{"service_port", NULL, en->service_port != 0, ROLE_SERVER},
		{"mount", en->mount, en->mount != NULL, ROLE_CLIENT}};

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		if (places[i].given && role != places[i].role)
			return luax_complain(src, en->name, e,
				"node '%s': '%s' is for %ss, but its role is %s", en->name,
				places[i].key, role_names[places[i].role], en->role);
		if (places[i].path && places[i].path[0] != '/')
			return luax_complain(src, places[i].path, e,
				"node '%s': '%s' must be an absolute path", en->name,
				places[i].key);
	}
	return 0;
}

static int check_entry(const struct luax_source *src, const struct inventory *inv,
	const struct entry *en, enum role *role, struct err *e)
{
	struct err why;
	int rc;

	if (name_check("node", en->name, &why))
		return luax_complain(src, en->name, e, "%s", why.text);
	for (size_t k = 0; k < inv->n_hosts; k++) {
		const struct host *other = &inv->hosts[k];

		if (!strcmp(other->ssh.name, en->name))
			return luax_complain(
				src, en->name, e, "two nodes are named '%s'", en->name);
		if (en->address && en->service_port && !strcmp(other->address, en->address) &&
			other->service_port == (unsigned)en->service_port)
			return luax_complain(src, en->name, e,
				"servers '%s' and '%s' have the same address and service_port, "
				"%s:%ld",
				other->ssh.name, en->name, en->address, en->service_port);
	}
	rc = check_role(src, en, role, e);
	if (!rc)
		rc = check_places(src, en, *role, e);
	if (!rc && en->become && strcmp(en->become, "sudo"))
		rc = luax_complain(src, en->become, e,
			"node '%s': 'become' can be \"sudo\", not '%.64s'", en->name, en->become);
	return rc;
}

static int add_host(lua_State *L, const struct luax_source *src, struct inventory *inv,
	struct ssh_config *config, struct err *e)
{
	struct entry en = {.allow_restart = inv->allow_restart};
	struct host *h = &inv->hosts[inv->n_hosts];
	struct err why;
	int rc = read_entry(L, src, &en, e);
	char *const kept[] = {en.name, en.role, en.address, en.ssh, en.host_key, en.identity,
		en.user, en.jump, en.become};

	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		bag_keep(inv->bag, kept[i]);
	*h = (struct host){.service_port = (unsigned)en.service_port,
		.allow_restart = en.allow_restart,
		.storage = en.storage,
		.spare = en.spare,
		.mount = en.mount};
	if (!rc)
		rc = check_entry(src, inv, &en, &h->role, e);
	inv->n_hosts++;
	if (rc)
		return rc;
	rc = reach(inv, config, &en, h, &why);
	return rc ? luax_complain(src, en.name, e, "node '%s': %s", en.name, why.text) : 0;
}

/* Sets '*out' to NULL if the file turns the SSH configuration off. */
static int open_ssh_config(
	const struct luax_source *src, const char *name, struct ssh_config **out, struct err *e)
{
	auto_free char *path = name ? luax_beside(src->path, name) : NULL;
	struct err why;
	int rc;

	*out = NULL;
	if (name && !strcmp(name, "none"))
		return 0;
	rc = ssh_config_open(path, out, &why);
	return rc ? luax_complain(src, "ssh_config", e, "%s", why.text) : 0;
}

static int read_nodes(lua_State *L, const struct luax_source *src, struct inventory *inv,
	struct ssh_config *config, struct err *e)
{
	lua_Unsigned n;
	int rc = 0;

	lua_getfield(L, -1, "nodes");
	n = lua_rawlen(L, -1);
	if (!n || n > 100000)
		return luax_complain(
			src, "nodes", e, "inventory: 'nodes' must list at least one node");
	inv->hosts = alloc_zero(n, sizeof(*inv->hosts));
	for (lua_Unsigned i = 1; i <= n && !rc; i++) {
		lua_rawgeti(L, -1, (lua_Integer)i);
		rc = add_host(L, src, inv, config, e);
		lua_pop(L, 1);
	}
	lua_pop(L, 1);
	return rc;
}

/* Checks that the type exists. A path is relative to the inventory and becomes absolute. */
static int find_fs(struct inventory *inv, const struct luax_source *src, struct err *e)
{
	auto_free char *path = NULL;
	char *absolute;
	int rc = library_find(LIBRARY_FILE_SYSTEM, inv->fs_type, src, &path, e);

	if (rc)
		return -EINVAL;
	if (!library_is_path(inv->fs_type))
		return 0;
	absolute = realpath(path, NULL);
	if (!absolute)
		return err_errno(e, -errno, "cannot resolve '%s'", path);
	free(inv->fs_type);
	inv->fs_type = absolute;
	return 0;
}

static int inventory_read_all(
	lua_State *L, const struct luax_source *src, struct inventory *inv, struct err *e)
{
	auto_free char *ssh_config = NULL;
	const struct luax_field fields[] = {
		{"file_system", LUAX_TABLE, .required = true},
		{"nodes", LUAX_TABLE, .required = true},
		{"ssh_config", LUAX_STRING, .out = &ssh_config},
		{"allow_restart", LUAX_BOOLEAN, .out = &inv->allow_restart},
		{NULL},
	};
	const struct luax_field fs_fields[] = {
		{"type", LUAX_STRING, .required = true, .out = &inv->fs_type},
		{"layout", LUAX_STRING, .out = &inv->layout},
		{"settings", LUAX_STRING, .out = &inv->settings},
		{"volume", LUAX_STRING, .out = &inv->volume},
		{NULL},
	};
	struct ssh_config *config = NULL;
	int rc;

	rc = luax_read(L, -1, src, "inventory", fields, false, e);
	if (rc)
		return rc;
	lua_getfield(L, -1, "file_system");
	rc = luax_read(L, -1, src, "file_system", fs_fields, false, e);
	lua_pop(L, 1);
	rc = rc ?: find_fs(inv, src, e);
	if (!rc)
		rc = open_ssh_config(src, ssh_config, &config, e);
	if (!rc)
		rc = read_nodes(L, src, inv, config, e);
	ssh_config_free(config);
	return rc;
}

int inventory_load(const char *path, struct inventory **out, struct err *e)
{
	struct luax_source src = {0};
	struct inventory *inv;
	lua_State *L = luax_new();
	int rc;

	inv = alloc_zero(1, sizeof(*inv));
	inv->path = alloc_copy(path);
	inv->bag = bag_new();
	rc = luax_load_file(L, path, &src, e);
	if (!rc)
		rc = inventory_read_all(L, &src, inv, e);
	if (rc)
		inventory_free(inv);
	else
		*out = inv;
	luax_source_clear(&src);
	lua_close(L);
	return rc;
}
