/* Verdicts for people: who is indicted, by which metric, since when, and on what evidence. */
#ifndef CULPRIT_CLI_VERDICTS_H
#define CULPRIT_CLI_VERDICTS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* 'verdicts': [{what, detector, verdict, ...}]; what is alike comes together. As JSON, all of it;
 * else a line a detector, and one for each metric that indicts. 0, or -EIO. */
int verdicts_print(const json_t *verdicts, bool json, bool evidence, FILE *out);

#endif
