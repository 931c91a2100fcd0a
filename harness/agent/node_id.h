/* Which node, since which boot: the boot, and the namespaces that the agent lives in. */
#ifndef CULPRIT_HARNESS_AGENT_NODE_ID_H
#define CULPRIT_HARNESS_AGENT_NODE_ID_H

#include "harness/base/err.h"

struct node_id {
	char boot_id[40];
	char net[40], pid[40]; /* "net:[4026531840]" */
};

int node_id_read(struct node_id *id, struct err *e);

#endif
