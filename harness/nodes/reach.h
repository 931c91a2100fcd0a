/* Inside of harness/nodes: from a node's entry to the way to reach the host. */
#ifndef CULPRIT_HARNESS_NODES_REACH_H
#define CULPRIT_HARNESS_NODES_REACH_H

#include "harness/nodes/inventory.h"
#include "harness/nodes/ssh_config.h"

/* One node in the file; NULL, 0: not given. */
struct entry {
	char *name, *role, *address, *ssh, *host_key, *identity, *user, *jump, *become, *storage,
		*spare, *mount;
	long ssh_port, service_port;
	bool allow_restart;
};

/* Fills h->ssh, h->address and h->origins. 'config' NULL: without SSH configuration. What h->ssh
 * points to, and the texts of 'en', are in inv->bag. */
int reach(struct inventory *inv, struct ssh_config *config, const struct entry *en, struct host *h,
	struct err *e);

#endif
