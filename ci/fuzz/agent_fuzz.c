/* The agent's reader of requests: a line becomes a call of a handler with arguments as the table of
 * operations declares them, or it is refused with a message. The handlers themselves do not run,
 * since they change the machine. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "harness/agent/operations.h"
#include "harness/agent/ops.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned outcomes;

void agent_refuse(struct agent *a, json_t *id, int code, const struct err *e)
{
	(void)a;
	if (code >= 0 || !*e->text || (id && !json_is_integer(id)))
		abort();
	outcomes++;
}

void agent_end(struct agent *a, int exit_code, const char *why)
{
	(void)a;
	if (exit_code != 2 || !*why)
		abort();
	outcomes++;
}

void guard_beat(struct guard *g)
{
	(void)g;
}

/* No handler runs here, so none has begun an act. */
void handle_free(struct agent *a, struct handle *h)
{
	(void)a;
	if (h)
		abort();
}

static bool is_promised(const struct op_argument *arg, const json_t *value)
{
	if (!value)
		return !arg->required;
	switch (arg->type) {
	case OP_TEXT:
	case OP_WORD:
	case OP_ABSOLUTE: return json_is_string(value);
	case OP_INTEGER: return json_is_integer(value);
	case OP_NUMBER: return json_is_number(value);
	case OP_BOOLEAN: return json_is_boolean(value);
	case OP_TEXTS:
	case OP_INTEGERS: return json_array_size(value) > 0;
	default: return json_is_object(value);
	}
}

/* What every handler may rely on. */
static int promised(const struct operation *op, json_t *id, json_t *args)
{
	if (!json_is_integer(id) || !json_is_object(args))
		abort();
	for (const struct op_argument *arg = op->arguments; arg->name; arg++)
		if (!is_promised(arg, json_object_get(args, arg->name)))
			abort();
	outcomes++;
	return 0;
}

#define OPERATION(handler, name, ...)                                                              \
	int op_##handler(struct agent *a, json_t *id, json_t *args, struct err *e)                 \
	{                                                                                          \
		(void)a, (void)e;                                                                  \
		return promised(operation_find(name), id, args);                                   \
	}
#include "harness/agent/operations.def"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct agent a = {0};

	outcomes = 0;
	agent_line(&a, (const char *)data, size);
	/* Every line has exactly one answer. */
	if (outcomes != 1)
		abort();
	return 0;
}
