/* What earlier sessions left on the node. */
#ifndef CULPRIT_AGENT_CLEAN_H
#define CULPRIT_AGENT_CLEAN_H

#include "harness/agent/agent.h"

/* Undoes it, waiting for 5 s at most. The arrays get: names of what was undone; sentences on
 * journals that could not be undone; sentences on what is still being undone. */
void clean_left(struct agent *a, json_t *cleaned, json_t *unclean, json_t *quarantined);

#endif
