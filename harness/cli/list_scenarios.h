/* culprit's own scenarios, by name. */
#ifndef CULPRIT_HARNESS_CLI_LIST_SCENARIOS_H
#define CULPRIT_HARNESS_CLI_LIST_SCENARIOS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "harness/base/err.h"

/* Prints name and summary of each and, if 'details', its size; or, if 'json' is not NULL, appends
 * {name, summary, path, workloads, faults, detectors, repeats, seconds_a_cell}. */
int list_scenarios(bool details, json_t *json, struct err *e);

/* Prints the names that begin so, a line each. */
void list_scenario_names(FILE *f, const char *begun);

#endif
