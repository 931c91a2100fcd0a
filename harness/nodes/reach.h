/* Internal to harness/nodes: turns a node's entry into the route to the host. */
#ifndef CULPRIT_HARNESS_NODES_REACH_H
#define CULPRIT_HARNESS_NODES_REACH_H

#include "harness/nodes/inventory.h"
#include "harness/nodes/ssh_config.h"

/* One node's entry in the file; NULL or 0: not given. */
struct entry {
	char *name, *role, *address, *ssh, *host_key, *identity, *user, *jump, *become, *storage,
		*spare, *mount;
	long ssh_port, service_port;
	bool allow_restart;
};

/* Fills h->ssh, h->address and h->origins. 'config' NULL: no SSH configuration. inv->bag owns the
 * strings of h->ssh and 'en'. */
int reach(struct inventory *inv, struct ssh_config *config, const struct entry *en, struct host *h,
	struct err *e);

#endif
