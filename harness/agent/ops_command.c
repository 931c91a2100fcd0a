#include <errno.h>

#include "faults/primitives/command.h"
#include "harness/agent/agent.h"

#define UNDO_S 30

int op_command(struct agent *a, json_t *id, json_t *args, struct err *e)
{
	json_t *max = json_object_get(args, "max_s");
	struct handle *h;
	int rc;

	if (max && !(json_number_value(max) > 0 && json_number_value(max) <= 1e6))
		return err_set(e, -EINVAL, "max_s must be above 0 and at most 1000000, not %g",
			json_number_value(max));
	h = handle_new(a, HANDLE_COMMAND);
	if (!h ||
		!(h->inverse = command_inverse(json_object_get(args, "inverse"),
			  json_object_get(args, "check"), UNDO_S))) {
		rc = err_errno(e, -ENOMEM, "cannot run a command");
		goto out;
	}
	rc = handle_record(a, h, "command", max ? json_number_value(max) : 0, e);
	if (rc)
		goto out;
	/* We hear nobody meanwhile, so it must be over well before the lease is. */
	rc = command_act(json_object_get(args, "argv"), a->lease_s / 2, e);
	guard_acted(a->guard, h->name);
	if (rc) {
		guard_undo(a->guard, h->name);
		goto out;
	}
	agent_answer(a, id, json_pack("{s:s}", "handle", h->name));
	h = NULL;
out:
	if (h)
		handle_free(a, h);
	return rc;
}
