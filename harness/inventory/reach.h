/* Inside of harness/inventory: what a node's entry says, and how that becomes a way to reach it. */
#ifndef CULPRIT_HARNESS_REACH_H
#define CULPRIT_HARNESS_REACH_H

#include "harness/inventory/inventory.h"
#include "harness/inventory/ssh_config.h"

/* What stands in the file for one node; NULL, 0: nothing. */
struct entry {
	char *name, *role, *address, *ssh, *host_key, *identity, *user, *jump, *become, *storage,
		*spare, *mount;
	long ssh_port, service_port;
	bool allow_restart;
};

/* Things that are freed together. */
struct bag;
struct bag *bag_new(void);
void bag_free(struct bag *b);
/* Takes 'thing', from malloc; returns it, or NULL (freed) without memory, also if it is NULL
 * itself. */
void *bag_keep(struct bag *b, void *thing);

/* 'path', relative to the folder of 'file'; malloced, NULL without memory. */
char *path_beside(const char *file, const char *path);

/* Fills h->ssh, h->address and h->origins. 'config' NULL: no SSH configuration is looked at. What
 * h->ssh points to is in inv->bag. */
int reach(struct inventory *inv, struct ssh_config *config, const struct entry *en, struct host *h,
	struct err *e);

#endif
