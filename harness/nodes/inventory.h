/*
 * The inventory: the hosts, how to reach them, their roles, and the file system that runs on
 * them. A Lua file that returns a table of data, written by hand for real hosts and by the lab
 * for its own. README.md here is the manual; harness/lua/culprit.meta.lua has the types.
 *
 * This code decides how to reach a host: from the file, then the user's SSH configuration, then
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
	char *address;         /* its name for other hosts of the cluster and the file system */
	char *storage, *spare; /* servers; NULL: detect (storage), no spare (spare) */
	unsigned service_port; /* servers; 0: detect */
	char *mount;           /* clients; NULL: detect */
	bool allow_restart;    /* faults may kill and restart its server */
	json_t *origins;       /* where 'ssh' comes from: array of {what, value, from} */
};

struct inventory {
	char *path;
	char *fs_type;  /* "glusterfs", or the absolute path of a Lua file */
	char *layout;   /* "distribute", or NULL */
	char *settings; /* of the lab's file system, "method=alt-aio", or NULL */
	char *volume;   /* NULL: the only volume */
	struct host *hosts;
	size_t n_hosts;
	bool allow_restart; /* default for hosts without the key */
	struct bag *bag;    /* owns the strings in the hosts' ssh */
};

/* Returns -EINVAL with "FILE:LINE: sentence" for anything invalid, including unknown keys. Runs
 * ssh to read the user's configuration (ssh_config.h), but connects to no host. */
int inventory_load(const char *path, struct inventory **out, struct err *e);
void inventory_free(struct inventory *inv);

const char *role_name(enum role role);

#endif
