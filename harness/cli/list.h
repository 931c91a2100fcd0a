/* What the files of 'culprit list' share. */
#ifndef CULPRIT_HARNESS_CLI_LIST_H
#define CULPRIT_HARNESS_CLI_LIST_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "harness/base/err.h"

/* ---- list_fs.c ---- */

/* culprit list file-systems: what each Lua file says of itself; are its programs here? */

/* Of one file system, a name or a path; "" for all of culprit's own. New reference in '*out': a
 * list of {name, summary, functions, lost_errnos, errno_map, storage, empty_storage, cannot,
 * missing, lab: {layouts, params, managers, port, programs: [{name, package, here}]}}. What the
 * file omits is omitted. */
int list_fs_read(const char *which, json_t **out, struct err *e);

/* One line each, with 'details' more. */
void list_fs_print(const json_t *list, bool details);

/* ---- list_scenarios.c ---- */

/* culprit's own scenarios, by name. */

/* Prints name and summary of each and, if 'details', its size; or, if 'json' is not NULL, appends
 * {name, summary, path, workloads, faults, detectors, repeats, seconds_a_cell}. */
int list_scenarios(bool details, json_t *json, struct err *e);

/* Prints the names that begin so, a line each. */
void list_scenario_names(FILE *f, const char *begun);

#endif
