/*
 * Inventory: which hosts there are, how to reach them, what each is for, and
 * which file system runs on them. A Lua file that returns a table of data; no
 * function is available to it. Written by hand for real hosts, by the lab for its own.
 *
 *     return {
 *       file_system = { type = "glusterfs", layout = "distribute" },
 *       nodes = {
 *         { name = "s1", role = "server", address = "10.77.0.11",
 *           host_key = "ssh-ed25519 AAAA...", identity = "id_ed25519",
 *           storage = "/srv/brick", port = 24007, spare = "/dev/loop7" },
 *         { name = "c1", role = "client", address = "10.77.0.31", ..., mount = "/mnt/fs" },
 *         { name = "o1", role = "outsider", address = "10.77.0.51", ... },
 *       },
 *     }
 *
 * Keys of a node: name, role, address, host_key, identity (relative to the file's own folder),
 * user ("root"), ssh_port (22); servers: storage (folder that the server process keeps its data
 * in), spare (unused block device or file on the same disk, for hogs), service_port (where the
 * file system's server listens); clients: mount.
 */
#ifndef CULPRIT_HARNESS_INVENTORY_H
#define CULPRIT_HARNESS_INVENTORY_H

#include <stddef.h>

#include "harness/base/err.h"
#include "harness/node/node.h"

enum role { ROLE_SERVER, ROLE_CLIENT, ROLE_OUTSIDER };

struct host {
	struct node_spec ssh;    /* ssh.name is the host's name */
	enum role role;
	char *storage, *spare;   /* servers; spare may be NULL */
	unsigned service_port;   /* servers */
	char *mount;             /* clients */
};

struct inventory {
	char *path;
	char *fs_type;           /* "glusterfs" */
	char *layout;            /* "distribute", "disperse", or NULL */
	struct host *hosts;
	size_t n_hosts;
};

/* -EINVAL with "FILE:LINE: sentence" for anything that does not fit, unknown keys included. */
int inventory_load(const char *path, struct inventory **out, struct err *e);
void inventory_free(struct inventory *inv);

const char *role_name(enum role role);

#endif
