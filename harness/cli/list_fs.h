/* culprit list file-systems: what each Lua file says of itself; are its programs here? */
#ifndef CULPRIT_HARNESS_CLI_LIST_FS_H
#define CULPRIT_HARNESS_CLI_LIST_FS_H

#include <jansson.h>
#include <stdbool.h>

#include "harness/base/err.h"

/* Of one file system, a name or a path; "" for all of culprit's own. New reference in '*out': a
 * list of {name, summary, functions, lost_errnos, errno_map, storage, empty_storage, cannot,
 * missing, lab: {layouts, params, managers, port, programs: [{name, package, here}]}}. What the
 * file omits is omitted. */
int list_fs_read(const char *which, json_t **out, struct err *e);

/* One line each, with 'details' more. */
void list_fs_print(const json_t *list, bool details);

#endif
