/*
 * Inventory: which hosts there are, how to reach them, the role of each, and which file system runs
 * on them. A Lua file that returns a table of data, written by hand for real hosts and by the lab
 * for its own. README.md here is its manual; harness/lua/culprit.meta.lua types it.
 *
 * How a host is reached is decided here: by the file, else by the user's SSH configuration, else by
 * ssh's defaults.
 */
#ifndef CULPRIT_HARNESS_NODES_INVENTORY_H
#define CULPRIT_HARNESS_NODES_INVENTORY_H

#include <stddef.h>

#include "harness/base/err.h"
#include "harness/nodes/node.h"

enum role { ROLE_SERVER, ROLE_CLIENT, ROLE_OUTSIDER };

struct host {
	struct node_spec ssh; /* ssh.name is the host's name; ssh.address is where ssh connects */
	enum role role;
	char *address;         /* what the cluster's other hosts and the file system know it by */
	char *storage, *spare; /* servers; NULL: to be found (storage), or none (spare) */
	unsigned service_port; /* servers; 0: to be found */
	char *mount;           /* clients; NULL: to be found */
	bool allow_restart;    /* servers there may be killed and restarted */
	json_t *origins;       /* where 'ssh' comes from: array of {what, value, from} */
};

struct inventory {
	char *path;
	char *fs_type;  /* "glusterfs", or the absolute path of a Lua file */
	char *layout;   /* "distribute", or NULL */
	char *settings; /* of the lab's file system, "method=alt-aio", or NULL */
	char *volume;   /* NULL: the only one that there is */
	struct host *hosts;
	size_t n_hosts;
	bool allow_restart; /* of hosts that do not say */
	struct bag *bag;    /* what the hosts' ssh points to */
};

/* -EINVAL with "FILE:LINE: sentence" for anything that does not fit, unknown keys included. ssh is
 * run to ask for the user's configuration (ssh_config.h); nobody is connected to. */
int inventory_load(const char *path, struct inventory **out, struct err *e);
void inventory_free(struct inventory *inv);

const char *role_name(enum role role);

#endif
