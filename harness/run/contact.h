/* The hosts of an inventory, each connected on its own: a failure does not affect the others. */
#ifndef CULPRIT_HARNESS_RUN_CONTACT_H
#define CULPRIT_HARNESS_RUN_CONTACT_H

#include <pthread.h>
#include <stdbool.h>

#include "harness/nodes/inventory.h"
#include "harness/nodes/node.h"

struct contact {
	const struct host *host;
	struct nodeset *set; /* one node, or NULL */
	struct node *node;
	int rc; /* of node_connect_all */
	struct err err;
	void *visitor; /* the caller's, for contacts_each */

	/* of contacts_each */
	void (*fn)(struct contact *c);
	pthread_t thread;
	bool threaded;
};

/* Connects to all hosts in parallel. '*out' has inv->n_hosts entries, for contacts_free. Fails only
 * if there is no agent to send (-ENOENT). */
int contacts_new(const struct inventory *inv, struct contact **out, struct err *e);
void contacts_free(struct contact *contacts, size_t n);

/* Calls 'fn' for every contact, each in its own thread, and waits for all. */
void contacts_each(struct contact *contacts, size_t n, void (*fn)(struct contact *c));

#endif
