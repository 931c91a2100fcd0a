/*
 * The group primitive: a server gets less processor time, or its memory is reclaimed as it uses
 * more, by a control group that holds nothing but the server's processes. cgroups(7).
 *
 * Version 1: the processes, which must be in one group, move into a new one below it, so that all
 * limits on that one still hold. What they fork follows. Undo moves all that is in the new group
 * back to where they were, and removes it.
 *
 * Version 2 allows no processes in a group with limited groups below it. There the limit is set on
 * the group in which the server is, if that holds the server alone: a service of systemd, a
 * container. Undo writes back what the file held.
 *
 * Memory is limited in version 2 alone: version 1 has no limit that slows a server down, and kills
 * where there is nothing to reclaim.
 */
#ifndef CULPRIT_FAULTS_PRIMITIVES_GROUP_H
#define CULPRIT_FAULTS_PRIMITIVES_GROUP_H

#include <stdint.h>
#include <sys/types.h>

#include "faults/primitives/primitive.h"

/* Names of new groups begin so. */
#define GROUP_PREFIX "culprit_"

struct group_spec {
	const json_t *pids; /* the server's processes; their descendants belong to them */
	double cpus;        /* processors; 0: no limit */
	double memory_pct;  /* of the memory that the group uses now; or 0, if 'cpus' is above 0 */
};

/* What group_act does and takes back; new reference. 'name' is that of a new group. Changes
 * nothing. -EINVAL: a limit that would not limit anything; -EOPNOTSUPP: this node cannot do it,
 * and why. */
int group_inverse(const struct group_spec *s, const char *name, json_t **inverse, struct err *e);

/* Half done on failure: undo follows. */
int group_act(const json_t *inverse, struct err *e);

struct group_usage {
	double throttled_s;          /* that the processes together waited for their quota */
	uint64_t periods, throttled; /* of the quota; in how many of them it was used up */
	uint64_t reclaims;           /* how often a process had to reclaim memory of the group */
};

/* Since the group was made: with version 2 that is before the act. -ENOENT: it is gone. */
int group_read(const json_t *inverse, struct group_usage *u, struct err *e);

#endif
