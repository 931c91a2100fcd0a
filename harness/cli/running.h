/*
 * What 'culprit run' and 'culprit resume' share: from a scenario and an inventory to an executor,
 * and from the end of its run to an exit code.
 */
#ifndef CULPRIT_CLI_RUNNING_H
#define CULPRIT_CLI_RUNNING_H

#include <stdbool.h>

#include "harness/cli/outcome.h"
#include "harness/experiment/executor.h"

struct run_options {
	const char *scenario, *folder, *only, *inventory, *tracer, *second;
	long repeats, seed; /* negative: the scenario's */
	double lease_s;
	bool dry_run, quiet;
	struct outcome_options outcome;
};

/* Loads the scenario and the inventory and makes the plan. '*inventory' gets the inventory's
 * path. */
int running_prepare(
	struct executor *x, const struct run_options *o, const char **inventory, struct err *e);

/* [{name, params}] and [names]. New references. */
json_t *running_detectors(const struct scenario *s);
json_t *running_servers(const struct cluster *c);

int running_set_json(struct store *s, const char *key, const json_t *v, struct err *e);

/* Prints how the run went, complaints under the name of 'command', and returns the exit code. 'rc'
 * and 'why': the error that ended it. */
int running_conclude(struct executor *x, const char *command, const struct outcome_options *o,
	int rc, const struct err *why);

void running_clear(struct executor *x);

#endif
