#include "harness/inventory/inventory.h"

#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/lua/luax.h"

static const char *const role_names[] = {[ROLE_SERVER] = "server", [ROLE_CLIENT] = "client", [ROLE_OUTSIDER] = "outsider"};

const char *role_name(enum role role)
{
	return role_names[role];
}

/* What stands in the file for one node, before it is checked as a whole. */
struct entry {
	char *name, *role, *address, *host_key, *identity, *user, *storage, *spare, *mount;
	long ssh_port, service_port;
};

static void entry_clear(struct entry *en)
{
	free(en->name);
	free(en->role);
	free(en->address);
	free(en->host_key);
	free(en->identity);
	free(en->user);
	free(en->storage);
	free(en->spare);
	free(en->mount);
}

static void host_clear(struct host *h)
{
	free((char *)h->ssh.name);
	free((char *)h->ssh.address);
	free((char *)h->ssh.user);
	free((char *)h->ssh.identity);
	free((char *)h->ssh.host_key);
	free(h->storage);
	free(h->spare);
	free(h->mount);
}

void inventory_free(struct inventory *inv)
{
	if (!inv)
		return;
	for (size_t i = 0; i < inv->n_hosts; i++)
		host_clear(&inv->hosts[i]);
	free(inv->hosts);
	free(inv->path);
	free(inv->fs_type);
	free(inv->layout);
	free(inv);
}

static int read_entry(lua_State *L, const struct luax_source *src, struct entry *en, struct err *e)
{
	const struct luax_field fields[] = {
		{"name", LUAX_STRING, .required = true, .out = &en->name},
		{"role", LUAX_STRING, .required = true, .out = &en->role},
		{"address", LUAX_STRING, .required = true, .out = &en->address},
		{"host_key", LUAX_STRING, .out = &en->host_key},
		{"identity", LUAX_STRING, .out = &en->identity},
		{"user", LUAX_STRING, .out = &en->user},
		{"ssh_port", LUAX_INTEGER, .min = 1, .max = 65535, .out = &en->ssh_port},
		{"storage", LUAX_STRING, .out = &en->storage},
		{"spare", LUAX_STRING, .out = &en->spare},
		{"service_port", LUAX_INTEGER, .min = 1, .max = 65535, .out = &en->service_port},
		{"mount", LUAX_STRING, .out = &en->mount},
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
	size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_");

	return n && n <= 64 && !name[n] && name[0] != '.' && name[0] != '-';
}

static int check_entry(const struct luax_source *src, const struct inventory *inv, const struct entry *en,
		       enum role *role, struct err *e)
{
	static const char *const names[] = {"server", "client", "outsider", NULL};
	const char *near;
	int i;

	if (!name_fits(en->name))
		return luax_complain(src, en->name, e,
				     "node name '%.64s' does not fit: letters, digits, '.', '-', '_', at most 64", en->name);
	for (size_t k = 0; k < inv->n_hosts; k++)
		if (!strcmp(inv->hosts[k].ssh.name, en->name))
			return luax_complain(src, en->name, e, "there are two nodes named '%s'", en->name);
	for (i = 0; names[i] && strcmp(names[i], en->role); i++)
		;
	if (!names[i]) {
		near = luax_nearest(en->role, names);
		return luax_complain(src, en->role, e, "node '%s': unknown role '%s'%s%s%s; there are server, client, outsider",
				     en->name, en->role, near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
	}
	*role = (enum role)i;
	if (*role == ROLE_SERVER && (!en->storage || !en->service_port))
		return luax_complain(src, en->name, e,
				     "server '%s' needs 'storage' (its data folder) and 'service_port' (where it listens)",
				     en->name);
	if (*role == ROLE_CLIENT && !en->mount)
		return luax_complain(src, en->name, e, "client '%s' needs 'mount' (where the file system is mounted)",
				     en->name);
	if (en->storage && en->storage[0] != '/')
		return luax_complain(src, en->storage, e, "node '%s': 'storage' must be an absolute path", en->name);
	if (en->spare && en->spare[0] != '/')
		return luax_complain(src, en->spare, e, "node '%s': 'spare' must be an absolute path", en->name);
	if (en->mount && en->mount[0] != '/')
		return luax_complain(src, en->mount, e, "node '%s': 'mount' must be an absolute path", en->name);
	return 0;
}

static char *resolve(const char *inventory_path, const char *path)
{
	char *copy, *full = NULL;

	if (path[0] == '/')
		return strdup(path);
	copy = strdup(inventory_path);
	if (copy && asprintf(&full, "%s/%s", dirname(copy), path) < 0)
		full = NULL;
	free(copy);
	return full;
}

static int add_host(lua_State *L, const struct luax_source *src, struct inventory *inv, struct err *e)
{
	struct entry en = {0};
	struct host *h = &inv->hosts[inv->n_hosts];
	enum role role = ROLE_SERVER;
	int rc;

	rc = read_entry(L, src, &en, e);
	if (!rc)
		rc = check_entry(src, inv, &en, &role, e);
	if (rc)
		goto out;
	*h = (struct host){.role = role, .service_port = (unsigned)en.service_port};
	h->ssh = (struct node_spec){.name = en.name, .address = en.address, .port = (unsigned)en.ssh_port,
				    .user = en.user, .host_key = en.host_key};
	h->storage = en.storage;
	h->spare = en.spare;
	h->mount = en.mount;
	en.name = en.address = en.user = en.host_key = en.storage = en.spare = en.mount = NULL;
	inv->n_hosts++;
	if (en.identity) {
		h->ssh.identity = resolve(inv->path, en.identity);
		if (!h->ssh.identity)
			rc = err_errno(e, -ENOMEM, "cannot read '%s'", inv->path);
	}
out:
	entry_clear(&en);
	return rc;
}

static int read_all(lua_State *L, const struct luax_source *src, struct inventory *inv, struct err *e)
{
	const struct luax_field fields[] = {
		{"file_system", LUAX_TABLE, .required = true},
		{"nodes", LUAX_TABLE, .required = true},
		{NULL},
	};
	const struct luax_field fs_fields[] = {
		{"type", LUAX_STRING, .required = true, .out = &inv->fs_type},
		{"layout", LUAX_STRING, .out = &inv->layout},
		{NULL},
	};
	lua_Unsigned n;
	int rc;

	rc = luax_read(L, -1, src, "inventory", fields, false, e);
	if (rc)
		return rc;
	lua_getfield(L, -1, "file_system");
	rc = luax_read(L, -1, src, "file_system", fs_fields, false, e);
	lua_pop(L, 1);
	if (rc)
		return rc;
	lua_getfield(L, -1, "nodes");
	n = lua_rawlen(L, -1);
	if (!n || n > 100000)
		return luax_complain(src, "nodes", e, "inventory: 'nodes' must list at least one node");
	inv->hosts = calloc(n, sizeof(*inv->hosts));
	if (!inv->hosts)
		return err_errno(e, -ENOMEM, "cannot read '%s'", src->path);
	for (lua_Unsigned i = 1; i <= n && !rc; i++) {
		lua_rawgeti(L, -1, (lua_Integer)i);
		rc = add_host(L, src, inv, e);
		lua_pop(L, 1);
	}
	lua_pop(L, 1);
	return rc;
}

int inventory_load(const char *path, struct inventory **out, struct err *e)
{
	struct luax_source src = {0};
	struct inventory *inv = calloc(1, sizeof(*inv));
	lua_State *L = luax_new();
	int rc;

	if (!inv || !L || !(inv->path = strdup(path))) {
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
