/* Prints verdicts: which servers are indicted, by which metric, since when, on what evidence. */
#ifndef CULPRIT_CLI_VERDICTS_H
#define CULPRIT_CLI_VERDICTS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* 'verdicts': [{what, detector, verdict, ...}], grouped by 'what'. As JSON, all of it; else a line
 * for each detector, and one for each metric that indicts a server. 0, or -EIO. */
int verdicts_print(const json_t *verdicts, bool json, bool evidence, FILE *out);

#endif
