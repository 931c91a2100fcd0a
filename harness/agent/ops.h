/*
 * The handlers of the operations (operations.def). Arguments have been checked against the table:
 * those required are there, and all have their type and range. A handler that fails fills 'e' and
 * returns the code; otherwise it answers 'id', now or later.
 */
#ifndef CULPRIT_AGENT_OPS_H
#define CULPRIT_AGENT_OPS_H

#include "harness/agent/agent.h"

typedef int (*op_fn)(struct agent *a, json_t *id, json_t *args, struct err *e);

#define OPERATION(handler, ...)                                                                    \
	int op_##handler(struct agent *a, json_t *id, json_t *args, struct err *e);
#include "harness/agent/operations.def"

/* The argument, or what stands in for one that is missing. */
const char *arg_text(const json_t *args, const char *name);
double arg_number(const json_t *args, const char *name, double missing);
json_int_t arg_integer(const json_t *args, const char *name);

#endif
