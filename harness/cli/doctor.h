/* Inside of culprit doctor: what is tried, and what came of it. */
#ifndef CULPRIT_CLI_DOCTOR_H
#define CULPRIT_CLI_DOCTOR_H

#include <jansson.h>
#include <stdbool.h>

#include "harness/inventory/inventory.h"

#define DOCTOR_SPACE_LIMIT_BYTES 1e9

enum level { LEVEL_OK, LEVEL_NOTE, LEVEL_BAD };

struct report {
	json_t *checks;    /* {where, what, level, text, short?} in order */
	const char *where; /* "here", a node's name, "cluster" or "faults" */
	bool bad;
	json_t *needs; /* programs of workloads, see harness/experiment/needs.h */
	bool asked;    /* ... of a scenario that was named: bad if they are missing */
};

__attribute__((format(printf, 4, 5))) void doctor_add(
	struct report *r, enum level level, const char *what, const char *fmt, ...);

/* As doctor_add; 'brief' is what stands in the table of nodes. */
__attribute__((format(printf, 5, 6))) void doctor_add_brief(struct report *r, enum level level,
	const char *what, const char *brief, const char *fmt, ...);

/* Whether workloads have their programs on 'n', a client, or (NULL) on this machine, for the
 * lab. */
void doctor_programs(struct report *r, struct node *n);

/* doctor_node.c: every host of the inventory, side by side. Fails only as contacts_new does. */
int doctor_nodes(struct report *r, const struct inventory *inv, struct err *e);

/* doctor_faults.c: the hosts as one cluster, and which faults can run on it; asks the faults
 * themselves. Goes only where every node was well, since it connects to all of them. */
void doctor_cluster(struct report *r, const char *inventory_path);

/* doctor_print.c: what is here, all of it; of a node one line and what is not well, then a table of
 * all; in 80 columns. */
void doctor_print(const json_t *checks);

/* Where each value of how a host is reached comes from. */
void doctor_print_ssh(const struct inventory *inv, bool json);

#endif
