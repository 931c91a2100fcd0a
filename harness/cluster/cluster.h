/*
 * Cluster: the inventory's hosts, connected, with what the file-system adapter found on them.
 */
#ifndef CULPRIT_HARNESS_CLUSTER_H
#define CULPRIT_HARNESS_CLUSTER_H

#include <jansson.h>

#include "harness/inventory/inventory.h"
#include "harness/remote/node.h"

struct member {
	const struct host *host;
	struct node *node;
	json_t *pids; /* array: the file system's processes there (servers' bricks, client daemons) */
	double offset_s; /* its clock minus ours */
	double offset_error_s;
	bool sampled; /* the sampler works there, and runs beside the tracer (sampling.h) */
};

struct cluster {
	struct inventory *inv;
	struct nodeset *set;
	double lease_s;         /* of the agents; 0: node_options' default */
	int interrupt_fd;       /* connecting gives up once this is readable; 0: never */
	struct member *members; /* in the inventory's order */
	size_t n_members;
	struct member **servers, **clients, **outsiders;
	size_t n_servers, n_clients, n_outsiders;
};

/* Loads the inventory at 'path'. No host is contacted: members' node is NULL until
 * cluster_connect. */
int cluster_load(const char *path, struct cluster **out, struct err *e);

/* Connects to every host, measures clocks, fills in what the inventory leaves out, finds the file
 * system's processes. -EBUSY when a node is quarantined: an earlier fault's undo takes its time
 * there. -ENOENT, -ENOTUNIQ when what is left out cannot be found, or is ambiguous; -ENOENT when a
 * server's or client's processes are not there, with where it was looked. */
int cluster_connect(struct cluster *c, struct err *e);

/* Finds the file system's processes anew; as cluster_connect does. */
int cluster_find_processes(struct cluster *c, struct err *e);

/* Waits until every client can use every server, 'patience_s' at most: after servers were
 * restarted, clients take their time to come back. -ETIMEDOUT with the last complaint. */
int cluster_wait_healthy(struct cluster *c, double patience_s, struct err *e);

/* Says bye; the cluster can be connected again. */
void cluster_disconnect(struct cluster *c);
void cluster_free(struct cluster *c);

/* The member of 'node', or NULL. */
struct member *cluster_member(struct cluster *c, const char *name);

/* True if any node is lost; 'why' says which and how. */
bool cluster_lost(struct cluster *c, struct err *why);

#endif
