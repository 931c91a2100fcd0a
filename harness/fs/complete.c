/*
 * Fills gaps in a host's inventory entry with facts detected on the host.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"
#include "harness/base/jget.h"
#include "harness/fs/fs.h"

static bool complete_same(const char *wanted, const json_t *one, const char *key)
{
	const char *has = jget_text(one, key);

	return !wanted || (has && !strcmp(wanted, has));
}

static bool fits(const struct host *h, const char *volume, const json_t *one)
{
	json_int_t port = jget_int(one, "service_port");

	/* An unknown volume (volume files made by hand) matches any. */
	if (volume && jget_text(one, "volume") && !complete_same(volume, one, "volume"))
		return false;
	if (h->role == ROLE_CLIENT)
		return complete_same(h->mount, one, "mount");
	return complete_same(h->storage, one, "storage") &&
		(!h->service_port || !port || port == h->service_port);
}

/* Would both fill in the same values? A server of several volumes is found once per volume. */
static bool is_equal(const struct host *h, const json_t *a, const json_t *b)
{
	const char *const client[] = {"mount", NULL},
			  *const server[] = {"storage", "service_port", NULL};

	for (const char *const *key = h->role == ROLE_CLIENT ? client : server; *key; key++)
		if (!json_equal(json_object_get(a, *key), json_object_get(b, *key)) &&
			(json_object_get(a, *key) || json_object_get(b, *key)))
			return false;
	return true;
}

void fs_describe(const json_t *one, char *buf, size_t size)
{
	const char *storage = jget_text(one, "storage"), *mount = jget_text(one, "mount"),
		   *volume = jget_text(one, "volume");
	json_int_t port = jget_int(one, "service_port");
	json_int_t pid = jget_int(one, "pid");
	char where[32] = "", process[32] = "no process";

	if (port)
		snprintf(where, sizeof(where), "port %lld, ", (long long)port);
	if (pid)
		snprintf(process, sizeof(process), "pid %lld", (long long)pid);
	snprintf(buf, size, "%s (%s%s%s%s%s)",
		mount             ? mount
			: storage ? storage
				  : "a server without a storage",
		volume ? "volume " : "", volume ? volume : "", volume ? ", " : "", where, process);
}

static void describe_all(const json_t *found, char *buf, size_t size)
{
	size_t len = 0;

	snprintf(buf, size, "nothing");
	for (size_t i = 0; i < json_array_size(found) && len + 4 < size; i++) {
		len += (size_t)snprintf(buf + len, size - len, "%s", i ? "; " : "");
		fs_describe(json_array_get(found, i), buf + len, size - len);
		len += strlen(buf + len);
	}
}

/* The port at which the host would serve if the inventory set 'service_port'; or -errno. */
static int port_with(struct fs *fs, const struct host *h, unsigned service_port)
{
	struct host copy = *h;
	char *address = NULL;
	uint16_t port;
	struct err ignored;
	int rc;

	copy.service_port = service_port;
	if (!copy.address)
		copy.address = (char *)"192.0.2.1";
	rc = fs_service(fs, &copy, &address, &port, &ignored);
	free(address);
	return rc ? rc : port;
}

/* Does the adapter's 'service' depend on the inventory's port? No, if it returns a port without
 * it, or no port even with it. */
static bool needs_port(struct fs *fs, const struct host *h)
{
	return port_with(fs, h, 0) <= 0 && port_with(fs, h, 1) != 0;
}

bool fs_complete_already(struct fs *fs, const struct host *h)
{
	switch (h->role) {
	case ROLE_SERVER: return h->storage && (h->service_port || !needs_port(fs, h));
	case ROLE_CLIENT: return h->mount;
	default: return true;
	}
}

/* Fills in the missing values of 'h', all or none. */
static int complete_take(struct fs *fs, struct host *h, const json_t *one, struct err *e)
{
	const bool client = h->role == ROLE_CLIENT;
	const char *place = jget_text(one, client ? "mount" : "storage");
	char **to = client ? &h->mount : &h->storage, all[300];
	json_int_t port = jget_int(one, "service_port");

	fs_describe(one, all, sizeof(all));
	if (!place && (client || !h->storage))
		return err_set(e, -ENOENT, "%s: cannot find where %s %s; set '%s'", h->ssh.name,
			all, client ? "is mounted" : "keeps its data",
			client ? "mount" : "storage");
	if (!client && !h->service_port && (port < 1 || port > 65535) && needs_port(fs, h))
		return err_set(e, -ENOENT, "%s: cannot find where %s listens; set 'service_port'",
			h->ssh.name, all);
	if (!*to)
		*to = alloc_copy(place);
	if (!client && !h->service_port && port > 0 && port < 65536)
		h->service_port = (unsigned)port;
	return 0;
}

int fs_complete(
	struct fs *fs, struct host *h, const char *volume, const json_t *found, struct err *e)
{
	const json_t *one = NULL;
	size_t n = 0;
	char all[700];

	if (fs_complete_already(fs, h))
		return 0;
	for (size_t i = 0; i < json_array_size(found); i++) {
		const json_t *next = json_array_get(found, i);

		if (!fits(h, volume, next) || (one && is_equal(h, one, next)))
			continue;
		one = next;
		n++;
	}
	if (n == 1)
		return complete_take(fs, h, one, e);
	describe_all(found, all, sizeof(all));
	if (n)
		return err_set(e, -ENOTUNIQ, "%s: several match; set %s or file_system.volume: %s",
			h->ssh.name, h->role == ROLE_CLIENT ? "'mount'" : "'storage'", all);
	return err_set(e, -ENOENT,
		"%s: no %s of the file system was found there%s%s%s (found: %s); start it, or "
		"give %s",
		h->ssh.name, h->role == ROLE_CLIENT ? "mount" : "server process",
		volume ? ", volume '" : "", volume ? volume : "", volume ? "'" : "", all,
		h->role == ROLE_CLIENT ? "'mount'" : "'storage' and 'service_port'");
}
