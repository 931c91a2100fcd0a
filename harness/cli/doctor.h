/* Inside culprit doctor: the checks and their results. */
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
	const struct inventory *inventory; /* or NULL */
	json_t *needs; /* programs of workloads, see harness/experiment/needs.h */
	bool asked;    /* a scenario was named: missing programs are bad, not only noted */
};

/* Adds the result of a check. 'brief' stands in the table of nodes. */
__attribute__((format(printf, 5, 6))) void doctor_add_brief(struct report *r, enum level level,
	const char *what, const char *brief, const char *fmt, ...);
#define doctor_add(r, level, what, ...) doctor_add_brief(r, level, what, NULL, __VA_ARGS__)

/* Checks the workloads' programs on 'n', a client, or (NULL) on this machine. */
void doctor_programs(struct report *r, struct node *n);

/* doctor_node.c: checks all hosts in parallel. Fails only as contacts_new does. */
int doctor_nodes(struct report *r, struct err *e);

/* doctor_faults.c: checks the cluster as a whole, and which faults can run, by their own checks.
 * It connects to all nodes, so every one must have passed. */
void doctor_cluster(struct report *r);

/* doctor_print.c: prints in 80 columns all checks of this machine, then for each node a line and
 * what is not ok, then a table of the nodes. */
void doctor_print(const json_t *checks);

/* Prints how each host would be reached, and where each value comes from. */
void doctor_print_ssh(const struct inventory *inv, bool json);

#endif
