/* Prints verdicts: which servers are indicted, by which metric, since when, on what evidence. */
#ifndef CULPRIT_HARNESS_CLI_VERDICTS_H
#define CULPRIT_HARNESS_CLI_VERDICTS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "harness/base/err.h"

/* 'verdicts': [{what, detector, verdict, ...}], grouped by 'what'. As JSON, all of it; else a line
 * for each detector, and one for each metric that indicts a server. Returns what outfile_flush
 * does. */
int verdicts_print(const json_t *verdicts, bool json, bool evidence, FILE *out, struct err *e);

#endif
