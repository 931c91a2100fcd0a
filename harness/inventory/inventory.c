#include "harness/inventory/inventory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/lua/luax.h"
#include "harness/inventory/reach.h"

static const char *const role_names[] = {
	[ROLE_SERVER] = "server", [ROLE_CLIENT] = "client", [ROLE_OUTSIDER] = "outsider"};

const char *role_name(enum role role)
{
	return role_names[role];
}

static void entry_clear(struct entry *en)
{
	char *const all[] = {en->name, en->role, en->address, en->ssh, en->host_key, en->identity,
		en->user, en->jump, en->become, en->storage, en->spare, en->mount};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		free(all[i]);
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

	lua_getfield(L, -1, "name");
	if (lua_type(L, -1) == LUA_TSTRING)
		snprintf(what, sizeof(what), "node '%.64s'", lua_tostring(L, -1));
	lua_pop(L, 1);
	return luax_read(L, -1, src, what, fields, false, e);
}

/* Names become file names and Lua keys, so they are kept to what is safe in both. */
static bool name_fits(const char *name)
{
	size_t n = strspn(
		name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_");

	return n && n <= 64 && !name[n] && name[0] != '.' && name[0] != '-';
}

static int check_entry(const struct luax_source *src, const struct inventory *inv,
	const struct entry *en, enum role *role, struct err *e)
{
	static const char *const names[] = {"server", "client", "outsider", NULL};
	const char *near;
	int i;

	if (!name_fits(en->name))
		return luax_complain(src, en->name, e,
			"node name '%.64s' does not fit: letters, digits, '.', '-', '_', at most 64",
			en->name);
	for (size_t k = 0; k < inv->n_hosts; k++)
		if (!strcmp(inv->hosts[k].ssh.name, en->name))
			return luax_complain(
				src, en->name, e, "there are two nodes named '%s'", en->name);
	for (size_t k = 0; k < inv->n_hosts && en->address && en->service_port; k++)
		if (!strcmp(inv->hosts[k].address, en->address) &&
			inv->hosts[k].service_port == (unsigned)en->service_port)
			return luax_complain(src, en->name, e,
				"servers '%s' and '%s' have the same address and service_port, %s:%ld",
				inv->hosts[k].ssh.name, en->name, en->address, en->service_port);
	for (i = 0; names[i] && strcmp(names[i], en->role); i++)
		;
	if (!names[i]) {
		near = luax_nearest(en->role, names);
		return luax_complain(src, en->role, e,
			"node '%s': unknown role '%s'%s%s%s; there are server, client, outsider",
			en->name, en->role, near ? "; did you mean '" : "", near ? near : "",
			near ? "'?" : "");
	}
	*role = (enum role)i;
	if (*role != ROLE_SERVER && (en->storage || en->spare || en->service_port))
		return luax_complain(src, en->name, e,
			"node '%s': '%s' is for servers, and its role is %s", en->name,
			en->storage         ? "storage"
				: en->spare ? "spare"
					    : "service_port",
			en->role);
	if (*role != ROLE_CLIENT && en->mount)
		return luax_complain(src, en->name, e,
			"node '%s': 'mount' is for clients, and its role is %s", en->name,
			en->role);
	if (en->become && strcmp(en->become, "sudo"))
		return luax_complain(src, en->become, e,
			"node '%s': 'become' can be \"sudo\", not '%.64s'", en->name, en->become);
	if (en->storage && en->storage[0] != '/')
		return luax_complain(src, en->storage, e,
			"node '%s': 'storage' must be an absolute path", en->name);
	if (en->spare && en->spare[0] != '/')
		return luax_complain(
			src, en->spare, e, "node '%s': 'spare' must be an absolute path", en->name);
	if (en->mount && en->mount[0] != '/')
		return luax_complain(
			src, en->mount, e, "node '%s': 'mount' must be an absolute path", en->name);
	return 0;
}

static int add_host(lua_State *L, const struct luax_source *src, struct inventory *inv,
	struct ssh_config *config, struct err *e)
{
	struct entry en = {.allow_restart = inv->allow_restart};
	struct host *h = &inv->hosts[inv->n_hosts];
	enum role role = ROLE_SERVER;
	struct err why;
	int rc;

	rc = read_entry(L, src, &en, e);
	if (!rc)
		rc = check_entry(src, inv, &en, &role, e);
	if (rc)
		goto out;
	inv->n_hosts++;
	*h = (struct host){.role = role,
		.service_port = (unsigned)en.service_port,
		.allow_restart = en.allow_restart};
	rc = reach(inv, config, &en, h, &why);
	if (rc)
		rc = luax_complain(src, en.name, e, "node '%s': %s", en.name, why.text);
	h->storage = en.storage;
	h->spare = en.spare;
	h->mount = en.mount;
	en.storage = en.spare = en.mount = NULL;
out:
	entry_clear(&en);
	return rc;
}

/* NULL in '*out': none is to be looked at. */
static int open_ssh_config(
	const struct luax_source *src, const char *name, struct ssh_config **out, struct err *e)
{
	char *path = NULL;
	struct err why;
	int rc;

	*out = NULL;
	if (name && !strcmp(name, "none"))
		return 0;
	if (name && !(path = path_beside(src->path, name)))
		return err_errno(e, -ENOMEM, "cannot read '%s'", src->path);
	rc = ssh_config_open(path, out, &why);
	free(path);
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
	inv->hosts = calloc(n, sizeof(*inv->hosts));
	if (!inv->hosts)
		return err_errno(e, -ENOMEM, "cannot read '%s'", src->path);
	for (lua_Unsigned i = 1; i <= n && !rc; i++) {
		lua_rawgeti(L, -1, (lua_Integer)i);
		rc = add_host(L, src, inv, config, e);
		lua_pop(L, 1);
	}
	lua_pop(L, 1);
	return rc;
}

static int read_all(
	lua_State *L, const struct luax_source *src, struct inventory *inv, struct err *e)
{
	char *ssh_config = NULL;
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
		{"volume", LUAX_STRING, .out = &inv->volume},
		{NULL},
	};
	struct ssh_config *config = NULL;
	int rc;

	rc = luax_read(L, -1, src, "inventory", fields, false, e);
	if (rc)
		goto out;
	lua_getfield(L, -1, "file_system");
	rc = luax_read(L, -1, src, "file_system", fs_fields, false, e);
	lua_pop(L, 1);
	if (!rc)
		rc = open_ssh_config(src, ssh_config, &config, e);
	if (!rc)
		rc = read_nodes(L, src, inv, config, e);
	ssh_config_free(config);
out:
	free(ssh_config);
	return rc;
}

int inventory_load(const char *path, struct inventory **out, struct err *e)
{
	struct luax_source src = {0};
	struct inventory *inv = calloc(1, sizeof(*inv));
	lua_State *L = luax_new();
	int rc;

	if (!inv || !L || !(inv->path = strdup(path)) || !(inv->bag = bag_new())) {
		rc = err_errno(e, -ENOMEM, "cannot read '%s'", path);
		goto out;
	}
	rc = luax_load_file(L, path, &src, e);
	if (!rc)
		rc = read_all(L, &src, inv, e);
	if (!rc) {
		*out = inv;
		inv = NULL;
	}
out:
	luax_source_clear(&src);
	inventory_free(inv);
	if (L)
		lua_close(L);
	return rc;
}
