/*
 * Needs: the programs that workloads run on clients, whether they are there, and how to get them.
 *
 * A list of needs is a JSON array of {program, package (or null), workloads: [name, ...]}, by first
 * mention.
 */
#ifndef CULPRIT_HARNESS_RUN_NEEDS_H
#define CULPRIT_HARNESS_RUN_NEEDS_H

#include "harness/nodes/node.h"
#include "harness/scenario/part.h"

/* Adds what the workload names in 'needs' and 'packages' to the list. -EINVAL with the file where
 * it is malformed. */
int needs_add(lua_State *L, const struct part *workload, json_t *list, struct err *e);

/* The entries whose program the node (NULL: this machine) does not find in its PATH: a new list,
 * borrowing none. */
int needs_missing(struct node *n, const json_t *list, json_t **missing, struct err *e);

/* "iozone (workloads iozonew, iozoner); on Debian: apt-get install iozone3, from non-free" */
char *needs_text(const json_t *entry, char *buf, size_t size);

#endif
