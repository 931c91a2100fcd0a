/*
 * The shards of a run (culprit run --shard i/n) taken as the run that they are parts of.
 */
#ifndef CULPRIT_HARNESS_CLI_SHARDS_H
#define CULPRIT_HARNESS_CLI_SHARDS_H

#include "harness/scenario/shard.h"
#include "harness/store/store.h"

/* Whether any of these runs is a shard. */
int shards_any(int n, char **folders, bool *any, struct err *e);

/* Opens a run or, if there are several, the shards of one as one run. -EINVAL for what are no
 * shards of one run (another scenario, seed, version, plan ...), and for a shard that is there
 * twice. Says on standard error, under the name of 'command', which shards are missing. */
int shards_open(const char *command, int n, char **folders, struct store **out, struct err *e);

/* "shard 2/3", "shards 2/5, 4/5": those that a list of {index, of} lacks; NULL: none. The caller
 * frees. */
char *shards_missing(const json_t *shards);

#endif
