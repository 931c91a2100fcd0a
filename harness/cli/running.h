/*
 * What 'culprit run' and 'culprit resume' share: from a scenario and an inventory to an executor,
 * and from the end of its run to an exit code.
 */
#ifndef CULPRIT_HARNESS_CLI_RUNNING_H
#define CULPRIT_HARNESS_CLI_RUNNING_H

#include <stdbool.h>

#include "harness/cli/on_end.h"
#include "harness/cli/tables.h"
#include "harness/run/executor.h"

struct run_options {
	const char *scenario, *folder, *only, *inventory, *tracer, *second;
	long repeats, seed; /* negative: the scenario's */
	double lease_s;
	struct shard shard;
	long max_victims; /* 0: any number */
	struct option_list never;
	bool dry_run, quiet, retry_aborted;
	struct on_end_options on_end;
	struct outcome_options outcome;
};

/* Loads the scenario and the inventory and makes the plan. Sets o->inventory to the inventory's
 * path if it is NULL. */
int running_prepare(struct executor *x, struct run_options *o, struct err *e);

/* [{name, params}]. New reference. */
json_t *running_detectors(const struct scenario *s);

/* Makes the judge of a run's store, unless run times are measured. 'store' NULL: a judge that only
 * shows that all detectors load. */
int running_judge(const struct executor *x, struct store *store, struct judge **out, struct err *e);

int running_set_json(struct store *s, const char *key, const json_t *v, struct err *e);

/* Prints how the run went, complaints under the name of 'command', runs the command of --on-end,
 * and returns the exit code. 'rc' and 'why': the error that ended it. */
int running_conclude(struct executor *x, const char *command, const struct run_options *o, int rc,
	struct err *why);

void running_clear(struct executor *x);

#endif
