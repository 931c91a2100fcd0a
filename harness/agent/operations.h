/*
 * The agent's operations: one table (operations.def) for both ends of the protocol.
 *
 * The agent checks a request against it and dispatches from it (dispatch.c). The orchestrator takes
 * from it the methods of Lua's nodes and handles, which operations restart a server, which may be
 * sent again, and how long to wait for an answer. The list in PROTOCOL.md is generated from it
 * (ci/tests/agent/protocol_test.c).
 *
 * operations.c knows no handler, so the orchestrator links it without the rest of the agent.
 */
#ifndef CULPRIT_HARNESS_AGENT_OPERATIONS_H
#define CULPRIT_HARNESS_AGENT_OPERATIONS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "harness/base/err.h"

enum op_type {
	OP_TEXT,
	OP_WORD,     /* not empty, and no option: it becomes an argument of a program */
	OP_ABSOLUTE, /* a path from the root */
	OP_INTEGER,
	OP_NUMBER,
	OP_BOOLEAN,
	OP_TEXTS,    /* at least one, and at most 'most' of them */
	OP_INTEGERS, /* at least one, each within the range */
	OP_TEXT_OBJECT,
	OP_OBJECT,
};

const char *op_type_name(enum op_type type);

struct op_argument {
	const char *name; /* NULL ends a list */
	enum op_type type;
	bool required;
	const char *doc;
	double above, most;                /* above < value <= most; most 0: any */
	const char *choices;               /* "in|out"; NULL: any */
	const struct op_argument *members; /* of an OP_OBJECT */
};

enum op_effect {
	OP_ASKS, /* only looks, so it may be sent again when no answer came */
	OP_RUNS, /* does something once, to its end */
	OP_ACTS, /* leaves a handle, which 'undo' or the end of the session takes back */
	OP_ENDS, /* takes a handle, or the session, back */
};

struct operation {
	const char *name;
	enum op_effect effect;
	bool restarts;      /* it or its undo may end a server: the inventory must allow restarts */
	const char *method; /* in Lua, "Node:hold" or "Handle:undo"; NULL: none */
	unsigned wait_s; /* longest sensible wait for the answer, beyond a 'timeout_s' argument */
	const char *doc, *result;
	const struct op_argument *arguments;
};

extern const struct operation operations[];
extern const size_t n_operations;

/* NULL if there is none of this name. */
const struct operation *operation_find(const char *name);

/* -EINVAL with a sentence if 'request' has an argument that the operation does not, lacks one that
 * it needs, or has one of a wrong type or out of its range. Members "id" and "op" are skipped. */
int operation_check(const struct operation *op, const json_t *request, struct err *e);

#endif
