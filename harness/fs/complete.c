/*
 * Completes a host that the inventory describes in part, from what was found on it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/fs/fs.h"

static const char *text_of(const json_t *one, const char *key)
{
	return json_string_value(json_object_get(one, key));
}

static bool same(const char *wanted, const json_t *one, const char *key)
{
	const char *has = text_of(one, key);

	return !wanted || (has && !strcmp(wanted, has));
}

static bool fits(const struct host *h, const char *volume, const json_t *one)
{
	json_int_t port = json_integer_value(json_object_get(one, "service_port"));

	/* An unknown volume (volume files made by hand) fits any. */
	if (volume && text_of(one, "volume") && !same(volume, one, "volume"))
		return false;
	if (h->role == ROLE_CLIENT)
		return same(h->mount, one, "mount");
	return same(h->storage, one, "storage") &&
		(!h->service_port || !port || port == h->service_port);
}

void fs_describe(const json_t *one, char *buf, size_t size)
{
	const char *storage = text_of(one, "storage"), *mount = text_of(one, "mount"),
		   *volume = text_of(one, "volume");
	json_int_t port = json_integer_value(json_object_get(one, "service_port"));
	json_int_t pid = json_integer_value(json_object_get(one, "pid"));
	char where[32] = "", process[32] = ", no process";

	if (port)
		snprintf(where, sizeof(where), ", port %lld", (long long)port);
	if (pid)
		snprintf(process, sizeof(process), ", pid %lld", (long long)pid);
	snprintf(buf, size, "%s (%s%s%s%s)",
		mount             ? mount
			: storage ? storage
				  : "a brick without a folder",
		volume ? "volume " : "no volume name", volume ? volume : "", where, process);
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

bool fs_complete_already(const struct host *h)
{
	switch (h->role) {
	case ROLE_SERVER: return h->storage && h->service_port;
	case ROLE_CLIENT: return h->mount;
	default: return true;
	}
}

static int take(struct host *h, const json_t *one, struct err *e)
{
	json_int_t port = json_integer_value(json_object_get(one, "service_port"));
	char *storage = NULL, *mount = NULL, all[300];

	fs_describe(one, all, sizeof(all));
	if (h->role == ROLE_CLIENT) {
		mount = text_of(one, "mount") ? strdup(text_of(one, "mount")) : NULL;
		if (!mount)
			return err_set(e, -ENOENT,
				"%s: cannot tell where %s is mounted; give 'mount'", h->ssh.name,
				all);
		h->mount = mount;
		return 0;
	}
	if (!h->storage && text_of(one, "storage"))
		storage = strdup(text_of(one, "storage"));
	if (!h->storage && !storage)
		return err_set(e, -ENOENT,
			"%s: cannot tell where %s keeps its data; give 'storage'", h->ssh.name,
			all);
	if (!h->service_port && (port < 1 || port > 65535)) {
		free(storage);
		return err_set(e, -ENOENT, "%s: cannot tell where %s listens; give 'service_port'",
			h->ssh.name, all);
	}
	if (storage)
		h->storage = storage;
	if (!h->service_port)
		h->service_port = (unsigned)port;
	return 0;
}

int fs_complete(struct host *h, const char *volume, const json_t *found, struct err *e)
{
	const json_t *one = NULL;
	size_t n = 0;
	char all[700];

	if (fs_complete_already(h))
		return 0;
	for (size_t i = 0; i < json_array_size(found); i++) {
		if (fits(h, volume, json_array_get(found, i))) {
			one = json_array_get(found, i);
			n++;
		}
	}
	if (n == 1)
		return take(h, one, e);
	describe_all(found, all, sizeof(all));
	if (n)
		return err_set(e, -ENOTUNIQ,
			"%s: there are several to choose from; give %s, or file_system.volume: %s",
			h->ssh.name, h->role == ROLE_CLIENT ? "'mount'" : "'storage'", all);
	return err_set(e, -ENOENT,
		"%s: no %s of the file system was found there%s%s%s (found: %s); start it, or "
		"give %s",
		h->ssh.name, h->role == ROLE_CLIENT ? "mount" : "server process",
		volume ? ", volume '" : "", volume ? volume : "", volume ? "'" : "", all,
		h->role == ROLE_CLIENT ? "'mount'" : "'storage' and 'service_port'");
}
