/*
 * The environment of a run in a few lines below its table: scenario, hosts, times, and how busy
 * processors, disks and networks were in fault-free cells, by the samplers' readings. In a lab all
 * nodes share the same processors.
 */
#ifndef CULPRIT_HARNESS_CLI_ENVIRONMENT_H
#define CULPRIT_HARNESS_CLI_ENVIRONMENT_H

#include "harness/store/store.h"

struct environment {
	char *lines[64];
	size_t n;
};

/* What was not recorded is left out. '*env' is empty before; the caller clears it in any case. */
int environment_read(struct store *s, struct environment *env, struct err *e);
void environment_clear(struct environment *env);

#endif
