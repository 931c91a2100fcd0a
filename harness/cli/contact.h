/* Every host of an inventory, each reached on its own: one that fails does not hide the others. */
#ifndef CULPRIT_CLI_CONTACT_H
#define CULPRIT_CLI_CONTACT_H

#include "harness/inventory/inventory.h"
#include "harness/remote/node.h"

struct contact {
	const struct host *host;
	struct nodeset *set; /* one node, or NULL */
	struct node *node;
	int rc; /* of node_connect_all */
	struct err err;
};

/* Connects to all hosts side by side. '*out' has inv->n_hosts entries, for contacts_free. Fails
 * only when there is no agent to send (-ENOENT), or no memory. */
int contacts_new(const struct inventory *inv, struct contact **out, struct err *e);
void contacts_free(struct contact *contacts, size_t n);

#endif
