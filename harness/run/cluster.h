/*
 * Cluster: the inventory's hosts, connected, with what the file-system adapter found on them.
 */
#ifndef CULPRIT_HARNESS_RUN_CLUSTER_H
#define CULPRIT_HARNESS_RUN_CLUSTER_H

#include <jansson.h>

#include "harness/nodes/inventory.h"
#include "harness/nodes/node.h"

struct member {
	const struct host *host;
	const char *name; /* of the host */
	struct node *node;
	json_t *pids;    /* array: the file system's processes (servers' bricks, client daemons) */
	double offset_s; /* its clock minus ours */
	double offset_error_s;
	/* Servers whose storage is a block device: its number, "7:5"; else "". */
	char storage_device[24];
	bool sampled; /* the sampler works there (harness/run/prepare.h) */
	bool never;   /* no fault may act there (cluster_protect) */
};

struct cluster {
	struct inventory *inv;
	json_t *file_system; /* fs_facts, and the inventory's layout */
	json_t *bulk;        /* which of its messages are bulk data: harness/fs/bulk.h */
	struct nodeset *set;
	double lease_s;         /* of the agents; 0: node_options' default */
	int interrupt_fd;       /* connecting stops once this is readable; 0: never */
	struct member *members; /* in the inventory's order */
	size_t n_members;
	struct member **servers, **clients, **outsiders;
	size_t n_servers, n_clients, n_outsiders;
};

/* A loop over the members. */
#define cluster_each(m, c)                                                                         \
	for (struct member *m = (c)->members; m < (c)->members + (c)->n_members; m++)

/* Loads the inventory at 'path', and the adapter of its file system. No host is contacted: members'
 * node is NULL until cluster_connect. */
int cluster_load(const char *path, struct cluster **out, struct err *e);

/* No fault may act on these nodes: calls of Lua that would are refused. -ENOENT: the inventory has
 * no such node. */
int cluster_protect(struct cluster *c, const char *const names[], size_t n, struct err *e);

/* Connects to every host, measures clocks, finds what the inventory leaves out and the file
 * system's processes. -EBUSY: a node is quarantined, an earlier fault's undo is still under way
 * there. -ENOENT, -ENOTUNIQ: what the inventory leaves out is not found, or is ambiguous; -ENOENT
 * also when a server or client has no process of the file system. -EKEYREJECTED: a host key is not
 * the known one. The class is ERR_SCENARIO where the inventory must be mended, else ERR_CLUSTER. */
int cluster_connect(struct cluster *c, struct err *e);

/* Finds the file system's processes again, as cluster_connect does. */
int cluster_find_processes(struct cluster *c, struct err *e);

/* Seconds that a client's probe has. */
#define CLUSTER_PROBE_S 30

/* Waits until every client can use every server, for at most 'patience_s': clients need a while to
 * find a restarted server. -ETIMEDOUT with the last failure. */
int cluster_wait_healthy(struct cluster *c, double patience_s, struct err *e);

/* Makes a request's arguments for one member: 0 with '*args' (NULL: no arguments), 1 to leave the
 * member out, or a negative errno. */
typedef int (*cluster_args_fn)(void *ctx, const struct member *m, json_t **args, struct err *e);

/* Sends 'op' to the members side by side; 'args' NULL: to all, without arguments. '*results' (may
 * be NULL) is {name: result} of those that answered, in case of errors as well: a new reference.
 * Returns the first failure, blamed as by cluster_blame. */
int cluster_ask(struct cluster *c, const char *op, cluster_args_fn args, void *ctx,
	double timeout_s, json_t **results, struct err *e);

/* What servers and clients have done since the last look, for a trigger
 * (harness/scenario/trigger.h): {name: {"role": "server" or "client", "load": result of the
 * operation 'load'}}. Others' questions for the load do not notice. New reference. */
int cluster_look(struct cluster *c, double timeout_s, json_t **out, struct err *e);

/* The cluster for a reader of its logs, as harness/judging/places.h has it. New reference. -ENOENT:
 * a server's address cannot be resolved. */
int cluster_describe(const struct cluster *c, json_t **out, struct err *e);

/* Blames a failed call of a node and returns 'rc'. -EINVAL is the agent's code for malformed
 * arguments, which follow from the scenario: ERR_SCENARIO. Any other failure is ERR_CLUSTER. */
int cluster_blame(int rc, struct err *e);

/* Closes the connections; the cluster can be connected again. */
void cluster_disconnect(struct cluster *c);
void cluster_free(struct cluster *c);

/* The member of 'node', or NULL. */
struct member *cluster_member(struct cluster *c, const char *name);

/* True if any node is lost; 'why' says which and how. */
bool cluster_lost(struct cluster *c, struct err *why);

#endif
