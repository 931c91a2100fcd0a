/*
 * The environment of a run in a few lines below its table: scenario, hosts, times, and how busy
 * processors, disks and networks were in fault-free cells, by the samplers' readings. In a lab all
 * nodes share the same processors.
 */
#ifndef CULPRIT_CLI_ENVIRONMENT_H
#define CULPRIT_CLI_ENVIRONMENT_H

#include "harness/store/store.h"

struct environment;

/* What was not recorded is left out. */
int environment_new(struct store *s, struct environment **out, struct err *e);
void environment_free(struct environment *env);

/* Of one environment; borrowed. */
const char *const *environment_lines(const struct environment *env, size_t *n);

#endif
