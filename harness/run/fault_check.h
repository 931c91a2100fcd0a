/* Whether a fault can run on a cluster, asked before an attempt. */
#ifndef CULPRIT_HARNESS_RUN_FAULT_CHECK_H
#define CULPRIT_HARNESS_RUN_FAULT_CHECK_H

#include "harness/run/bind_node.h"

/* What the file system's own file says, so no host is asked: -EOPNOTSUPP with the reason why
 * 'fault' cannot run on it. */
int fault_allowed(const struct cluster *c, const struct part *fault, struct err *e);

/* That, and then the fault's 'check' for every server, since each may become its victim.
 * -EOPNOTSUPP with the reason why it cannot run. Other errors are the check's own. */
int fault_check(lua_State *L, struct acts *acts, struct cluster *c, const struct part *fault,
	const char *run_id, struct err *e);

#endif
