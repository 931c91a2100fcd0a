/*
 * A Lua condition that has a flight recorder written: a file that returns
 *
 *     { pause = "60s",              -- at least so long between two writings; that is the default
 *       when = function(now)        -- about once a second; a text: write, for this reason
 *         if now.nodes.s1.load.iowait_s > 0.9 * now.nodes.s1.load.seconds then
 *           return "s1 waits for its disk"
 *         end
 *       end }
 *
 * now = { seconds = since the capture began, nodes = { NAME = { role = "server" or "client",
 * load = what the agent's operation 'load' tells (harness/agent/PROTOCOL.md) } } }. Locals of the
 * file keep their values from call to call.
 */
#ifndef CULPRIT_HARNESS_SCENARIO_TRIGGER_H
#define CULPRIT_HARNESS_SCENARIO_TRIGGER_H

#include <jansson.h>

#include "harness/base/err.h"

struct trigger;

/* -EINVAL with FILE:LINE. */
int trigger_open(const char *path, struct trigger **out, struct err *e);
void trigger_close(struct trigger *t); /* NULL is fine */

/* 1 with the reason in 'why'; 0: not now, or its pause is not over; -errno with FILE:LINE. */
int trigger_ask(struct trigger *t, const json_t *now, char why[256], struct err *e);

#endif
