/* JSON Schemas of what commands print with --json: results/schemas/COMMAND.json, "lab-status" for
 * 'lab status'. Which commands these are is read from their options. */
#ifndef CULPRIT_HARNESS_CLI_SCHEMAS_H
#define CULPRIT_HARNESS_CLI_SCHEMAS_H

#include <stdio.h>

#include "harness/cli/options.h"

/* Each command that has --json, and the file of its schema, a line each. -ENOENT, after the lines,
 * if a file is missing. */
int schemas_list(FILE *out, struct err *e);

/* The schema of one command, or -EINVAL if it has no --json. */
int schemas_print(const struct command *c, FILE *out, struct err *e);

#endif
