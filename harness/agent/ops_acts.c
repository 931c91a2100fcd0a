/* Ops on processes that we did not start: their limits, and stopping them. */
#include <errno.h>
#include <string.h>

#include "faults/primitives/limits.h"
#include "faults/primitives/signal.h"
#include "harness/agent/agent.h"

static int pid_of(const struct agent *a, const json_t *args, pid_t *pid, struct err *e)
{
	json_int_t value = json_integer_value(json_object_get(args, "pid"));

	if (value <= 1 || value > 0x7fffffff)
		return err_set(e, -EINVAL, "pid must be the number of a process above 1, not %lld",
			(long long)value);
	if (value == guard_pid(a->guard))
		return err_set(e, -EINVAL, "process %lld is the agent's guard", (long long)value);
	*pid = (pid_t)value;
	return 0;
}

/* Two acts of one kind on one thing: the second's inverse would be what the first did. */
static int not_held(const struct agent *a, enum handle_kind kind, const json_t *inverse,
	const char *key, struct err *e)
{
	for (const struct handle *h = a->handles; h; h = h->next) {
		if (h->kind != kind ||
			!json_equal(json_object_get(h->inverse, "pid"),
				json_object_get(inverse, "pid")) ||
			!json_equal(json_object_get(h->inverse, "start_ticks"),
				json_object_get(inverse, "start_ticks")) ||
			(key &&
				!json_equal(json_object_get(h->inverse, key),
					json_object_get(inverse, key))))
			continue;
		return err_set(e, -EBUSY, "'%s' holds that of process %lld already", h->name,
			(long long)json_integer_value(json_object_get(inverse, "pid")));
	}
	return 0;
}

/* Records 'inverse' (stolen) as a handle of its own. Once it is there the caller acts, and
 * then says how that went to end_act. */
static int begin_act(struct agent *a, enum handle_kind kind, const char *primitive, json_t *inverse,
	double max_s, struct handle **out, struct err *e)
{
	struct handle *h = handle_new(a, kind);
	int rc;

	if (!h) {
		json_decref(inverse);
		return err_errno(e, -ENOMEM, "cannot act");
	}
	h->inverse = inverse;
	rc = handle_record(a, h, primitive, max_s, e);
	if (rc)
		handle_free(a, h);
	else
		*out = h;
	return rc;
}

static int end_act(struct agent *a, json_t *id, struct handle *h, int rc)
{
	guard_acted(a->guard, h->name);
	if (rc) {
		guard_undo(a->guard, h->name);
		handle_free(a, h);
		return rc;
	}
	agent_answer(a, id, json_pack("{s:s}", "handle", h->name));
	return 0;
}

int op_limits_get(struct agent *a, json_t *id, json_t *args, struct err *e)
{
	json_t *limits;
	pid_t pid;
	int rc = pid_of(a, args, &pid, e);

	if (!rc)
		rc = limits_read(pid, &limits, e);
	if (!rc)
		agent_answer(a, id, limits);
	return rc;
}

int op_limits_set(struct agent *a, json_t *id, json_t *args, struct err *e)
{
	const char *resource = json_string_value(json_object_get(args, "resource"));
	json_int_t soft = json_integer_value(json_object_get(args, "soft"));
	json_t *inverse = NULL;
	struct handle *h;
	double max_s = 0;
	pid_t pid;
	int rc;

	rc = agent_seconds(args, "max_s", 1e6, &max_s, e);
	if (!rc)
		rc = pid_of(a, args, &pid, e);
	if (!rc)
		rc = limits_inverse(pid, resource, &inverse, e);
	if (!rc)
		rc = not_held(a, HANDLE_LIMIT, inverse, "resource", e);
	if (rc) {
		json_decref(inverse);
		return rc;
	}
	rc = begin_act(a, HANDLE_LIMIT, "limits", inverse, max_s, &h, e);
	return rc ? rc : end_act(a, id, h, limits_set(h->inverse, soft, e));
}

int op_signal_stop(struct agent *a, json_t *id, json_t *args, struct err *e)
{
	json_t *inverse = NULL;
	struct handle *h;
	double max_s = 0;
	pid_t pid;
	int rc;

	rc = agent_seconds(args, "max_s", 1e6, &max_s, e);
	if (!rc)
		rc = pid_of(a, args, &pid, e);
	if (!rc)
		rc = signal_inverse(pid, &inverse, e);
	if (!rc)
		rc = not_held(a, HANDLE_STOP, inverse, NULL, e);
	if (rc) {
		json_decref(inverse);
		return rc;
	}
	rc = begin_act(a, HANDLE_STOP, "signal", inverse, max_s, &h, e);
	return rc ? rc : end_act(a, id, h, signal_stop(h->inverse, e));
}
