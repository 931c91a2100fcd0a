/*
 * The handlers of the operations (operations.def). Arguments have been checked against the table:
 * those required are there, and all have their type and range. A handler that fails fills 'e' and
 * returns the code; otherwise it answers 'id', now or later.
 */
#ifndef CULPRIT_HARNESS_AGENT_OPS_H
#define CULPRIT_HARNESS_AGENT_OPS_H

#include "harness/agent/agent.h"
#include "harness/base/auto.h"
#include "harness/base/jget.h"

struct child_spec;

typedef int (*op_fn)(struct agent *a, json_t *id, json_t *args, struct err *e);

#define OPERATION(handler, ...)                                                                    \
	int op_##handler(struct agent *a, json_t *id, json_t *args, struct err *e);
#include "harness/agent/operations.def"

/* Could a request of service.kill, .limit, .restart or fs.readonly with these arguments, which have
 * been checked, begin? Looks at the server and its storage, and changes nothing. */
int ops_service_able(struct agent *a, const char *op, const json_t *args, struct err *e);

/* The same of disk.degrade and disk.fail. If it could, 'e' has the name of the backend. */
int ops_disk_able(struct agent *a, const json_t *args, struct err *e);

/* Could a request of packets.drop or, with 'delay', packets.delay with these arguments (NULL: with
 * some) begin? 'why' also gets the backend's name. */
int ops_packets_able(const struct agent *a, const json_t *args, bool delay, struct err *why);

/* So, of group.limit: looks at the processes and their control group. */
int ops_group_able(const struct agent *a, const json_t *args, struct err *e);

/* The inverse of signal_stop for a process that no other act of this session stops (-EBUSY). */
int ops_stop_inverse(const struct agent *a, pid_t pid, json_t **inverse, struct err *e);

/* Starts 'culprit-agent PROGRAM [ARGUMENT]', which acts until it is undone, and writes what it has
 * done to its standard output, a file of one line of JSON. As child_start. */
int ops_start_acting(struct agent *a, struct handle *h, struct child_spec *s, const char *program,
	const char *argument, struct err *e);

/* What that file says; '*done' is NULL as long as it is empty. */
int ops_acting_done(const struct agent *a, const struct handle *h, json_t **done, struct err *e);

/* The argument, or 'missing'. Of the others jget.h is enough. */
double arg_number(const json_t *args, const char *name, double missing);

#endif
