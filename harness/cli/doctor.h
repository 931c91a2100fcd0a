/* Inside culprit doctor: the checks and their results. */
#ifndef CULPRIT_HARNESS_CLI_DOCTOR_H
#define CULPRIT_HARNESS_CLI_DOCTOR_H

#include <jansson.h>
#include <stdbool.h>

#include "harness/nodes/inventory.h"
#include "harness/scenario/plan.h"

#define DOCTOR_SPACE_LIMIT_BYTES 1e9

enum level { LEVEL_OK, LEVEL_NOTE, LEVEL_BAD };

struct report {
	json_t *checks;    /* {where, what, level, text, short?} in order */
	const char *where; /* "here", a node's name, "cluster" or "faults" */
	bool bad;
	const struct inventory *inventory; /* or NULL */
	json_t *needs;                     /* programs of workloads, see harness/run/needs.h */
	/* Or NULL. One was named: what its workloads lack is bad, not only noted; its faults are
	 * checked first. */
	const struct scenario *scenario;
	struct plan_limits limits;
};

/* Adds the result of a check. 'brief' stands in the table of nodes. */
__attribute__((format(printf, 5, 6))) void doctor_add_brief(struct report *r, enum level level,
	const char *what, const char *brief, const char *fmt, ...);
#define doctor_add(r, level, what, ...) doctor_add_brief(r, level, what, NULL, __VA_ARGS__)

/* Checks the workloads' programs on 'n', a client, or (NULL) on this machine. */
void doctor_programs(struct report *r, struct node *n);

/* doctor_node.c: checks all hosts in parallel. Fails only as contacts_new does. */
int doctor_nodes(struct report *r, struct err *e);

/* Judges a node's clock by its offset from ours, which is known to within 'error_s'. */
void doctor_add_clock(struct report *r, double offset_s, double error_s);

/* doctor_fs.c: calls every function of the file system's Lua file on the node. */
struct contact;
void doctor_fs_node(struct report *r, struct contact *c);

/* doctor_fs.c: what the Lua file says that faults and workloads cannot do. */
void doctor_fs(struct report *r);

/* doctor_scenario.c: loads the scenario and all its files, and complains of the first mistake of
 * each. 'inventory' may be NULL: the scenario's, if it names one. 'needs' gets what its workloads
 * need. Returns an exit code; with 0 '*out' is the scenario, which the caller frees. */
int doctor_scenario(const char *name, const char *inventory, json_t *needs, struct scenario **out);

/* doctor_faults.c: checks the cluster as a whole, and which faults can run, by their own checks.
 * It connects to all nodes, so every one must have passed. */
void doctor_cluster(struct report *r);

/* doctor_errnos.c: a run without a fault, then one in which each fault that makes calls fail hits
 * one server, and prints what applications saw. Gives up when the first fails. Their files are
 * removed in any case. 'inventory' may be NULL: as for 'culprit run'. Returns an exit code. */
int doctor_learn_errnos(const char *inventory);

/* Its second half: what the two runs in these folders show of each fault, and lines for a file
 * system's Lua file. -ENOENT: one of them has no attempt that counts. */
int doctor_show_errnos(const char *control, const char *faults, struct err *e);

/* doctor_print.c: prints in 80 columns all checks of this machine, then for each node a line and
 * what is not ok, then a table of the nodes. */
void doctor_print(const json_t *checks);

/* Prints how each host would be reached, and where each value comes from. */
void doctor_print_ssh(const struct inventory *inv, bool json);

#endif
