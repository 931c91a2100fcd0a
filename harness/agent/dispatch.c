/* From a line of input to a handler. operations.def says what a request may hold. */
#include <errno.h>
#include <string.h>

#include "harness/agent/handle.h"
#include "harness/agent/operations.h"
#include "harness/agent/ops.h"
#include "harness/base/auto.h"

static const op_fn handlers[] = {
#define OPERATION(handler, ...) op_##handler,
#include "harness/agent/operations.def"
};

double arg_number(const json_t *args, const char *name, double missing)
{
	const json_t *v = json_object_get(args, name);

	return v ? json_number_value(v) : missing;
}

static int dispatch(struct agent *a, json_t *id, json_t *request, struct err *e)
{
	const char *name = jget_text(request, "op");
	const struct operation *op;
	int rc;

	if (!json_is_integer(id))
		return err_set(e, -EINVAL, "a request needs an integer 'id'");
	if (!name)
		return err_set(e, -EINVAL, "a request needs a string 'op'");
	op = operation_find(name);
	if (!op)
		return err_set(e, -ENOSYS, "there is no op '%s'", name);
	a->begun = NULL;
	rc = operation_check(op, request, e) ?: handlers[op - operations](a, id, request, e);
	if (rc)
		handle_free(a, a->begun);
	return rc;
}

void agent_line(struct agent *a, const char *line, size_t size)
{
	auto_json json_t *request = json_loadb(line, size, JSON_REJECT_DUPLICATES, NULL);
	json_t *id = jget(request, "id");
	struct err e;
	int rc;

	guard_beat(a->guard);
	if (!json_is_object(request)) {
		agent_end(a, 2, "a line was not a JSON object");
		return;
	}
	rc = dispatch(a, id, request, &e);
	if (rc)
		agent_refuse(a, json_is_integer(id) ? id : NULL, rc, &e);
}
